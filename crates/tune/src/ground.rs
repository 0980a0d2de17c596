//! Chooses where to read: parts of the sources that are not in the page cache, each read once.
//!
//! ```text
//!   source  |=====|##|=====|=====|.....|        = handed out, read, evicted again
//!                  # cached by others: skipped  . not yet
//! ```
//!
//! Pages that others have cached are not read, since they would say nothing about the device, and
//! not evicted. After the last source, reading starts again with the first.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use linux::sys;
use readahead::PAGE_BYTES;
use rustix::fs::{Advice, fadvise};

use crate::sources::Source;

/// Skip cached pages in steps of this size.
const STEP_BYTES: u64 = 1 << 20;

/// Pages cannot be evicted while they are read, so eviction is retried this often, this far apart.
const EVICTIONS: u32 = 50;
const PAUSE: Duration = Duration::from_millis(10);

/// A range that is not cached, to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) path: PathBuf,
    pub(crate) start: u64,
    pub(crate) bytes: u64,
}

/// Gives out uncached ranges.
#[derive(Debug)]
pub(crate) struct Ground {
    sources: Vec<Source>,
    /// Index of the source to read on in, and the offset there, in bytes.
    source: usize,
    at: u64,
}

impl Ground {
    pub(crate) fn new(sources: Vec<Source>) -> Self {
        Ground { sources, source: 0, at: 0 }
    }

    /// The next uncached range of `bytes`, or as long as the largest source if that is shorter;
    /// `None` if everything is cached.
    ///
    /// # Errors
    /// If a source cannot be opened, or the kernel does not report what is cached.
    pub(crate) fn take(&mut self, bytes: u64) -> io::Result<Option<Extent>> {
        let largest = self.sources.iter().map(|source| source.bytes).max().unwrap_or(0);
        let bytes = bytes.min(largest) / PAGE_BYTES * PAGE_BYTES;
        // Search from here to the end, then all sources from the start.
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

/// Evicts the pages of a range and waits until they are gone, but not for ever: some other program may hold them.
pub(crate) fn leave(extent: &Extent) -> io::Result<()> {
    let file = File::open(&extent.path)?;
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
    use std::fs;
    use std::io::Read;

    use super::*;

    #[test]
    fn pages_cached_by_others_are_skipped_and_stay_cached() {
        let folder = tempfile::tempdir_in("/var/tmp").expect("a folder on a disk");
        let path = folder.path().join("file");
        fs::write(&path, vec![1; 8 << 20]).expect("written");
        let mut file = File::open(&path).expect("it is there");
        file.sync_all().expect("written out");
        leave(&Extent { path: path.clone(), start: 0, bytes: 8 << 20 }).expect("evicted");
        // Another program reads the first page; it stays cached.
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
    fn a_fully_cached_source_gives_nothing() {
        let folder = tempfile::tempdir_in("/var/tmp").expect("a folder on a disk");
        let path = folder.path().join("file");
        fs::write(&path, vec![1; 2 << 20]).expect("written");
        let mut ground = Ground::new(vec![Source { path, bytes: 2 << 20 }]);
        assert_eq!(ground.take(1 << 20).expect("root is told"), None);
    }
}
