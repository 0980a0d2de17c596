//! Opening a file that some program reads, without its path.
//!
//! Descriptors are opened for one decision and closed with it: two microseconds, whereas a cached
//! descriptor would keep an administrator from unmounting the file system.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

use readahead::{DeviceNumber, FileKey};
use rustix::fs::{AtFlags, CWD, FileType, Statx, StatxFlags, statx};

use crate::mounts::Mount;
use crate::sys;

/// A file that was read, and by whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read {
    /// The file.
    pub file: FileKey,
    /// Its inode's generation: inode numbers are used again.
    pub generation: u32,
    /// The process that reads.
    pub tgid: u32,
}

/// Opens a file that lies on `mount`.
///
/// # Errors
/// If neither its handle nor a descriptor of the reading process leads to it.
pub fn open_file(read: Read, mount: &Mount) -> io::Result<OwnedFd> {
    if encodes_inode_handles(&mount.fs_type)
        && let Ok(ino) = u32::try_from(read.file.ino)
    {
        let root = File::open(&mount.mount_point)?;
        // Another file system may have been mounted there meanwhile.
        if let Ok(file) = sys::open_by_inode(root.as_fd(), ino, read.generation)
            && leads_to(&file, read.file)
        {
            return Ok(file);
        }
    }
    open_through_process(read.tgid, read.file)
}

/// Whether a descriptor leads to that file.
pub fn leads_to(file: &OwnedFd, key: FileKey) -> bool {
    is_file(statx(file, c"", AtFlags::EMPTY_PATH | AS_KNOWN, LOOKED_AT), key)
}

/// What is known here already will do: no server is asked, which might not answer.
const AS_KNOWN: AtFlags = AtFlags::STATX_DONT_SYNC;

const LOOKED_AT: StatxFlags = StatxFlags::INO.union(StatxFlags::TYPE);

/// btrfs shows a device number of its own for each subvolume: major 0, like network file systems.
fn is_file(about: rustix::io::Result<Statx>, key: FileKey) -> bool {
    about.is_ok_and(|about| {
        let dev = DeviceNumber { major: about.stx_dev_major, minor: about.stx_dev_minor };
        let is_regular = FileType::from_raw_mode(about.stx_mode.into()).is_file();
        is_regular && about.stx_ino == key.ino && (dev == key.dev || dev.major == 0)
    })
}

/// File systems whose handles are inode number and generation, and nothing else.
pub fn encodes_inode_handles(fs_type: &str) -> bool {
    matches!(fs_type, "ext2" | "ext3" | "ext4" | "xfs")
}

/// Looks for the file among the reading process's descriptors.
fn open_through_process(tgid: u32, key: FileKey) -> io::Result<OwnedFd> {
    let leads_there = |(number, ino)| ino == key.ino && is_same_file(tgid, key, number);
    let mut descriptors = descriptors_of(tgid)?;
    let found = descriptors.find(|descriptor| leads_there(*descriptor));
    let (number, _) = found.ok_or(io::ErrorKind::NotFound)?;
    let mut options = File::options();
    options.read(true).custom_flags(libc::O_NOATIME | libc::O_NONBLOCK);
    Ok(options.open(format!("/proc/{tgid}/fd/{number}"))?.into())
}

/// The descriptors of a process and the inode numbers they lead to.
///
/// This asks no file system: some may lie on a server that does not answer.
pub(crate) fn descriptors_of(tgid: u32) -> io::Result<impl Iterator<Item = (i32, u64)>> {
    let entries = fs::read_dir(format!("/proc/{tgid}/fdinfo"))?;
    Ok(entries.filter_map(|entry| {
        let entry = entry.ok()?;
        let about = fs::read_to_string(entry.path()).ok()?;
        Some((entry.file_name().to_str()?.parse().ok()?, inode_in(&about)?))
    }))
}

/// The inode number that one descriptor leads to.
pub(crate) fn inode_of(tgid: u32, number: i32) -> io::Result<Option<u64>> {
    Ok(inode_in(&fs::read_to_string(format!("/proc/{tgid}/fdinfo/{number}"))?))
}

pub(crate) fn inode_in(fdinfo: &str) -> Option<u64> {
    fdinfo.lines().find_map(|line| line.strip_prefix("ino:"))?.trim().parse().ok()
}

/// Whether a descriptor of a process leads to the file.
pub(crate) fn is_same_file(tgid: u32, file: FileKey, number: i32) -> bool {
    is_file(statx(CWD, format!("/proc/{tgid}/fd/{number}"), AS_KNOWN, LOOKED_AT), file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inode_number_is_a_line_of_fdinfo() {
        let fdinfo = "pos:\t0\nflags:\t0100000\nmnt_id:\t29\nino:\t131\n";
        assert_eq!(inode_in(fdinfo), Some(131));
        assert_eq!(inode_in("pos:\t0\n"), None);
    }
}
