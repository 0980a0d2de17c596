//! The records that blocks consist of.

use controller::{Command, Input, Nanos};
use serde::{Deserialize, Serialize};

/// A record as in the file: written from borrowed inputs and commands, read as owned ones. Times
/// are differences to the previous entry, since most inputs follow one another within milliseconds.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Record<I, C> {
    /// The controller got an input.
    Input { since: i64, input: I, commands: C },
    /// The controller was built.
    Begun { since: i64, commands: C },
    /// [`controller::Controller::finish`] was called.
    Finishing { since: i64 },
    /// This many inputs were dropped here, because the queue was full.
    Lost(u64),
    /// The recording is complete.
    End,
}

/// A record to write.
pub(crate) type Borrowed<'a> = Record<&'a Input, &'a [Command]>;

/// A record that was read.
pub(crate) type Owned = Record<Input, Vec<Command>>;

/// Appends a record to `bytes`.
pub(crate) fn encode(record: &Borrowed<'_>, bytes: &mut Vec<u8>) {
    let written = postcard::to_extend(record, std::mem::take(bytes));
    // Only a sequence of unknown length or lack of memory could make this fail.
    *bytes = written.expect("inputs and commands have known lengths");
}

/// Decodes the first record of `bytes`. Returns it with the remaining bytes.
pub(crate) fn decode(bytes: &[u8]) -> Option<(Owned, &[u8])> {
    postcard::take_from_bytes(bytes).ok()
}

/// Encodes commands, to compare them byte by byte.
pub(crate) fn bytes_of(commands: &[Command]) -> Vec<u8> {
    postcard::to_allocvec(commands).expect("commands have known lengths")
}

/// An event that the controller was told, with the commands that it answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Counts from 0 within the recording. Entry 0 is the creation of the controller.
    pub number: u64,
    /// The time of the event.
    pub at: Nanos,
    /// The event.
    pub event: Event,
    /// The commands that the controller answered.
    pub commands: Vec<Command>,
}

/// An event that a controller can be told.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub enum Event {
    /// It was created.
    Begun,
    /// An input.
    Input(Input),
    /// It will end, and so will the processes that it manages.
    Finishing,
}
