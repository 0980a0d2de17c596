//! Whether somebody else uses the disk meanwhile.
//!
//! The disk counts everybody's bytes, the kernel counts ours in `/proc/self/io`, read-ahead
//! included; the rest are those of other programs. A network file system has no such counter: there only the
//! spread of the figures tells.

use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use linux::mounts::Disk;

use super::stop::Stop;

/// Others may take this part of the disk's time without spoiling a figure.
const HARMLESS_SHARE: f64 = 0.02;

/// Bytes of the smallest read of another program: one page.
const SMALLEST_BYTES: f64 = 4096.0;

/// A disk without reads for so long counts as idle.
const SILENCE: Duration = Duration::from_millis(60);

/// A disk's counters.
#[derive(Debug)]
pub(super) struct Foreign {
    folder: Option<PathBuf>,
}

/// Counters at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Reading {
    disk_bytes: u64,
    own_bytes: u64,
}

impl Foreign {
    pub(super) fn on(disk: Option<&Disk>) -> Self {
        Foreign { folder: disk.map(|disk| disk.sysfs.clone()) }
    }

    /// The counters now, once nothing is in flight.
    pub(super) fn read(&self) -> Reading {
        let Some(folder) = &self.folder else {
            return Reading::default();
        };
        let until = Instant::now() + SILENCE;
        let text = |name| fs::read_to_string(folder.join(name)).unwrap_or_default();
        while in_flight(&text("inflight")) > 0 && Instant::now() < until {
            thread::sleep(Duration::from_millis(1));
        }
        let own = fs::read_to_string("/proc/self/io").unwrap_or_default();
        Reading { disk_bytes: bytes_moved(&text("stat")), own_bytes: own_bytes(&own) }
    }

    /// Whether, of `seconds`, others had more than a harmless part of the disk's time, if each access
    /// takes it `latency_s`.
    pub(super) fn disturbed(&self, since: Reading, seconds: f64, latency_s: f64) -> bool {
        if self.folder.is_none() {
            return false;
        }
        let now = self.read();
        let moved = now.disk_bytes.saturating_sub(since.disk_bytes);
        let own = now.own_bytes.saturating_sub(since.own_bytes);
        let foreign = moved.saturating_sub(own) as f64;
        let by_bytes = foreign / moved.max(1) as f64;
        let by_visits = foreign / SMALLEST_BYTES * latency_s / seconds;
        by_bytes > HARMLESS_SHARE || by_visits > HARMLESS_SHARE
    }

    /// Waits until nobody has used the disk for a moment, at most so long; gives whether it got
    /// silent.
    pub(super) fn wait_for_silence(&self, most: Duration, stop: &Stop) -> bool {
        let until = Instant::now() + most;
        let mut before = self.read();
        loop {
            thread::sleep(SILENCE.min(most));
            let now = self.read();
            if now.disk_bytes == before.disk_bytes {
                return true;
            }
            before = now;
            if Instant::now() > until || stop.is_wanted() {
                return false;
            }
        }
    }
}

/// Of `/sys/block/X/stat`: bytes read and written.
fn bytes_moved(stat: &str) -> u64 {
    let field = |n: usize| stat.split_whitespace().nth(n).and_then(|text| text.parse().ok());
    (field(2).unwrap_or(0u64) + field(6).unwrap_or(0)) * 512
}

/// Of `/sys/block/X/inflight`: requests the disk has.
fn in_flight(text: &str) -> u64 {
    text.split_whitespace().filter_map(|number| number.parse::<u64>().ok()).sum()
}

/// Of `/proc/self/io`: bytes that we had the disk read.
fn own_bytes(text: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix("read_bytes:"));
    line.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_as_the_kernel_writes_them() {
        let stat = "  100  0  2048  50  7  0  16  3  0  40  53  0 0 0 0 0 0";
        assert_eq!(bytes_moved(stat), (2048 + 16) * 512);
        assert_eq!(bytes_moved(""), 0);
        assert_eq!(in_flight("       2        1\n"), 3);
        assert_eq!(own_bytes("rchar: 1\nread_bytes: 4096\nwrite_bytes: 0\n"), 4096);
    }
}
