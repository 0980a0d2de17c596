//! What the controller hears. Each [`Input`] comes with its time; answers to commands are inputs like all
//! others, and may come late, twice, out of order or never.

use readahead::behind::Span;
use readahead::{DeviceCost, PAGE_BYTES, Past};
use serde::{Deserialize, Serialize};

use crate::ids::{
    BackingId, CgroupId, DeviceNumber, FileKey, FileRef, OpenFile, StreamKey, Target, Tgid, Ticket,
};

use crate::listing::{FileMiss, Listing};

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Input {
    /// A page was absent, or an access touched a mark.
    Access(Access),
    /// The first page of a file was absent: tells the directory it lies in. Comes before the access.
    FileMiss(FileMiss),
    /// A stream went on by a step.
    Passed(Passed),
    /// What the block layer has counted for one backing.
    DiskStats(BackingId, DiskStats),
    /// What memory there is.
    MemoryStats(MemoryStats),
    /// What became of a command.
    Completed(Completed),
    /// A file system can be managed.
    Mounted(Mounted),
    /// A file system is gone, or its number now means another one.
    Unmounted(DeviceNumber),
    /// A process that was [watched](crate::Command::Watch) has ended.
    Exited(Tgid),
    /// Nothing happened, but time has passed.
    Tick,
}

/// Why an access was reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// A read found its page absent.
    Miss,
    /// A read touched the kernel's own look-ahead mark.
    KernelMark,
    /// An access touched a mark of ours.
    Mark,
    /// A page fault that mapping cached neighbours could not serve.
    Fault,
}

/// What a program has advised for an open file, as far as the kernel shows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Advice {
    /// `POSIX_FADV_RANDOM`.
    pub random: bool,
    /// `POSIX_FADV_SEQUENTIAL`: seen as a window twice the device's.
    pub sequential: bool,
    /// `POSIX_FADV_NOREUSE`.
    pub noreuse: bool,
}

/// One access that matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Access {
    /// Why it was reported.
    pub kind: Kind,
    /// The file, and how to open it.
    pub of: FileRef,
    /// The open file it came through; `None` for faults.
    pub open_file: Option<OpenFile>,
    /// The reader's memory cgroup.
    pub cgroup: CgroupId,
    /// The page touched.
    pub page: u64,
    /// Pages of the request from there on, at least 1.
    pub request_pages: u32,
    /// The page touched before through the same open file, if known.
    pub previous: Option<u64>,
    /// Size of the file in bytes.
    pub file_bytes: u64,
    /// The kernel's own window for this open file, in pages.
    pub kernel_window: u32,
    /// The access came through a mapping.
    pub mapped: bool,
    /// What the program has advised.
    pub advice: Advice,
    /// Of a miss or a fault: how the page left the page cache, if it was there before.
    pub past: Past,
    /// First and last page of the mark that was touched, where one was.
    pub mark: Option<(u64, u64)>,
}

/// Pages of the longest file there can be, of 2^63 bytes. The numbers of inputs are the body's: what is no file's is
/// clipped, so that no sum overflows.
const MOST_PAGES: u64 = 1 << 51;

/// What a file can have of a span.
pub(crate) fn clipped(span: Span) -> Span {
    let start = span.start.min(MOST_PAGES);
    Span { start, end: span.end.clamp(start, MOST_PAGES) }
}

impl Access {
    pub(crate) fn clipped(&self) -> Access {
        let page = |page: u64| page.min(MOST_PAGES - 1);
        Access {
            page: page(self.page),
            request_pages: self.request_pages.max(1),
            previous: self.previous.map(page),
            file_bytes: self.file_bytes.min(MOST_PAGES * PAGE_BYTES),
            mark: self.mark.map(|(first, last)| (page(first), page(last))),
            ..*self
        }
    }
}

impl Passed {
    /// A stream's first report has no pages yet.
    pub(crate) fn clipped(&self) -> Passed {
        let file_bytes = self.file_bytes.min(MOST_PAGES * PAGE_BYTES);
        Passed { file_bytes, span: clipped(self.span), ..*self }
    }
}

/// A stream's step: what a process has passed of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Passed {
    /// The file, and how to open it.
    pub of: FileRef,
    /// The process's memory cgroup.
    pub cgroup: CgroupId,
    /// Size of the file in bytes.
    pub file_bytes: u64,
    /// It writes.
    pub written: bool,
    /// It came through a mapping.
    pub mapped: bool,
    /// The process is one that bowwave does not manage.
    pub foreground: bool,
    /// The pages passed.
    pub span: Span,
}

/// What the block layer tells of one disk. Counters only grow; differences count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskStats {
    /// Reads that neither bowwave nor the reader of a managed file issued.
    pub foreground_reads: u64,
    /// Their latencies, summed, in nanoseconds.
    pub foreground_ns: u64,
    /// Reads issued by the readers of managed files.
    pub managed_reads: u64,
    /// Their latencies, summed, in nanoseconds.
    pub managed_ns: u64,
    /// Of the reads of both kinds, those that did not continue the one before them on the disk.
    pub seek_reads: u64,
    /// Their latencies, summed, in nanoseconds.
    pub seek_ns: u64,
    /// Reads issued by bowwave.
    pub our_reads: u64,
    /// Bytes of these.
    pub our_bytes: u64,
    /// Bytes of these in flight now.
    pub our_bytes_in_flight: u64,
}

