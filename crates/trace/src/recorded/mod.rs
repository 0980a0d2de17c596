//! The binary form of a trace, which `bowwave record` writes.
//!
//! ```text
//!   Recorder --> magic, format, block: Header
//!                               block: items (a file, a process, a run of operations, a window,
//!                                             a device, a request, what was lost)
//!                               block: ...                                                      --> read --> Trace
//! ```
//!
//! A [`Run`] is one operation, or several alike that followed one another without a wait. Blocks are checked
//! (crates/blocks), so a recorder that was killed leaves a trace up to its last whole block. What the kernel brought in
//! is a [`Window`](crate::Window), what a device was asked for a [`Request`](crate::Request).

mod expand;
mod item;
mod read;
mod recorder;
#[cfg(test)]
mod tests;

use std::ops::RangeInclusive;

use blocks::Kind;

pub use item::{Header, Run};
pub(crate) use read::read;
pub use recorder::{Recorder, Totals};

/// What these files are. Raise the format when the header or an item changes its form.
pub const KIND: Kind = Kind { name: "trace", magic: *b"\x8bbowtrc\n", format: 3 };

/// Formats that lack some items, and are otherwise the same: the first one has no windows, and neither has requests.
const OLDER_FORMATS: RangeInclusive<u32> = 1..=2;

/// Most windows of one trace: as many as 16 GiB of random reads of a page have. Reading them takes about 300 MB of
/// memory.
pub const MAX_WINDOWS: u64 = 4 << 20;

/// Most requests of one trace: as many as windows, since each brings pages in or writes some. Reading them takes about
/// 130 MB of memory.
pub const MAX_REQUESTS: u64 = 4 << 20;

/// Most operations of one trace: about as many as the largest text has. Reading them takes about 1 GB of memory.
pub const MAX_OPERATIONS: u64 = 8 << 20;
