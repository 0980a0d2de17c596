//! Records the inputs and commands of a controller, and checks that they can be reproduced.
//!
//! ```text
//!   deciding thread: controller.on(now, input) --> recorder.note(now, input, commands)
//!                                                     |  encodes into a bounded queue, never waits
//!   writer thread:                                    v
//!                                                  blocks of about 64 KiB, every 0.5 s at least --> file
//!
//!   bowwave replay --verify:  file --> Recording --> a new controller --> the same commands?
//! ```
//!
//! The file consists of checked blocks (crates/blocks). The first one holds the [`Header`], the others hold records.

mod header;
mod reader;
mod record;
mod recorder;
mod show;
mod verify;
mod writer;

pub use blocks::{CreateError, Place};
pub use header::{Header, OddLimits, policy};
pub use reader::{End, Item, OpenError, Recording, is_recording};
pub use record::{Entry, Event};
pub use recorder::{Recorder, Totals, WriteError};
pub use verify::{Checked, Difference, Verdict, VerifyError, verify};
pub use writer::QUEUE_BYTES;

/// What these files are. Raise the format when the header, an input or a command changes its form (`tests/golden.rs`
/// tells when).
pub const KIND: blocks::Kind =
    blocks::Kind { name: "recording", magic: *b"\x8bbowrec\n", format: 6 };
