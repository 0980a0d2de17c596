//! What the controller is told. Each [`Input`] comes with its time. Answers to commands are inputs, too. They may come
//! late, twice, out of order or never.

use derive_more::Add;
use readahead::behind::Span;
use readahead::{DeviceCost, Hint, History, Nanos, OpenFileId, PAGE_BYTES, Past, Trigger, Via};
use serde::{Deserialize, Serialize};

use crate::ids::{
    BackingId, CgroupId, DeviceNumber, FileKey, FileRef, OpenFile, StartId, StreamKey, Target,
    Tgid, Ticket,
};

use crate::listing::{FileMiss, Listing};
use crate::remembered::{Found, RememberedFile};

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Input {
    /// A page was absent, or an access touched a mark.
    Access(Access),
    /// The first page of a file was absent; names its directory. Comes before the access.
    FileMiss(FileMiss),
    /// A stream has passed another step.
    Passed(Passed),
    /// The block layer's counters of one device.
    DiskStats(BackingId, DiskStats),
    /// How much memory there is.
    MemoryStats(MemoryStats),
    /// What became of a command.
    Completed(Completed),
    /// A file system can be managed.
    Mounted(Mounted),
    /// A file system is gone, or its number now means another one.
    Unmounted(DeviceNumber),
    /// A process that was [watched](crate::Command::WatchProcess) has ended.
    Exited(Tgid),
    /// Nothing happened, but time has passed.
    Tick,
    /// A command starts to which all processes belong: what it read at its last start, in this order, if that is known.
    /// Comes once.
    Remembered(Vec<RememberedFile>),
    /// How the files of a mounted file system were read before it was mounted, or before bowwave started.
    History(DeviceNumber, Box<History>),
    /// A process belongs to a start, which may be new. Comes before the first access of the process.
    Joined(StartId, Tgid),
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
    /// A page fault that the kernel could not serve by mapping cached neighbours.
    Fault,
}

/// A program's advice for an open file, as far as the kernel shows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Advice {
    /// `POSIX_FADV_RANDOM`.
    pub random: bool,
    /// `POSIX_FADV_SEQUENTIAL`: recognised by a window twice the device's.
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
    /// The open file that was read; `None` for faults.
    pub open_file: Option<OpenFile>,
    /// The reader's memory cgroup.
    pub cgroup: CgroupId,
    /// The page touched.
    pub page: u64,
    /// Pages left in the request, from `page` on; at least 1.
    pub request_pages: u32,
    /// The page touched before it through the same open file, if known. Of a mark that was touched by a read that is
    /// over, the last page of that read.
    pub previous: Option<u64>,
    /// Size of the file in bytes.
    pub file_bytes: u64,
    /// The kernel's own window for this open file, in pages.
    pub kernel_window: u32,
    /// The access came through a mapping.
    pub mapped: bool,
    /// What the program has advised.
    pub advice: Advice,
    /// For a miss or a fault: how the page left the page cache, if it was there before.
    pub past: Past,
    /// First and last page of the touched mark, if there was one.
    pub mark: Option<(u64, u64)>,
}

/// Pages of the longest possible file, 2^63 bytes. Inputs come from outside, so larger numbers are clipped, and no sum
/// overflows.
const MOST_PAGES: u64 = 1 << 51;

/// The part of a span that can be in a file.
pub(crate) fn clipped(span: Span) -> Span {
    let start = span.start.min(MOST_PAGES);
    Span { start, end: span.end.clamp(start, MOST_PAGES) }
}

impl Access {
    /// The access in a policy's terms, with this advice and this window of the kernel, in pages.
    pub fn for_policy(&self, now: Nanos, hint: Hint, kernel_window: u32) -> readahead::Access {
        readahead::Access {
            file: self.of.file.id(),
            volume: self.of.file.dev.volume(),
            open_file: OpenFileId(self.open_file.map_or(0, |open_file| open_file.0)),
            page: self.page,
            request: self.request_pages,
            previous: self.previous,
            trigger: match self.kind {
                Kind::Miss | Kind::Fault => Trigger::Absent,
                Kind::KernelMark | Kind::Mark => Trigger::Mark,
            },
            via: if self.mapped { Via::Mmap } else { Via::Read },
            hint,
            file_pages: self.file_bytes.div_ceil(PAGE_BYTES),
            kernel_window,
            now,
        }
    }

    /// The access, with numbers that a file can have.
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
    /// The step, with numbers that a file can have. The first event of a stream has no pages yet.
    pub(crate) fn clipped(&self) -> Passed {
        let file_bytes = self.file_bytes.min(MOST_PAGES * PAGE_BYTES);
        Passed { file_bytes, span: clipped(self.span), ..*self }
    }
}

/// A step of a stream: pages of a file that a process has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Passed {
    /// The file, and how to open it.
    pub of: FileRef,
    /// The process's memory cgroup.
    pub cgroup: CgroupId,
    /// Size of the file in bytes.
    pub file_bytes: u64,
    /// The process writes.
    pub written: bool,
    /// The process uses a mapping.
    pub mapped: bool,
    /// Bowwave does not manage the process.
    pub foreground: bool,
    /// The pages passed.
    pub span: Span,
}

/// A read further than this from the end of the previous one is a seek. Nearer ones may be in the disk's buffer, which
/// holds some MB behind the places that were read last.
pub const SEEK_BYTES: u64 = 64 << 20;

