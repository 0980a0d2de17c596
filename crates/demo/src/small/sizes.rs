//! How much of everything.

use patterns::Files;

const K: u64 = 1 << 10;
const M: u64 = 1 << 20;

/// Names of the files below the device's folder.
pub(super) const SCANNED: &str = "scanned";
pub(super) const BIG: &str = "big";
pub(super) const COPY: &str = "copy";

/// The sizes of one show.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sizes {
    /// The machine's memory.
    pub(super) memory: u64,
    /// The working set.
    pub(super) scanned: u64,
    /// What goes by.
    pub(super) big: u64,
    /// Of each slow stream.
    pub(super) stream: u64,
    /// How often a program is started to see what that costs.
    pub(super) starts: usize,
}

/// The machine of the slow streams, as it was posted in 2005; what they read in a second is 64 times
/// as much, and so they start 64 times as fast.
pub(super) const STREAMS: u32 = 800;
pub(super) const STREAMS_MEMORY: u64 = 64 * M;
pub(super) const STREAM_BYTES_PER_SECOND: f64 = 64.0 * K as f64;
pub(super) const STREAM_EVERY_S: f64 = 1.0 / 64.0;

impl Sizes {
    /// In the proportions of the runs published in 2007 (1 GB of memory, 375 MB scanned, 5 GB copied),
    /// scaled to a quarter, and to a tenth for a first look.
    pub(super) fn of(full: bool) -> Self {
        if full {
            Sizes { memory: 256 * M, scanned: 100 * M, big: 1024 * M, stream: 2 * M, starts: 101 }
        } else {
            Sizes { memory: 128 * M, scanned: 40 * M, big: 256 * M, stream: M, starts: 21 }
        }
    }

    pub(super) fn files(&self) -> [Files; 2] {
        [Files::one(SCANNED, self.scanned), Files::one(BIG, self.big)]
    }

    pub(super) fn streams(&self) -> Files {
        Files { name: "slow/stream", count: STREAMS, bytes: self.stream, per_folder: 0 }
    }
}
