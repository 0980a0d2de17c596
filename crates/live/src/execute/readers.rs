//! Reads ahead: batches of `readahead(2)` on several threads of one device, since a full device queue blocks the call.

use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use controller::ids::{FileRef, Ticket};
use controller::{Completed, Failure};
use linux::{handles, sys};
use readahead::behind::Span;

use super::lane::OnVolume;
use super::pool::{Size, Worker};
use crate::mounted::Volume;

/// As many threads as the controller has batches under way on one device. No queue: a prefetch that waits is worthless.
pub(super) const READERS: Size = Size { threads: 16, queues: false };

/// Ranges of one file to read ahead.
pub(super) struct Batch {
    pub(super) ticket: Ticket,
    pub(super) of: FileRef,
    pub(super) spans: Vec<Span>,
}

/// How the threads of a device share its queue.
#[derive(Default)]
pub(super) struct Submission {
    /// The device serves one access at a time, so batches are submitted one after another: their pieces then stay
    /// together in its queue.
    pub(super) is_serial: AtomicBool,
    one_at_a_time: Mutex<()>,
}

impl Batch {
    fn run(&self, volume: &Volume, submission: &Submission) -> io::Result<()> {
        let file = handles::open_file(self.of, &volume.mount)?;
        sys::take_priority_of(self.of.tgid);
        let _turn = submission.is_serial.load(Ordering::Relaxed).then(|| {
            // Held briefly: submitting takes a fraction of the time of reading.
            submission.one_at_a_time.lock().unwrap_or_else(PoisonError::into_inner)
        });
        for span in &self.spans {
            let mut start = span.start;
            while start < span.end {
                let pages = volume.piece_pages.min(span.end - start);
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

#[derive(Clone)]
pub(super) struct Reader(pub(super) Arc<Submission>);

impl Worker for Reader {
    type Job = OnVolume<Batch>;

    fn run(&mut self, OnVolume(batch, volume): Self::Job) -> Option<Completed> {
        // It fails for a truncated file or one without a page cache, which costs its reader nothing.
        let failed = batch.run(&volume, &self.0).err().as_ref().map(failure);
        Some(Completed::Read { ticket: batch.ticket, failed })
    }
}
