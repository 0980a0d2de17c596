//! What bowwave did, in numbers.

use readahead::{PAGE_BYTES, Tally};
use serde::Serialize;

use crate::behind::Totals;

/// Totals since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    /// Events received from the kernel.
    pub events: u64,
    /// Events lost because they came faster than they were fetched.
    pub lost_events: u64,
    /// Windows asked for.
    pub reads: u64,
    /// Bytes asked for; what was cached already is included, as it costs nothing.
    pub read_ahead_bytes: u64,
    /// Of these, bytes that a reader has come to.
    pub used_bytes: u64,
    /// Of these, bytes of streams that were forgotten before, or that were evicted. What was read ahead
    /// last for each stream is neither, as nothing is heard of it.
    pub wasted_bytes: u64,
    /// Of these, bytes of densely read regions, whose use is not tracked.
    pub dense_bytes: u64,
    /// The most that was read ahead and not used yet at any moment, of all streams.
    pub most_ahead_bytes: u64,
    /// Windows of the kernel's own that were bounded, as pages were evicted before they were used.
    pub bounded_windows: u64,
    /// Requests that would have waited for the device and did not.
    pub stalls_saved: u64,
    /// Bytes let go behind streams.
    pub dropped_bytes: u64,
    /// Bytes that such streams passed and that stay: cached before, used by others or again. Of a file of
    /// which nothing had to be read nothing is counted.
    pub kept_bytes: u64,
    /// Bytes that would go, and stay for now: not written yet, mapped or held.
    pub left_bytes: u64,
    /// CPU time of bowwave itself, in seconds.
    pub cpu_s: f64,
}

impl Summary {
    pub(crate) fn add_behind(&mut self, totals: &Totals) {
        self.dropped_bytes += totals.dropped_pages * PAGE_BYTES;
        self.kept_bytes += totals.kept_pages * PAGE_BYTES;
        self.left_bytes += totals.left_pages * PAGE_BYTES;
    }

    pub(crate) fn add_tally(&mut self, tally: &Tally) {
        self.used_bytes += tally.used_pages * PAGE_BYTES;
        self.wasted_bytes += tally.wasted_pages * PAGE_BYTES;
        self.dense_bytes += tally.dense_pages * PAGE_BYTES;
        self.stalls_saved += tally.stalls_saved;
    }
}

impl std::fmt::Display for Summary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mb = |bytes: u64| bytes as f64 * 1e-6;
        write!(
            f,
            "read ahead {:.1} MB in {} windows: {:.1} MB used, {:.1} MB wasted, {:.1} MB for dense \
             random reading; {} stalls saved; {} events, {} lost; {:.3} s CPU",
            mb(self.read_ahead_bytes),
            self.reads,
            mb(self.used_bytes),
            mb(self.wasted_bytes),
            mb(self.dense_bytes),
            self.stalls_saved,
            self.events,
            self.lost_events,
            self.cpu_s,
        )
    }
}

impl Summary {
    /// What drop-behind did, in one line.
    pub fn behind(&self) -> String {
        let mb = |bytes: u64| bytes as f64 * 1e-6;
        format!(
            "dropped {:.1} MB behind streams; of what they passed {:.1} MB stay, cached before or used \
             by others or again, and {:.1} MB, not written yet or mapped",
            mb(self.dropped_bytes),
            mb(self.kept_bytes),
            mb(self.left_bytes),
        )
    }
}
