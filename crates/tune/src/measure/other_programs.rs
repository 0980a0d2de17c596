//! Detects whether other programs use the disk or the processors during a measurement.
//!
//! The disk counts all bytes; `/proc/self/io` counts this process's, read-ahead included. The
//! difference belongs to other programs. Network file systems have no such counters: there, only
//! the spread of the figures shows it. The kernel also counts how long this thread, and its own
//! workers that carry requests, waited for a processor.

use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use linux::mounts::Disk;
use linux::waits::{self, Waits};

use super::stop::Stop;

/// Other programs may use this share of the disk's time without spoiling a figure.
const HARMLESS_SHARE: f64 = 0.02;

/// Waiting for a processor may take this share of the time: figures differ by that much anyway.
const HARMLESS_WAIT_SHARE: f64 = 0.05;

/// The smallest read of another program: one page.
const SMALLEST_BYTES: f64 = 4096.0;

/// A disk counts as idle after this long without reads.
const SILENCE: Duration = Duration::from_millis(60);

/// The counters of a disk, if there is one.
#[derive(Debug)]
pub(super) struct OtherPrograms {
    folder: Option<PathBuf>,
}

/// Counters at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Reading {
    disk_bytes: u64,
    own_bytes: u64,
    own_waits: Waits,
    worker_waits: Waits,
}

/// What other programs did during a measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Disturbance {
    /// Whether they used more than a harmless share of the disk.
    pub(super) is_of_disk: bool,
    /// Share of the time that the measurement waited for a processor.
    pub(super) wait_share: f64,
}

impl Disturbance {
    pub(super) fn is_harmless(&self) -> bool {
        !self.is_of_disk && self.wait_share <= HARMLESS_WAIT_SHARE
    }
}

impl OtherPrograms {
    pub(super) fn on(disk: Option<&Disk>) -> Self {
        OtherPrograms { folder: disk.map(|disk| disk.sysfs.clone()) }
    }

    /// Reads the counters once no request is in flight.
    pub(super) fn read(&self) -> Reading {
        let (own_waits, worker_waits) = (waits::own_thread(), waits::kernel_workers());
        let Some(folder) = &self.folder else {
            return Reading { own_waits, worker_waits, ..Reading::default() };
        };
        let until = Instant::now() + SILENCE;
        let text = |name| fs::read_to_string(folder.join(name)).unwrap_or_default();
        while in_flight(&text("inflight")) > 0 && Instant::now() < until {
            thread::sleep(Duration::from_millis(1));
        }
        let own = fs::read_to_string("/proc/self/io").unwrap_or_default();
        Reading {
            disk_bytes: bytes_moved(&text("stat")),
            own_bytes: own_bytes(&own),
            own_waits,
            worker_waits,
        }
    }

    /// What other programs did since `since`, `seconds` ago. Each of their reads costs the disk
    /// `latency_s`. `at_once` requests of our own were in flight, so that workers waited side by
    /// side.
    pub(super) fn disturbance(
        &self,
        since: Reading,
        seconds: f64,
        latency_s: f64,
        at_once: usize,
    ) -> Disturbance {
        let now = self.read();
        let moved = now.disk_bytes.saturating_sub(since.disk_bytes);
        let own = now.own_bytes.saturating_sub(since.own_bytes);
        let others = moved.saturating_sub(own) as f64;
        let by_bytes = others / moved.max(1) as f64;
        let by_reads = others / SMALLEST_BYTES * latency_s / seconds;
        let own_s = (now.own_waits - since.own_waits).beyond_waking_s();
        let workers_s = (now.worker_waits - since.worker_waits).beyond_waking_s();
        Disturbance {
            is_of_disk: by_bytes > HARMLESS_SHARE || by_reads > HARMLESS_SHARE,
            wait_share: (own_s + workers_s / at_once.max(1) as f64) / seconds,
        }
    }

    /// Waits until no program uses the disk, but at most for `most`. Returns whether the disk
    /// became idle.
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

/// Bytes read and written, from `/sys/block/X/stat`.
fn bytes_moved(stat: &str) -> u64 {
    let field = |n: usize| stat.split_whitespace().nth(n).and_then(|text| text.parse().ok());
    (field(2).unwrap_or(0u64) + field(6).unwrap_or(0)) * 512
}

/// Requests in flight, from `/sys/block/X/inflight`.
fn in_flight(text: &str) -> u64 {
    text.split_whitespace().filter_map(|number| number.parse::<u64>().ok()).sum()
}

/// Bytes that this process had the disk read, from `/proc/self/io`.
fn own_bytes(text: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix("read_bytes:"));
    line.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    /// Two threads for each processor, all of which want to run, and so does the caller.
    #[test]
    fn waiting_for_a_processor_is_a_disturbance() {
        let others = OtherPrograms::on(None);
        let is_over = AtomicBool::new(false);
        let hogs = 2 * thread::available_parallelism().map_or(1, usize::from);
        let found = thread::scope(|scope| {
            for _ in 0..hogs {
                scope.spawn(|| {
                    while !is_over.load(Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                });
            }
            let (before, began) = (others.read(), Instant::now());
            while began.elapsed() < Duration::from_millis(300) {
                std::hint::spin_loop();
            }
            let found = others.disturbance(before, began.elapsed().as_secs_f64(), 0.001, 1);
            is_over.store(true, Ordering::Relaxed);
            found
        });
        assert!(!found.is_of_disk && !found.is_harmless(), "{found:?}");
    }

    #[test]
    fn counters_are_read_as_the_kernel_writes_them() {
        let stat = "  100  0  2048  50  7  0  16  3  0  40  53  0 0 0 0 0 0";
        assert_eq!(bytes_moved(stat), (2048 + 16) * 512);
        assert_eq!(bytes_moved(""), 0);
        assert_eq!(in_flight("       2        1\n"), 3);
        assert_eq!(own_bytes("rchar: 1\nread_bytes: 4096\nwrite_bytes: 0\n"), 4096);
    }
}
