//! The managed file systems, and the device under each.

use std::collections::BTreeMap;

use crate::ids::{BackingId, DeviceNumber};

/// File systems by their number.
#[derive(Debug, Default)]
pub(crate) struct Volumes {
    backing_of: BTreeMap<DeviceNumber, BackingId>,
}

impl Volumes {
    pub(crate) fn add(&mut self, dev: DeviceNumber, backing: BackingId) {
        self.backing_of.insert(dev, backing);
    }

    /// Returns whether it was managed.
    pub(crate) fn remove(&mut self, dev: DeviceNumber) -> bool {
        self.backing_of.remove(&dev).is_some()
    }

    pub(crate) fn backing(&self, dev: DeviceNumber) -> Option<BackingId> {
        self.backing_of.get(&dev).copied()
    }

    pub(crate) fn on(&self, backing: BackingId) -> impl Iterator<Item = DeviceNumber> {
        let on = self.backing_of.iter().filter(move |(_, on)| **on == backing);
        on.map(|(dev, _)| *dev)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = DeviceNumber> {
        self.backing_of.keys().copied()
    }

    pub(crate) fn is_used(&self, backing: BackingId) -> bool {
        self.on(backing).next().is_some()
    }
}
