//! Processes: small scripts of operations, one at a time.

use readahead::{Hint, Nanos, Page};

use crate::account::LastWindow;

/// An open file of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OpenFile(pub(crate) u32);

/// A file of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileIndex(pub(crate) u32);

/// What a process does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// `read(2)` of `[at, at + bytes)`.
    Read { open: OpenFile, at: u64, bytes: u64 },
    /// `sendfile(2)` of `[at, at + asked)`; the socket takes the first `taken` bytes.
    Send { open: OpenFile, at: u64, asked: u64, taken: u64 },
    /// A load from a mapping that touches this page for the first time.
    Fault { open: OpenFile, page: Page },
    /// `write(2)` of whole pages.
    Write { open: OpenFile, at: u64, bytes: u64 },
    /// `munmap(2)` of the whole file.
    Unmap { open: OpenFile },
    /// `close(2)` of the descriptor. A mapping stays, but nobody finds the open file to set its window.
    Close { open: OpenFile },
    /// `posix_fadvise(2)` on an open file, valid until the next advice. As on Linux, sequential sets a window twice the
    /// device's, normal restores the window, and random leaves it unchanged but unused.
    Advise { open: OpenFile, advice: Hint },
    /// `posix_fadvise(WILLNEED)` of `[at, at + bytes)`: requests the pages, and waits for none.
    WillNeed { open: OpenFile, at: u64, bytes: u64 },
    /// Looks up a cached name and inode in the kernel.
    LookUp { ns: Nanos },
    /// Computes.
    Compute { ns: Nanos },
    /// Sleeps until a moment.
    SleepUntil { at: Nanos },
    /// Notes the time under a number, for tables of stages.
    Stamp { label: u32 },
    /// Waits for another script; only for the workers of a [server](crate::Server).
    Park,
    /// Ends.
    Exit,
}

/// A process's program.
pub trait Script {
    /// The next operation. The previous one ended at `now`.
    fn next(&mut self, now: Nanos) -> Op;
}

impl<F: FnMut(Nanos) -> Op> Script for F {
    fn next(&mut self, now: Nanos) -> Op {
        self(now)
    }
}

/// A process's program as a list of operations.
pub struct Listed<I>(pub I);

impl<I: Iterator<Item = Op>> Script for Listed<I> {
    fn next(&mut self, _now: Nanos) -> Op {
        self.0.next().unwrap_or(Op::Exit)
    }
}

/// The progress of a read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    pub(crate) open: u32,
    /// The current page.
    pub(crate) page: Page,
    /// First page after those that the reader takes, and first page after those that it has asked for: `sendfile(2)`
    /// asks for more than its socket takes.
    pub(crate) end: Page,
    pub(crate) asked_end: Page,
    /// The policy's next call.
    pub(crate) call_at: Option<Page>,
    /// The policies were asked about the current page, and it is cached or in flight.
    pub(crate) is_asked: bool,
    /// Requests have not reached the block layer yet.
    pub(crate) is_plugged: bool,
    /// The current page was absent when its reader came.
    pub(crate) was_absent: bool,
    /// The policy makes the reader wait for this page, too.
    pub(crate) waits_for: Option<Page>,
    pub(crate) is_fault: bool,
}

/// The state of a process.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Doing {
    Next,
    Reading(Reading),
    Writing {
        open: u32,
        page: Page,
        end: Page,
    },
    /// Waiting for a script.
    Parked,
    Ended,
}

/// A process of the machine.
pub(crate) struct Process {
    pub(crate) name: String,
    pub(crate) script: Box<dyn Script + Send>,
    pub(crate) doing: Doing,
    /// The next process that waits for the same transfer.
    pub(crate) next_waiter: u32,
    /// When its present wait began.
    pub(crate) waits_since: Nanos,
    pub(crate) outcome: Outcome,
}

/// Figures of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// When it started.
    pub started: Nanos,
    /// When it ended.
    pub ended: Nanos,
    /// Nanoseconds that it waited for the device.
    pub stalled: Nanos,
    /// Times it waited.
    pub stalls: u64,
    /// Nanoseconds of CPU, in the kernel and in the program.
    pub cpu: Nanos,
    /// Of these, nanoseconds that its script computed.
    pub user: Nanos,
    /// Pages it read.
    pub pages: u64,
    /// Moments noted by its script, with their labels.
    pub stamps: Vec<(u32, Nanos)>,
}

/// State of an open file that belongs to the machine rather than to a policy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Open {
    pub(crate) file: u32,
    /// The page last read and the page last written through it.
    pub(crate) previous: Option<Page>,
    pub(crate) previous_written: Option<Page>,
    pub(crate) hint: Hint,
    /// Largest window of the kernel's policy, if it differs from the machine's.
    pub(crate) kernel_window: Option<u32>,
    /// The same before bowwave has set it.
    pub(crate) own_window: Option<Option<u32>>,
    /// Bowwave has taken away its look-ahead.
    pub(crate) is_without_look_ahead: bool,
    /// Its descriptor is closed.
    pub(crate) is_closed: bool,
    /// The process whose mapping it was read through.
    pub(crate) mapped_by: Option<u32>,
    /// The last requests of the kernel's policy through it.
    pub(crate) kernel_asked: LastWindow,
    /// First page of that window, and first page after it.
    pub(crate) kernel_read: (Page, Page),
}

/// For which processes pages are read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Behalf {
    /// The process that the elevator sees.
    pub(crate) process: u32,
    /// The process that will read them.
    pub(crate) reader: u32,
}
