//! Learns the cost of a device from programs' reads, where it could not be measured.
//!
//! The kernel takes many virtual disks for rotating ones, and a container may not open the device. The time of a
//! program's read is an upper bound of a device access. Reads near the previous one are left out, as a disk may have
//! them in its buffer. A "disk" that answers the others within a millisecond on average does not rotate.

use readahead::DeviceCost;

use crate::Nanos;
use crate::input::DiskStats;

/// Latencies are averaged over at least this many reads, so that a few fast ones decide nothing.
const READS: u64 = 32;

/// No disk reaches the right sector faster than this on average.
pub const FASTEST_DISK_S: f64 = 0.001;

/// No single disk delivers as many bytes a second. An array may, but there less is lost by leaving it to the kernel than
/// by taking flash for a disk.
pub const FASTEST_DISK_BYTES_S: f64 = 600e6;

/// The rate of a device is taken over at least this time, so that a burst of completions is no rate.
const RATE_OVER_NS: Nanos = 5_000_000;

/// What has been seen of a device whose cost was not measured.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Learner {
    /// The counters when latency was last compared with the known one.
    latency_from: DiskStats,
    /// The time and the bytes that were read by then, since when the rate is taken.
    rate_from: Option<(Nanos, u64)>,
}

impl Learner {
    /// The cost, corrected by what was read up to `at` since the last correction if that was enough.
    pub(crate) fn correct(
        &mut self,
        at: Nanos,
        cost: &DeviceCost,
        stats: &DiskStats,
    ) -> Option<DeviceCost> {
        let with_latency = self.latency(cost, stats);
        let known = with_latency.unwrap_or(*cost);
        let Some(bandwidth) = self.rate(at, stats).filter(|rate| *rate > known.bandwidth) else {
            return with_latency;
        };
        let is_flash = bandwidth > FASTEST_DISK_BYTES_S && known.is_serial();
        let known = if is_flash { DeviceCost::FLASH } else { known };
        Some(DeviceCost { bandwidth, ..known })
    }

    /// The cost with a lower latency, if far reads have shown one.
    fn latency(&mut self, cost: &DeviceCost, stats: &DiskStats) -> Option<DeviceCost> {
        let reads = stats.seek_reads.saturating_sub(self.latency_from.seek_reads);
        if reads < READS {
            return None;
        }
        let took_ns = stats.seek_ns.saturating_sub(self.latency_from.seek_ns);
        let mean_s = took_ns as f64 * 1e-9 / reads as f64;
        self.latency_from = *stats;
        if mean_s >= cost.latency_s {
            return None;
        }
        let is_flash = mean_s < FASTEST_DISK_S && cost.is_serial();
        let base = if is_flash { DeviceCost::FLASH } else { *cost };
        Some(DeviceCost { latency_s: mean_s.max(1e-6), ..base })
    }

    /// Bytes a second since the last call that returned any: at most what the device can deliver.
    fn rate(&mut self, at: Nanos, stats: &DiskStats) -> Option<f64> {
        let (from, bytes) = *self.rate_from.get_or_insert((at, stats.bytes));
        let elapsed_ns = at.saturating_sub(from);
        if elapsed_ns < RATE_OVER_NS {
            return None;
        }
        self.rate_from = Some((at, stats.bytes));
        Some(stats.bytes.saturating_sub(bytes) as f64 / (elapsed_ns as f64 * 1e-9))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reads(reads: u64, us_each: u64) -> DiskStats {
        DiskStats { seek_reads: reads, seek_ns: reads * us_each * 1000, ..DiskStats::default() }
    }

    #[test]
    fn a_disk_that_answers_at_once_is_flash() {
        let cost = Learner::default().correct(0, &DeviceCost::DISK, &reads(READS, 120));
        let expected = DeviceCost { latency_s: 0.000_12, ..DeviceCost::FLASH };
        assert_eq!(cost, Some(expected));
    }

    #[test]
    fn slow_reads_may_have_waited_and_correct_nothing() {
        assert_eq!(Learner::default().correct(0, &DeviceCost::DISK, &reads(100, 50_000)), None);
        assert_eq!(
            Learner::default().correct(0, &DeviceCost::DISK, &reads(READS - 1, 10)),
            None,
            "too few"
        );
    }
}
