//! Knows which files are under a lease: opening one would make its holder give up the lease.
//!
//! Only `/proc/locks` shows the leases of others: `F_GETLEASE` shows those of one's own descriptor, and an open with
//! `O_NONBLOCK` fails at once but breaks the lease nonetheless.

use std::fs;
use std::time::{Duration, Instant};

use readahead::{DeviceNumber, FileKey};

/// Use a table for this many times as long as reading it took. So reading long tables slows a walk by 10 % at most.
const USES_PER_READING: u32 = 10;

/// A recent copy of `/proc/locks`.
pub(in crate::execute) struct Leases {
    files: Vec<FileKey>,
    read_at: Instant,
    took: Duration,
}

impl Leases {
    pub(in crate::execute) fn read() -> Self {
        let begun = Instant::now();
        let table = fs::read_to_string("/proc/locks").unwrap_or_default();
        let files = table.lines().filter_map(lease).collect();
        let read_at = Instant::now();
        Leases { files, read_at, took: read_at - begun }
    }

    /// Whether somebody has a lease on the file.
    pub(in crate::execute) fn contains(&mut self, file: FileKey) -> bool {
        if self.read_at.elapsed() > self.took * USES_PER_READING {
            *self = Leases::read();
        }
        self.files.contains(&file)
    }
}

/// The file of a lease in a line of `/proc/locks`: `1: LEASE  ACTIVE    WRITE 1234 fe:00:131 0 EOF`.
fn lease(line: &str) -> Option<FileKey> {
    let mut fields = line.split_ascii_whitespace().skip(1);
    if !matches!(fields.next()?, "LEASE" | "DELEG") {
        return None;
    }
    let mut numbers = fields.nth(3)?.split(':');
    let hex = |text: Option<&str>| u32::from_str_radix(text?, 16).ok();
    let dev = DeviceNumber { major: hex(numbers.next())?, minor: hex(numbers.next())? };
    Some(FileKey { dev, ino: numbers.next()?.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leases_are_found_among_locks() {
        let dev = DeviceNumber { major: 0xfe, minor: 1 };
        let line = "1: LEASE  ACTIVE    WRITE 1234 fe:01:131 0 EOF";
        assert_eq!(lease(line), Some(FileKey { dev, ino: 131 }));
        assert_eq!(lease("2: POSIX  ADVISORY  WRITE 1234 fe:01:131 0 EOF"), None);
        assert_eq!(lease(""), None);
    }
}
