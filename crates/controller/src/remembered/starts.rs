//! The starts that are under way, and which processes belong to which.

use std::collections::BTreeMap;

use readahead::Mark;

use super::RememberedFile;
use super::start::{Start, Totals};
use crate::Nanos;
use crate::ids::{CgroupId, DeviceNumber, FileKey, StartId, Tgid, Ticket};
use crate::savings::{Saved, Savings};

/// Most starts at once, each of which takes 0.3 MiB.
const MOST_STARTS: usize = 16;

/// Most processes of one start: a browser has dozens.
const MOST_MEMBERS: usize = 64;

/// All starts. See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Starts {
    /// All processes belong to this one.
    of_all: Option<StartId>,
    running: BTreeMap<StartId, Start>,
    members: BTreeMap<Tgid, StartId>,
    /// What those did that have ended.
    ended: Totals,
    ended_savings: Savings,
}

impl Starts {
    /// A command starts to which all processes belong.
    pub(super) fn begin_for_all(&mut self, now: Nanos, list: &[RememberedFile]) {
        let id = StartId::default();
        self.of_all = Some(id);
        self.running.insert(id, Start::new(now, list));
    }

    /// A process belongs to this start, which may be new. Returns `false` if there is no room.
    pub(super) fn join(&mut self, now: Nanos, id: StartId, tgid: Tgid) -> bool {
        let has_room = self.running.len() < MOST_STARTS || self.running.contains_key(&id);
        let members = self.members.values().filter(|of| **of == id).count();
        if self.of_all.is_some() || !has_room || members >= MOST_MEMBERS {
            return false;
        }
        self.running.entry(id).or_insert_with(|| Start::without_list(now));
        self.members.insert(tgid, id);
        true
    }

    /// A process has ended.
    pub(super) fn leave(&mut self, tgid: Tgid) {
        self.members.remove(&tgid);
    }

    /// Whether nothing more is concluded from what the processes of a start read: their time is over, or all have ended.
    pub(super) fn is_over(&self, now: Nanos, id: StartId) -> bool {
        let has_ended = || self.of_all.is_none() && !self.members.values().any(|of| *of == id);
        self.get(id).is_some_and(|start| start.is_over(now) || start.is_old(now) && has_ended())
    }

    /// The start to which a process belongs.
    pub(super) fn id_of(&self, tgid: Tgid) -> Option<StartId> {
        self.of_all.or_else(|| self.members.get(&tgid).copied())
    }

    /// The start to which a process belongs.
    pub(crate) fn of_mut(&mut self, tgid: Tgid) -> Option<&mut Start> {
        self.id_of(tgid).and_then(|id| self.running.get_mut(&id))
    }

    pub(super) fn get(&self, id: StartId) -> Option<&Start> {
        self.running.get(&id)
    }

    pub(super) fn get_mut(&mut self, id: StartId) -> Option<&mut Start> {
        self.running.get_mut(&id)
    }

    /// The start to which all processes belong.
    pub(super) fn of_all(&self) -> Option<&Start> {
        self.of_all.and_then(|id| self.running.get(&id))
    }

    pub(super) fn ids(&self) -> Vec<StartId> {
        self.running.keys().copied().collect()
    }

    /// The start that has asked for this batch.
    pub(super) fn asking(&mut self, ticket: Ticket) -> Option<(StartId, &mut Start)> {
        let mut running = self.running.iter_mut();
        running.find(|(_, start)| start.has_asked(ticket)).map(|(id, start)| (*id, start))
    }

    /// A process of no other start has touched this mark. Returns whether it was that of a start.
    pub(super) fn lose_mark(&mut self, own: Option<StartId>, file: FileKey, mark: Mark) -> bool {
        let others = self.running.iter_mut().filter(|(id, _)| Some(**id) != own);
        others.fold(false, |lost, (_, start)| start.lose_mark(file, mark) || lost)
    }

    /// The file does not carry marks any more, since others needed the room.
    pub(super) fn lose_marks_of(&mut self, file: FileKey) {
        self.running.values_mut().for_each(|start| start.lose_marks_of(file));
    }

    /// Whether a process belongs to a start that it has joined.
    pub(crate) fn watches(&self, tgid: Tgid) -> bool {
        self.members.contains_key(&tgid)
    }

    /// Whether another start waits for the use of this mark.
    pub(super) fn others_expect(&self, own: StartId, file: FileKey, mark: Mark) -> bool {
        let mut others = self.running.iter().filter(|(id, _)| **id != own);
        others.any(|(_, start)| start.expects(file, mark))
    }

    /// A start has ended. Gives its processes.
    pub(super) fn end(&mut self, id: StartId) -> Vec<Tgid> {
        let Some(start) = self.running.remove(&id) else { return Vec::new() };
        self.ended.add(&start.totals);
        self.ended_savings.add(&start.savings);
        let gone = self.members.iter().filter(|(_, of)| **of == id);
        let gone: Vec<Tgid> = gone.map(|(tgid, _)| *tgid).collect();
        self.members.retain(|_, of| *of != id);
        gone
    }

    pub(super) fn forget_volume(&mut self, dev: DeviceNumber) {
        self.running.values_mut().for_each(|start| start.forget_volume(dev));
        self.ended_savings.forget_volume(dev);
    }

    /// Files with marks that a command may still come to, each with its start.
    pub(super) fn expected(&self, now: Nanos) -> impl Iterator<Item = FileKey> {
        self.running.values().flat_map(move |start| start.expected(now))
    }

    /// Bytes of lists that were asked for and are not used yet.
    pub(crate) fn ahead_bytes(&self) -> u64 {
        self.running.values().map(|start| start.ahead_bytes).sum()
    }

    /// The same for a memory cgroup.
    pub(crate) fn ahead_bytes_in(&self, cgroup: CgroupId) -> u64 {
        let of_group = self.running.values().filter(|start| start.cgroup == cgroup);
        of_group.map(|start| start.ahead_bytes).sum()
    }

    pub(crate) fn totals(&self) -> Totals {
        let mut totals = self.ended;
        self.running.values().for_each(|start| totals.add(&start.totals));
        totals
    }

    /// What reading lists ahead has saved and cost on a file system.
    pub(crate) fn saved_on(&self, dev: DeviceNumber) -> Saved {
        let running = self.running.values().map(|start| start.savings.on(dev));
        running.fold(self.ended_savings.on(dev), Saved::plus)
    }
}
