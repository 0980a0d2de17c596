//! Which disks are counted for which devices: a device of several disks is counted on each, and devices may share disks.

use std::collections::BTreeMap;

use controller::DiskStats;
use controller::ids::{BackingId, DeviceNumber};
use ebpf::observe::DISK_SLOTS;

/// The disks whose reads are counted.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    /// Disks, each with the slot of its counters in the eBPF programs.
    slots: BTreeMap<DeviceNumber, usize>,
    devices: BTreeMap<BackingId, Device>,
}

#[derive(Debug)]
struct Device {
    disks: Vec<DeviceNumber>,
    /// What the counters showed when this device began to be counted; `None` if they were not looked at yet. A disk that
    /// was counted for another device already does not begin at zero.
    before: Option<DiskStats>,
    /// The counters that the controller was told last.
    told: Option<DiskStats>,
}

impl Counted {
    /// Starts counting for a device. Returns the disks that have to be counted from now on, with their slots. When no
    /// slot is free, a disk's reads are managed without counters.
    pub(crate) fn start(
        &mut self,
        device: BackingId,
        disks: Vec<DeviceNumber>,
    ) -> Vec<(DeviceNumber, usize)> {
        let mut new = Vec::new();
        for disk in &disks {
            let free = (0..DISK_SLOTS).find(|slot| self.slots.values().all(|used| used != slot));
            if let (false, Some(slot)) = (self.slots.contains_key(disk), free) {
                self.slots.insert(*disk, slot);
                new.push((*disk, slot));
            }
        }
        let before = (new.len() == disks.len()).then(DiskStats::default);
        self.devices.insert(device, Device { disks, before, told: None });
        new
    }

    /// Ends counting for a device. Returns the disks that need not be counted any more.
    pub(crate) fn stop(&mut self, device: BackingId) -> Vec<DeviceNumber> {
        self.devices.remove(&device);
        let is_used =
            |disk: &DeviceNumber| self.devices.values().any(|device| device.disks.contains(disk));
        let unused: Vec<_> = self.slots.keys().filter(|disk| !is_used(disk)).copied().collect();
        self.slots.retain(|disk, _| !unused.contains(disk));
        unused
    }

    /// The devices whose counters have changed since the last call: the sums over their disks.
    pub(crate) fn news(
        &mut self,
        stats_of: impl Fn(usize) -> DiskStats,
    ) -> Vec<(BackingId, DiskStats)> {
        let slots = &self.slots;
        let changed = |(id, device): (&BackingId, &mut Device)| {
            let disks = device.disks.iter().filter_map(|disk| slots.get(disk));
            let sum = disks.map(|slot| stats_of(*slot)).reduce(|sum, stats| sum + stats)?;
            let stats = sum.since(device.before.get_or_insert(sum));
            let is_news = device.told.replace(stats) != Some(stats);
            is_news.then_some((*id, stats))
        };
        self.devices.iter_mut().filter_map(changed).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: DeviceNumber = DeviceNumber { major: 259, minor: 0 };
    const B: DeviceNumber = DeviceNumber { major: 259, minor: 1 };
    const MIRROR: BackingId = BackingId(1);
    const PARTITION: BackingId = BackingId(2);

    /// Each slot has counted 10 reads more than the one before.
    fn reads(slot: usize) -> DiskStats {
        DiskStats { foreground_reads: 10 * (slot as u64 + 1), ..DiskStats::default() }
    }

    #[test]
    fn reads_of_all_disks_of_a_device_are_told_together_and_once() {
        let mut counted = Counted::default();
        assert_eq!(counted.start(MIRROR, vec![A, B]), [(A, 0), (B, 1)]);
        let sum = DiskStats { foreground_reads: 30, ..DiskStats::default() };
        assert_eq!(counted.news(reads), [(MIRROR, sum)]);
        assert_eq!(counted.news(reads), []);
    }

    #[test]
    fn a_disk_of_two_devices_is_counted_until_both_are_gone() {
        let mut counted = Counted::default();
        counted.start(MIRROR, vec![A, B]);
        assert_eq!(counted.start(PARTITION, vec![A]), []);
        let told: Vec<_> = counted.news(reads).into_iter().map(|(id, _)| id).collect();
        assert_eq!(told, [MIRROR, PARTITION]);
        let more = |slot| DiskStats { foreground_reads: 50, ..reads(slot) };
        let since = DiskStats { foreground_reads: 40, ..DiskStats::default() };
        assert!(counted.news(more).contains(&(PARTITION, since)), "it begins at zero");
        assert_eq!(counted.stop(MIRROR), [B]);
        assert_eq!(counted.stop(PARTITION), [A]);
        assert_eq!(counted.stop(PARTITION), []);
        assert_eq!(counted.start(MIRROR, vec![B]), [(B, 0)], "its slot is free again");
    }

    #[test]
    fn a_disk_without_a_free_slot_is_managed_without_counters() {
        let mut counted = Counted::default();
        let many = (0..DISK_SLOTS as u32).map(|minor| DeviceNumber { major: 8, minor });
        assert_eq!(counted.start(MIRROR, many.collect()).len(), DISK_SLOTS);
        assert_eq!(counted.start(PARTITION, vec![A]), []);
        assert!(counted.news(reads).iter().all(|(id, _)| *id == MIRROR));
    }
}
