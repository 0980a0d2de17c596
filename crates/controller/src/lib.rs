//! Decides what bowwave reads ahead, drops and sets. No I/O, no clock, no threads.
//!
//! A *body* (the running kernel, a simulator, a recording) tells the [`Controller`] what happens, and carries out its
//! commands:
//!
//! ```text
//!   body                                            controller
//!   ----                                            ----------
//!   Access: a page was absent, a mark touched  -->  volumes, backings   how much may the device be asked?
//!   DiskStats, MemoryStats                     -->  memory              how much may be ahead of readers?
//!   Completed: what a command did              -->  readahead::Adaptive what will this stream want?
//!   Passed: a stream went on by a step         -->  behind              what may leave the cache?
//!   Mounted, Unmounted, Exited, Tick           -->  windows             what window shall the kernel have?
//!                                                     |
//!   Read, Mark, Listen, SetWindow, Release ... <------+  commands, in order
//! ```
//!
//! Every input comes with its time. The controller never waits: if it needs to know something, it issues a command, and
//! the answer is an input. The same inputs give the same commands, to the byte. `bowwave replay --verify` uses this to
//! check a recording of a live run.

mod access;
mod accounting;
mod backings;
pub mod behind;
mod cgroups;
mod command;
mod controller;
mod depth;
mod entries;
mod files;
pub mod ids;
mod input;
mod kernel_window;
mod learn;
mod listing;
mod memory;
pub mod metrics;
mod orders;
mod remembered;
mod savings;
mod shared;
mod status;
mod volumes;
mod walking;
mod walks;
mod wide_windows;
mod windows;

pub use command::{Command, Head, Interest, Listening, WindowSetting};
pub use controller::{Charge, Controller, Options};
pub use entries::{Entries, Entry, EntryKind};
pub use input::{
    Access, Advice, Attributes, Completed, DeviceFacts, DiskStats, Failure, Input, Kind,
    MemoryStats, Mounted, Origin, Passed, SEEK_BYTES, WindowOutcome,
};
pub use learn::{FASTEST_DISK_BYTES_S, FASTEST_DISK_S};
pub use listing::{DirectoryRef, EntryRef, FileMiss, Listing, Place};
pub use memory::budget_bytes;
pub use readahead::Balance;
pub use remembered::{
    FilePages, Found, REMEMBERED_RANGES, RememberedFile, RememberedRange, Version,
};
pub use status::{BusyFile, Device, Status};

pub use readahead::{CHUNK_PAGES, MARK_PAGES, Nanos};
