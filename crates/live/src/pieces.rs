//! How much one call of `readahead(2)` reads at most. The kernel reads no more, and reports success all the same.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use linux::knob::Knob;
use linux::mounts::Disk;
use readahead::PAGE_BYTES;

/// Look up again after this time.
const FRESH_MS: u64 = 1000;

/// The limit of a file system. An administrator may change it at any time, so who reads looks it up again every second.
#[derive(Debug)]
pub(crate) struct PieceLimit {
    disk: Option<Disk>,
    knob: PathBuf,
    pages: AtomicU64,
    last_seen: AtomicU64,
    since: Instant,
    /// Milliseconds after `since`.
    looked_at: AtomicU64,
}

impl PieceLimit {
    /// The limit of files on `disk` whose window is `knob`.
    pub(crate) fn of(disk: Option<Disk>, knob: PathBuf) -> Self {
        let pages = limit_now(disk.as_ref(), &knob);
        PieceLimit {
            disk,
            knob,
            pages: pages.into(),
            last_seen: pages.into(),
            since: Instant::now(),
            looked_at: 0.into(),
        }
    }

    /// The limit in pages, at least one.
    pub(crate) fn pages(&self) -> u64 {
        let now = u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX);
        let looked_at = self.looked_at.load(Ordering::Relaxed);
        let is_due = now.saturating_sub(looked_at) >= FRESH_MS;
        // Of threads that read at once, one looks.
        let is_ours = || {
            let taken = self.looked_at.compare_exchange(
                looked_at,
                now,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
            taken.is_ok()
        };
        if is_due && is_ours() {
            self.see(limit_now(self.disk.as_ref(), &self.knob));
        }
        self.pages.load(Ordering::Relaxed)
    }

    /// Takes the smaller of the last two. Bowwave itself makes a window larger for microseconds, and pieces that are
    /// too small cost only calls.
    fn see(&self, pages: u64) {
        let before = self.last_seen.swap(pages, Ordering::Relaxed);
        self.pages.store(pages.min(before), Ordering::Relaxed);
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
        let limit = PieceLimit::of(None, PathBuf::new());
        limit.see(1024);
        limit.see(1024);
        let follow = |seen| {
            limit.see(seen);
            limit.pages()
        };
        assert_eq!([32, 1024, 32, 1024, 1024].map(follow), [32, 32, 32, 32, 1024]);
    }

    #[test]
    fn without_disk_and_window_it_is_the_kernels_default_window() {
        assert_eq!(PieceLimit::of(None, "/none".into()).pages() * PAGE_BYTES, 128 << 10);
    }
}
