//! Opens a file that another program reads, without its path.
//!
//! A descriptor is opened for one decision and closed right after. Opening takes two microseconds;
//! keeping it would stop an administrator from unmounting the file system.

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use readahead::{DeviceNumber, FileKey, FileRef};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Statx, StatxFlags, open, statx};

use crate::mounts::Mount;
use crate::sys;

/// Opens a file of the file system `mount`.
///
/// # Errors
/// If neither its handle nor a descriptor of the reading process refers to it.
pub fn open_file(read: FileRef, mount: &Mount) -> io::Result<OwnedFd> {
    if encodes_inode_handles(&mount.fs_type)
        && let Ok(ino) = u32::try_from(read.file.ino)
    {
        // If something that is not a folder is there now, do not open it.
        let folder = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let root = open(&mount.mount_point, folder, Mode::empty())?;
        // Another file system may have been mounted there since.
        if let Ok(file) = sys::open_by_inode(root.as_fd(), ino, read.generation)
            && leads_to(&file, read.file)
        {
            return Ok(file);
        }
    }
    open_through_process(read.tgid, read.file)
}

/// Whether the descriptor refers to the file `key`.
pub fn leads_to(file: &OwnedFd, key: FileKey) -> bool {
    is_file(statx(file, c"", AtFlags::EMPTY_PATH | AS_KNOWN, LOOKED_AT), key)
}

/// Use only attributes the kernel already has: a server asked for them might never answer.
const AS_KNOWN: AtFlags = AtFlags::STATX_DONT_SYNC;

const LOOKED_AT: StatxFlags = StatxFlags::INO.union(StatxFlags::TYPE);

/// btrfs reports a separate device number for each subvolume. Its major number is 0, as with
/// network file systems.
fn is_file(about: rustix::io::Result<Statx>, key: FileKey) -> bool {
    about.is_ok_and(|about| {
        let dev = DeviceNumber { major: about.stx_dev_major, minor: about.stx_dev_minor };
        let is_regular = FileType::from_raw_mode(about.stx_mode.into()).is_file();
        is_regular && about.stx_ino == key.ino && (dev == key.dev || dev.major == 0)
    })
}

/// Whether this file system's handles consist of inode number and generation only.
pub fn encodes_inode_handles(fs_type: &str) -> bool {
    matches!(fs_type, "ext2" | "ext3" | "ext4" | "xfs")
}

/// Looks for the file among the reading process's descriptors.
fn open_through_process(tgid: u32, key: FileKey) -> io::Result<OwnedFd> {
    let leads_there = |(number, ino)| ino == key.ino && is_same_file(tgid, key, number);
    let mut descriptors = descriptors_of(tgid)?;
    let found = descriptors.find(|descriptor| leads_there(*descriptor));
    let (number, _) = found.ok_or(io::ErrorKind::NotFound)?;
    // The process may have replaced the descriptor since. So open it without access to the file
    // (`O_PATH`), check it, and only then open the file.
    let path = format!("/proc/{tgid}/fd/{number}");
    let reached = open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    if !leads_to(&reached, key) {
        return Err(io::ErrorKind::NotFound.into());
    }
    let flags =
        OFlags::RDONLY | OFlags::NOATIME | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    Ok(open(format!("/proc/self/fd/{}", reached.as_raw_fd()), flags, Mode::empty())?)
}

/// The descriptors of a process with the inode numbers they refer to.
///
/// This sends no request to a file system: a server might never answer.
pub(crate) fn descriptors_of(tgid: u32) -> io::Result<impl Iterator<Item = (i32, u64)>> {
    let entries = fs::read_dir(format!("/proc/{tgid}/fdinfo"))?;
    Ok(entries.filter_map(|entry| {
        let entry = entry.ok()?;
        let about = fs::read_to_string(entry.path()).ok()?;
        Some((entry.file_name().to_str()?.parse().ok()?, inode_in(&about)?))
    }))
}

/// The inode number that one descriptor refers to.
pub(crate) fn inode_of(tgid: u32, number: i32) -> io::Result<Option<u64>> {
    Ok(inode_in(&fs::read_to_string(format!("/proc/{tgid}/fdinfo/{number}"))?))
}

pub(crate) fn inode_in(fdinfo: &str) -> Option<u64> {
    fdinfo.lines().find_map(|line| line.strip_prefix("ino:"))?.trim().parse().ok()
}

/// Whether a descriptor of a process refers to the file.
pub(crate) fn is_same_file(tgid: u32, file: FileKey, number: i32) -> bool {
    is_file(statx(CWD, format!("/proc/{tgid}/fd/{number}"), AS_KNOWN, LOOKED_AT), file)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;
    use std::process::{Command, Stdio};

    use super::*;

    fn key(path: &std::path::Path) -> FileKey {
        let about = fs::metadata(path).expect("it is there");
        FileKey { dev: DeviceNumber::from_stat(about.dev()), ino: about.ino() }
    }

    #[test]
    fn a_file_that_a_process_has_open_is_opened_through_it_and_nothing_but_that_file() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let mut cat = Command::new("sleep")
            .arg("1000")
            .stdin(fs::File::open(file.path()).expect("it is there"))
            .stdout(Stdio::null())
            .spawn()
            .expect("it runs");
        let opened = open_through_process(cat.id(), key(file.path()));
        let other = open_through_process(cat.id(), key(std::path::Path::new("/dev/null")));
        cat.kill().expect("it sleeps");
        cat.wait().expect("it ends");
        assert!(leads_to(&opened.expect("it has it open"), key(file.path())));
        assert!(other.is_err(), "what is no regular file is never opened");
    }

    #[test]
    fn the_inode_number_is_a_line_of_fdinfo() {
        let fdinfo = "pos:\t0\nflags:\t0100000\nmnt_id:\t29\nino:\t131\n";
        assert_eq!(inode_in(fdinfo), Some(131));
        assert_eq!(inode_in("pos:\t0\n"), None);
    }
}
