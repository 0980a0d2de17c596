//! Sees all that programs read, call by call, for `bowwave record`. Nothing is read ahead or changed.
//!
//! ```text
//!   kernel                               this process
//!   programs --> `events` (ring) ------> Tracing::take --> Event --> Scribe --> trace::recorded::Recorder
//!   programs --> `lost_calls`, ... ----> Tracing::lost --------------^
//! ```
//!
//! The programs are in programs/trace.bpf.c. The kernel removes them when the process ends, however it ends.

#[cfg(feature = "bpf")]
mod bpf;
#[cfg(any(feature = "bpf", test, fuzzing))]
mod decode;
mod paths;
mod scribe;

use std::ops::Range;

use readahead::{DeviceNumber, Nanos};
use trace::{Reason, RequestOp};

#[cfg(feature = "bpf")]
pub use bpf::Tracing;
pub use paths::Paths;
pub use scribe::Scribe;
#[cfg(not(feature = "bpf"))]
pub use without::Tracing;

/// What the eBPF programs report. They number threads and files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A thread, before its first run, and again when it becomes another program.
    Thread {
        /// Its number.
        thread: u32,
        /// The number of its process, which is that of its first thread.
        process: u32,
        /// The name of its program.
        name: String,
    },
    /// A file, before its first run.
    File(TracedFile),
    /// A call, or several.
    Run(Run),
    /// Pages that the kernel has brought into its cache.
    Window(Window),
    /// What a block device was asked for.
    Request(Request),
}

/// A file that the eBPF programs have numbered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracedFile {
    /// Its number.
    pub file: u32,
    /// Its size when it was numbered, in bytes.
    pub bytes: u64,
    /// Its inode.
    pub ino: u64,
    /// Its file system.
    pub dev: DeviceNumber,
    /// The end of its path within its file system, last one last.
    pub components: Vec<String>,
    /// Whether these begin at the root of the file system.
    pub is_whole: bool,
}

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// A read.
    Read,
    /// A page fault.
    Fault,
    /// Pages were made dirty.
    Write,
}

/// What is known of an open file, as of its last absent page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    /// The program's advice.
    pub advice: readahead::Hint,
    /// Nothing had been read through it before.
    pub is_new: bool,
}

/// One call, or several alike that waited for nothing: reads that follow one another, or faults at equal distances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The number of the thread.
    pub thread: u32,
    /// The number of the file.
    pub file: u32,
    /// How many calls.
    pub calls: u32,
    /// When the first began (CLOCK_MONOTONIC).
    pub at: Nanos,
    /// From `at` to the end of the last wait of a single call; 0 if it did not wait.
    pub took: Nanos,
    /// From the first of several calls to the last.
    pub lasted: Nanos,
    /// The first page of all calls.
    pub first: u64,
    /// The page after the last.
    pub end: u64,
    /// Of several faults, each of one page: from one to the next, in pages.
    pub step: i64,
    /// What was done.
    pub op: Op,
    /// What is known of the open file; `None` if no page was absent.
    pub opened: Option<Opened>,
}

/// Adjoining pages that the kernel brought into its cache for a thread, or a part of them: then the rest comes with the
/// same time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// The number of the thread.
    pub thread: u32,
    /// The number of the file.
    pub file: u32,
    /// Why it brought them.
    pub reason: Reason,
    /// When it brought the first of all (CLOCK_MONOTONIC).
    pub at: Nanos,
    /// The pages.
    pub pages: Range<u64>,
    /// Those of them for which the read or fault had asked.
    pub asked: Range<u64>,
}

/// A request that a block device has completed, whoever has made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The device.
    pub dev: DeviceNumber,
    /// What was asked.
    pub op: RequestOp,
    /// How much it read or wrote, in bytes.
    pub bytes: u32,
    /// When the device's driver got it (CLOCK_MONOTONIC).
    pub at: Nanos,
    /// From then until it was complete.
    pub took: Nanos,
}

/// What the eBPF programs had no room for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// Calls.
    pub calls: u64,
    /// Pages of windows.
    pub pages: u64,
    /// Requests of devices.
    pub requests: u64,
}

/// A build that has no eBPF part.
#[cfg(not(feature = "bpf"))]
mod without {
    use std::os::fd::BorrowedFd;

    use super::{Event, Lost};
    use crate::error::ObserveError;
    use crate::observe::Scope;

    /// Cannot be made.
    #[derive(Debug)]
    pub enum Tracing {}

    #[allow(missing_docs, clippy::missing_errors_doc)]
    impl Tracing {
        pub fn open(_: &Scope) -> Result<Self, ObserveError> {
            Err(ObserveError::NotBuilt)
        }

        pub fn readiness(&self) -> BorrowedFd<'_> {
            match *self {}
        }

        pub fn take(&mut self) -> Result<Vec<Event>, ObserveError> {
            match *self {}
        }

        pub fn lost(&self) -> Lost {
            match *self {}
        }
    }
}

#[cfg(all(feature = "bpf", any(test, fuzzing)))]
pub(crate) fn read_any(bytes: &[u8]) {
    decode::event(bytes);
}
