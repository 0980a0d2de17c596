//! The block layer's counters of the machine's device.

use controller::{DiskStats, SEEK_BYTES};
use readahead::Nanos;

use crate::machine::USER;

/// When a read reached the block layer, and which process it is for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Started {
    at: Nanos,
    is_ours: bool,
    is_seek: bool,
}

/// The counters of the device.
#[derive(Debug, Default)]
pub(super) struct Disk {
    is_counted: bool,
    stats: DiskStats,
    told: DiskStats,
    /// The end of the last read.
    next_offset: u64,
}

impl Disk {
    /// Begins to count, at zero, or stops.
    pub(super) fn count(&mut self, is_counted: bool) {
        let our_bytes_in_flight = self.stats.our_bytes_in_flight;
        if is_counted && !self.is_counted {
            self.stats = DiskStats { our_bytes_in_flight, ..DiskStats::default() };
        }
        self.is_counted = is_counted;
    }

    /// A process's read of `bytes` at `offset` reaches the block layer.
    pub(super) fn start(&mut self, at: Nanos, offset: u64, bytes: u64, process: u32) -> Started {
        let is_ours = process == USER;
        let is_seek = offset.abs_diff(self.next_offset) > SEEK_BYTES;
        self.next_offset = offset + bytes;
        if is_ours {
            self.stats.our_reads += 1;
            self.stats.our_bytes += bytes;
            self.stats.our_bytes_in_flight += bytes;
        }
        Started { at, is_ours, is_seek }
    }

    /// A read of `bytes` has completed. `is_managed` says whether its file's reader is managed.
    pub(super) fn end(&mut self, now: Nanos, started: Started, bytes: u64, is_managed: bool) {
        let Started { at, is_ours, is_seek } = started;
        let (stats, ns) = (&mut self.stats, now - at);
        stats.bytes += bytes;
        if is_ours {
            stats.our_bytes_in_flight -= bytes;
            return;
        }
        let (reads, waited) = match is_managed {
            true => (&mut stats.managed_reads, &mut stats.managed_ns),
            false => (&mut stats.foreground_reads, &mut stats.foreground_ns),
        };
        *reads += 1;
        *waited += ns;
        stats.seek_reads += u64::from(is_seek);
        stats.seek_ns += if is_seek { ns } else { 0 };
    }

    /// The counters, if the controller wants them and they have changed since its last input.
    pub(super) fn news(&mut self) -> Option<DiskStats> {
        if !self.is_counted || self.stats == self.told {
            return None;
        }
        self.told = self.stats;
        Some(self.stats)
    }
}
