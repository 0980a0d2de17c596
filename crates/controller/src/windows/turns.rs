//! Whose turn it is: targets that wait for a change of their window, and the changes under way.
//!
//! One change at a time is under way on each device, so a device that does not answer holds up its own targets only.
//! Devices take turns, file system by file system.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;

use super::PATIENCE_NS;
use crate::Nanos;
use crate::ids::{BackingId, DeviceNumber, Target, Ticket};
use crate::volumes::Volumes;

/// Targets that wait, and changes under way.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// Of each file system.
    waiting: BTreeMap<DeviceNumber, Queue>,
    /// The file system whose turn was last.
    last: Option<DeviceNumber>,
    /// One of each device at most.
    under_way: Vec<UnderWay>,
}

#[derive(Debug)]
struct UnderWay {
    /// The device; `None` is that of file systems that are not mounted.
    backing: Option<BackingId>,
    ticket: Ticket,
    target: Target,
    since: Nanos,
}

/// Targets in the order in which they were first put in.
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

    /// Whether a target waits whose device is free.
    pub(super) fn are_waiting(&self, volumes: &Volumes) -> bool {
        self.candidates().any(|dev| self.is_free(dev, volumes))
    }

    /// Takes out the target whose turn it is, with its file system: of those whose device is free.
    pub(super) fn next(&mut self, volumes: &Volumes) -> Option<(DeviceNumber, Target)> {
        let dev = self.candidates().find(|dev| self.is_free(*dev, volumes))?;
        self.last = Some(dev);
        Some((dev, self.waiting.get_mut(&dev)?.pop()?))
    }

    /// File systems with targets that wait, in the order of their turns.
    fn candidates(&self) -> impl Iterator<Item = DeviceNumber> {
        let after = self.last.map_or(Bound::Unbounded, Bound::Excluded);
        let all = self.waiting.range((after, Bound::Unbounded)).chain(&self.waiting);
        all.filter(|(_, queue)| !queue.order.is_empty()).map(|(dev, _)| *dev)
    }

    fn is_free(&self, dev: DeviceNumber, volumes: &Volumes) -> bool {
        let backing = volumes.backing(dev);
        self.under_way.iter().all(|change| change.backing != backing)
    }

    /// A change on a device was asked for.
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

    /// Gives up waiting for answers that are overdue, and names their changes.
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
