//! Names of what the controller hears of. Each is a type of its own, so that none is taken for another.

use serde::{Deserialize, Serialize};

pub use readahead::{DeviceNumber, FileKey, FileRef};

/// A process, by the number that the kernel's events give.
pub type Tgid = u32;

/// One open file description: the address of its read-ahead state in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct OpenFile(pub u64);

/// What lies under one or more file systems: a whole disk, or the far end of a network file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct BackingId(pub u32);

/// A memory cgroup, by a number that the body gives it.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize,
)]
pub struct CgroupId(pub u32);

impl CgroupId {
    /// Its name for the policy.
    pub(crate) fn group(self) -> readahead::GroupId {
        readahead::GroupId(self.0)
    }
}

/// Pairs a command with its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Ticket(pub u64);

/// One process's way through a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct StreamKey {
    /// The file.
    pub file: FileKey,
    /// The process.
    pub tgid: Tgid,
    /// It writes.
    pub written: bool,
}

/// What the kernel's own window is set for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Target {
    /// One open file description.
    OpenFile(OpenFile),
    /// A file as one process has mapped it: faults do not tell the open file.
    Mapping(Tgid, FileKey),
    /// An entry of the journal that an earlier run has left.
    Recovered(u32),
}
