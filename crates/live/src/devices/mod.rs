//! Finds out what a device costs: its latency, bandwidth and concurrency.
//!
//! A profile of `bowwave tune` comes first, then what was measured or learned since boot, then a guess until a
//! [measurement](probe) in the background replaces it.

mod probe;
pub mod prober;
mod profile;
mod remember;

use std::path::Path;

use controller::{DeviceFacts, Origin};
use linux::identity::Identity;
use linux::mounts::{Disk, Mount};
use linux::state;
use readahead::DeviceCost;

pub(crate) use remember::note;

/// The guess for a network file system: gigabit Ethernet with a round trip of 1 ms.
const NETWORK: DeviceCost = DeviceCost { latency_s: 0.001, bandwidth: 110e6, concurrency: 16.0 };

/// What is known of the device under `mount` now. Somebody may have tuned the volume of LVM, LUKS or md that it is on;
/// what is measured is the disk to which all reads of the volume go.
pub(crate) fn facts_of(
    mount: &Mount,
    volume: Option<&Disk>,
    disk: Option<&Disk>,
    state: &Path,
) -> DeviceFacts {
    let tuned = volume.and_then(tuned_cost).map(|cost| (cost, Origin::Measured));
    let (cost, origin) = match disk {
        Some(disk) => tuned.unwrap_or_else(|| of_disk(disk, state)),
        None => of_network(mount),
    };
    DeviceFacts { cost, origin, is_counted: disk.is_some() }
}

fn tuned_cost(disk: &Disk) -> Option<DeviceCost> {
    profile::cost(&Identity::of_disk(disk), Path::new(state::PROFILES))
}

fn of_network(mount: &Mount) -> (DeviceCost, Origin) {
    match profile::cost(&Identity::of(mount, None), Path::new(state::PROFILES)) {
        Some(cost) => (cost, Origin::Measured),
        None => (NETWORK, Origin::Assumed),
    }
}

fn of_disk(disk: &Disk, state: &Path) -> (DeviceCost, Origin) {
    if let Some(cost) = tuned_cost(disk) {
        return (cost, Origin::Measured);
    }
    remember::recall(disk, state).unwrap_or_else(|| (guess(disk), Origin::Guessed))
}

/// A guess by whether the kernel says that the disk rotates.
pub(crate) fn guess(disk: &Disk) -> DeviceCost {
    if disk.is_rotational() { DeviceCost::DISK } else { DeviceCost::FLASH }
}

#[cfg(any(test, fuzzing))]
pub(crate) fn read_any_note(bytes: &[u8]) {
    if let Some((_, cost, _)) = remember::in_note(bytes) {
        assert!(cost.latency_s > 0.0 && cost.bandwidth.is_finite() && cost.concurrency >= 1.0);
    }
}
