//! Threads that call `readahead(2)`, as a full device queue blocks the call.
//!
//! A prefetch that waits is worthless, so a job is handed to a worker that is free, or to a new
//! worker, or refused: it never queues behind another job.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use linux::sys;
use readahead::PAGE_BYTES;

/// More than this many blocked calls mean the device is drowned already.
const MOST_WORKERS: usize = 16;

/// Ranges of one file to be read ahead.
pub(crate) struct Job {
    pub(crate) file: OwnedFd,
    /// First page and number of pages of each range.
    pub(crate) ranges: Vec<(u64, u64)>,
    /// Most pages that one call of `readahead(2)` reads; more is silently dropped.
    pub(crate) piece_pages: u64,
    /// Bytes handed over and not yet submitted, of the device concerned.
    pub(crate) pending_bytes: Arc<AtomicU64>,
    /// Held while submitting, if the device serves one visit at a time: the pieces of a window
    /// then stand together in its queue. Submitting takes a fraction of what reading takes.
    pub(crate) turn: Option<Arc<Mutex<()>>>,
}

impl Job {
    fn bytes(&self) -> u64 {
        self.ranges.iter().map(|(_, pages)| pages * PAGE_BYTES).sum()
    }

    fn run(self) {
        let mut pending = self.bytes();
        let turn = self.turn.clone();
        let _mine = turn.as_ref().map(|turn| turn.lock().unwrap_or_else(PoisonError::into_inner));
        for &(start, pages) in &self.ranges {
            let mut done = 0;
            while done < pages {
                let piece = self.piece_pages.min(pages - done);
                // A file that was truncated or has no page cache: its reader gets what it gets
                // without us.
                if sys::readahead(self.file.as_fd(), start + done, piece).is_err() {
                    break;
                }
                done += piece;
                // From here on the block layer counts them.
                pending -= piece * PAGE_BYTES;
                self.pending_bytes.fetch_sub(piece * PAGE_BYTES, Ordering::Relaxed);
            }
        }
        self.pending_bytes.fetch_sub(pending, Ordering::Relaxed);
    }
}

/// Those that wait for a job; told of whenever there is one more.
#[derive(Default)]
struct Free {
    workers: Mutex<Vec<Sender<Job>>>,
    one_more: Condvar,
}

impl Free {
    fn lock(&self) -> MutexGuard<'_, Vec<Sender<Job>>> {
        self.workers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, worker: Sender<Job>) {
        self.lock().push(worker);
        self.one_more.notify_all();
    }
}

/// The pool.
pub(crate) struct Workers {
    free: Arc<Free>,
    started: usize,
    is_closed: bool,
}

impl Workers {
    pub(crate) fn new() -> Self {
        Workers { free: Arc::default(), started: 0, is_closed: false }
    }

    /// Whether a job would find a worker now.
    pub(crate) fn has_room(&self) -> bool {
        !self.is_closed && (self.started < MOST_WORKERS || !self.free.lock().is_empty())
    }

    /// Takes no more jobs, and waits until those under way are done, for so long at most.
    pub(crate) fn close(&mut self, most: Duration) {
        self.is_closed = true;
        let are_busy = |free: &mut Vec<_>| free.len() < self.started;
        drop(self.free.one_more.wait_timeout_while(self.free.lock(), most, are_busy));
    }

    /// Hands the job to a worker that starts at once; gives `false` if there is none.
    pub(crate) fn submit(&mut self, job: Job) -> bool {
        if self.is_closed {
            return false;
        }
        let Some(worker) = self.take_free().or_else(|| self.start()) else {
            return false;
        };
        let (pending, bytes) = (Arc::clone(&job.pending_bytes), job.bytes());
        pending.fetch_add(bytes, Ordering::Relaxed);
        let handed = worker.send(job).is_ok();
        if !handed {
            pending.fetch_sub(bytes, Ordering::Relaxed);
        }
        handed
    }

    fn take_free(&self) -> Option<Sender<Job>> {
        self.free.lock().pop()
    }

    fn start(&mut self) -> Option<Sender<Job>> {
        if self.started >= MOST_WORKERS {
            return None;
        }
        let (jobs, inbox) = mpsc::channel::<Job>();
        let (free, me) = (Arc::clone(&self.free), jobs.clone());
        let work = move || {
            for job in inbox {
                job.run();
                free.add(me.clone());
            }
        };
        thread::Builder::new().name("bowwave-reader".into()).spawn(work).ok()?;
        self.started += 1;
        Some(jobs)
    }
}
