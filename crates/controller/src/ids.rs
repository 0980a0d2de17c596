//! Names of what the controller hears of. Each is a type of its own, so that none is taken for another.

use serde::{Deserialize, Serialize};

/// A device's number as user space knows it.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize,
)]
pub struct DeviceNumber {
    /// Major number; 0 for file systems without a block device of their own.
    pub major: u32,
    /// Minor number.
    pub minor: u32,
}

impl DeviceNumber {
    /// From the kernel's internal encoding (`MKDEV`).
    pub fn from_kernel(dev: u32) -> Self {
        DeviceNumber { major: dev >> 20, minor: dev & 0xf_ffff }
    }

    /// To the kernel's internal encoding.
    pub fn to_kernel(self) -> u32 {
        self.major << 20 | self.minor
    }
}

impl std::fmt::Display for DeviceNumber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

/// Names a file on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FileKey {
    /// The file system.
    pub dev: DeviceNumber,
    /// The inode number.
    pub ino: u64,
}

/// A process, by the number that the kernel's events give.
pub type Tgid = u32;

/// What it takes to open a file again: by handle, or through the process that reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRef {
    /// The file.
    pub file: FileKey,
    /// Its inode's generation.
    pub generation: u32,
    /// A process that has it open.
    pub tgid: Tgid,
}

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
