//! What the controller asks for. No command blocks the controller: the body carries it out when it can, and the answer
//! comes back as an [`Input`](crate::Input).

use readahead::behind::Span;
use readahead::{Cause, DeviceCost, Mark};
use serde::{Deserialize, Serialize};

use crate::ids::{
    BackingId, DeviceNumber, FileKey, FileRef, StartId, StreamKey, Target, Tgid, Ticket,
};
use crate::listing::{EntryRef, Place};
use crate::remembered::{FilePages, RememberedFile};

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Command {
    /// Read pages of a file ahead. Consecutive reads with the same ticket are one batch of one file, submitted in order
    /// and answered once.
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
    /// List a directory, with the rights of the process.
    List {
        /// The command; it also names the listing from then on.
        ticket: Ticket,
        /// The directory.
        place: Place,
        /// The process for which it is done.
        tgid: Tgid,
    },
    /// Drop a listing.
    ForgetListing(Ticket),
    /// Read the first pages of files that the process may read, each from page 0 on.
    ReadFiles {
        /// The batch.
        ticket: Ticket,
        /// The file system.
        dev: DeviceNumber,
        /// The process for which it is done.
        tgid: Tgid,
        /// The files, in the order in which the process will read them. A device that serves one access at a time reads
        /// them in the order of their positions.
        files: Vec<EntryRef>,
        /// How much of each.
        head: Head,
        /// Most bytes of all files together; the files after that are left out.
        most_bytes: u64,
    },
    /// Report the first access to these pages.
    Mark(FileKey, Mark),
    /// How the eBPF programs treat a file from now on.
    Listen(FileKey, Listening),
    /// What the eBPF programs report of a file system; nothing if `None`.
    Watch(DeviceNumber, Option<Interest>),
    /// Switches the block layer's counters of a device on or off.
    Count(BackingId, bool),
    /// Measure the cost of a device.
    Probe(BackingId),
    /// Remember the learned cost of a device.
    Remember(BackingId, DeviceCost),
    /// Set the kernel's own window, or give it back.
    SetWindow {
        /// The command.
        ticket: Ticket,
        /// The open or mapped file.
        target: Target,
        /// The file.
        file: FileKey,
        /// How to reach the file; `None` if an earlier run has left the window, since the journal then knows.
        of: Option<FileRef>,
        /// The window that the open file has now, in pages.
        kernel_window: u32,
        /// The new window.
        setting: WindowSetting,
    },
    /// Report streams for drop-behind from now on, or stop.
    LookBehind(bool),
    /// Find out the attributes that rules use.
    Describe(StreamKey, FileRef),
    /// Find out which pages a stream has touched.
    Touched(StreamKey),
    /// Forget a stream.
    ForgetStream(StreamKey),
    /// Report when a process ends; stop that if `false`.
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
    /// Drop those of these pages that the stream has brought in, that were used once, and that are clean and unmapped.
    /// The body checks each page right before the call.
    Release {
        /// The command.
        ticket: Ticket,
        /// Whose pages.
        stream: StreamKey,
        /// The file.
        of: FileRef,
        /// The pages.
        span: Span,
        /// Count pages that stay within this span.
        counted: Span,
        /// Also drop pages that were brought in and never used.
        drops_unused: bool,
        /// Remove mapped pages from the page tables first.
        unmaps: bool,
    },
    /// Read ranges of files ahead that a command has read at an earlier start. A device that serves one access at a
    /// time is asked for them as they lie.
    ReadRemembered {
        /// The batch.
        ticket: Ticket,
        /// The file system.
        dev: DeviceNumber,
        /// The process for which it is done.
        tgid: Tgid,
        /// The files, in the order in which they were read.
        files: Vec<FilePages>,
    },
    /// Find out what the command of a start that a process has [joined](crate::Input::Joined) read at its last start.
    Recall(StartId),
    /// A start that a process has [joined](crate::Input::Joined) has ended: keep its list for the next one.
    KeepStart {
        /// The start.
        start: StartId,
        /// What the next start should read ahead, in this order.
        files: Vec<RememberedFile>,
    },
}

/// How much of a file to read ahead: its first pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// Most pages.
    pub most_pages: u32,
    /// Whether a file with more pages is left out.
    pub only_whole: bool,
}

impl Head {
    /// Pages to read of a file that has `file_pages`.
    pub fn pages_of(self, file_pages: u64) -> u64 {
        let most = u64::from(self.most_pages);
        if self.only_whole && file_pages > most { 0 } else { file_pages.min(most) }
    }
}

/// How the eBPF programs treat one file.
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
    /// All but plain forward reading, which the kernel itself reads ahead. Of that, only the kernel's marks in whole
    /// windows.
    NotForward {
        /// Pages of the largest window whose marks are reported. Wider windows are as good as any.
        most_window: u32,
    },
}

/// The kernel's window of an open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum WindowSetting {
    /// Its own window, as before any change.
    Own,
    /// Unchanged. The program has given advice since our change, so there is nothing to give back.
    Abandoned,
    /// This many pages, while memory is short.
    Bounded(u32),
    /// This many pages, so that the kernel reads ahead in bowwave's place.
    Larger(u32),
    /// No look-ahead, until it is given back or the reader closes the file.
    NoLookAhead,
}
