//! What the blocks hold, one behind the other.

use controller::{Command, Input, Nanos};
use serde::{Deserialize, Serialize};

/// As it is in the file: written from borrowed inputs and commands, read as owned ones. Times are differences to the
/// entry before, as most inputs follow one another within milliseconds.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Record<I, C> {
    /// The controller was told an input.
    Input { since: i64, input: I, commands: C },
    /// The controller was built.
    Begun { since: i64, commands: C },
    /// [`controller::Controller::finish`] was called.
    Finishing { since: i64 },
    /// So many inputs here found no room in the queue.
    Lost(u64),
    /// Nothing follows.
    End,
}

/// A record to be written.
pub(crate) type Borrowed<'a> = Record<&'a Input, &'a [Command]>;

/// A record that was read.
pub(crate) type Owned = Record<Input, Vec<Command>>;

/// Appends a record to `bytes`.
pub(crate) fn encode(record: &Borrowed<'_>, bytes: &mut Vec<u8>) {
    let written = postcard::to_extend(record, std::mem::take(bytes));
    // Only a sequence of unknown length, or no memory, could stop it.
    *bytes = written.expect("inputs and commands have known lengths");
}

/// The record that `bytes` begin with, and what follows it.
pub(crate) fn decode(bytes: &[u8]) -> Option<(Owned, &[u8])> {
    postcard::take_from_bytes(bytes).ok()
}

/// Commands as they are compared: to the byte.
pub(crate) fn bytes_of(commands: &[Command]) -> Vec<u8> {
    postcard::to_allocvec(commands).expect("commands have known lengths")
}

/// One thing that the controller was told, and what it asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Counts from 0 in the recording, the building of the controller.
    pub number: u64,
    /// The body's time.
    pub at: Nanos,
    /// What it was told.
    pub event: Event,
    /// What it asked for.
    pub commands: Vec<Command>,
}

/// What a controller can be told.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub enum Event {
    /// It was built.
    Begun,
    /// An input.
    Input(Input),
    /// It will end, and so will the processes that it manages.
    Finishing,
}
