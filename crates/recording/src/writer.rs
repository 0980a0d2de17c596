//! The writer thread: takes the contents of the queue and writes them as a block.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, Thread};
use std::time::Duration;

use crate::KIND;
use crate::header::Header;

/// Usual size of a block, if this much arrives within [`PAUSE`].
pub(crate) const BLOCK_BYTES: usize = 64 << 10;

/// Longest time until queued records are written, so that a kill loses less than a second.
const PAUSE: Duration = Duration::from_millis(500);

/// Longest wait for the disk at the end: it may never answer.
const MOST_ENDING: Duration = Duration::from_secs(3);

/// The thread and the state shared with it.
#[derive(Debug)]
pub(crate) struct Writer {
    shared: Arc<Shared>,
    thread: Thread,
    /// Receives the size of the file in bytes once everything is written; `None` after that.
    outcome: Option<Receiver<io::Result<u64>>>,
    most_ending: Duration,
}

#[derive(Debug, Default)]
struct Shared {
    /// Complete records. Locked only briefly, never during a write to the disk.
    queue: Mutex<Vec<u8>>,
    /// Bytes taken from the queue that are not written yet.
    in_hand: AtomicUsize,
    is_over: AtomicBool,
    has_failed: AtomicBool,
}

impl Writer {
    /// Writes the header and starts the thread.
    pub(crate) fn start(
        mut file: impl Write + Send + 'static,
        header: &Header,
    ) -> io::Result<Self> {
        let header = postcard::to_allocvec(header).map_err(io::Error::other)?;
        let bytes = KIND.write_preamble(&mut file)? + blocks::write(&mut file, &header)?;
        let shared = Arc::new(Shared::default());
        let of_thread = Arc::clone(&shared);
        let (tell, outcome) = mpsc::channel();
        let work = move || {
            let outcome = write_all(&of_thread, file, bytes);
            of_thread.has_failed.store(outcome.is_err(), Ordering::Release);
            // If this took too long, nobody receives it.
            let _ = tell.send(outcome);
        };
        let thread = thread::Builder::new().name("recorder".into()).spawn(work)?;
        let (thread, outcome) = (thread.thread().clone(), Some(outcome));
        Ok(Writer { shared, thread, outcome, most_ending: MOST_ENDING })
    }

    pub(crate) fn queue(&self) -> &Mutex<Vec<u8>> {
        &self.shared.queue
    }

    /// Enough for a block is queued.
    pub(crate) fn wake(&self) {
        self.thread.unpark();
    }

    /// Whether the disk accepts no more.
    pub(crate) fn has_failed(&self) -> bool {
        self.shared.has_failed.load(Ordering::Acquire)
    }

    /// Writes everything queued, then `last`. Waits for the disk, but not for ever. Returns the size of the file in
    /// bytes.
    pub(crate) fn finish(&mut self, last: &[u8]) -> io::Result<u64> {
        self.shared.queue.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(last);
        self.end()
    }

    fn end(&mut self) -> io::Result<u64> {
        self.shared.is_over.store(true, Ordering::Release);
        self.wake();
        let Some(outcome) = self.outcome.take() else { return Ok(0) };
        match outcome.recv_timeout(self.most_ending) {
            Ok(outcome) => outcome,
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                Err(io::Error::other("the writer has panicked"))
            }
            Err(mpsc::RecvTimeoutError::Timeout) => Err(self.is_late()),
        }
    }

    fn is_late(&self) -> io::Error {
        let queued = self.shared.queue.lock().unwrap_or_else(PoisonError::into_inner).len();
        let missing = queued + self.shared.in_hand.load(Ordering::Relaxed);
        let seconds = self.most_ending.as_secs_f64();
        let reason = format!("the disk has not taken the last {missing} bytes within {seconds} s");
        io::Error::new(io::ErrorKind::TimedOut, reason)
    }

    #[cfg(test)]
    pub(crate) fn wait_at_most(&mut self, most_ending: Duration) {
        self.most_ending = most_ending;
    }
}

impl Drop for Writer {
    /// Writes what is queued, even if nobody calls `finish`.
    fn drop(&mut self) {
        // To learn about errors, call `finish`.
        let _ = self.end();
    }
}

fn write_all(shared: &Shared, mut file: impl Write, mut bytes: u64) -> io::Result<u64> {
    let mut taken = Vec::new();
    loop {
        // Read this first, so that everything queued before the end is still taken below.
        let is_over = shared.is_over.load(Ordering::Acquire);
        let mut queue = shared.queue.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::swap(&mut *queue, &mut taken);
        drop(queue);
        if !taken.is_empty() {
            shared.in_hand.store(taken.len(), Ordering::Relaxed);
            bytes += blocks::write(&mut file, &taken)?;
            shared.in_hand.store(0, Ordering::Relaxed);
            taken.clear();
        }
        if is_over {
            return Ok(bytes);
        }
        thread::park_timeout(PAUSE);
    }
}
