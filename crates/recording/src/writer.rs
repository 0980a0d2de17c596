//! The writer thread: takes the contents of the queue and writes them as a block.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, OnceLock};
use std::thread::{self, Thread};
use std::time::Duration;

use rtrb::{Consumer, Producer, RingBuffer};

use crate::KIND;
use crate::header::Header;

/// Bytes that may wait for the disk: about 40,000 accesses. A block has room for a little more.
pub const QUEUE_BYTES: usize = 4 << 20;

/// Usual size of a block, if this much arrives within [`PAUSE`].
const BLOCK_BYTES: usize = 64 << 10;

/// Longest time until queued records are written, so that a kill loses less than a second.
const PAUSE: Duration = Duration::from_millis(500);

/// Longest wait for the disk at the end: it may never answer.
const MOST_ENDING: Duration = Duration::from_secs(3);

/// The queue's end at which records arrive, and the thread at its other end.
#[derive(Debug)]
pub(crate) struct Writer {
    /// Complete records. Neither side ever waits for the other.
    queue: Producer<u8>,
    shared: Arc<Shared>,
    thread: Thread,
    /// Receives the size of the file in bytes once everything is written; `None` after that.
    outcome: Option<Receiver<io::Result<u64>>>,
    most_ending: Duration,
}

#[derive(Debug, Default)]
struct Shared {
    /// Bytes taken from the queue that are not written yet.
    in_hand: AtomicUsize,
    /// What follows the queue's contents at the end. Set once nothing more will be queued.
    last: OnceLock<Vec<u8>>,
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
        let (queue, queued) = RingBuffer::new(QUEUE_BYTES);
        let (tell, outcome) = mpsc::channel();
        let work = move || {
            let outcome = write_all(&of_thread, queued, file, bytes);
            of_thread.has_failed.store(outcome.is_err(), Ordering::Release);
            // If this took too long, nobody receives it.
            let _ = tell.send(outcome);
        };
        let thread = thread::Builder::new().name("recorder".into()).spawn(work)?;
        let (thread, outcome) = (thread.thread().clone(), Some(outcome));
        Ok(Writer { queue, shared, thread, outcome, most_ending: MOST_ENDING })
    }

    /// Queues complete records, all or nothing. Returns whether there was room and the disk still
    /// accepts something.
    pub(crate) fn take(&mut self, records: &[u8]) -> bool {
        if self.has_failed() || self.queue.push_entire_slice(records).is_err() {
            return false;
        }
        let queued = self.queued();
        if queued >= BLOCK_BYTES && queued < BLOCK_BYTES + records.len() {
            self.thread.unpark();
        }
        true
    }

    /// Whether the disk accepts no more.
    pub(crate) fn has_failed(&self) -> bool {
        self.shared.has_failed.load(Ordering::Acquire)
    }

    /// Bytes in the queue.
    fn queued(&self) -> usize {
        QUEUE_BYTES - self.queue.slots()
    }

    /// Writes everything queued, then `last`. Waits for the disk, but not for ever. Returns the
    /// size of the file in bytes.
    pub(crate) fn finish(&mut self, last: Vec<u8>) -> io::Result<u64> {
        // If it was set before, the thread has been told to end.
        let _ = self.shared.last.set(last);
        self.thread.unpark();
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
        let missing = self.queued() + self.shared.in_hand.load(Ordering::Relaxed);
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
        let _ = self.finish(Vec::new());
    }
}

fn write_all(
    shared: &Shared,
    mut queue: Consumer<u8>,
    mut file: impl Write,
    mut bytes: u64,
) -> io::Result<u64> {
    let mut block = Vec::new();
    loop {
        // Read this first, so that everything queued before the end is still taken below.
        let last = shared.last.get();
        take_all(&mut queue, &mut block);
        block.extend(last.into_iter().flatten());
        if !block.is_empty() {
            shared.in_hand.store(block.len(), Ordering::Relaxed);
            bytes += blocks::write(&mut file, &block)?;
            shared.in_hand.store(0, Ordering::Relaxed);
            block.clear();
        }
        if last.is_some() {
            return Ok(bytes);
        }
        thread::park_timeout(PAUSE);
    }
}

/// Moves the queue's contents, which are complete records.
fn take_all(queue: &mut Consumer<u8>, to: &mut Vec<u8>) {
    let chunk = queue.read_chunk(queue.slots()).expect("that many are queued");
    let (first, second) = chunk.as_slices();
    to.extend_from_slice(first);
    to.extend_from_slice(second);
    chunk.commit_all();
}
