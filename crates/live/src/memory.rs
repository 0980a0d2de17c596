//! How much memory may hold pages that were read ahead and not used yet.

use std::fs;
use std::path::{Path, PathBuf};

/// A share of what the machine has to spare: reading ahead must never be what fills it.
const AVAILABLE_SHARE: u64 = 8;

/// A share of our own memory cgroup's limit, where the command we run lives as well.
const LIMIT_SHARE: u64 = 4;

/// More is never useful: two seconds of a fast disk.
const MOST_BYTES: u64 = 1 << 30;

/// Less leaves no room for a single window.
const LEAST_BYTES: u64 = 4 << 20;

/// The budget, in bytes, from the machine's available memory and our memory cgroup's limit.
pub fn read_ahead_budget() -> u64 {
    let read = |path: &Path| fs::read_to_string(path).unwrap_or_default();
    let available = available_bytes(&read(Path::new("/proc/meminfo")));
    let limits = limit_files(&read(Path::new("/proc/self/cgroup")));
    let limit = limits.iter().filter_map(|file| read(file).trim().parse::<u64>().ok()).min();
    budget(available, limit)
}

/// The machine's memory, in bytes; `None` if it does not tell.
pub fn total_bytes() -> Option<u64> {
    bytes_of(&fs::read_to_string("/proc/meminfo").ok()?, "MemTotal:")
}

/// What a process may fill with pages, in bytes: the least limit of its memory cgroup and of those
/// above it, or what the machine has available.
pub fn available_to(tgid: u32) -> u64 {
    let read = |path: &Path| fs::read_to_string(path).unwrap_or_default();
    let available = available_bytes(&read(Path::new("/proc/meminfo"))).unwrap_or(u64::MAX);
    let files = limit_files(&read(Path::new(&format!("/proc/{tgid}/cgroup"))));
    let with_those_above = files.iter().flat_map(|file| {
        let name = file.file_name().unwrap_or_default().to_owned();
        file.ancestors()
            .skip(1)
            .map(move |folder| folder.join(&name))
            .take_while(|limit| limit.starts_with("/sys/fs/cgroup"))
    });
    let limits = with_those_above.filter_map(|file| read(&file).trim().parse::<u64>().ok());
    limits.min().map_or(available, |limit| limit.min(available))
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
    line.trim().trim_end_matches("kB").trim().parse::<u64>().ok().map(|kb| kb * 1024)
}

/// The files that hold our limits, version 1 and 2; the root has none.
fn limit_files(cgroups: &str) -> Vec<PathBuf> {
    let file = |line: &str| {
        let mut fields = line.splitn(3, ':');
        let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        let path = path.trim_start_matches('/');
        let root = Path::new("/sys/fs/cgroup");
        if controllers.split(',').any(|name| name == "memory") {
            return Some(root.join("memory").join(path).join("memory.limit_in_bytes"));
        }
        controllers.is_empty().then(|| root.join(path).join("memory.max"))
    };
    cgroups.lines().filter_map(file).collect()
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
    fn both_versions_of_cgroups_are_understood() {
        let files = limit_files("7:memory:/small\n3:cpu:/x\n0::/user.slice\nnonsense\n");
        assert_eq!(
            files,
            [
                PathBuf::from("/sys/fs/cgroup/memory/small/memory.limit_in_bytes"),
                PathBuf::from("/sys/fs/cgroup/user.slice/memory.max"),
            ]
        );
        assert_eq!(available_bytes("MemFree: 1 kB\nMemAvailable:   2048 kB\n"), Some(2 << 20));
    }
}
