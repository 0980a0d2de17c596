//! Checks whether a controller gives the same commands again.

use std::io::{self, Read};

use controller::{Command, Controller, Nanos};

use crate::header::{OddLimits, policy};
use crate::reader::{End, Item, Recording};
use crate::record::{Entry, Event, bytes_of};

/// Result of checking a recording.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// All entries that can be compared are identical.
    Identical(Checked),
    /// The first entry that differs.
    Differs(Box<Difference>),
}

/// What was compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Number of inputs.
    pub inputs: u64,
    /// Number of commands, including those at creation.
    pub commands: u64,
    /// Nanoseconds from the first entry to the last.
    pub recorded_ns: Nanos,
    /// Number of inputs lost at this point. What follows cannot be compared.
    pub lost_inputs: Option<u64>,
    /// How the recording ends, if it was read to the end.
    pub end: Option<End>,
}

/// The recorded commands of an entry, and the new ones.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The recorded entry.
    pub recorded: Entry,
    /// Nanoseconds since the first entry.
    pub after_ns: Nanos,
    /// The commands of this controller.
    pub replayed: Vec<Command>,
}

/// Why a recording cannot be checked.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// The file system refuses.
    #[error("cannot continue reading: {0}")]
    Io(#[from] io::Error),
    /// The recording's policy cannot be created.
    #[error(transparent)]
    Limits(#[from] OddLimits),
}

/// Tells a new controller everything in the recording and compares its commands byte by byte, up to
/// the first difference, to lost inputs, or to the end.
///
/// # Errors
/// [`VerifyError`].
pub fn verify<R: Read>(recording: &mut Recording<R>) -> Result<Verdict, VerifyError> {
    let header = recording.header();
    let mut replayed = Vec::new();
    let policy = policy(header.limits)?;
    let mut controller = Controller::new(header.options.clone(), policy, &mut replayed);
    let (mut checked, mut first_at) = (Checked::default(), None);
    for item in recording.by_ref() {
        let entry = match item? {
            Item::Entry(entry) => entry,
            Item::Lost(inputs) => {
                checked.lost_inputs = Some(inputs);
                return Ok(Verdict::Identical(checked));
            }
        };
        let first_at = *first_at.get_or_insert(entry.at);
        match &entry.event {
            // Its first commands are already there.
            Event::Begun => {}
            Event::Input(input) => controller.on(entry.at, input, &mut replayed),
            Event::Finishing => controller.finish(),
        }
        let after_ns = entry.at.saturating_sub(first_at);
        if bytes_of(&entry.commands) != bytes_of(&replayed) {
            return Ok(Verdict::Differs(Box::new(Difference {
                recorded: entry,
                after_ns,
                replayed,
            })));
        }
        checked.inputs += u64::from(matches!(entry.event, Event::Input(_)));
        checked.commands += replayed.len() as u64;
        checked.recorded_ns = after_ns;
        replayed.clear();
    }
    checked.end = recording.end();
    Ok(Verdict::Identical(checked))
}
