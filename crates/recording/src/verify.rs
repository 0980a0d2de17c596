//! Whether a controller asks for the same again.

use std::io::{self, Read};

use controller::{Command, Controller, Nanos};

use crate::header::{OddLimits, policy};
use crate::reader::{End, Item, Recording};
use crate::record::{Entry, Event, bytes_of};

/// What a recording was checked to be.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// All that can be compared is identical.
    Identical(Checked),
    /// The first entry that is not.
    Differs(Box<Difference>),
}

/// What was compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Inputs.
    pub inputs: u64,
    /// Their commands, and the first ones.
    pub commands: u64,
    /// From the first entry to the last, in nanoseconds.
    pub recorded_ns: Nanos,
    /// Inputs that were not recorded here; what follows cannot be compared.
    pub lost_inputs: Option<u64>,
    /// How the recording ends, if it was read so far.
    pub end: Option<End>,
}

/// What was asked for then, and what would be now.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// What was recorded.
    pub recorded: Entry,
    /// Nanoseconds since the first entry.
    pub after_ns: Nanos,
    /// What this controller asks for.
    pub replayed: Vec<Command>,
}

/// Why nothing can be compared.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// The file system says no.
    #[error("cannot read on: {0}")]
    Io(#[from] io::Error),
    /// Its policy cannot be built.
    #[error(transparent)]
    Limits(#[from] OddLimits),
}

/// Tells a new controller all that the recording's was told, and compares what it asks for, byte by byte, up to the
/// first entry that differs, to lost inputs, or to the end.
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
            // What it asks for first is there already.
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
