//! What the controller asks for. No command blocks whoever gave it: a body carries it out when it can, and
//! its answer comes back as an [`Input`](crate::Input).

use readahead::behind::Span;
use readahead::{Cause, DeviceCost, Mark};
use serde::{Deserialize, Serialize};

use crate::ids::{BackingId, DeviceNumber, FileKey, FileRef, StreamKey, Target, Tgid, Ticket};

use crate::listing::{EntryRef, Place};

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Command {
    /// Read pages of a file ahead. Consecutive reads with one ticket are one batch: one file, submitted in
    /// order, answered once.
    Read {
        /// The batch.
        ticket: Ticket,
        /// The file.
        of: FileRef,
        /// The pages.
        span: Span,
        /// Why.
        why: Cause,
    },
    /// List a directory, as far as the process may.
    List {
        /// The command, and the name of the listing from then on.
        ticket: Ticket,
        /// Which.
        place: Place,
        /// The process for which it is done.
        tgid: Tgid,
    },
    /// A listing is needed no more.
    ForgetListing(Ticket),
    /// Read the first pages of files that the process may read, each from page 0 on.
    ReadFiles {
        /// The batch.
        ticket: Ticket,
        /// The file system.
        dev: DeviceNumber,
        /// The process for which it is done.
        tgid: Tgid,
        /// The files, in the order in which they will be wanted. A device that serves one access at a time is asked
        /// for them as they lie.
        files: Vec<EntryRef>,
        /// Most pages of each.
        head_pages: u32,
        /// Most bytes of all; what comes behind is left out.
        most_bytes: u64,
    },
    /// Report the first access to these pages.
    Mark(FileKey, Mark),
    /// How the source of events treats a file from now on.
    Listen(FileKey, Listening),
    /// What is reported of a file system; `None`: nothing any more.
    Watch(DeviceNumber, Option<Interest>),
    /// Whether the block layer's counters of a backing are needed.
    Count(BackingId, bool),
    /// Measure what a backing charges.
    Probe(BackingId),
    /// Remember what was learned of a backing.
    Remember(BackingId, DeviceCost),
    /// Set, or give back, the kernel's own window.
    SetWindow {
        /// The command.
        ticket: Ticket,
        /// For what.
        target: Target,
        /// The file.
        file: FileKey,
        /// How to reach it; `None` of what was recovered, which the journal knows.
        of: Option<FileRef>,
        /// The window that the open file has now, in pages.
        kernel_window: u32,
        /// To what.
        setting: WindowSetting,
    },
    /// See accesses for drop-behind from now on, or no more.
    LookBehind(bool),
    /// Tell what rules look at.
    Describe(StreamKey, FileRef),
    /// Tell what a stream has touched.
    Touched(StreamKey),
    /// Forget what is known of a stream.
    ForgetStream(StreamKey),
    /// Tell when a process ends; or, `false`, no more.
    WatchProcess(Tgid, bool),
    /// Start writing these pages, without waiting.
    WriteOut {
        /// The command.
        ticket: Ticket,
        /// The file.
        of: FileRef,
        /// The pages.
        span: Span,
    },
    /// Let pages go as far as they may, judged page by page right before that: brought in by the stream, used
    /// once, clean, unmapped.
    Release {
        /// The command.
        ticket: Ticket,
        /// Whose pages.
        stream: StreamKey,
        /// The file.
        of: FileRef,
        /// The pages.
        span: Span,
        /// Pages that stay are counted within this.
        counted: Span,
        /// Pages brought in and never used go, too.
        drops_unused: bool,
        /// Mapped pages are taken out of the page tables first.
        unmaps: bool,
    },
}

/// How the source treats one file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listening {
    /// Bit `chunk % 64` is set if a chunk of 128 KiB may carry a mark.
    pub marked_chunks: u64,
    /// Misses before this moment are not reported.
    pub muted_until: u64,
    /// Its reader is managed: its own reads do not count as foreground.
    pub managed: bool,
}

/// What is reported of a file system's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Interest {
    /// Every miss, fault and mark.
    All,
    /// Not what the kernel takes for plain forward reading, and reads ahead by itself.
    NotForward,
}

/// What the kernel's window of an open file is set to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum WindowSetting {
    /// As it was before anything was set.
    Own,
    /// As it is: its program has advised something since, and nothing of ours is left to give back.
    Abandoned,
    /// So many pages, for as long as memory is short.
    Bounded(u32),
    /// So many pages, so that the kernel reads ahead in the reader's place.
    Larger(u32),
    /// No look-ahead, until given back or until the reader closes it.
    NoLookAhead,
}
