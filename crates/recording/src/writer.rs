//! The writer thread: takes the contents of the queue and writes them as a block.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::block;
use crate::header::Header;

/// Usual size of a block, if this much arrives within [`PAUSE`].
pub(crate) const BLOCK_BYTES: usize = 64 << 10;

/// Longest time until queued records are written, so that a kill loses less than a second.
const PAUSE: Duration = Duration::from_millis(500);

/// The thread and the state shared with it.
#[derive(Debug)]
pub(crate) struct Writer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<io::Result<u64>>>,
}

#[derive(Debug, Default)]
struct Shared {
    /// Complete records. Locked only briefly, never during a write to the disk.
    queue: Mutex<Vec<u8>>,
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
        let bytes = block::write_preamble(&mut file)? + block::write(&mut file, &header)?;
        let shared = Arc::new(Shared::default());
        let of_thread = Arc::clone(&shared);
        let work = move || {
            let outcome = write_all(&of_thread, file, bytes);
            of_thread.has_failed.store(outcome.is_err(), Ordering::Release);
            outcome
        };
        let thread = thread::Builder::new().name("recorder".into()).spawn(work)?;
        Ok(Writer { shared, thread: Some(thread) })
    }

    pub(crate) fn queue(&self) -> &Mutex<Vec<u8>> {
        &self.shared.queue
    }

    /// Enough for a block is queued.
    pub(crate) fn wake(&self) {
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }

    /// Whether the disk accepts no more.
    pub(crate) fn has_failed(&self) -> bool {
        self.shared.has_failed.load(Ordering::Acquire)
    }

    /// Writes everything queued, then `last`. Returns the size of the file in bytes.
    pub(crate) fn finish(&mut self, last: &[u8]) -> io::Result<u64> {
        self.shared.queue.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(last);
        self.end()
    }

    fn end(&mut self) -> io::Result<u64> {
        self.shared.is_over.store(true, Ordering::Release);
        self.wake();
        let Some(thread) = self.thread.take() else { return Ok(0) };
        thread.join().unwrap_or_else(|_| Err(io::Error::other("the writer has panicked")))
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
            bytes += block::write(&mut file, &taken)?;
            taken.clear();
        }
        if is_over {
            return Ok(bytes);
        }
        thread::park_timeout(PAUSE);
    }
}
