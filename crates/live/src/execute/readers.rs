//! Reads ahead: batches of `readahead(2)` on several threads of one device, since a full device queue blocks the call.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use controller::Failure;
use controller::ids::{FileRef, Ticket};
use linux::io_priority::take_priority_of;
use linux::{handles, sys};
use readahead::DeviceCost;
use readahead::behind::Span;

use super::opening;
use crate::mounted::Volume;
use crate::pool::Size;

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
    is_serial: AtomicBool,
    one_at_a_time: Mutex<()>,
}

impl Submission {
    /// Adapts to what the device is now known to cost.
    pub(super) fn set_cost(&self, cost: &DeviceCost) {
        self.is_serial.store(cost.is_serial(), Ordering::Relaxed);
    }

    pub(super) fn is_serial(&self) -> bool {
        self.is_serial.load(Ordering::Relaxed)
    }
}

impl Batch {
    /// Opens the file, and asks for its ranges, with the reader's I/O priority.
    ///
    /// # Errors
    /// If the file cannot be reached or opened, or the kernel refuses a range. The ranges after that are not requested.
    pub(super) fn run(&self, volume: &Volume, submission: &Submission) -> io::Result<()> {
        // Opening it may read from the disk, too.
        take_priority_of(self.of.tgid);
        let file = opening::open(&handles::reach(self.of, &volume.mount)?)?;
        let _turn = submission.is_serial().then(|| {
            // It is held briefly: submitting takes a fraction of the time of reading.
            submission.one_at_a_time.lock().unwrap_or_else(PoisonError::into_inner)
        });
        self.spans.iter().try_for_each(|span| read_ahead(file.as_fd(), *span, volume))
    }
}

/// Reads these pages of a file ahead, piece by piece.
///
/// # Errors
/// If the file is truncated or has no page cache. That costs its reader nothing.
pub(super) fn read_ahead(file: BorrowedFd<'_>, span: Span, volume: &Volume) -> io::Result<()> {
    let mut start = span.start;
    while start < span.end {
        let pages = volume.piece_limit.pages().min(span.end - start);
        sys::readahead(file, start, pages)?;
        start += pages;
    }
    Ok(())
}

pub(super) fn failure(error: &io::Error) -> Failure {
    match error.raw_os_error() {
        Some(errno) => Failure::Errno(errno),
        None => Failure::NotOpened,
    }
}
