//! The queue of targets that wait for a change of their window, and the changes under way.
//!
//! At most one change is under way on each device, so a device that does not answer delays only its own targets. File
//! systems take turns.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;

use super::PATIENCE_NS;
use crate::Nanos;
use crate::ids::{BackingId, DeviceNumber, Target, Ticket};
use crate::volumes::Volumes;

/// Waiting targets, and changes under way.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// By file system.
    waiting: BTreeMap<DeviceNumber, Queue>,
    /// The file system whose turn was last.
    last: Option<DeviceNumber>,
    /// At most one for each device.
    under_way: Vec<UnderWay>,
}

#[derive(Debug)]
struct UnderWay {
    /// The device; `None` for file systems that are not mounted.
    backing: Option<BackingId>,
    ticket: Ticket,
    target: Target,
    since: Nanos,
}

/// Targets in the order of their first insertion.
#[derive(Debug, Default)]
struct Queue {
    order: VecDeque<Target>,
    members: BTreeSet<Target>,
}

impl Queue {
    fn push(&mut self, target: Target) {
        if self.members.insert(target) {
            self.order.push_back(target);
        }
    }

    fn pop(&mut self) -> Option<Target> {
        let target = self.order.pop_front()?;
        self.members.remove(&target);
        Some(target)
    }
}

impl Turns {
    /// A target on this file system may need a change.
    pub(super) fn push(&mut self, dev: DeviceNumber, target: Target) {
        self.waiting.entry(dev).or_default().push(target);
    }

    /// Whether any waiting target's device is free.
    pub(super) fn are_waiting(&self, volumes: &Volumes) -> bool {
        self.candidates().any(|dev| self.is_free(dev, volumes))
    }

    /// Removes and returns the next target whose device is free, with its file system.
    pub(super) fn next(&mut self, volumes: &Volumes) -> Option<(DeviceNumber, Target)> {
        let dev = self.candidates().find(|dev| self.is_free(*dev, volumes))?;
        self.last = Some(dev);
        Some((dev, self.waiting.get_mut(&dev)?.pop()?))
    }

    /// File systems with waiting targets, in the order of their turns.
    fn candidates(&self) -> impl Iterator<Item = DeviceNumber> {
        let after = self.last.map_or(Bound::Unbounded, Bound::Excluded);
        let all = self.waiting.range((after, Bound::Unbounded)).chain(&self.waiting);
        all.filter(|(_, queue)| !queue.order.is_empty()).map(|(dev, _)| *dev)
    }

    fn is_free(&self, dev: DeviceNumber, volumes: &Volumes) -> bool {
        let backing = volumes.backing(dev);
        self.under_way.iter().all(|change| change.backing != backing)
    }

    /// A change on a device was requested.
    pub(super) fn begin(
        &mut self,
        backing: Option<BackingId>,
        now: Nanos,
        ticket: Ticket,
        target: Target,
    ) {
        self.under_way.push(UnderWay { backing, ticket, target, since: now });
    }

    /// A change was answered.
    pub(super) fn end(&mut self, ticket: Ticket) {
        self.under_way.retain(|change| change.ticket != ticket);
    }

    /// Stops waiting for overdue answers, and returns their changes.
    pub(super) fn give_up(&mut self, now: Nanos) -> Vec<(Ticket, Target)> {
        let mut overdue = Vec::new();
        self.under_way.retain(|change| {
            let is_overdue = now.saturating_sub(change.since) > PATIENCE_NS;
            if is_overdue {
                overdue.push((change.ticket, change.target));
            }
            !is_overdue
        });
        overdue
    }

    /// Whether a change is under way on this device.
    pub(super) fn is_under_way(&self, backing: BackingId) -> bool {
        self.under_way.iter().any(|change| change.backing == Some(backing))
    }

    /// A file system is gone.
    pub(super) fn forget(&mut self, dev: DeviceNumber) {
        self.waiting.remove(&dev);
    }
}
