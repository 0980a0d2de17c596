//! Direct reads, which bypass the page cache, with their duration: what one request costs a device.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::Instant;

use crate::waits;

/// Direct I/O needs buffers and offsets aligned to the logical block. Page alignment satisfies
/// every disk.
pub const ALIGNMENT: usize = 4096;

/// A file or device opened for direct reads.
#[derive(Debug)]
pub struct DirectReader {
    file: File,
}

impl DirectReader {
    /// Opens `path`.
    ///
    /// # Errors
    /// If it cannot be opened, or its file system has no direct I/O (`EINVAL`).
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = File::options().read(true).custom_flags(libc::O_DIRECT).open(path)?;
        Ok(DirectReader { file })
    }

    /// Reads `bytes` at `offset`, both multiples of [`ALIGNMENT`]. Returns the duration in seconds, without the time
    /// that this thread waited for a processor because others were busy on it.
    ///
    /// # Errors
    /// If fewer bytes can be read.
    pub fn timed_read(&self, offset: u64, bytes: usize) -> io::Result<f64> {
        Ok(self.timed_look(offset, bytes)?.0)
    }

    /// Like [`timed_read`](Self::timed_read). Also returns whether all bytes are zero, as where a file has a hole.
    ///
    /// # Errors
    /// If fewer bytes can be read.
    pub fn timed_look(&self, offset: u64, bytes: usize) -> io::Result<(f64, bool)> {
        let mut buffer = vec![0u8; bytes + ALIGNMENT];
        let skew = buffer.as_ptr().align_offset(ALIGNMENT);
        let waited_before = waits::own_thread();
        let started = Instant::now();
        self.file.read_exact_at(&mut buffer[skew..skew + bytes], offset)?;
        let seconds = started.elapsed().as_secs_f64();
        let waited_s = (waits::own_thread() - waited_before).beyond_waking_s();
        // Waiting before the clock started counts as well, and may be longer than the read.
        let is_zero = buffer[skew..skew + bytes].iter().all(|byte| *byte == 0);
        Ok((if waited_s < seconds { seconds - waited_s } else { seconds }, is_zero))
    }
}
