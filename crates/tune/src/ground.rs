//! Where to read: stretches of the sources that nobody has in the page cache, each read once.
//!
//! ```text
//!   source  |=====|##|=====|=====|.....|        = handed out, read, evicted again
//!                  cached by others: passed over  . not yet
//! ```
//!
//! What others have cached is neither read, as it would tell nothing, nor evicted. When the sources
//! come to their end they are read again from the start.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use linux::sys;
use rustix::fs::{Advice, fadvise};

use crate::target::Source;

pub(crate) const PAGE_BYTES: u64 = 4096;

/// Cached pages are passed over in steps of so many bytes.
const STEP_BYTES: u64 = 1 << 20;

/// Pages that are being read cannot be evicted, so it is tried so often, and so far apart.
const EVICTIONS: u32 = 50;
const PAUSE: Duration = Duration::from_millis(10);

/// A stretch that is cold, to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) path: PathBuf,
    pub(crate) start: u64,
    pub(crate) bytes: u64,
}

/// Hands out stretches.
#[derive(Debug)]
pub(crate) struct Ground {
    sources: Vec<Source>,
    source: usize,
    at: u64,
}

impl Ground {
    pub(crate) fn new(sources: Vec<Source>) -> Self {
        Ground { sources, source: 0, at: 0 }
    }

    /// The next cold stretch of `bytes`, or of the largest source if none has as much; `None` if all
    /// of them are cached.
    ///
    /// # Errors
    /// If a source cannot be opened, or the kernel does not tell what is cached.
    pub(crate) fn take(&mut self, bytes: u64) -> io::Result<Option<Extent>> {
        let largest = self.sources.iter().map(|source| source.bytes).max().unwrap_or(0);
        let bytes = bytes.min(largest) / PAGE_BYTES * PAGE_BYTES;
        // From here to the end, then all of them from the start.
        for _ in 0..=self.sources.len() {
            let source = &self.sources[self.source];
            let file = File::open(&source.path)?;
            while self.at + bytes <= source.bytes {
                let start = self.at;
                if sys::cached_pages(&file, start / PAGE_BYTES, bytes / PAGE_BYTES)? == 0 {
                    self.at = start + bytes;
                    return Ok(Some(Extent { path: source.path.clone(), start, bytes }));
                }
                self.at += STEP_BYTES;
            }
            self.at = 0;
            self.source = (self.source + 1) % self.sources.len();
        }
        Ok(None)
    }
}

/// Opens a stretch's file with the window that is set now.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    fs::OpenOptions::new().read(true).open(path)
}

/// Evicts what was brought in of a stretch, and waits until it has gone.
pub(crate) fn leave(extent: &Extent) -> io::Result<()> {
    let file = open(&extent.path)?;
    let length = std::num::NonZeroU64::new(extent.bytes);
    for _ in 0..EVICTIONS {
        fadvise(file.as_fd(), extent.start, length, Advice::DontNeed)?;
        let pages = extent.bytes / PAGE_BYTES;
        if sys::cached_pages(&file, extent.start / PAGE_BYTES, pages)? == 0 {
            return Ok(());
        }
        thread::sleep(PAUSE);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn what_others_have_cached_is_passed_over_and_stays_cached() {
        let folder = tempfile::tempdir_in("/var/tmp").expect("a folder on a disk");
        let path = folder.path().join("file");
        fs::write(&path, vec![1; 8 << 20]).expect("written");
        let mut file = open(&path).expect("it is there");
        file.sync_all().expect("written out");
        leave(&Extent { path: path.clone(), start: 0, bytes: 8 << 20 }).expect("evicted");
        // Somebody reads the first page and keeps it.
        file.read_exact(&mut [0; 4096]).expect("it has a page");
        let theirs = || sys::cached_pages(&file, 0, 256).expect("root is told");
        let before = theirs();
        assert!(before > 0);
        let mut ground = Ground::new(vec![Source { path, bytes: 8 << 20 }]);
        let mut starts = Vec::new();
        for _ in 0..12 {
            let extent = ground.take(1 << 20).expect("root is told").expect("some of it is cold");
            starts.push(extent.start >> 20);
            leave(&extent).expect("evicted");
        }
        assert_eq!(starts, [1, 2, 3, 4, 5, 6, 7, 1, 2, 3, 4, 5]);
        assert_eq!(theirs(), before);
    }

    #[test]
    fn a_source_that_is_cached_as_a_whole_gives_nothing() {
        let folder = tempfile::tempdir_in("/var/tmp").expect("a folder on a disk");
        let path = folder.path().join("file");
        fs::write(&path, vec![1; 2 << 20]).expect("written");
        let mut ground = Ground::new(vec![Source { path, bytes: 2 << 20 }]);
        assert_eq!(ground.take(1 << 20).expect("root is told"), None);
    }
}
