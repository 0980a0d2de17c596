//! The budget for pages that were read ahead and not used yet, and how readers share it.
//!
//! ```text
//!   available memory, room in own cgroup --> budget --.
//!   memory pressure at the reader        --> share  --+--> all that may be ahead --> less what is:
//!   room in the reader's cgroup          --> window -------------------------------> most of a window
//! ```
//!
//! The policy decides how streams share the budget. It never gets more.

use readahead::PAGE_BYTES;

use crate::Nanos;
use crate::cgroups::{Allowance, Cgroups};
use crate::ids::{CgroupId, FileKey};
use crate::input::MemoryStats;

/// One part in this many of the available memory, so that read-ahead never fills it.
const AVAILABLE_SHARE: u64 = 8;

/// One part in this many of what bowwave's own memory cgroup may hold. `bowwave run` shares its cgroup with the
/// command.
const LIMIT_SHARE: u64 = 4;

/// The largest budget: two seconds of a fast disk.
const MOST_BYTES: u64 = 1 << 30;

/// The smallest budget: less leaves no room for a single window.
const LEAST_BYTES: u64 = 4 << 20;

/// The budget in bytes, given the available memory and what bowwave's own cgroup may hold, where known.
pub fn budget_bytes(available: Option<u64>, own_cgroup: Option<u64>) -> u64 {
    let of_machine = available.map_or(MOST_BYTES, |bytes| bytes / AVAILABLE_SHARE);
    let of_cgroup = own_cgroup.map_or(MOST_BYTES, |bytes| bytes / LIMIT_SHARE);
    of_machine.min(of_cgroup).clamp(LEAST_BYTES, MOST_BYTES)
}

/// The current budget, and what readers' cgroups leave to them.
#[derive(Debug)]
pub(crate) struct Memory {
    budget_bytes: u64,
    available_bytes: Option<u64>,
    cgroups: Cgroups,
}

/// What memory leaves to one reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    /// Most pages of one window: at most what is left of the budget.
    pub(crate) pages: u64,
    /// Most pages that may be ahead of all readers together.
    pub(crate) all_pages: u64,
    /// Most pages of the kernel's own windows, where the reader's cgroup has a limit.
    pub(crate) kernel_pages: Option<u32>,
}

impl Memory {
    /// Nothing is known yet.
    pub(crate) fn new() -> Self {
        Memory { budget_bytes: LEAST_BYTES, available_bytes: None, cgroups: Cgroups::default() }
    }

    /// Memory was looked up.
    pub(crate) fn note(&mut self, now: Nanos, stats: &MemoryStats) {
        match *stats {
            MemoryStats::Machine { available_bytes, own_cgroup_bytes } => {
                self.available_bytes = available_bytes;
                self.budget_bytes = budget_bytes(available_bytes, own_cgroup_bytes);
            }
            MemoryStats::Cgroup { cgroup, file_bytes, stalled_percent } => {
                self.cgroups.note(now, cgroup, file_bytes, stalled_percent);
            }
        }
    }

    pub(crate) fn budget_bytes(&self) -> u64 {
        self.budget_bytes
    }

    /// Room for a reader of `file`, if `ahead_pages` of all streams are read ahead and not used yet.
    pub(crate) fn room(
        &mut self,
        now: Nanos,
        cgroup: CgroupId,
        file: FileKey,
        ahead_pages: u64,
    ) -> Room {
        let allowance = self.cgroups.allowance(now, cgroup, file);
        Room::within(self.budget_bytes, ahead_pages * PAGE_BYTES, &allowance)
    }

    /// Bytes of files that may be read for the walks of a cgroup, if `ahead_bytes` are ahead of all readers and
    /// `of_walks` of them of this cgroup's walks.
    pub(crate) fn walk_bytes(&self, cgroup: CgroupId, ahead_bytes: u64, of_walks: u64) -> u64 {
        let allowance = self.cgroups.known_allowance(cgroup);
        let all = (self.budget_bytes as f64 * allowance.share_left) as u64;
        let in_cgroup = allowance.window_bytes.saturating_sub(of_walks);
        all.saturating_sub(ahead_bytes).min(in_cgroup)
    }

