//! Learns the cost of a device from programs' reads, where it could not be measured.
//!
//! The kernel takes many virtual disks for rotating ones, and a container may not open the device. The time of a
//! program's read is an upper bound of a device access. Reads near the previous one are left out, as a disk may have
//! them in its buffer. A "disk" that answers the others within a millisecond on average does not rotate.

use readahead::DeviceCost;

use crate::input::DiskStats;

/// Latencies are averaged over at least this many reads, so that a few fast ones decide nothing.
const READS: u64 = 32;

/// No disk reaches the right sector faster than this on average.
pub const FASTEST_DISK_S: f64 = 0.001;

/// The counters at the last comparison with a guessed cost.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Learner {
    seen: DiskStats,
}

impl Learner {
    /// The cost, corrected by the reads since the last call if there were enough.
    pub(crate) fn correct(&mut self, cost: &DeviceCost, stats: &DiskStats) -> Option<DeviceCost> {
        let reads = stats.seek_reads.saturating_sub(self.seen.seek_reads);
        if reads < READS {
            return None;
        }
        let took_ns = stats.seek_ns.saturating_sub(self.seen.seek_ns);
        let mean_s = took_ns as f64 * 1e-9 / reads as f64;
        self.seen = *stats;
        if mean_s >= cost.latency_s {
            return None;
        }
        let is_flash = mean_s < FASTEST_DISK_S && cost.is_serial();
        let base = if is_flash { DeviceCost::FLASH } else { *cost };
        Some(DeviceCost { latency_s: mean_s.max(1e-6), ..base })
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
        let cost = Learner::default().correct(&DeviceCost::DISK, &reads(READS, 120));
        let expected = DeviceCost { latency_s: 0.000_12, ..DeviceCost::FLASH };
        assert_eq!(cost, Some(expected));
    }

    #[test]
    fn slow_reads_may_have_waited_and_correct_nothing() {
        assert_eq!(Learner::default().correct(&DeviceCost::DISK, &reads(100, 50_000)), None);
        assert_eq!(
            Learner::default().correct(&DeviceCost::DISK, &reads(READS - 1, 10)),
            None,
            "too few"
        );
    }
}
