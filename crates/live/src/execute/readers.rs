//! Threads of one device that call `readahead(2)`, as a full device queue blocks the call.
//!
//! The controller asks for no more batches than a device has threads, and a prefetch that waits is worthless: a batch
//! goes to a thread that is free, or to a new one, or is refused.

use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use controller::ids::{FileRef, Ticket};
use controller::{Completed, Failure};
use linux::{handles, sys};
use readahead::behind::Span;

use super::Answers;
use crate::mounted::Volume;

/// As many as the controller has batches outstanding on one device.
const MOST_THREADS: usize = 16;

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

/// Which threads wait for a batch; told of whenever there is one more.
#[derive(Default)]
struct Free {
    threads: Mutex<Vec<usize>>,
    one_more: Condvar,
}

impl Free {
    fn lock(&self) -> MutexGuard<'_, Vec<usize>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, thread: usize) {
        self.lock().push(thread);
        self.one_more.notify_all();
    }
}

/// The pool of one device; its threads end with it.
pub(super) struct Readers {
    threads: Vec<Sender<Batch>>,
    free: Arc<Free>,
    manner: Arc<Manner>,
    answers: Answers,
}

impl Readers {
    pub(super) fn new(manner: Arc<Manner>, answers: Answers) -> Self {
        Readers { threads: Vec::new(), free: Arc::default(), manner, answers }
    }

    /// Hands the batch to a thread that starts at once, or answers that there is none.
    pub(super) fn submit(&mut self, batch: Batch) {
        let ticket = batch.ticket;
        let free = self.free.lock().pop();
        let refused = match free.or_else(|| self.start()) {
            Some(thread) => self.threads[thread].send(batch).is_err(),
            None => true,
        };
        if refused {
            self.answers.send(Completed::Read { ticket, failed: Some(Failure::Refused) });
        }
    }

    /// Waits until the batches under way are done, for so long at most.
    pub(super) fn wait(&self, most: Duration) {
        let are_busy = |free: &mut Vec<_>| free.len() < self.threads.len();
        drop(self.free.one_more.wait_timeout_while(self.free.lock(), most, are_busy));
    }

    fn start(&mut self) -> Option<usize> {
        let me = self.threads.len();
        if me >= MOST_THREADS {
            return None;
        }
        let (batches, inbox) = mpsc::channel::<Batch>();
        let free = Arc::clone(&self.free);
        let (manner, answers) = (Arc::clone(&self.manner), self.answers.clone());
        let work = move || {
            for batch in inbox {
                // A file that was truncated or has no page cache: its reader gets what it gets without us.
                let failed = batch.run(&manner).err().as_ref().map(failure);
                // Before the answer, which may bring the next batch.
                free.add(me);
                answers.send(Completed::Read { ticket: batch.ticket, failed });
            }
        };
        thread::Builder::new().name("bowwave-reader".into()).spawn(work).ok()?;
        self.threads.push(batches);
        Some(me)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    fn threads() -> usize {
        let tasks = std::fs::read_dir("/proc/self/task").expect("our own");
        let names = tasks.flatten().map(|task| std::fs::read_to_string(task.path().join("comm")));
        names.flatten().filter(|name| name == "bowwave-reader\n").count()
    }

    #[test]
    fn the_threads_of_a_device_end_with_it() {
        let answers = Answers::new().expect("a descriptor");
        let mut readers = Readers::new(Arc::default(), answers);
        for _ in 0..3 {
            readers.start().expect("a thread");
        }
        let until = Instant::now() + Duration::from_secs(20);
        while threads() < 3 && Instant::now() < until {
            thread::yield_now();
        }
        assert_eq!(threads(), 3);
        drop(readers);
        while threads() > 0 && Instant::now() < until {
            thread::yield_now();
        }
        assert_eq!(threads(), 0);
    }
}
