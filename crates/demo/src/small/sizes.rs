//! Sizes of memory and files.

use patterns::Files;

const K: u64 = 1 << 10;
const M: u64 = 1 << 20;

/// Names of the files below the device's folder.
pub(super) const SCANNED: &str = "scanned";
pub(super) const BIG: &str = "big";
pub(super) const COPY: &str = "copy";

/// The sizes of one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sizes {
    /// Bytes of the machine's memory.
    pub(super) memory: u64,
    /// Bytes of the working set.
    pub(super) scanned: u64,
    /// Bytes of the large file.
    pub(super) big: u64,
    /// Bytes of each slow stream.
    pub(super) stream: u64,
    /// How often a program is started, to measure the cost.
    pub(super) starts: usize,
}

/// The machine of the slow streams, as it was posted in 2005. The streams read 64 times as fast, so they also start 64
/// times as often.
pub(super) const STREAMS: u32 = 800;
pub(super) const STREAMS_MEMORY: u64 = 64 * M;
pub(super) const STREAM_BYTES_PER_SECOND: f64 = 64.0 * K as f64;
pub(super) const STREAM_EVERY_S: f64 = 1.0 / 64.0;

impl Sizes {
    /// Sizes in the proportions of the runs published in 2007 (1 GB of memory, 375 MB scanned, 5 GB copied): a quarter
    /// of them if `full`, otherwise a tenth.
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
