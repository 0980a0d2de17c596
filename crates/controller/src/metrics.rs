//! What was done, in numbers, and why: one table for `-v`, `--json`, `bowwave status` and the end of a daemon.
//!
//! | who | adds |
//! |---|---|
//! | the controller | everything but the three below |
//! | the body | `lost_events`, `table_errors`, `cpu_s` |

use serde::{Deserialize, Serialize};

/// Totals since the start. Bytes are of pages; a name ends in its unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Metrics {
    /// Events received from the kernel.
    pub events: u64,
    /// Events lost because they came faster than they were fetched.
    pub lost_events: u64,
    /// Times that a table of the kernel half could not be written: something was not heard of.
    pub table_errors: u64,
    /// Windows asked for.
    pub reads: u64,
    /// Bytes asked for; what was cached already is included, as it costs nothing.
    pub read_ahead_bytes: u64,
    /// Of these, bytes that a reader has come to.
    pub used_bytes: u64,
    /// Of these, bytes of streams that were forgotten before, or that were evicted. The last window of each
    /// stream is neither, as nothing is heard of it.
    pub wasted_bytes: u64,
    /// Of these, bytes of densely read regions, whose use is not tracked.
    pub dense_bytes: u64,
    /// The most that was read ahead and not used yet at any moment, of all streams.
    pub most_ahead_bytes: u64,
    /// Windows of the kernel's own that were bounded while memory was short, or narrowed for random reading.
    pub bounded_windows: u64,
    /// Requests that would have waited for the device and did not.
    pub stalls_saved: u64,
    /// Bytes let go behind streams.
    pub dropped_bytes: u64,
    /// Bytes that such streams passed and that stay: cached before, used by others or again. Files that were fully
    /// cached are not counted.
    pub kept_bytes: u64,
    /// Bytes that would go, and stay for now: not written yet, mapped or held.
    pub left_bytes: u64,
    /// CPU time of bowwave itself, in seconds.
    pub cpu_s: f64,
    /// Accesses for which nothing was asked, by reason.
    pub not_read: NotRead,
    /// Reads that were asked for and could not be carried out.
    pub failed_reads: u64,
    /// Times that a file was muted, as listening to it led to nothing.
    pub muted: u64,
    /// Changes of a kernel window that could not be made.
    pub refused_windows: u64,
}

/// Why nothing was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotRead {
    /// The access belongs to no stream, or what it wants is on its way already.
    pub nothing_to_gain: u64,
    /// The program advised random access.
    pub advised: u64,
    /// The device has enough to do.
    pub device_busy: u64,
    /// What may be ahead of readers is.
    pub memory_full: u64,
    /// Its process writes faster than the disk takes it.
    pub writes_too_fast: u64,
    /// The kernel reads ahead in a window that it was lent.
    pub lent: u64,
}

/// Why nothing was asked for after one access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    NothingToGain,
    Advised,
    DeviceBusy,
    MemoryFull,
    WritesTooFast,
    Lent,
}

impl NotRead {
    pub(crate) fn count(&mut self, reason: Reason) {
        *match reason {
            Reason::NothingToGain => &mut self.nothing_to_gain,
            Reason::Advised => &mut self.advised,
            Reason::DeviceBusy => &mut self.device_busy,
            Reason::MemoryFull => &mut self.memory_full,
            Reason::WritesTooFast => &mut self.writes_too_fast,
            Reason::Lent => &mut self.lent,
        } += 1;
    }
}

/// Millions of bytes.
fn mb(bytes: u64) -> f64 {
    bytes as f64 * 1e-6
}

impl std::fmt::Display for Metrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
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

impl Metrics {
    /// What drop-behind did, in one line.
    pub fn behind(&self) -> String {
        format!(
            "dropped {:.1} MB behind streams; kept {:.1} MB that were cached before, or used by others or \
             again; left {:.1} MB that were not written yet, or mapped",
            mb(self.dropped_bytes),
            mb(self.kept_bytes),
            mb(self.left_bytes),
        )
    }
}
