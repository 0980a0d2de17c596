//! Seeing the reads that matter.
//!
//! One interface, whatever the source: an [`Observer`] reports misses, faults and touched marks as
//! [inputs](controller::Input), takes marks, and counts what the block layer does. The source is eBPF ([`bpf`]); at
//! what hooks of the kernel its programs sit is decided in [`crate::kernel`].

mod behind;
#[cfg(feature = "bpf")]
mod bpf;
#[cfg(feature = "bpf")]
mod bpf_behind;
#[cfg(any(feature = "bpf", test, fuzzing))]
mod descendants;
// Only the eBPF source decodes events; the sizes are common.
#[cfg_attr(not(feature = "bpf"), allow(dead_code))]
mod layout;
#[cfg(feature = "bpf")]
mod warnings;

use std::os::fd::BorrowedFd;
use std::time::Duration;

use controller::{DiskStats, Input, Interest, Listening, Nanos};
use readahead::{DeviceNumber, FileKey, Mark, PAGE_BYTES};

use crate::kernel::{Features, is_locked_down};

pub use behind::{BehindSource, PageTables, Watch};

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
    /// The numbers of processes in events are others than ours.
    #[error(
        "bowwave is in a container with process numbers of its own, and the kernel's events have the host's; \
         start bowwave on the host, or the container with the host's (--pid=host)"
    )]
    InContainer,
    /// The machine has other pages than bowwave counts in.
    #[error(
        "this machine's pages are {0} bytes and bowwave works with pages of 4096 only; boot a kernel with 4 KiB pages"
    )]
    PageSize(u64),
    /// The kernel lets nobody look.
    #[error(
        "the kernel is locked down (confidentiality) and lets no program look into it; \
         boot without lockdown=confidentiality"
    )]
    LockedDown,
    /// The kernel refused the programs.
    #[error(
        "the kernel refused bowwave's eBPF programs: {0}; `bowwave doctor` tells what is missing"
    )]
    Refused(String),
    /// Talking to the programs failed later on.
    #[error("the eBPF programs stopped answering: {0}")]
    Lost(String),
}

/// A source of events about reads.
pub trait Observer: BehindSource {
    /// Calls `on_event` for what has happened, with its time (CLOCK_MONOTONIC), waiting up to `timeout` for the first. The
    /// cgroup of a reader is left open.
    ///
    /// # Errors
    /// [`ObserveError::Lost`] if the source failed.
    fn wait(
        &mut self,
        timeout: Duration,
        on_event: &mut dyn FnMut(Nanos, Input),
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

    /// Tells how a file is treated.
    ///
    /// # Errors
    /// [`ObserveError::Lost`] if the source refused.
    fn listen(&mut self, file: FileKey, listening: Listening) -> Result<(), ObserveError>;

    /// Leaves reads of files alone that carry no marks any more; to be called every second or so.
    fn tidy(&mut self);

    /// Counters of the disk in `slot`.
    fn disk_stats(&self, slot: usize) -> DiskStats;

    /// Events that were dropped because nobody fetched them in time.
    fn lost_events(&self) -> u64;
}

/// Disks whose reads are counted; reads of further ones are managed without counters.
pub const DISK_SLOTS: usize = layout::DISK_SLOTS;

/// Opens the best source this kernel and build offer; without `behind`, nothing is loaded for
/// drop-behind.
///
/// # Errors
/// [`ObserveError::InContainer`] in a PID namespace, [`ObserveError::PageSize`] where pages are not 4 KiB,
/// [`ObserveError::LockedDown`] where the kernel forbids it,
/// [`ObserveError::NotBuilt`] without the `bpf` feature, [`ObserveError::Refused`] without the privilege or the kernel's
/// support.
pub fn open(scope: &Scope, behind: Option<Watch>) -> Result<Box<dyn Observer>, ObserveError> {
    if !linux::process::sees_all() {
        return Err(ObserveError::InContainer);
    }
    check_page_size(linux::sys::page_bytes())?;
    if is_locked_down() {
        return Err(ObserveError::LockedDown);
    }
    #[cfg(feature = "bpf")]
    return Ok(Box::new(bpf::BpfObserver::open(scope, behind)?));
    #[cfg(not(feature = "bpf"))]
    {
        let _ = (scope, behind);
        Err(ObserveError::NotBuilt)
    }
}

/// Loads and attaches everything for a moment, also what drops behind and what is attached only while marks are out.
///
/// # Errors
/// As [`open`].
pub fn try_out() -> Result<(), ObserveError> {
    let behind = Features::detect().hooks.can_drop_behind();
    open(&Scope::Machine, behind.then_some(Watch { least_file_pages: 0 }))?.look_behind(behind)
}

fn check_page_size(bytes: u64) -> Result<(), ObserveError> {
    if bytes == PAGE_BYTES { Ok(()) } else { Err(ObserveError::PageSize(bytes)) }
}

#[cfg(any(test, fuzzing))]
pub(crate) fn read_any(bytes: &[u8]) {
    layout::decode_event(bytes);
    descendants::read_any(&String::from_utf8_lossy(bytes));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_pages_than_4_kib_are_refused_in_a_sentence() {
        assert!(check_page_size(4096).is_ok());
        let refused = check_page_size(65536).expect_err("64 KiB, as some arm64 kernels have");
        assert!(refused.to_string().contains("65536 bytes"));
    }
}
