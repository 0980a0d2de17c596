//! Files and devices as the kernel numbers them, without any I/O.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

use crate::access::{FileId, VolumeId};

/// A device's number.
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
    /// Decodes the kernel's internal encoding (`MKDEV`).
    pub fn from_kernel(dev: u32) -> Self {
        DeviceNumber { major: dev >> 20, minor: dev & 0xf_ffff }
    }

    /// Encodes it as the kernel does internally.
    pub fn to_kernel(self) -> u32 {
        self.major << 20 | self.minor
    }

    /// Decodes `st_dev` and `st_rdev` of `stat(2)`, see makedev(3).
    pub fn from_stat(dev: u64) -> Self {
        let major = (dev >> 8 & 0xfff) | (dev >> 32 & 0xffff_f000);
        let minor = (dev & 0xff) | (dev >> 12 & 0xffff_ff00);
        DeviceNumber { major: major as u32, minor: minor as u32 }
    }

    /// The volume of its files.
    pub fn volume(self) -> VolumeId {
        VolumeId(self.to_kernel())
    }
}

/// `MAJOR:MINOR`, as in `/proc` and `/sys`.
impl fmt::Display for DeviceNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

/// The text is not `MAJOR:MINOR`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotADevice;

impl FromStr for DeviceNumber {
    type Err = NotADevice;

    fn from_str(text: &str) -> Result<Self, NotADevice> {
        let (major, minor) = text.split_once(':').ok_or(NotADevice)?;
        let number = |text: &str| text.parse().map_err(|_| NotADevice);
        Ok(DeviceNumber { major: number(major)?, minor: number(minor)? })
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

/// Identifies a file so that it can be opened again: by handle, or through a process that has it open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRef {
    /// The file.
    pub file: FileKey,
    /// Its inode's generation, since inode numbers are reused.
    pub generation: u32,
    /// The process.
    pub tgid: u32,
}

impl FileKey {
    /// A hash of 64 bits. Files of one file system never share one; files of two file systems do so only by chance, one
    /// pair in 2^64.
    pub fn id(self) -> FileId {
        FileId(mixed(self.ino ^ mixed(u64::from(self.dev.to_kernel()))))
    }
}

/// A permutation of the 64-bit numbers in which every bit depends on all: the finalizer of SplitMix64.
fn mixed(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_number_is_the_same_in_every_encoding() {
        let disk = DeviceNumber { major: 254, minor: 17 };
        assert_eq!(disk.to_string().parse(), Ok(disk));
        assert_eq!(DeviceNumber::from_kernel(disk.to_kernel()), disk);
        assert_eq!(DeviceNumber::from_stat(0xfe11), disk);
        let large = DeviceNumber { major: 0x1234_5678, minor: 0x9abc_def0 };
        assert_eq!(DeviceNumber::from_stat(0x1234_59ab_cde6_78f0), large);
        for text in ["", "8", "8:", ":1", "8:x", "8:1:2", "8:-1"] {
            assert_eq!(text.parse::<DeviceNumber>(), Err(NotADevice), "{text:?}");
        }
    }

    #[test]
    fn files_of_neighbouring_numbers_have_different_ids() {
        let devices = (0..16).map(|n| DeviceNumber { major: n % 4, minor: n / 4 });
        // Include inode numbers of 64 bits, with those of the device in the upper ones.
        let inodes = |n: u64| [n, n << 40, n << 20, n | 1 << 63];
        let ids = devices
            .flat_map(|dev| (1..256).flat_map(inodes).map(move |ino| FileKey { dev, ino }.id()));
        let ids: Vec<FileId> = ids.collect();
        let different: BTreeSet<FileId> = ids.iter().copied().collect();
        assert_eq!(different.len(), ids.len());
        let low_bits: BTreeSet<u64> = ids.iter().map(|id| id.0 & 0xffff).collect();
        assert!(low_bits.len() > 10_000, "the low bits alone tell most apart");
    }
}
