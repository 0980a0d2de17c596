//! What blocks consist of.

use readahead::{Hint, Nanos};
use serde::{Deserialize, Serialize};

use crate::{MAX_FILE_BYTES, MAX_OP_BYTES, MAX_TIME, Reason, Record, RequestOp, TraceOp};

/// The contents of the first block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// Version of the bowwave that recorded.
    pub bowwave: String,
    /// Release of the kernel it ran on.
    pub kernel: String,
    /// The date, as YYYY-MM-DD (UTC).
    pub date: String,
}

/// Operations of one process that followed one another: each begins where the one before it ends, and all have the same
/// size, give or take a page. Only operations that waited for nothing are merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// All of them as one: the time of the first, the bytes of all.
    pub record: Record,
    /// How many there are, at least one.
    pub calls: u32,
    /// From the beginning of the first to the end of the last.
    pub lasted: Nanos,
}

impl Run {
    /// Whether it can be simulated: in time, and in place. A run is no larger than the largest single operation, which
    /// bounds how many operations it becomes; so much cannot be read between two ticks of the kernel's clock.
    pub(super) fn is_within_limits(&self) -> bool {
        let Record { at, took, offset, bytes, .. } = self.record;
        let is_in_time = at.checked_add(self.lasted).is_some_and(|end| end <= MAX_TIME);
        let is_in_place = offset.checked_add(bytes).is_some_and(|end| end <= MAX_FILE_BYTES);
        is_in_time && took <= MAX_TIME && is_in_place && bytes <= MAX_OP_BYTES
    }
}

/// An operation as in the file. The order of these is part of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Op {
    Read,
    Mmap,
    Write,
    Close,
    Normal,
    Sequential,
    Random,
}

impl From<TraceOp> for Op {
    fn from(op: TraceOp) -> Self {
        match op {
            TraceOp::Read => Op::Read,
            TraceOp::Mmap => Op::Mmap,
            TraceOp::Write => Op::Write,
            TraceOp::Close => Op::Close,
            TraceOp::Advise(Hint::Normal) => Op::Normal,
            TraceOp::Advise(Hint::Sequential) => Op::Sequential,
            TraceOp::Advise(Hint::Random) => Op::Random,
        }
    }
}

impl From<Op> for TraceOp {
    fn from(op: Op) -> Self {
        match op {
            Op::Read => TraceOp::Read,
            Op::Mmap => TraceOp::Mmap,
            Op::Write => TraceOp::Write,
            Op::Close => TraceOp::Close,
            Op::Normal => TraceOp::Advise(Hint::Normal),
            Op::Sequential => TraceOp::Advise(Hint::Sequential),
            Op::Random => TraceOp::Advise(Hint::Random),
        }
    }
}

/// Why pages were brought in, as in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Why {
    Read,
    Fault,
    Request,
}

impl From<Reason> for Why {
    fn from(reason: Reason) -> Self {
        match reason {
            Reason::Read => Why::Read,
            Reason::Fault => Why::Fault,
            Reason::Request => Why::Request,
        }
    }
}

impl From<Why> for Reason {
    fn from(why: Why) -> Self {
        match why {
            Why::Read => Reason::Read,
            Why::Fault => Reason::Fault,
            Why::Request => Reason::Request,
        }
    }
}

/// What a request asked for, as in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum What {
    Read,
    Write,
    Other,
}

impl From<RequestOp> for What {
    fn from(op: RequestOp) -> Self {
        match op {
            RequestOp::Read => What::Read,
            RequestOp::Write => What::Write,
            RequestOp::Other => What::Other,
        }
    }
}

impl From<What> for RequestOp {
    fn from(what: What) -> Self {
        match what {
            What::Read => RequestOp::Read,
            What::Write => RequestOp::Write,
            What::Other => RequestOp::Other,
        }
    }
}

/// What blocks are a series of. Files, processes and devices are numbered from 0 in the order in which they come. Times
/// are differences to the run, window or request before, since most follow one another within a millisecond; the order
/// is that of writing, not of time.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Item<S> {
    /// A file, and its size in bytes.
    File { name: S, bytes: u64 },
    /// A process.
    Process { name: S },
    /// One operation.
    Once(Operation),
    /// Several.
    Run { all: Operation, calls: u32, lasted: Nanos },
    /// This many operations are missing here.
    Lost(u64),
    /// The trace is complete.
    End,
    /// Since format 2: pages that the kernel brought in.
    Window(Brought),
    /// Since format 2: this many such pages are missing here.
    LostPages(u64),
    /// Since format 3: a block device.
    Device { name: S },
    /// Since format 3: a request that it has completed.
    Request(Completed),
    /// Since format 3: this many requests are missing here.
    LostRequests(u64),
}

/// A request as in the file.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Completed {
    pub(super) since: i64,
    pub(super) took: Nanos,
    pub(super) device: u32,
    pub(super) what: What,
    pub(super) bytes: u32,
}

/// A window as in the file: the pages from `first` on, and those that were asked for from `skipped` pages later on.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Brought {
    /// Nanoseconds since the run, window or request before it in the file.
    pub(super) since: i64,
    pub(super) process: u32,
    pub(super) file: u32,
    pub(super) why: Why,
    pub(super) first: u64,
    pub(super) pages: u64,
    pub(super) skipped: u64,
    pub(super) asked: u64,
}

/// An operation as in the file.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Operation {
    /// Nanoseconds since the run, window or request before it in the file.
    pub(super) since: i64,
    pub(super) took: Nanos,
    pub(super) process: u32,
    pub(super) file: u32,
    pub(super) op: Op,
    pub(super) offset: u64,
    pub(super) bytes: u64,
}
