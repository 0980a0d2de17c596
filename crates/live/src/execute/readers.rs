//! Reading ahead: batches of `readahead(2)`, on several threads of one device, as a full device queue blocks the call.

use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use controller::ids::{FileRef, Ticket};
use controller::{Completed, Failure};
use linux::{handles, sys};
use readahead::behind::Span;

use super::pool::{Job, Size, Worker};
use crate::mounted::Volume;

/// As many threads as the controller has batches outstanding on one device. A prefetch that waits is worthless.
pub(super) const READERS: Size = Size { threads: 16, waits: false };

/// Ranges of one file to be read ahead.
pub(super) struct Batch {
    pub(super) ticket: Ticket,
    pub(super) of: FileRef,
    pub(super) spans: Vec<Span>,
    pub(super) volume: Arc<Volume>,
}

/// How a device wants to be read.
#[derive(Default)]
pub(super) struct Manner {
    /// It serves one access at a time: the pieces of a batch shall stand together in its queue.
    pub(super) is_serial: AtomicBool,
    turn: Mutex<()>,
}

impl Batch {
    fn run(&self, manner: &Manner) -> io::Result<()> {
        let file = handles::open_file(self.of, &self.volume.mount)?;
        sys::take_priority_of(self.of.tgid);
        let _turn = manner.is_serial.load(Ordering::Relaxed).then(|| {
            // Submitting takes a fraction of what reading takes.
            manner.turn.lock().unwrap_or_else(PoisonError::into_inner)
        });
        for span in &self.spans {
            let mut start = span.start;
            while start < span.end {
                let pages = self.volume.piece_pages.min(span.end - start);
                sys::readahead(file.as_fd(), start, pages)?;
                start += pages;
            }
        }
        Ok(())
    }
}

fn failure(error: &io::Error) -> Failure {
    match error.raw_os_error() {
        Some(errno) => Failure::Errno(errno),
        None => Failure::NotOpened,
    }
}

impl Job for Batch {
    fn refused(&self) -> Option<Completed> {
        Some(Completed::Read { ticket: self.ticket, failed: Some(Failure::Refused) })
    }
}

/// One of the threads that read ahead.
pub(super) struct Reader(pub(super) Arc<Manner>);

impl Worker for Reader {
    type Job = Batch;

    fn run(&mut self, batch: Batch) -> Option<Completed> {
        // A file that was truncated or has no page cache: its reader gets what it gets without us.
        let failed = batch.run(&self.0).err().as_ref().map(failure);
        Some(Completed::Read { ticket: batch.ticket, failed })
    }
}
