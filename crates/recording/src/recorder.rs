//! The deciding thread's side of a recording: encodes, and never waits.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::TryLockError;

use controller::{Command, Input, Nanos};
use serde::Serialize;

use crate::header::Header;
use crate::place::{self, CreateError};
use crate::record::{Borrowed, Record, encode};
use crate::writer::{BLOCK_BYTES, Writer};

/// Bytes that may wait for the disk: some 40,000 accesses. What finds no room is dropped and counted.
pub const QUEUE_BYTES: usize = 4 << 20;

/// Makes a recording.
///
/// It is [finished](Self::finish) or, where that is not reached, written as far as it has come when dropped.
#[derive(Debug)]
pub struct Recorder {
    path: PathBuf,
    writer: Writer,
    /// Encoded, and not in the queue yet: the writer had it locked.
    kept: Vec<u8>,
    last_at: Nanos,
    /// Lost since the last record that found room.
    lost_here: u64,
    totals: Totals,
}

/// What was recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Inputs, the lost ones left out.
    pub inputs: u64,
    /// Their commands.
    pub commands: u64,
    /// Inputs for which there was no room.
    pub lost_inputs: u64,
    /// Bytes of the file.
    pub bytes: u64,
}

/// The disk took no more; what was written before can be read.
#[derive(Debug, thiserror::Error)]
#[error("the recording {} ends early: {cause}", path.display())]
pub struct WriteError {
    path: PathBuf,
    cause: io::Error,
}

impl Recorder {
    /// Makes the file and writes its header.
    ///
    /// # Errors
    /// [`CreateError`].
    pub fn create(path: &Path, header: &Header) -> Result<Self, CreateError> {
        let file = place::create(path)?;
        let io = |cause| CreateError::Io { path: path.into(), cause };
        let writer = Writer::start(file, header).map_err(io)?;
        Ok(Recorder {
            path: path.into(),
            writer,
            kept: Vec::new(),
            last_at: 0,
            lost_here: 0,
            totals: Totals::default(),
        })
    }

    /// The controller was built, and asks for this first.
    pub fn begun(&mut self, now: Nanos, commands: &[Command]) {
        let since = self.since(now);
        self.append(now, &Record::Begun { since, commands });
    }

    /// The controller was told an input, and asks for this. Costs a microsecond, and never waits.
    pub fn note(&mut self, now: Nanos, input: &Input, commands: &[Command]) {
        let since = self.since(now);
        if self.append(now, &Record::Input { since, input, commands }) {
            self.totals.inputs += 1;
            self.totals.commands += commands.len() as u64;
        }
    }

    /// [`controller::Controller::finish`] was called.
    pub fn finishing(&mut self, now: Nanos) {
        let since = self.since(now);
        self.append(now, &Record::Finishing { since });
    }

    /// Inputs for which there was no room so far.
    pub fn lost(&self) -> u64 {
        self.totals.lost_inputs
    }

    /// Writes what is left, and that this is all. Waits for the disk.
    ///
    /// # Errors
    /// The disk took no more, now or before.
    pub fn finish(mut self) -> Result<Totals, WriteError> {
        if self.lost_here > 0 {
            encode(&Record::Lost(self.lost_here), &mut self.kept);
        }
        encode(&Record::End, &mut self.kept);
        let path = std::mem::take(&mut self.path);
        let bytes = self.writer.finish(&self.kept).map_err(|cause| WriteError { path, cause })?;
        Ok(Totals { bytes, ..self.totals })
    }

    fn since(&self, now: Nanos) -> i64 {
        now.wrapping_sub(self.last_at) as i64
    }

    /// Tells whether there was room.
    fn append(&mut self, now: Nanos, record: &Borrowed<'_>) -> bool {
        let before = self.kept.len();
        if self.lost_here > 0 {
            encode(&Record::Lost(self.lost_here), &mut self.kept);
        }
        encode(record, &mut self.kept);
        let has_room = self.hand_over();
        if has_room {
            self.last_at = now;
            self.lost_here = 0;
        } else {
            self.kept.truncate(before);
            self.lost_here += 1;
            self.totals.lost_inputs += 1;
        }
        has_room
    }

    /// Moves what is kept to the queue. While the writer has that locked, for the moment of taking it over, it is kept
    /// until next time.
    fn hand_over(&mut self) -> bool {
        if self.writer.has_failed() {
            return false;
        }
        match self.writer.queue().try_lock() {
            Ok(mut queue) => {
                let before = queue.len();
                if before + self.kept.len() > QUEUE_BYTES {
                    return false;
                }
                queue.append(&mut self.kept);
                let is_block = (before < BLOCK_BYTES) && queue.len() >= BLOCK_BYTES;
                drop(queue);
                if is_block {
                    self.writer.wake();
                }
                true
            }
            Err(TryLockError::WouldBlock) => self.kept.len() <= BLOCK_BYTES,
            Err(TryLockError::Poisoned(_)) => false,
        }
    }
}
