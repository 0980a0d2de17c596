//! How much memory each reader's cgroup leaves to each of its streams.
//!
//! ```text
//!   cgroup --> room, pressure        told about once a second
//!        |
//!        +---> files read in it of late: a share of the room is divided among them
//! ```

use std::collections::BTreeMap;

use readahead::PAGE_BYTES;

use crate::Nanos;
use crate::ids::{CgroupId, FileKey};

/// Bowwave's pages ahead of all streams of a cgroup take one part in this many of its limit. The readers work with the
/// rest.
const LIMIT_SHARE: u64 = 4;

/// The kernel's own read-ahead takes another quarter. The other half holds recently used pages, and leaves room for new
/// streams.
const KERNEL_SHARE: u64 = 4;

/// A stream has up to two windows in memory: the one that it reads, and the next.
const WINDOWS_OUT: u64 = 2;

/// The smallest window of bowwave: the kernel's own default.
const LEAST_BYTES: u64 = 128 << 10;

/// The smallest window of the kernel, 16 KiB: less is not worth a request.
const LEAST_KERNEL_PAGES: u64 = 4;

/// Interval at which streams are counted.
const COUNT_NS: Nanos = 1_000_000_000;

/// A file is no longer read after this long without an access, unless its pauses were as long before.
const IDLE_NS: Nanos = 10_000_000_000;

/// A stream may pause this many times as long as before. Pauses double while its windows grow.
const PAUSES: u64 = 3;

/// Below this percentage of time in which some task waits for memory, nothing is done: reclaim that keeps up with a
/// stream stays below it.
const CALM_PERCENT: f64 = 10.0;

/// Most files that are noted of a cgroup, 80 bytes each. With so many streams, each has the smallest window.
const MOST_FILES: usize = 4096;

/// What the memory of a cgroup leaves to one of its readers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Allowance {
    /// Most bytes of one window.
    pub(crate) window_bytes: u64,
    /// Most pages of the kernel's own windows, if there is a limit.
    pub(crate) kernel_pages: Option<u32>,
    /// The share of each budget that remains under memory pressure.
    pub(crate) share_left: f64,
}

impl Default for Allowance {
    /// No limit, no pressure.
    fn default() -> Self {
        Allowance { window_bytes: u64::MAX, kernel_pages: None, share_left: 1.0 }
    }
}

/// When a file last had an access, and how long it had none while other files had some. A file that is read to its end
/// without interruption has no such pause: files read one after another are one stream.
#[derive(Clone, Copy, Debug)]
struct Heard {
    at: Nanos,
    pause: Option<Nanos>,
}

impl Heard {
    fn is_stream(&self, now: Nanos) -> bool {
        self.pause.is_some_and(|pause| now.saturating_sub(self.at) <= PAUSES.saturating_mul(pause))
    }
}

#[derive(Debug)]
struct Cgroup {
    /// Most bytes of files that it may hold, if it has a limit.
    file_bytes: Option<u64>,
    share_left: f64,
    told_at: Nanos,
    counted_at: Nanos,
    streams: u64,
    latest: Option<FileKey>,
    files: BTreeMap<FileKey, Heard>,
}

/// The cgroups of all recent readers.
#[derive(Debug, Default)]
pub(crate) struct Cgroups {
    cgroups: BTreeMap<CgroupId, Cgroup>,
}

impl Cgroups {
    /// Notes how much a cgroup may hold, and how long its tasks wait.
    pub(crate) fn note(
        &mut self,
        now: Nanos,
        cgroup: CgroupId,
        file_bytes: Option<u64>,
        stalled_percent: f64,
    ) {
        let cgroup = self.cgroups.entry(cgroup).or_default();
        cgroup.file_bytes = file_bytes;
        cgroup.share_left = share_left(stalled_percent);
        cgroup.told_at = now;
        cgroup.count(now);
    }

    /// What a reader of `file` in that cgroup may have.
    pub(crate) fn allowance(&mut self, now: Nanos, cgroup: CgroupId, file: FileKey) -> Allowance {
        let cgroup = self.cgroups.entry(cgroup).or_default();
        if now.saturating_sub(cgroup.counted_at) > COUNT_NS {
            cgroup.count(now);
        }
        cgroup.note_access(file, now);
        cgroup.allowance()
    }

    /// What a stream of that cgroup may have, as far as the cgroup is known.
    pub(crate) fn known_allowance(&self, cgroup: CgroupId) -> Allowance {
        self.cgroups.get(&cgroup).map_or(Allowance::default(), Cgroup::allowance)
    }

    /// Bytes of files that a cgroup may hold, if it has a limit.
    pub(crate) fn file_bytes(&self, cgroup: CgroupId) -> Option<u64> {
        self.cgroups.get(&cgroup)?.file_bytes
    }

    /// Most pages of the kernel's own windows in a cgroup: `Some(None)` without a limit, `None` if nothing is known of
    /// the cgroup.
    pub(crate) fn kernel_pages(&self, cgroup: CgroupId) -> Option<Option<u32>> {
        Some(self.cgroups.get(&cgroup)?.allowance().kernel_pages)
    }

    /// Forgets readers without recent accesses.
    pub(crate) fn forget_idle(&mut self, now: Nanos) {
        let is_recent = |at: Nanos| now.saturating_sub(at) <= IDLE_NS;
        for cgroup in self.cgroups.values_mut() {
            cgroup.files.retain(|_, heard| is_recent(heard.at) || heard.is_stream(now));
        }
        self.cgroups.retain(|_, cgroup| !cgroup.files.is_empty() || is_recent(cgroup.told_at));
    }
}

