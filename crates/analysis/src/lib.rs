//! What a trace shows: who read what, in which pattern, who waited, and why. Pure: no I/O, no clock.
//!
//! ```text
//!                  +--> order (Step) --+--> pattern of each stream
//!                  |                   +--> cause --+
//!   trace::Record -+--> cached ------------^        +--> waits of each stream, file, process and cause
//!                  +--> wait -----------------------+
//!   trace::Window --+--> ahead               what was read ahead, and what became of it
//!   trace::Request ----> devices             how busy they were, how large requests were, how long they took
//!                  +--> raster, histogram, timeline      pictures, as small for a million operations as for ten
//! ```
//!
//! A *stream* is what one process reads of one file, either by calls or through a mapping.

mod ahead;
#[cfg(test)]
mod ahead_tests;
mod cached;
mod cause;
mod devices;
mod folders;
mod gather;
mod histogram;
mod order;
mod pattern;
mod raster;
#[cfg(test)]
mod tests;
mod timeline;
mod wait;

use std::cmp::Reverse;

use readahead::Nanos;

pub use ahead::Ahead;
pub use cause::Cause;
pub use devices::{Activity, DeviceTimeline, DeviceUse, Requests, device_timeline};
pub use folders::{Folder, folders, is_small};
pub use histogram::{LengthBin, SizeBin, read_sizes, wait_lengths};
pub use order::{Step, Steps};
pub use pattern::{Pattern, WINDOW_BYTES};
pub use raster::{Layer, Raster, file_raster, tree_raster};
pub use timeline::{Timeline, timeline};
pub use wait::{ALLOWED, COPIED_PER_NS, Durations, Waits};

/// What was read, and what was waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Use {
    /// Reads, by calls or through a mapping, that got bytes.
    pub operations: u64,
    /// The bytes that these got.
    pub bytes: u64,
    /// The same, but each byte of a file counts once.
    pub distinct_bytes: u64,
    /// The waits of these reads.
    pub waits: Waits,
}

/// What one process reads of one file, in one way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stream {
    /// Index into [`trace::Trace::processes`].
    pub process: u32,
    /// Index into [`trace::Trace::files`].
    pub file: u32,
    /// Whether it reads through a mapping.
    pub is_mapped: bool,
    /// How it goes through the file.
    pub pattern: Pattern,
    /// In which steps.
    pub steps: Steps,
    /// What it reads.
    pub usage: Use,
    /// What the kernel brought in for it.
    pub ahead: Ahead,
}

/// What belongs to one file or one process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// What was read.
    pub usage: Use,
    /// Whether through a mapping, in which pattern, and how many operations. Most operations come first.
    pub patterns: Vec<(bool, Pattern, u64)>,
    /// The number of files that a process reads, or of processes that read a file.
    pub partners: u64,
    /// From the beginning of the first read to the end of the last one.
    pub span: Option<(Nanos, Nanos)>,
}

/// One wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// Index into [`trace::Trace::records`].
    pub record: usize,
    /// Index into [`Analysis::streams`].
    pub stream: usize,
    /// How long.
    pub wait: Nanos,
    /// Why.
    pub cause: Cause,
}

/// What a trace shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Analysis {
    /// From the beginning of the first operation to the end of the last one.
    pub span: (Nanos, Nanos),
    /// What the trace says of how long reads took.
    pub durations: Durations,
    /// All reads together.
    pub total: Use,
    /// Writes that wrote bytes, and these bytes. Nothing else here is about writes.
    pub written: (u64, u64),
    /// What the kernel brought in; `None` if the trace does not tell.
    pub ahead: Option<Ahead>,
    /// The block devices that had requests, the busiest first. Empty if the trace does not tell, or lasts no time.
    pub devices: Vec<DeviceUse>,
    /// In the order of their first read.
    pub streams: Vec<Stream>,
    /// As in [`trace::Trace::files`].
    pub files: Vec<Part>,
    /// As in [`trace::Trace::processes`].
    pub processes: Vec<Part>,
    /// The causes of waits, the one with the longest waits first; those without waits are left out.
    pub causes: Vec<(Cause, Waits)>,
    /// Every wait, in the order of the trace.
    pub waits: Vec<Wait>,
}

impl Analysis {
    /// Looks at a trace.
    pub fn of(trace: &trace::Trace) -> Self {
        gather::gather(trace)
    }

    /// The waits that had this cause, by a key of their streams; those that take longest come first.
    pub fn waiting<K: Ord + Copy>(
        &self,
        cause: Cause,
        key: impl Fn(&Stream) -> K,
    ) -> Vec<(K, Waits)> {
        let waits = self.waits.iter().filter(|wait| wait.cause == cause);
        let mut waits: Vec<(K, Nanos)> =
            waits.map(|wait| (key(&self.streams[wait.stream]), wait.wait)).collect();
        waits.sort_unstable();
        let of_one = |of_one: &[(K, Nanos)]| (of_one[0].0, Waits::of_sorted(of_one));
        let mut groups: Vec<(K, Waits)> =
            waits.chunk_by(|(one, _), (other, _)| one == other).map(of_one).collect();
        groups.sort_by_key(|(_, waits)| Reverse(waits.total));
        groups
    }

    /// Seconds from the beginning of the first operation to the end of the last one.
    pub fn seconds(&self) -> f64 {
        (self.span.1 - self.span.0) as f64 * 1e-9
    }
}
