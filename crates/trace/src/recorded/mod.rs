//! The binary form of a trace, which `bowwave record` writes.
//!
//! ```text
//!   Recorder --> magic, format, block: Header
//!                               block: items (a file, a process, a run of operations, a window, what was lost)
//!                               block: ...                                                              --> read --> Trace
//! ```
//!
//! A [`Run`] is one operation, or several alike that followed one another without a wait. Blocks are checked
//! (crates/blocks), so a recorder that was killed leaves a trace up to its last whole block. What the kernel brought in
//! is a [`Window`](crate::Window).

mod expand;
mod item;
mod read;
mod recorder;
#[cfg(test)]
mod tests;

use blocks::Kind;

pub use item::{Header, Run};
pub(crate) use read::read;
pub use recorder::{Recorder, Totals};

/// What these files are. Raise the format when the header or an item changes its form.
pub const KIND: Kind = Kind { name: "trace", magic: *b"\x8bbowtrc\n", format: 2 };

/// The first format. It has no windows, and is otherwise the same.
const FIRST_FORMAT: u32 = 1;

/// Most windows of one trace: as many as 16 GiB of random reads of a page have. Reading them takes about 300 MB of
/// memory.
pub const MAX_WINDOWS: u64 = 4 << 20;

/// Most operations of one trace: about as many as the largest text has. Reading them takes about 1 GB of memory.
pub const MAX_OPERATIONS: u64 = 8 << 20;
