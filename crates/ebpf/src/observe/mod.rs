//! Sees the reads that matter.
//!
//! An [`Observer`] reports misses, faults and touched marks as [inputs](controller::Input), sets marks, and counts the
//! block layer's reads. The only source so far is eBPF (`bpf.rs`). [`crate::kernel`] decides which hooks of the kernel
//! its programs use.

mod behind;
#[cfg(feature = "bpf")]
mod bpf;
#[cfg(feature = "bpf")]
mod bpf_behind;
#[cfg(any(feature = "bpf", test))]
mod descendants;
#[cfg(feature = "bpf")]
mod layout;

use std::os::fd::BorrowedFd;
use std::time::Duration;

use controller::{DiskStats, Input, Interest, Listening, Nanos};
use linux::program;
use readahead::{DeviceNumber, FileKey, Mark};

use crate::error::{ObserveError, check_machine};
use crate::kernel::Features;
use crate::open_file;

pub use behind::{BehindSource, PageTables, Watch};

/// Whose reads to observe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Those of all programs.
    Machine,
    /// Those of this process and its descendants.
    Process(u32),
}

/// Whose budget of events an event has used: one user's in a service or session, or a container's. Nobody can be
/// several of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Spender {
    /// A cgroup that root has made.
    pub cgroup: u64,
    /// The user outside of all user namespaces; 0 of a container.
    pub uid: u32,
}

/// A process's name, as the kernel keeps it: filled with zeros.
pub type CommandName = [u8; program::NAME_BYTES];

/// What an event tells.
#[derive(Clone, Debug)]
pub struct Observed {
    /// Its time (CLOCK_MONOTONIC).
    pub at: Nanos,
    /// Without the reader's cgroup.
    pub input: Input,
    /// Who has caused it.
    pub spender: Spender,
    /// The process belongs to a command that is remembered.
    pub command: Option<OfCommand>,
}

/// A process has the name of a command that is remembered, or one of its ancestors has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OfCommand {
    /// Which of the commands that were given.
    pub command: usize,
    /// The process of that name has begun less than 5 s ago.
    pub is_fresh: bool,
}

/// A source of events about reads. Its methods fail with [`ObserveError::Lost`] if the source stops answering.
pub trait Observer: BehindSource {
    /// Waits up to `timeout` for the first event. Returns all that have come.
    fn wait(&mut self, timeout: Duration) -> Result<Vec<Observed>, ObserveError>;

    /// A descriptor that is readable when there are events.
    fn readiness(&self) -> BorrowedFd<'_>;

    /// Starts reporting events of this file system.
    fn watch_file_system(
        &mut self,
        dev: DeviceNumber,
        interest: Interest,
    ) -> Result<(), ObserveError>;

    /// Stops reporting events of this file system.
    fn forget_file_system(&mut self, dev: DeviceNumber) -> Result<(), ObserveError>;

    /// Starts counting this disk's reads in `slot`, from zero.
    fn watch_disk(&mut self, dev: DeviceNumber, slot: usize) -> Result<(), ObserveError>;

    /// Stops counting this disk's reads.
    fn forget_disk(&mut self, dev: DeviceNumber) -> Result<(), ObserveError>;

    /// Sets a mark: the first access to its pages will be reported. [`listen`](Self::listen) must name its chunks, too.
    fn set_mark(&mut self, file: FileKey, mark: Mark) -> Result<(), ObserveError>;

    /// Sets which events of a file to report.
    fn listen(&mut self, file: FileKey, listening: Listening) -> Result<(), ObserveError>;

    /// Ends the cost for reads of files that carry no marks any more. Call it about every second.
    fn tidy(&mut self);

    /// The counters of the disk in `slot`; zeros if there is none.
    fn disk_stats(&self, slot: usize) -> DiskStats;

    /// Events that were dropped, since the ring buffer was full or a user caused too many.
    fn lost_events(&self) -> u64;
}

/// The number of slots for disks, as in programs/interface.h. Reads of further disks are managed without counters.
pub const DISK_SLOTS: usize = 64;

/// Most commands whose starts are remembered, as in programs/remembered.bpf.h.
pub const REMEMBERED_COMMANDS: usize = 16;

/// Opens the best source that this kernel and build offer; without `behind`, one without drop-behind. Events of processes
/// with one of these names, and of their descendants, say so.
///
/// # Errors
/// [`ObserveError::InContainer`] in a PID namespace, [`ObserveError::PageSize`] where pages are not 4 KiB,
/// [`ObserveError::LockedDown`] where the kernel forbids it,
/// [`ObserveError::NotBuilt`] without the `bpf` feature, [`ObserveError::Refused`] without the privilege or the
/// kernel's support.
pub fn open(
    scope: &Scope,
    behind: Option<Watch>,
    remembered: &[CommandName],
) -> Result<Box<dyn Observer>, ObserveError> {
    check_machine()?;
    #[cfg(feature = "bpf")]
    return Ok(Box::new(bpf::BpfObserver::open(scope, behind, remembered)?));
    #[cfg(not(feature = "bpf"))]
    {
        let _ = (scope, behind, remembered);
        Err(ObserveError::NotBuilt)
    }
}

/// Loads and attaches all programs for a moment, including those for drop-behind and for marks.
///
/// # Errors
/// As [`open`].
pub fn try_out() -> Result<(), ObserveError> {
    let behind = Features::detect().hooks.can_drop_behind();
    let behind_all = behind.then_some(Watch { least_file_pages: 0 });
    open(&Scope::Machine, behind_all, &program::names())?.look_behind(behind)?;
    match open_file::can_look() {
        true => Ok(()),
        false => Err(ObserveError::Refused("the program that looks at open files".into())),
    }
}

#[cfg(all(feature = "bpf", any(test, fuzzing)))]
pub(crate) fn read_any(bytes: &[u8]) {
    layout::decode_event(bytes).for_each(drop);
}
