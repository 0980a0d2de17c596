//! How many bytes to have in flight on a device, depending on how long foreground readers wait.
//!
//! ```text
//!   depth  all ----.                               .--- no foreground reads: back to all
//!                      \    too late: x 3/4      /
//!                       '--.____.--.__.--.__.---'      in time: x 9/8
//! ```
//!
//! More depth raises throughput (fewer device accesses for the same bytes) and the latency of other readers. The stock
//! kernel defines "too late": beside `n` streams, each with two windows of 128 KiB queued, a foreground read waits
//! behind about one window of each. Beside a program that walks through small files, it waits for the rest of one small
//! request.

use readahead::DeviceCost;

use crate::Nanos;
use crate::input::DiskStats;

/// The kernel's default window. A foreground read finds about one of each stream in the queue.
pub(crate) const KERNEL_WINDOW_BYTES: u64 = 128 << 10;

/// The kernel reads so much of a small file at first.
const SMALL_WINDOW_BYTES: u64 = 16 << 10;

/// Of a walker's request that is under way, so much is left on average. Beside the stock walker, a random reader that
/// never pauses waits 1.3 to 1.5 times what the daemon measures as the latency of the lab's `hdd`.
const REST: f64 = 0.5;

/// Less is not worth a device access.
const LEAST_BYTES: u64 = 1 << 20;

/// A full queue: 128 requests of 1 MiB. Beyond that, other readers would block.
const MOST_BYTES: u64 = 128 << 20;

/// The longest queue that a first foreground read can meet, in seconds.
const MOST_QUEUED_S: f64 = 0.8;

/// One window takes at most one part in this many of the depth, so that others find room as well.
const SHARES: u64 = 8;

/// Interval between adjustments: long enough for a few foreground reads of a slow disk.
pub(crate) const STEP_NS: Nanos = 50_000_000;

/// Foreground reads hold the depth down for this long, and at least for twice as long as the last ones have waited: the
/// next one may be waiting now, and counts only when it is done.
const CALM_NS: Nanos = 1_000_000_000;

/// Those for whom bowwave reads ahead at the moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Readers {
    /// Files that are read as streams.
    pub(crate) streams: u64,
    /// Programs that walk through small files.
    pub(crate) walkers: u64,
}

/// The depth of one device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Depth {
    limit: f64,
    most: f64,
    stepped_at: Nanos,
    foreground_at: Nanos,
    calm_ns: Nanos,
    seen: DiskStats,
}

impl Depth {
    pub(crate) fn new(cost: &DeviceCost) -> Self {
        let most = most_bytes(cost);
        let seen = DiskStats::default();
        Depth { most, limit: most, stepped_at: 0, foreground_at: 0, calm_ns: CALM_NS, seen }
    }

    /// The device costs this, as is known now. What others have waited so far still counts.
    pub(crate) fn fit(&mut self, cost: &DeviceCost) {
        let is_all = self.limit >= self.most;
        self.most = most_bytes(cost);
        self.limit = if is_all { self.most } else { self.limit.min(self.most) };
    }

    /// Most bytes in flight.
    pub(crate) fn limit_bytes(&self) -> u64 {
        self.limit as u64
    }

    /// Most bytes for one window.
    pub(crate) fn share_bytes(&self) -> u64 {
        (self.limit_bytes() / SHARES).max(LEAST_BYTES)
    }

    /// Whether [`steer`](Self::steer) would do anything.
    pub(crate) fn is_due(&self, now: Nanos) -> bool {
        now.saturating_sub(self.stepped_at) >= STEP_NS
    }

    /// Whether foreground readers make it less than all.
    pub(crate) fn is_held_down(&self) -> bool {
        self.limit < self.most
    }

    /// Adjusts the depth to how long foreground reads have waited since the last step, beside these readers. Returns
    /// whether they have waited for longer than on the stock kernel.
    pub(crate) fn steer(
        &mut self,
        now: Nanos,
        stats: &DiskStats,
        readers: Readers,
        cost: &DeviceCost,
    ) -> bool {
        if !self.is_due(now) {
            return false;
        }
        self.stepped_at = now;
        let reads = stats.foreground_reads.saturating_sub(self.seen.foreground_reads);
        let waited_ns = stats.foreground_ns.saturating_sub(self.seen.foreground_ns);
        self.seen = *stats;
        let factor = if let Some(each_ns) = waited_ns.checked_div(reads) {
            self.foreground_at = now;
            self.calm_ns = CALM_NS.max(each_ns.saturating_mul(2));
            let waited_s = waited_ns as f64 * 1e-9 / reads as f64;
            if waited_s > stock_wait_s(readers, cost) { 0.75 } else { 1.125 }
        } else if now.saturating_sub(self.foreground_at) > self.calm_ns {
            2.0
        } else {
            1.0
        };
        self.limit = (self.limit * factor).clamp(LEAST_BYTES as f64, self.most);
        factor < 1.0
    }

