//! The writer thread: takes what is queued, and writes it as a block.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::block;
use crate::header::Header;

/// So much is written at once, where so much comes within [`PAUSE`].
pub(crate) const BLOCK_BYTES: usize = 64 << 10;

/// What has come is written after so long, so that a kill loses less than a second.
const PAUSE: Duration = Duration::from_millis(500);

/// The thread, and what it shares.
#[derive(Debug)]
pub(crate) struct Writer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<io::Result<u64>>>,
}

#[derive(Debug, Default)]
struct Shared {
    /// Whole records. Locked for a moment only: nobody writes to the disk meanwhile.
    queue: Mutex<Vec<u8>>,
    is_over: AtomicBool,
    has_failed: AtomicBool,
}

impl Writer {
    /// Writes the header, and begins to write what is queued.
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

    /// A block is queued.
    pub(crate) fn wake(&self) {
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }

    /// The disk takes no more.
    pub(crate) fn has_failed(&self) -> bool {
        self.shared.has_failed.load(Ordering::Acquire)
    }

    /// Writes all that is queued, then `last`; tells how many bytes the file has.
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
    /// What is queued is written, also where nobody finishes.
    fn drop(&mut self) {
        // Whoever wants to know calls `finish`.
        let _ = self.end();
    }
}

fn write_all(shared: &Shared, mut file: impl Write, mut bytes: u64) -> io::Result<u64> {
    let mut taken = Vec::new();
    loop {
        // Looked at first: what is queued before it is over is taken below.
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