/// The block layer's counters of one disk, or of all disks of a device. Counters only grow; differences count.
#[derive(Add, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskStats {
    /// Reads that neither bowwave nor the reader of a managed file issued.
    pub foreground_reads: u64,
    /// Their latencies, summed, in nanoseconds.
    pub foreground_ns: u64,
    /// Reads issued by the readers of managed files.
    pub managed_reads: u64,
    /// Their latencies, summed, in nanoseconds.
    pub managed_ns: u64,
    /// Of both kinds of reads, those that were more than [`SEEK_BYTES`] from the end of the previous one on the disk.
    pub seek_reads: u64,
    /// Their latencies, summed, in nanoseconds.
    pub seek_ns: u64,
    /// Bytes of all reads that are done, bowwave's among them.
    pub bytes: u64,
    /// Reads issued by bowwave.
    pub our_reads: u64,
    /// Bytes of these.
    pub our_bytes: u64,
    /// Bytes of these in flight now.
    pub our_bytes_in_flight: u64,
}

impl DiskStats {
    /// What was counted since these were.
    #[must_use]
    pub fn since(&self, before: &DiskStats) -> DiskStats {
        let less = |now: u64, before: u64| now.saturating_sub(before);
        DiskStats {
            foreground_reads: less(self.foreground_reads, before.foreground_reads),
            foreground_ns: less(self.foreground_ns, before.foreground_ns),
            managed_reads: less(self.managed_reads, before.managed_reads),
            managed_ns: less(self.managed_ns, before.managed_ns),
            seek_reads: less(self.seek_reads, before.seek_reads),
            seek_ns: less(self.seek_ns, before.seek_ns),
            bytes: less(self.bytes, before.bytes),
            our_reads: less(self.our_reads, before.our_reads),
            our_bytes: less(self.our_bytes, before.our_bytes),
            // It is no counter.
            our_bytes_in_flight: self.our_bytes_in_flight,
        }
    }
}

/// Memory, of the machine or of one cgroup. Looked up about once a second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum MemoryStats {
    /// Bytes available on the machine, and bytes of files that bowwave's own cgroup may hold, if known or limited.
    Machine {
        /// `MemAvailable`.
        available_bytes: Option<u64>,
        /// The smallest limit of the cgroup and those above it, less what it holds besides files.
        own_cgroup_bytes: Option<u64>,
    },
    /// One reader's cgroup.
    Cgroup {
        /// The cgroup.
        cgroup: CgroupId,
        /// Bytes of files that it may hold, if it has a limit.
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
    /// The device under it. Two file systems on one disk have the same one.
    pub backing: BackingId,
    /// What is known of the device.
    pub device: DeviceFacts,
}

/// What is known of a device at first.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceFacts {
    /// What it costs.
    pub cost: DeviceCost,
    /// Where the cost comes from.
    pub origin: Origin,
    /// The block layer counts its requests.
    pub is_counted: bool,
}

/// Where a cost comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Origin {
    /// `bowwave tune`, or a measurement since boot.
    Measured,
    /// A guess that reads have corrected.
    Learned,
    /// A guess, to be replaced by a measurement.
    Guessed,
    /// A guess that stays: there is no disk to measure.
    Assumed,
}

/// What became of a command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Completed {
    /// A batch of [`Read`](crate::Command::Read)s was submitted, or as much of it as possible.
    Read {
        /// The batch.
        ticket: Ticket,
        /// Why the rest was not submitted, if so.
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
        /// The command; `None` without one: the reader has closed the file, or ended.
        ticket: Option<Ticket>,
        /// The open or mapped file.
        target: Target,
        /// The result.
        outcome: WindowOutcome,
        /// From when to when the device's own window was changed. Files opened in between have inherited it.
        during: (u64, u64),
    },
    /// A [`Release`](crate::Command::Release).
    Released {
        /// The command.
        ticket: Ticket,
        /// Pages dropped.
        dropped_pages: u64,
        /// Pages that stay: cached before, used by others, or used again.
        kept_pages: u64,
        /// Spans of pages that cannot be dropped now (not written yet, mapped, held), each with the number of cached
        /// pages.
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
    /// A [`Touched`](crate::Command::Touched).
    Touched {
        /// The stream.
        stream: StreamKey,
        /// The pages `[low, high)` that include all touched ones; `None` if nothing is known any more.
        span: Option<Span>,
    },
    /// A [`List`](crate::Command::List).
    Listed {
        /// The command.
        ticket: Ticket,
        /// The directory's entries; `None` if it cannot be listed.
        listing: Option<Listing>,
    },
    /// A [`ReadFiles`](crate::Command::ReadFiles).
    FilesRead {
        /// The command.
        ticket: Ticket,
        /// How many of its files were requested or cannot be read, from the first on.
        files: u32,
        /// Bytes requested.
        bytes: u64,
    },
    /// An earlier run has left an entry in the journal of windows.
    LeftBehind {
        /// The entry's number from now on.
        entry: u32,
        /// Its file.
        file: FileKey,
    },
    /// A [`ReadRemembered`](crate::Command::ReadRemembered).
    RememberedRead {
        /// The command.
        ticket: Ticket,
        /// What became of each of its ranges, in their order.
        found: Vec<Found>,
    },
    /// A [`Recall`](crate::Command::Recall).
    Recalled {
        /// The start.
        start: StartId,
        /// What the command read at its last start, in this order; empty if that is not known.
        list: Vec<RememberedFile>,
    },
}

/// Why a command was not carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Failure {
    /// The file can no longer be reached.
    NotOpened,
    /// The system call failed with this error number.
    Errno(i32),
    /// It was not tried: no thread was free, or its file system is gone.
    Refused,
}

/// The result of setting a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WindowOutcome {
    /// It is set.
    Set {
        /// The open file's window before any change, in pages.
        own_pages: u32,
    },
    /// The open file has its own window again, or is closed.
    Own,
    /// It failed, and changed nothing.
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
