//! How many files may be requested now.

use readahead::DeviceCost;

/// What device and memory leave to a walk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Means {
    pub(crate) cost: DeviceCost,
    /// Bytes that may be in flight, and those that are.
    pub(crate) depth_bytes: u64,
    pub(crate) in_flight_bytes: u64,
    /// What each file takes of the depth besides its bytes.
    pub(crate) access_bytes: u64,
    /// What the memory has room for.
    pub(crate) memory_bytes: u64,
}

impl Means {
    /// Bytes that may be requested now, if accesses cost nothing.
    pub(crate) fn room_bytes(&self) -> u64 {
        self.depth_bytes.saturating_sub(self.in_flight_bytes).min(self.memory_bytes)
    }

    /// How many files of `each` bytes may be requested now, after `asked_bytes` more. If nothing else is in flight, as
    /// many always may as the device serves without slowing each other.
    pub(super) fn room_files(&self, each: u64, asked_bytes: u64) -> u64 {
        let all = each.saturating_add(self.access_bytes);
        let share = each as f64 / all as f64;
        let least_bytes = each.saturating_mul(self.cost.concurrency.max(1.0) as u64);
        let depth_bytes = ((self.depth_bytes as f64 * share) as u64).max(least_bytes);
        let means = Means { depth_bytes, ..*self };
        means.room_bytes().saturating_sub(asked_bytes) / each
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const K: u64 = 1 << 10;

    fn means(depth_bytes: u64, in_flight_bytes: u64, access_bytes: u64) -> Means {
        let cost = DeviceCost::DISK;
        Means { cost, depth_bytes, in_flight_bytes, access_bytes, memory_bytes: 1 << 30 }
    }

    #[test]
    fn while_nobody_waits_small_files_take_their_bytes() {
        assert_eq!(means(1200 * K, 0, 0).room_files(12 * K, 0), 100);
        assert_eq!(means(1200 * K, 600 * K, 0).room_files(12 * K, 120 * K), 40);
        assert_eq!(
            Means { memory_bytes: 24 * K, ..means(1200 * K, 0, 0) }.room_files(12 * K, 0),
            2
        );
    }

    #[test]
    fn while_others_wait_each_file_takes_an_access_and_one_is_in_flight() {
        assert_eq!(means(1200 * K, 0, 108 * K).room_files(12 * K, 0), 10);
        assert_eq!(means(1200 * K, 60 * K, 108 * K).room_files(12 * K, 0), 5);
        assert_eq!(means(1200 * K, 0, 5000 * K).room_files(12 * K, 0), 1);
        assert_eq!(means(1200 * K, 12 * K, 5000 * K).room_files(12 * K, 0), 0);
        let cost = DeviceCost { concurrency: 32.0, ..DeviceCost::DISK };
        assert_eq!(Means { cost, ..means(1200 * K, 0, 5000 * K) }.room_files(12 * K, 0), 32);
    }
}
