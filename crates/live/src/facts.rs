//! What memory there is: looked up about once a second, for the machine and for each group that reads.
//!
//! A group is the processes of one memory cgroup, as these share its limit. Where there is no limit, processes of
//! several users may share a cgroup and nothing else, so a group is those of one user there.
//!
//! Files of `/proc` and `/sys` answer at once, so this is done where events come in.

use std::collections::HashMap;

use controller::ids::{CgroupId, Tgid};
use controller::{Input, MemoryStats, Nanos};
use linux::cgroup::{Place, is_throttled};
use linux::process::user;
use linux::{meminfo, psi};

/// What was looked up serves for so long.
const FRESH_NS: Nanos = 1_000_000_000;

/// What nobody has asked about for so long is forgotten.
const IDLE_NS: Nanos = 60_000_000_000;

/// What was looked up, and when.
#[derive(Default)]
pub(crate) struct Facts {
    machine_at: Option<Nanos>,
    processes: HashMap<Tgid, (Reader, Nanos)>,
    cgroups: HashMap<Place, Looked>,
    groups: HashMap<Group, Told>,
    numbers: u32,
}

/// What is known of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reader {
    /// Its group.
    pub(crate) group: CgroupId,
    /// It may read so much in a second. What bowwave read for it would not count.
    pub(crate) is_throttled: bool,
}

/// Processes that share memory.
#[derive(PartialEq, Eq, Hash)]
struct Group {
    place: Place,
    /// Whose processes, where the cgroup has no limit.
    user: Option<u32>,
}

/// What was found of a cgroup.
#[derive(Clone, Copy)]
struct Looked {
    file_bytes: Option<u64>,
    stalled_percent: f64,
    at: Nanos,
}

impl Looked {
    fn at(place: &Place, at: Nanos) -> Self {
        let stalled_percent = psi::waiting_percent(&place.pressure_file()).unwrap_or(0.0);
        Looked { file_bytes: place.file_room(), stalled_percent, at }
    }
}

/// A group that the controller has been told about.
struct Told {
    id: CgroupId,
    at: Nanos,
}

fn is_fresh(now: Nanos, at: Nanos) -> bool {
    now.saturating_sub(at) < FRESH_NS
}

impl Facts {
    /// The machine's memory, if it is time to look again.
    pub(crate) fn machine(&mut self, now: Nanos) -> Option<Input> {
        if self.machine_at.is_some_and(|at| is_fresh(now, at)) {
            return None;
        }
        self.machine_at = Some(now);
        self.processes.retain(|_, (_, at)| is_fresh(now, *at));
        self.cgroups.retain(|_, looked| is_fresh(now, looked.at));
        self.groups.retain(|_, told| now.saturating_sub(told.at) < IDLE_NS);
        Some(Input::MemoryStats(MemoryStats::Machine {
            available_bytes: meminfo::available_bytes(),
            own_cgroup_bytes: Place::of("self").file_room(),
        }))
    }

    /// What is known of a process, and what there is to tell of its group.
    pub(crate) fn reader(&mut self, now: Nanos, tgid: Tgid) -> (Reader, Option<Input>) {
        if let Some((reader, _)) = self.processes.get(&tgid).filter(|(_, at)| is_fresh(now, *at)) {
            return (*reader, None);
        }
        let place = Place::of(&tgid.to_string());
        let looked = match self.cgroups.get(&place).filter(|looked| is_fresh(now, looked.at)) {
            Some(looked) => *looked,
            None => Looked::at(&place, now),
        };
        self.cgroups.insert(place.clone(), looked);
        let user = if looked.file_bytes.is_none() { user(tgid) } else { None };
        let (cgroup, is_news) = self.number(now, Group { place, user });
        let reader = Reader { group: cgroup, is_throttled: is_throttled(tgid) };
        self.processes.insert(tgid, (reader, now));
        let Looked { file_bytes, stalled_percent, .. } = looked;
        let told = || MemoryStats::Cgroup { cgroup, file_bytes, stalled_percent };
        (reader, is_news.then(|| Input::MemoryStats(told())))
    }

    /// The number of a group, and whether it is time to tell of it.
    fn number(&mut self, now: Nanos, group: Group) -> (CgroupId, bool) {
        let numbers = &mut self.numbers;
        let mut is_news = false;
        let told = self.groups.entry(group).or_insert_with(|| {
            *numbers += 1;
            is_news = true;
            Told { id: CgroupId(*numbers), at: now }
        });
        is_news |= !is_fresh(now, told.at);
        if is_news {
            told.at = now;
        }
        (told.id, is_news)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_looked_up_serves_for_a_second() {
        let mut facts = Facts::default();
        let own = std::process::id();
        let (cgroup, told) = facts.reader(1, own);
        assert!(told.is_some());
        assert_eq!(facts.reader(FRESH_NS, own), (cgroup, None));
        let (again, told) = facts.reader(FRESH_NS + 1, own);
        assert!(again == cgroup && told.is_some());
    }

    #[test]
    fn two_processes_of_one_cgroup_are_told_of_once() {
        let mut facts = Facts::default();
        let (one, _) = facts.reader(1, std::process::id());
        let (other, told) = facts.reader(1, std::os::unix::process::parent_id());
        assert_eq!((one == other), told.is_none());
    }

    #[test]
    fn without_a_limit_each_user_is_a_group() {
        let mut facts = Facts::default();
        let place = || Place::of("no process");
        let of = |user| Group { place: place(), user };
        let (root, _) = facts.number(1, of(Some(0)));
        let (nobody, is_news) = facts.number(1, of(Some(65534)));
        assert!(root != nobody && is_news);
        assert_eq!(facts.number(2, of(Some(0))), (root, false));
    }

    #[test]
    fn the_machine_is_told_of_at_once_and_then_each_second() {
        let mut facts = Facts::default();
        assert!(facts.machine(5).is_some());
        assert!(facts.machine(FRESH_NS).is_none());
        assert!(facts.machine(FRESH_NS + 5).is_some());
    }
}
