//! How much memory may hold pages that were read ahead and not used yet, and how that is shared.
//!
//! ```text
//!   available memory, room in own cgroup --> budget --.
//!   memory pressure at the reader        --> brake  --+--> all that may be ahead --> less what is:
//!   room in the reader's cgroup          --> window -------------------------------> most of a window
//! ```
//!
//! How streams share what there is the policy decides; more than there is it does not get.

mod brake;
mod readers;

use linux::cgroup::Place;
use linux::meminfo;
use readahead::PAGE_BYTES;

use crate::observe::Event;
use readers::{Allowance, Readers};

/// A share of what the machine has to spare: reading ahead must never be what fills it.
const AVAILABLE_SHARE: u64 = 8;

/// A share of what our own memory cgroup may hold, where the command we run lives as well.
const LIMIT_SHARE: u64 = 4;

/// More is never useful: two seconds of a fast disk.
const MOST_BYTES: u64 = 1 << 30;

/// Less leaves no room for a single window.
const LEAST_BYTES: u64 = 4 << 20;

/// The budget, in bytes, from the machine's available memory and our memory cgroup's limit.
pub fn read_ahead_budget() -> u64 {
    budget(meminfo::available_bytes(), Place::of("self").file_room())
}

/// The budget as it is at the moment, and whose memory readers have; how it is shared the policy decides.
#[derive(Debug)]
pub(crate) struct Budget {
    bytes: u64,
    readers: Readers,
}

impl Budget {
    pub(crate) fn new() -> Self {
        Budget { bytes: read_ahead_budget(), readers: Readers::default() }
    }

    /// Looks again at what there is to spare; to be called every second or so.
    pub(crate) fn refresh(&mut self, now: u64) {
        self.bytes = read_ahead_budget();
        self.readers.forget_idle(now);
    }

    /// What the reader of `event` may have, where `ahead` pages of all streams are read ahead and not
    /// used yet.
    pub(crate) fn room(&mut self, event: &Event, ahead: u64) -> Room {
        Room::within(self.bytes, ahead * PAGE_BYTES, &self.readers.allowance(event))
    }
}

/// What memory leaves to one reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    /// Most pages of one window: never more than is left.
    pub(crate) pages: u64,
    /// Most pages that may be ahead of all readers, used by none yet.
    pub(crate) all_pages: u64,
    /// Most pages of the kernel's own windows, where the reader's cgroup has a limit.
    pub(crate) kernel_pages: Option<u32>,
}

impl Room {
    /// What a budget leaves under pressure, where so many bytes are ahead.
    fn within(budget: u64, ahead: u64, allowance: &Allowance) -> Self {
        let all = (budget as f64 * allowance.left) as u64;
        let window = all.saturating_sub(ahead).min(allowance.window_bytes);
        Room {
            pages: window / PAGE_BYTES,
            all_pages: all / PAGE_BYTES,
            kernel_pages: allowance.kernel_pages,
        }
    }
}

fn budget(available: Option<u64>, limit: Option<u64>) -> u64 {
    let of_machine = available.map_or(MOST_BYTES, |bytes| bytes / AVAILABLE_SHARE);
    let of_cgroup = limit.map_or(MOST_BYTES, |bytes| bytes / LIMIT_SHARE);
    of_machine.min(of_cgroup).clamp(LEAST_BYTES, MOST_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_is_a_share_of_what_is_scarcest() {
        assert_eq!(budget(Some(4 << 30), None), 512 << 20);
        assert_eq!(budget(Some(4 << 30), Some(32 << 20)), 8 << 20);
        assert_eq!(budget(Some(1 << 20), None), LEAST_BYTES);
        assert_eq!(budget(None, Some(u64::MAX / 2)), MOST_BYTES);
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
        let braked = Allowance { left: 0.25, ..Allowance::default() };
        assert_eq!(Room::within(64 << 20, 0, &braked).all_pages * PAGE_BYTES, 16 << 20);
        assert_eq!(Room::within(64 << 20, 16 << 20, &braked).pages, 0);
        assert_eq!(Room::within(64 << 20, 40 << 20, &braked).pages, 0);
    }
}
