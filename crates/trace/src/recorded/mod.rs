//! The binary form of a trace, which `bowwave record` writes.
//!
//! ```text
//!   Recorder --> magic, format, block: Header
//!                               block: items (a file, a process, a run of operations, what was lost), about 64 KiB
//!                               block: ...                                                              --> read --> Trace
//! ```
//!
//! A [`Run`] is one operation, or several alike that followed one another without a wait. Blocks are checked
//! (crates/blocks), so a recorder that was killed leaves a trace up to its last whole block.

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
pub const KIND: Kind = Kind { name: "trace", magic: *b"\x8bbowtrc\n", format: 1 };

/// Most operations of one trace: about as many as the largest text has. Reading them takes about 1 GB of memory.
pub const MAX_OPERATIONS: u64 = 8 << 20;
