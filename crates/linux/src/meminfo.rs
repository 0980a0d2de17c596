//! How much memory there is.

use std::fs;

use crate::cgroup::Place;

/// The machine's memory in bytes; `None` if the kernel does not report it.
pub fn total_bytes() -> Option<u64> {
    bytes_of(&read(), "MemTotal:")
}

/// Memory available without swapping, in bytes; `None` if the kernel does not report it.
pub fn available_bytes() -> Option<u64> {
    bytes_of(&read(), "MemAvailable:")
}

/// Bytes of pages that a process may fill: the room in its memory cgroup or the machine's available
/// memory, whichever is less.
pub fn available_to(tgid: u32) -> u64 {
    let available = available_bytes().unwrap_or(u64::MAX);
    Place::of(&tgid.to_string()).file_room().map_or(available, |room| room.min(available))
}

fn read() -> String {
    fs::read_to_string("/proc/meminfo").unwrap_or_default()
}

/// The value of a line of `/proc/meminfo`.
fn bytes_of(meminfo: &str, name: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().trim_end_matches("kB").trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(any(test, fuzzing))]
pub(crate) fn read_any(text: &str) {
    bytes_of(text, "MemAvailable:");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_told_in_kib() {
        let meminfo = "MemTotal: 4096 kB\nMemFree: 1 kB\nMemAvailable:   2048 kB\n";
        assert_eq!(bytes_of(meminfo, "MemAvailable:"), Some(2 << 20));
        assert_eq!(bytes_of(meminfo, "MemTotal:"), Some(4 << 20));
        for odd in ["", "MemAvailable: x kB", "MemAvailable: 18446744073709551615 kB"] {
            assert_eq!(bytes_of(odd, "MemAvailable:"), None, "{odd:?}");
        }
    }
}