/// The share of a budget that remains under memory pressure: all of it while calm, then less the longer tasks wait.
fn share_left(stalled_percent: f64) -> f64 {
    // NaN counts as no pressure.
    (CALM_PERCENT / stalled_percent.max(CALM_PERCENT)).clamp(0.0, 1.0)
}

impl Default for Cgroup {
    fn default() -> Self {
        Cgroup {
            file_bytes: None,
            share_left: 1.0,
            told_at: 0,
            counted_at: 0,
            streams: 0,
            latest: None,
            files: BTreeMap::new(),
        }
    }
}

impl Cgroup {
    fn count(&mut self, now: Nanos) {
        self.counted_at = now;
        self.streams = self.files.values().filter(|heard| heard.is_stream(now)).count() as u64;
    }

    fn note_access(&mut self, file: FileKey, now: Nanos) {
        if self.files.len() >= MOST_FILES && !self.files.contains_key(&file) {
            self.forget_older_half();
        }
        let heard = self.files.entry(file).or_insert(Heard { at: now, pause: None });
        if self.latest != Some(file) && now > heard.at {
            heard.pause = Some(now - heard.at);
        }
        heard.at = now;
        self.latest = Some(file);
    }

    fn forget_older_half(&mut self) {
        let mut times: Vec<Nanos> = self.files.values().map(|heard| heard.at).collect();
        let (_, median, _) = times.select_nth_unstable(MOST_FILES / 2);
        let median = *median;
        self.files.retain(|_, heard| heard.at > median);
    }

    fn allowance(&self) -> Allowance {
        let streams = self.streams.max(1);
        let window_bytes = self
            .file_bytes
            .map_or(u64::MAX, |room| (room / LIMIT_SHARE / WINDOWS_OUT / streams).max(LEAST_BYTES));
        let kernel_pages = self.file_bytes.map(|room| {
            let pages = room / KERNEL_SHARE / WINDOWS_OUT / streams / PAGE_BYTES;
            // A power of two changes seldom.
            1 << pages.max(LEAST_KERNEL_PAGES).ilog2().min(31)
        });
        Allowance { window_bytes, kernel_pages, share_left: self.share_left }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::DeviceNumber;

    const SECOND: Nanos = 1_000_000_000;

    fn file(ino: u64) -> FileKey {
        FileKey { dev: DeviceNumber { major: 7, minor: 0 }, ino }
    }

    fn limited(file_bytes: Option<u64>, streams: u64) -> Allowance {
        Cgroup { file_bytes, streams, ..Cgroup::default() }.allowance()
    }

    #[test]
    fn only_so_many_files_are_noted_and_the_latest_are_among_them() {
        let mut cgroup = Cgroup::default();
        for ino in 0..100_000 {
            cgroup.note_access(file(ino), ino);
            assert!(cgroup.files.len() <= MOST_FILES);
        }
        assert!((99_000..100_000).all(|ino| cgroup.files.contains_key(&file(ino))));
    }

    #[test]
    fn windows_of_all_streams_of_a_cgroup_fit_a_quarter_of_its_limit() {
        assert_eq!(limited(Some(64 << 20), 1).window_bytes, 8 << 20);
        assert_eq!(limited(Some(64 << 20), 16).window_bytes, 512 << 10);
        assert_eq!(limited(Some(64 << 20), 800).window_bytes, LEAST_BYTES);
        assert_eq!(limited(None, 3).window_bytes, u64::MAX);
    }

    #[test]
    fn the_kernels_own_windows_fit_a_quarter_of_it() {
        assert_eq!(limited(Some(64 << 20), 1).kernel_pages, Some(2048));
        assert_eq!(limited(Some(64 << 20), 64).kernel_pages, Some(32));
        assert_eq!(limited(Some(64 << 20), 65).kernel_pages, Some(16));
        assert_eq!(limited(Some(64 << 20), 100_000).kernel_pages, Some(4));
        assert_eq!(limited(Some(u64::MAX), 1).kernel_pages, Some(1 << 31));
        assert_eq!(limited(None, 100_000).kernel_pages, None);
    }

    #[test]
    fn pressure_shrinks_the_budget_and_unknown_pressure_does_not() {
        assert_eq!(share_left(0.0), 1.0);
        assert_eq!(share_left(10.0), 1.0);
        assert_eq!(share_left(40.0), 0.25);
        assert_eq!(share_left(f64::INFINITY), 0.0);
        assert_eq!(share_left(f64::NAN), 1.0);
    }

    #[test]
    fn files_that_are_read_in_turn_are_streams_for_as_long_as_they_come_again() {
        let mut cgroup = Cgroup::default();
        for round in 0..2 {
            (0..10).for_each(|ino| cgroup.note_access(file(ino), (round * 10 + ino) * SECOND));
        }
        cgroup.count(20 * SECOND);
        assert_eq!(cgroup.streams, 10);
        cgroup.count(60 * SECOND);
        assert_eq!(cgroup.streams, 0);
    }

    #[test]
    fn files_that_are_read_one_after_another_are_not() {
        let mut cgroup = Cgroup::default();
        for event in 0..1000 {
            cgroup.note_access(file(event / 10), event * SECOND / 1000);
        }
        cgroup.count(SECOND);
        assert_eq!(cgroup.streams, 0);
    }

    #[test]
    fn idle_readers_are_forgotten() {
        let mut all = Cgroups::default();
        all.allowance(0, CgroupId(1), file(1));
        all.forget_idle(IDLE_NS);
        assert_eq!(all.cgroups.len(), 1);
        all.forget_idle(IDLE_NS + 1);
        assert!(all.cgroups.is_empty());
    }
}
