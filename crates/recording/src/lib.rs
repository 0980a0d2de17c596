//! Records what the controller hears and asks for, and checks that it would ask for the same again.
//!
//! ```text
//!   deciding thread: controller.on(now, input) --> recorder.note(now, input, commands)
//!                                                     |  encoded into a bounded queue, never waiting
//!   writer thread:                                    v
//!                                                  blocks of some 64 KiB, once a second at least --> file
//!
//!   bowwave replay --verify:  file --> Recording --> a new controller --> the same commands?
//! ```
//!
//! The file is the magic, the format's version, and blocks: the first holds the [`Header`], the others records, one
//! behind the other. Each block carries its length and checksums, so that a recording whose writer was killed, or
//! whose disk was full, is read up to its last whole block.

mod block;
mod header;
mod place;
mod reader;
mod record;
mod recorder;
mod show;
mod verify;
mod writer;

pub use header::{Header, OddLimits, policy};
pub use place::{CreateError, Place};
pub use reader::{End, Item, OpenError, Recording};
pub use record::{Entry, Event};
pub use recorder::{QUEUE_BYTES, Recorder, Totals, WriteError};
pub use verify::{Checked, Difference, Verdict, VerifyError, verify};
