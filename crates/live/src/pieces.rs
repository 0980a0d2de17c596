//! How much one call of `readahead(2)` reads at most. The kernel reads no more, and reports success all the same.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use linux::knob::Knob;
use linux::mounts::Disk;
use readahead::PAGE_BYTES;

/// The limit of a file system. An administrator may change it at any time, so it is looked up again and again.
#[derive(Debug)]
pub(crate) struct PieceLimit {
    pages: AtomicU64,
    last_seen: AtomicU64,
}

impl PieceLimit {
    /// The limit of files on `disk` whose window is `knob`.
    pub(crate) fn of(disk: Option<&Disk>, knob: &Path) -> Self {
        PieceLimit::seen(limit_now(disk, knob))
    }

    fn seen(pages: u64) -> Self {
        PieceLimit { pages: pages.into(), last_seen: pages.into() }
    }

    /// Looks it up again.
    pub(crate) fn refresh(&self, disk: Option<&Disk>, knob: &Path) {
        self.see(limit_now(disk, knob));
    }

    /// Takes the smaller of the last two. Bowwave itself makes a window larger for microseconds, and pieces that are
    /// too small cost only calls.
    fn see(&self, pages: u64) {
        let before = self.last_seen.swap(pages, Ordering::Relaxed);
        self.pages.store(pages.min(before), Ordering::Relaxed);
    }

    /// The limit in pages, at least one.
    pub(crate) fn pages(&self) -> u64 {
        self.pages.load(Ordering::Relaxed)
    }
}

/// The larger of the device's largest request and its window, in pages.
fn limit_now(disk: Option<&Disk>, knob: &Path) -> u64 {
    let request_kb = disk.and_then(|disk| disk.queue("max_sectors_kb"));
    let window_kb = Knob::at(knob).and_then(|knob| knob.kb().ok());
    request_kb.max(window_kb).unwrap_or(128).max(4) * 1024 / PAGE_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_smaller_limit_counts_at_once_and_a_larger_one_when_it_is_seen_twice() {
        let limit = PieceLimit::seen(1024);
        let follow = |seen| {
            limit.see(seen);
            limit.pages()
        };
        assert_eq!([32, 1024, 32, 1024, 1024].map(follow), [32, 32, 32, 32, 1024]);
    }

    #[test]
    fn without_disk_and_window_it_is_the_kernels_default_window() {
        assert_eq!(PieceLimit::of(None, Path::new("/none")).pages() * PAGE_BYTES, 128 << 10);
    }
}
