//! Seeing the reads that matter.
//!
//! One interface, whatever the source: an [`Observer`] reports misses, faults and touched marks as
//! [`Event`]s, takes marks, and counts what the block layer does. The source today is eBPF on BTF
//! tracepoints ([`bpf`]); what a kernel offers is decided in [`crate::kernel`].

mod behind;
#[cfg(feature = "bpf")]
mod bpf;
#[cfg(feature = "bpf")]
mod bpf_behind;
mod event;
// Only the eBPF source decodes events; the sizes are common.
#[cfg_attr(not(feature = "bpf"), allow(dead_code))]
mod layout;

use std::os::fd::BorrowedFd;
use std::time::Duration;

use readahead::{DeviceNumber, FileKey, Mark};

pub use behind::{BehindSource, PageTables, StreamKey, Watch};
pub use event::{Event, Kind};

/// Whose reads are looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Every program's.
    Machine,
    /// This process's and its descendants'.
    Process(u32),
}

/// Why nothing can be observed.
#[derive(Debug, thiserror::Error)]
pub enum ObserveError {
    /// The binary has no eBPF part.
    #[error(
        "this bowwave was built without eBPF and cannot see reads; \
         rebuild with clang and libelf installed (make setup)"
    )]
    NotBuilt,
    /// The kernel refused the programs.
    #[error(
        "the kernel refused bowwave's eBPF programs: {0}; `bowwave doctor` tells what is missing"
    )]
    Refused(String),
    /// Talking to the programs failed later on.
    #[error("the eBPF programs stopped answering: {0}")]
    Lost(String),
}

/// What the block layer tells of one disk. Counters only grow; take differences.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskStats {
    /// Reads that neither bowwave nor the reader of a file led by it issued.
    pub foreground_reads: u64,
    /// Their latencies, summed, in nanoseconds.
    pub foreground_ns: u64,
    /// Reads issued by the readers of files led by bowwave.
    pub led_reads: u64,
    /// Their latencies, summed, in nanoseconds.
    pub led_ns: u64,
    /// Of the reads of both kinds, those that did not continue the one before them on the disk.
    pub visit_reads: u64,
    /// Their latencies, summed, in nanoseconds.
    pub visit_ns: u64,
    /// Reads issued by bowwave.
    pub our_reads: u64,
    /// Bytes of these.
    pub our_bytes: u64,
    /// Bytes of these in flight now.
    pub our_bytes_in_flight: u64,
}

/// What is reported of a file system's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// Every miss, fault and mark.
    All,
    /// Not what the kernel takes for plain forward reading, and reads ahead by itself.
    NotForward,
}

/// A source of events about reads.
pub trait Observer: BehindSource {
    /// Calls `on_event` for what has happened, waiting up to `timeout` for the first.
    ///
    /// # Errors
    /// [`ObserveError::Lost`] if the source failed.
    fn wait(
        &mut self,
        timeout: Duration,
        on_event: &mut dyn FnMut(Event),
    ) -> Result<(), ObserveError>;

    /// A descriptor that is readable when there are events.
    fn readiness(&self) -> BorrowedFd<'_>;

    /// Looks at the files of this file system from now on.
    ///
    /// # Errors
    /// [`ObserveError::Lost`] if the source refused.
    fn watch_file_system(
        &mut self,
        dev: DeviceNumber,
        interest: Interest,
    ) -> Result<(), ObserveError>;

    /// Looks at the files of this file system no more.
    ///
    /// # Errors
    /// [`ObserveError::Lost`] if the source refused.
    fn forget_file_system(&mut self, dev: DeviceNumber) -> Result<(), ObserveError>;

    /// Counts this whole disk's reads in `slot`, from zero.
    ///
    /// # Errors
    /// [`ObserveError::Lost`] if the source refused.
    fn watch_disk(&mut self, dev: DeviceNumber, slot: usize) -> Result<(), ObserveError>;

    /// Counts this disk's reads no more.
    ///
    /// # Errors
    /// [`ObserveError::Lost`] if the source refused.
    fn forget_disk(&mut self, dev: DeviceNumber) -> Result<(), ObserveError>;

    /// Puts a mark into a file, whose outstanding marks then lie in `marked_chunks`.
    ///
    /// # Errors
    /// [`ObserveError::Lost`] if the source refused.
    fn set_mark(&mut self, file: FileKey, mark: Mark) -> Result<(), ObserveError>;

    /// Tells how a file is treated: which chunks carry marks, until when misses are not reported,
    /// and whether its reader is led by bowwave.
    ///
    /// # Errors
    /// [`ObserveError::Lost`] if the source refused.
    fn set_state(&mut self, file: FileKey, state: FileState) -> Result<(), ObserveError>;

    /// Only these files still carry marks; reads of others need not be looked at.
    fn keep_marks_of(&mut self, files: &mut dyn Iterator<Item = FileKey>);

    /// Counters of the disk in `slot`.
    fn disk_stats(&self, slot: usize) -> DiskStats;

    /// Events that were dropped because nobody fetched them in time.
    fn lost_events(&self) -> u64;
}

/// How the source treats one file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileState {
    /// Bit `chunk % 64` is set if a chunk may carry a mark.
    pub marked_chunks: u64,
    /// Misses before this moment (CLOCK_MONOTONIC, nanoseconds) are not reported.
    pub muted_until: u64,
    /// The file's reader is led: its own reads do not count as foreground.
    pub led: bool,
}

/// Disks that can be told apart; reads of further ones are led without looking at their queue.
pub const DISK_SLOTS: usize = layout::DISK_SLOTS;

/// Pages per chunk, the granularity at which marks are looked up: 128 KiB.
pub const CHUNK_PAGES: u64 = layout::CHUNK_PAGES;

/// Most pages that a mark may span: four chunks, wherever it begins.
pub const MARK_PAGES: u64 = 3 * CHUNK_PAGES;

/// Opens the best source this kernel and build offer; without `behind`, nothing is loaded for
/// drop-behind.
///
/// # Errors
/// [`ObserveError::NotBuilt`] without the `bpf` feature, [`ObserveError::Refused`] without the
/// privilege or the kernel's support.
pub fn open(scope: &Scope, behind: Option<Watch>) -> Result<Box<dyn Observer>, ObserveError> {
    #[cfg(feature = "bpf")]
    return Ok(Box::new(bpf::BpfObserver::open(scope, behind)?));
    #[cfg(not(feature = "bpf"))]
    {
        let _ = (scope, behind);
        Err(ObserveError::NotBuilt)
    }
}

#[cfg(any(test, fuzzing))]
pub(crate) fn read_any(bytes: &[u8]) {
    layout::decode_event(bytes);
}