    /// The device counts its reads from zero again.
    pub(crate) fn count_anew(&mut self) {
        self.seen = DiskStats::default();
    }
}

/// Most bytes in flight on a device with this cost.
fn most_bytes(cost: &DeviceCost) -> f64 {
    (MOST_QUEUED_S * cost.bandwidth).clamp(8.0 * LEAST_BYTES as f64, MOST_BYTES as f64)
}

/// How long a foreground read waits on the stock kernel beside these readers.
fn stock_wait_s(Readers { streams, walkers }: Readers, cost: &DeviceCost) -> f64 {
    let is_only_walked = streams == 0 && walkers > 0;
    let (window_bytes, least_ahead) =
        if is_only_walked { (SMALL_WINDOW_BYTES, REST) } else { (KERNEL_WINDOW_BYTES, 1.0) };
    let window_s = cost.latency_s + window_bytes as f64 / cost.bandwidth;
    let readers = (streams + walkers) as f64 - if is_only_walked { 1.0 - REST } else { 0.0 };
    let ahead_of_it = (readers / cost.concurrency.max(1.0)).max(least_ahead);
    (ahead_of_it + 1.0) * window_s
}

#[cfg(test)]
mod tests {
    use super::*;

    fn streams(streams: u64) -> Readers {
        Readers { streams, walkers: 0 }
    }

    fn foreground(reads: u64, ms_each: u64) -> DiskStats {
        DiskStats {
            foreground_reads: reads,
            foreground_ns: reads * ms_each * 1_000_000,
            ..DiskStats::default()
        }
    }

    #[test]
    fn depth_falls_while_foreground_reads_wait_longer_than_on_the_stock_kernel() {
        let mut depth = Depth::new(&DeviceCost::DISK);
        for step in 1..=40 {
            depth.steer(step * STEP_NS, &foreground(step * 2, 300), streams(4), &DeviceCost::DISK);
        }
        assert_eq!(depth.limit_bytes(), LEAST_BYTES);
    }

    #[test]
    fn depth_falls_for_a_reader_that_waits_for_more_than_a_second_each_time() {
        let mut depth = Depth::new(&DeviceCost::DISK);
        for step in 1..=30 * 40 {
            // One read is done after each 1.5 s.
            depth.steer(
                step * STEP_NS,
                &foreground(step / 30, 1_500),
                streams(1),
                &DeviceCost::DISK,
            );
        }
        assert_eq!(depth.limit_bytes(), LEAST_BYTES);
    }

    #[test]
    fn depth_returns_when_nobody_else_reads() {
        let mut depth = Depth::new(&DeviceCost::DISK);
        depth.steer(STEP_NS, &foreground(1, 900), streams(4), &DeviceCost::DISK);
        let most = Depth::new(&DeviceCost::DISK).limit_bytes();
        assert!(depth.limit_bytes() < most);
        for step in 2..40 {
            depth.steer(step * STEP_NS, &foreground(1, 900), streams(4), &DeviceCost::DISK);
        }
        assert_eq!(depth.limit_bytes(), most);
    }

    #[test]
    fn a_device_that_turns_out_to_be_faster_may_have_more_in_flight_and_what_others_waited_is_kept()
    {
        let (slow, fast) = (DeviceCost::DISK, DeviceCost { bandwidth: 2e9, ..DeviceCost::DISK });
        let mut depth = Depth::new(&slow);
        depth.fit(&fast);
        assert_eq!(depth.limit_bytes(), Depth::new(&fast).limit_bytes());
        assert!(depth.limit_bytes() > Depth::new(&slow).limit_bytes());
        // Late reads before the device was known are judged once.
        depth.steer(STEP_NS, &foreground(100, 900), streams(4), &slow);
        let held_down = depth.limit_bytes();
        depth.fit(&fast);
        depth.steer(2 * STEP_NS, &foreground(100, 900), streams(4), &fast);
        assert_eq!(depth.limit_bytes(), held_down);
    }

    #[test]
    fn beside_four_streams_a_stock_read_waits_five_windows() {
        let cost = DeviceCost { latency_s: 0.007, bandwidth: 100e6, concurrency: 1.0 };
        let wait = stock_wait_s(streams(4), &cost);
        assert!((0.040..0.045).contains(&wait), "{wait}");
        let walked = stock_wait_s(Readers { streams: 0, walkers: 1 }, &cost);
        assert!((0.010..0.011).contains(&walked), "{walked}");
    }
}
