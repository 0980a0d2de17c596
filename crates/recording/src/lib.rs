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
//! The file consists of the magic, the format's version, and blocks. The first block holds the
//! [`Header`], the others hold records. Each block has its length and checksums. So if the writer
//! was killed or the disk was full, the recording can be read up to its last complete block.

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
pub use reader::{End, Item, OpenError, Recording, is_recording};
pub use record::{Entry, Event};
pub use recorder::{QUEUE_BYTES, Recorder, Totals, WriteError};
pub use verify::{Checked, Difference, Verdict, VerifyError, verify};