    /// Bytes of pages that a process of that cgroup may bring in.
    pub(crate) fn available_to(&self, cgroup: CgroupId) -> u64 {
        let available = self.available_bytes.unwrap_or(u64::MAX);
        self.cgroups.file_bytes(cgroup).map_or(available, |room| room.min(available))
    }

    /// Most pages of the kernel's own windows in a cgroup: `Some(None)` without a limit, `None` if nothing is known of
    /// the cgroup.
    pub(crate) fn kernel_pages(&self, cgroup: CgroupId) -> Option<Option<u32>> {
        self.cgroups.kernel_pages(cgroup)
    }

    pub(crate) fn forget_idle(&mut self, now: Nanos) {
        self.cgroups.forget_idle(now);
    }
}

impl Room {
    fn within(budget: u64, ahead: u64, allowance: &Allowance) -> Self {
        let all = (budget as f64 * allowance.share_left) as u64;
        let window = all.saturating_sub(ahead).min(allowance.window_bytes);
        Room {
            pages: window / PAGE_BYTES,
            all_pages: all / PAGE_BYTES,
            kernel_pages: allowance.kernel_pages,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_is_a_share_of_what_is_scarcest() {
        assert_eq!(budget_bytes(Some(4 << 30), None), 512 << 20);
        assert_eq!(budget_bytes(Some(4 << 30), Some(32 << 20)), 8 << 20);
        assert_eq!(budget_bytes(Some(1 << 20), None), LEAST_BYTES);
        assert_eq!(budget_bytes(None, Some(u64::MAX / 2)), MOST_BYTES);
    }

    #[test]
    fn a_window_takes_no_more_than_is_left_of_what_all_may_have() {
        let all = 64 << 20;
        assert_eq!(Room::within(all, 0, &Allowance::default()).pages, all / PAGE_BYTES);
        assert_eq!(Room::within(all, all - PAGE_BYTES, &Allowance::default()).pages, 1);
        assert_eq!(Room::within(all, 2 * all, &Allowance::default()).pages, 0);
        let small = Allowance { window_bytes: 1 << 20, ..Allowance::default() };
        let room = Room::within(all, 0, &small);
        assert_eq!((room.pages, room.all_pages), (256, all / PAGE_BYTES));
    }

    #[test]
    fn under_pressure_less_is_left_and_none_once_more_is_out() {
        let braked = Allowance { share_left: 0.25, ..Allowance::default() };
        assert_eq!(Room::within(64 << 20, 0, &braked).all_pages * PAGE_BYTES, 16 << 20);
        assert_eq!(Room::within(64 << 20, 16 << 20, &braked).pages, 0);
        assert_eq!(Room::within(64 << 20, 40 << 20, &braked).pages, 0);
    }

    #[test]
    fn what_a_process_may_fill_is_the_lesser_of_its_cgroup_and_the_machine() {
        let mut memory = Memory::new();
        assert_eq!(memory.available_to(CgroupId(1)), u64::MAX, "nothing is known");
        let machine =
            MemoryStats::Machine { available_bytes: Some(1 << 30), own_cgroup_bytes: None };
        memory.note(0, &machine);
        let cgroup = |file_bytes| MemoryStats::Cgroup {
            cgroup: CgroupId(1),
            file_bytes,
            stalled_percent: 0.0,
        };
        memory.note(0, &cgroup(Some(64 << 20)));
        assert_eq!(memory.available_to(CgroupId(1)), 64 << 20);
        assert_eq!(memory.available_to(CgroupId(2)), 1 << 30);
        memory.note(0, &cgroup(None));
        assert_eq!(memory.available_to(CgroupId(1)), 1 << 30);
    }
}
