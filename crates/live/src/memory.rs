//! Looks up the memory of the machine and of each group of readers, about once a second.
//!
//! A group is the processes of one memory cgroup, since they share its limit. In a cgroup without a limit, a group is
//! the processes of one spender of events: a user with all user ids of its namespaces, or a container.
//!
//! The engine's thread does this itself, as files of `/proc` and `/sys` answer at once.

use std::collections::HashMap;

use controller::ids::{CgroupId, Tgid};
use controller::{Input, MemoryStats, Nanos};
use ebpf::observe::Spender;
use linux::cgroup::{Place, is_limited};
use linux::io_priority::IoPriority;
use linux::{meminfo, psi};

/// Look up again after this time.
const FRESH_NS: Nanos = 1_000_000_000;

/// Forget a group that has not read for this time.
const IDLE_NS: Nanos = 60_000_000_000;

/// A cache of what was looked up.
#[derive(Default)]
pub(crate) struct Memory {
    machine_at: Option<Nanos>,
    processes: HashMap<Tgid, (Reader, Nanos)>,
    cgroups: HashMap<Place, CgroupMemory>,
    groups: HashMap<Group, ReportedGroup>,
    last_id: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reader {
    pub(crate) group: CgroupId,
    /// Nothing is read ahead for it. If its cgroup may read only so much per second (`io.max`), bowwave's reads would
    /// not count against that. If it reads in the idle class (`ionice -c 3`), long reads would delay others. `None` if it
    /// has ended before this was looked up.
    pub(crate) is_left_to_kernel: Option<bool>,
}

/// Processes that share memory.
#[derive(PartialEq, Eq, Hash)]
struct Group {
    place: Place,
    /// Who has caused the event, if the cgroup has no limit.
    spender: Option<Spender>,
}

#[derive(Clone, Copy)]
struct CgroupMemory {
    file_bytes: Option<u64>,
    stalled_percent: f64,
    at: Nanos,
}

impl CgroupMemory {
    fn of(place: &Place, at: Nanos) -> Self {
        let stalled_percent = psi::waiting_percent(&place.pressure_file()).unwrap_or(0.0);
        CgroupMemory { file_bytes: place.file_room(), stalled_percent, at }
    }
}

struct ReportedGroup {
    id: CgroupId,
    at: Nanos,
}

fn is_fresh(now: Nanos, at: Nanos) -> bool {
    now.saturating_sub(at) < FRESH_NS
}

impl Memory {
    /// The machine's memory, once a second; `None` in between.
    pub(crate) fn machine(&mut self, now: Nanos) -> Option<Input> {
        if self.machine_at.is_some_and(|at| is_fresh(now, at)) {
            return None;
        }
        self.machine_at = Some(now);
        self.processes.retain(|_, (_, at)| is_fresh(now, *at));
        self.cgroups.retain(|_, cgroup| is_fresh(now, cgroup.at));
        self.groups.retain(|_, group| now.saturating_sub(group.at) < IDLE_NS);
        Some(Input::MemoryStats(MemoryStats::Machine {
            available_bytes: meminfo::available_bytes(),
            own_cgroup_bytes: Place::of("self").file_room(),
        }))
    }

    /// A process's group, and the group's memory if the controller was not told within the last second.
    pub(crate) fn reader(
        &mut self,
        now: Nanos,
        tgid: Tgid,
        spender: Spender,
    ) -> (Reader, Option<Input>) {
        if let Some((reader, _)) = self.processes.get(&tgid).filter(|(_, at)| is_fresh(now, *at)) {
            return (*reader, None);
        }
        let place = Place::of(&tgid.to_string());
        let known = self.cgroups.get(&place).filter(|cgroup| is_fresh(now, cgroup.at)).copied();
        let memory = known.unwrap_or_else(|| CgroupMemory::of(&place, now));
        self.cgroups.insert(place.clone(), memory);
        let CgroupMemory { file_bytes, stalled_percent, .. } = memory;
        let spender = file_bytes.is_none().then_some(spender);
        let (cgroup, is_report_due) = self.group_id(now, Group { place, spender });
        let is_idle = IoPriority::of(tgid).map(IoPriority::is_idle);
        let is_left_to_kernel =
            is_limited(tgid).zip(is_idle).map(|(limited, idle)| limited || idle);
        let reader = Reader { group: cgroup, is_left_to_kernel };
        self.processes.insert(tgid, (reader, now));
        let stats = MemoryStats::Cgroup { cgroup, file_bytes, stalled_percent };
        (reader, is_report_due.then_some(Input::MemoryStats(stats)))
    }

    /// A group's number, and whether the controller has to be told of it again.
    fn group_id(&mut self, now: Nanos, group: Group) -> (CgroupId, bool) {
        let last_id = &mut self.last_id;
        let mut is_report_due = false;
        let reported = self.groups.entry(group).or_insert_with(|| {
            *last_id += 1;
            is_report_due = true;
            ReportedGroup { id: CgroupId(*last_id), at: now }
        });
        is_report_due |= !is_fresh(now, reported.at);
        if is_report_due {
            reported.at = now;
        }
        (reported.id, is_report_due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lookup_stays_valid_for_a_second() {
        let mut memory = Memory::default();
        let own = std::process::id();
        let (cgroup, told) = memory.reader(1, own, Spender::default());
        assert!(told.is_some());
        assert_eq!(memory.reader(FRESH_NS, own, Spender::default()), (cgroup, None));
        let (again, told) = memory.reader(FRESH_NS + 1, own, Spender::default());
        assert!(again == cgroup && told.is_some());
    }

    #[test]
    fn two_processes_of_one_cgroup_are_reported_once() {
        let mut memory = Memory::default();
        let (one, _) = memory.reader(1, std::process::id(), Spender::default());
        let parent = std::os::unix::process::parent_id();
        let (other, told) = memory.reader(1, parent, Spender::default());
        assert_eq!((one == other), told.is_none());
    }

    #[test]
    fn without_a_limit_each_spender_is_a_group() {
        let mut memory = Memory::default();
        let of = |uid| Group {
            place: Place::of("no process"),
            spender: Some(Spender { cgroup: 1, uid }),
        };
        let (root, _) = memory.group_id(1, of(0));
        let (nobody, is_report_due) = memory.group_id(1, of(65534));
        assert!(root != nobody && is_report_due);
        assert_eq!(memory.group_id(2, of(0)), (root, false));
    }

    #[test]
    fn the_machine_is_reported_at_once_and_then_each_second() {
        let mut memory = Memory::default();
        assert!(memory.machine(5).is_some());
        assert!(memory.machine(FRESH_NS).is_none());
        assert!(memory.machine(FRESH_NS + 5).is_some());
    }
}
