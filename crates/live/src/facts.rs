//! What memory there is: looked up about once a second, for the machine and for each cgroup that reads.
//!
//! Files of `/proc` and `/sys` answer at once, so this is done where events come in.

use std::collections::HashMap;

use controller::ids::{CgroupId, Tgid};
use controller::{Input, MemoryStats, Nanos};
use linux::cgroup::Place;
use linux::{meminfo, psi};

/// What was looked up serves for so long.
const FRESH_NS: Nanos = 1_000_000_000;

/// What nobody has asked about for so long is forgotten.
const IDLE_NS: Nanos = 60_000_000_000;

/// What was looked up, and when.
#[derive(Default)]
pub(crate) struct Facts {
    machine_at: Option<Nanos>,
    places: HashMap<Tgid, (CgroupId, Nanos)>,
    cgroups: HashMap<Place, Told>,
    numbers: u32,
}

/// A cgroup that the controller has been told about.
struct Told {
    id: CgroupId,
    at: Nanos,
}

impl Facts {
    /// The machine's memory, if it is time to look again.
    pub(crate) fn machine(&mut self, now: Nanos) -> Option<Input> {
        if self.machine_at.is_some_and(|at| now.saturating_sub(at) < FRESH_NS) {
            return None;
        }
        self.machine_at = Some(now);
        self.places.retain(|_, (_, at)| now.saturating_sub(*at) < FRESH_NS);
        self.cgroups.retain(|_, told| now.saturating_sub(told.at) < IDLE_NS);
        Some(Input::MemoryStats(MemoryStats::Machine {
            available_bytes: meminfo::available_bytes(),
            own_cgroup_bytes: Place::of("self").file_room(),
        }))
    }

    /// The cgroup of a process, and what there is to tell of it.
    pub(crate) fn cgroup_of(&mut self, now: Nanos, tgid: Tgid) -> (CgroupId, Option<Input>) {
        let known = self.places.get(&tgid).filter(|(_, at)| now.saturating_sub(*at) < FRESH_NS);
        if let Some((cgroup, _)) = known {
            return (*cgroup, None);
        }
        let place = Place::of(&tgid.to_string());
        let is_fresh = |told: &&mut Told| now.saturating_sub(told.at) < FRESH_NS;
        if let Some(told) = self.cgroups.get_mut(&place).filter(is_fresh) {
            self.places.insert(tgid, (told.id, now));
            return (told.id, None);
        }
        let stats = |cgroup| MemoryStats::Cgroup {
            cgroup,
            file_bytes: place.file_room(),
            stalled_percent: psi::waiting_percent(&place.pressure_file()).unwrap_or(0.0),
        };
        let id = self.cgroups.get(&place).map_or_else(
            || {
                self.numbers += 1;
                CgroupId(self.numbers)
            },
            |told| told.id,
        );
        let input = Input::MemoryStats(stats(id));
        self.cgroups.insert(place, Told { id, at: now });
        self.places.insert(tgid, (id, now));
        (id, Some(input))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_looked_up_serves_for_a_second() {
        let mut facts = Facts::default();
        let own = std::process::id();
        let (cgroup, told) = facts.cgroup_of(1, own);
        assert!(told.is_some());
        assert_eq!(facts.cgroup_of(FRESH_NS, own), (cgroup, None));
        let (again, told) = facts.cgroup_of(FRESH_NS + 1, own);
        assert!(again == cgroup && told.is_some());
    }

    #[test]
    fn two_processes_of_one_cgroup_are_told_of_once() {
        let mut facts = Facts::default();
        let (one, _) = facts.cgroup_of(1, std::process::id());
        let (other, told) = facts.cgroup_of(1, std::os::unix::process::parent_id());
        assert_eq!((one == other), told.is_none());
    }

    #[test]
    fn the_machine_is_told_of_at_once_and_then_each_second() {
        let mut facts = Facts::default();
        assert!(facts.machine(5).is_some());
        assert!(facts.machine(FRESH_NS).is_none());
        assert!(facts.machine(FRESH_NS + 5).is_some());
    }
}
