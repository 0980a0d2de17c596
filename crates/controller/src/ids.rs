//! Identifiers. Each is a separate type, so that none is mistaken for another.

use serde::{Deserialize, Serialize};

pub use readahead::{DeviceNumber, FileKey, FileRef};

/// A process, by the number in the kernel's events.
pub type Tgid = u32;

/// One open file description: the address of its read-ahead state in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct OpenFile(pub u64);

/// The device under one or more file systems: a whole disk, or the server of a network file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct BackingId(pub u32);

/// A memory cgroup, by a number that the body gives it.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize,
)]
pub struct CgroupId(pub u32);

impl CgroupId {
    /// The policy's name for it.
    pub(crate) fn group(self) -> readahead::GroupId {
        readahead::GroupId(self.0)
    }
}

/// Pairs a command with its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Ticket(pub u64);

/// One start of a command that is remembered.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize,
)]
pub struct StartId(pub u32);

/// One process's way through a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct StreamKey {
    /// The file.
    pub file: FileKey,
    /// The process.
    pub tgid: Tgid,
    /// The process writes.
    pub written: bool,
}

/// What a window of the kernel belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Target {
    /// One open file description.
    OpenFile(OpenFile),
    /// A file that a process has mapped: events of faults do not name the open file.
    Mapping(Tgid, FileKey),
    /// An entry that an earlier run has left in the journal.
    Recovered(u32),
}
