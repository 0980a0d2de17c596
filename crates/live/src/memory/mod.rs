//! How much memory may hold pages that were read ahead and not used yet, and how that is shared.
//!
//! ```text
//!   available memory, room in own cgroup --> budget  --.
//!   memory pressure at the reader        --> brake  ---+--> what is left, and a stream's share of it
//!   room in the reader's cgroup          --> window --'
//! ```

mod cgroup;
pub(crate) mod psi;
mod readers;

use std::fs;

use readahead::PAGE_BYTES;

use crate::observe::Event;
use cgroup::Place;
use readers::{Allowance, Readers};

/// A share of what the machine has to spare: reading ahead must never be what fills it.
const AVAILABLE_SHARE: u64 = 8;

/// A share of what our own memory cgroup may hold, where the command we run lives as well.
const LIMIT_SHARE: u64 = 4;

/// More is never useful: two seconds of a fast disk.
const MOST_BYTES: u64 = 1 << 30;

/// Less leaves no room for a single window.
const LEAST_BYTES: u64 = 4 << 20;

/// One window takes no more of the budget than this share, however few streams there are, so that one
/// who comes later finds room as well.
const SHARES: u64 = 8;

/// A stream has two windows out at times: the one it reads and the next.
const WINDOWS_OUT: u64 = 2;

/// The budget, in bytes, from the machine's available memory and our memory cgroup's limit.
pub fn read_ahead_budget() -> u64 {
    let available = available_bytes(&fs::read_to_string("/proc/meminfo").unwrap_or_default());
    budget(available, Place::of("self").file_room())
}

/// What a process may fill with pages, in bytes: the room in its memory cgroup, or what the machine has
/// available.
pub fn available_to(tgid: u32) -> u64 {
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let available = available_bytes(&meminfo).unwrap_or(u64::MAX);
    Place::of(&tgid.to_string()).file_room().map_or(available, |room| room.min(available))
}

/// The machine's memory, in bytes; `None` if it does not tell.
pub fn total_bytes() -> Option<u64> {
    bytes_of(&fs::read_to_string("/proc/meminfo").ok()?, "MemTotal:")
}

/// The budget as it is at the moment, and who shares it.
#[derive(Debug)]
pub(crate) struct Budget {
    bytes: u64,
    streams: u64,
    readers: Readers,
}

impl Budget {
    pub(crate) fn new() -> Self {
        Budget { bytes: read_ahead_budget(), streams: 0, readers: Readers::default() }
    }

    /// Looks again at what there is to spare, for so many streams; to be called every second or so.
    pub(crate) fn refresh(&mut self, now: u64, streams: u64) {
        self.bytes = read_ahead_budget();
        self.streams = streams;
        self.readers.forget_idle(now);
    }

    /// What the reader of `event` may have, where `ahead` pages of all streams are read ahead and not
    /// used yet.
    pub(crate) fn room(&mut self, event: &Event, ahead: u64) -> Room {
        let Allowance { window_bytes, kernel_pages, left } = self.readers.allowance(event);
        let bytes = room_bytes(self.bytes, left, self.streams, ahead * PAGE_BYTES);
        Room { pages: bytes.min(window_bytes) / PAGE_BYTES, kernel_pages }
    }
}

/// What memory leaves to one reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    /// Most pages of one window.
    pub(crate) pages: u64,
    /// Most pages of the kernel's own windows, where the reader's cgroup has a limit.
    pub(crate) kernel_pages: Option<u32>,
}

/// What is left of the budget under pressure, and no more than a stream's share of it.
fn room_bytes(budget: u64, left: f64, streams: u64, ahead: u64) -> u64 {
    let budget = (budget as f64 * left) as u64;
    budget.saturating_sub(ahead).min(budget / (WINDOWS_OUT * streams).max(SHARES))
}

fn budget(available: Option<u64>, limit: Option<u64>) -> u64 {
    let of_machine = available.map_or(MOST_BYTES, |bytes| bytes / AVAILABLE_SHARE);
    let of_cgroup = limit.map_or(MOST_BYTES, |bytes| bytes / LIMIT_SHARE);
    of_machine.min(of_cgroup).clamp(LEAST_BYTES, MOST_BYTES)
}

fn available_bytes(meminfo: &str) -> Option<u64> {
    bytes_of(meminfo, "MemAvailable:")
}

/// A line of `/proc/meminfo`.
fn bytes_of(meminfo: &str, name: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().trim_end_matches("kB").trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(any(test, fuzzing))]
pub(crate) fn read_any(text: &str) {
    available_bytes(text);
    psi::read_any(text);
    cgroup::read_any(text);
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
    fn available_memory_is_read_in_kib() {
        assert_eq!(available_bytes("MemFree: 1 kB\nMemAvailable:   2048 kB\n"), Some(2 << 20));
    }

    #[test]
    fn nobody_takes_all_and_all_together_take_no_more_than_there_is() {
        let budget = 64 << 20;
        assert_eq!(room_bytes(budget, 1.0, 1, 0), budget / SHARES);
        for streams in [1, 5, 100] {
            let mut ahead = 0;
            let mut windows = Vec::new();
            for _ in 0..streams * WINDOWS_OUT {
                windows.push(room_bytes(budget, 1.0, streams, ahead));
                ahead += windows[windows.len() - 1];
            }
            assert!(ahead <= budget);
            assert!(windows.iter().all(|window| *window == windows[0] && *window > 0), "{streams}");
        }
    }

    #[test]
    fn under_pressure_less_is_left_and_none_once_more_is_out() {
        assert_eq!(room_bytes(64 << 20, 0.25, 1, 0), 2 << 20);
        assert_eq!(room_bytes(64 << 20, 0.25, 1, 16 << 20), 0);
        assert_eq!(room_bytes(64 << 20, 0.25, 1, 40 << 20), 0);
    }
}