/// Memory, of the machine or of one cgroup. Looked up about once a second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum MemoryStats {
    /// Bytes available on the machine, and bytes of files that bowwave's own cgroup may hold, where they
    /// are known or limited.
    Machine {
        /// `MemAvailable`.
        available_bytes: Option<u64>,
        /// The least limit, of the cgroup and those above it, less what is held besides files.
        own_cgroup_bytes: Option<u64>,
    },
    /// One reader's cgroup.
    Cgroup {
        /// Which.
        cgroup: CgroupId,
        /// Bytes of files that it may hold, if it is limited.
        file_bytes: Option<u64>,
        /// Percent of the last ten seconds in which some task waited for memory.
        stalled_percent: f64,
    },
}

/// A file system that can be managed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mounted {
    /// Its number.
    pub dev: DeviceNumber,
    /// What lies under it. Two file systems on one disk have one backing.
    pub backing: BackingId,
    /// What is known of the backing.
    pub device: DeviceFacts,
}

/// What is known of a backing when it is met.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceFacts {
    /// What it charges.
    pub cost: DeviceCost,
    /// Where that is from.
    pub origin: Origin,
    /// The block layer's counters of it can be had.
    pub is_counted: bool,
}

/// Where a cost is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Origin {
    /// `bowwave tune`, or a measurement since boot.
    Measured,
    /// A guess that reads have corrected.
    Learned,
    /// A guess that shall be replaced by a measurement.
    Guessed,
    /// A guess that nothing can replace: there is no disk to measure.
    Assumed,
}

/// What became of a command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Completed {
    /// A [`Read`](crate::Command::Read) batch was submitted, as far as that went.
    Read {
        /// The batch.
        ticket: Ticket,
        /// Why nothing more of it was submitted, if so.
        failed: Option<Failure>,
    },
    /// A [`Probe`](crate::Command::Probe).
    Probed {
        /// The backing.
        backing: BackingId,
        /// What was measured; `None` if it cannot be.
        cost: Option<DeviceCost>,
    },
    /// A [`SetWindow`](crate::Command::SetWindow).
    WindowSet {
        /// The command; `None` where nobody asked: the reader has closed the file, or ended.
        ticket: Option<Ticket>,
        /// For which.
        target: Target,
        /// How that ended.
        outcome: WindowOutcome,
        /// The device's own window was another one from then to then, for files opened in between.
        during: (u64, u64),
    },
    /// A [`Release`](crate::Command::Release).
    Released {
        /// The command.
        ticket: Ticket,
        /// Pages dropped.
        dropped_pages: u64,
        /// Pages still cached that are not to go: cached before, used by others, or again.
        kept_pages: u64,
        /// What would go but cannot now (not written yet, mapped, held), and the pages cached of each.
        left: Vec<(Span, u64)>,
    },
    /// A [`WriteOut`](crate::Command::WriteOut).
    WroteOut {
        /// The command.
        ticket: Ticket,
    },
    /// A [`Describe`](crate::Command::Describe).
    Described {
        /// The stream.
        stream: StreamKey,
        /// What rules look at.
        attributes: Attributes,
    },
    /// A [`Touched`](crate::Command::Touched): the pages `[low, high)` in which all lies that a stream
    /// touched; `None` if nothing is known of it any more.
    Touched {
        /// The stream.
        stream: StreamKey,
        /// The pages.
        span: Option<Span>,
    },
    /// A [`List`](crate::Command::List).
    Listed {
        /// The command.
        ticket: Ticket,
        /// What lies in the directory; `None` if it cannot be listed.
        listing: Option<Listing>,
    },
    /// A [`ReadFiles`](crate::Command::ReadFiles).
    FilesRead {
        /// The command.
        ticket: Ticket,
        /// Of its files, from the first on, how many were asked for or cannot be read.
        files: u32,
        /// Bytes asked for.
        bytes: u64,
    },
    /// An entry of the journal of windows that an earlier run has left.
    LeftBehind {
        /// The name it has from now on.
        entry: u32,
        /// Its file.
        file: FileKey,
    },
}

/// Why a command was not carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Failure {
    /// Nothing leads to the file any more.
    NotOpened,
    /// The system call failed with this number.
    Errno(i32),
    /// The executor took no more.
    Refused,
}

/// How setting a window ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WindowOutcome {
    /// It is set; the open file had so many pages before anything was set.
    Set {
        /// Its own window, in pages.
        own_pages: u32,
    },
    /// It has its own again, or has been closed.
    Own,
    /// It cannot be done now; it is as it was.
    Failed,
}

/// What rules of drop-behind look at.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attributes {
    /// The file's path; empty if unknown.
    pub path: String,
    /// The process's cgroups.
    pub cgroups: Vec<String>,
    /// The process's name.
    pub command: String,
}
