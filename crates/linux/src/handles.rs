//! Opens a file that another program reads, without its path.
//!
//! ```text
//!   inode and generation --.
//!                           +--> O_PATH: reached, not opened --> is it that file? --> opened
//!   reader's descriptor ---'
//! ```
//!
//! A program may put another file in place of one at any moment, and opening a device, a terminal or a FIFO has
//! effects. So a file is opened only when it cannot be exchanged any more and is known to be the right one.
//!
//! A descriptor is opened for one decision and closed right after. Opening takes five microseconds;
//! keeping it would stop an administrator from unmounting the file system.

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use readahead::{DeviceNumber, FileKey, FileRef};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Statx, StatxFlags, open, statx};

use crate::mounts::{self, Mount};
use crate::{sys, turns};

/// Reaches a file of the file system `mount`.
///
/// # Errors
/// If neither its handle nor a descriptor of the reading process refers to it.
pub fn reach(read: FileRef, mount: &Mount) -> io::Result<Reached> {
    let reached = match reach_by_inode(read.file, read.generation, mount) {
        Ok(reached) if leads_to(&reached, read) => reached,
        _ => reach_through_process(read)?,
    };
    Ok(Reached::with_key(reached)?.0)
}

/// A regular file, known by its inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// The file.
    pub file: FileKey,
    /// Its generation.
    pub generation: u32,
}

/// A regular file that was reached (`O_PATH`) and not opened. Opening it breaks a write lease on it.
#[derive(Debug)]
pub struct Reached {
    file: OwnedFd,
    /// Its size in bytes.
    pub bytes: u64,
    /// When its contents were changed last, in nanoseconds since 1970.
    pub changed_ns: i64,
}

impl Known {
    /// Reaches the file on the file system `mount`.
    ///
    /// # Errors
    /// If it is gone, or the file system encodes handles otherwise.
    pub fn reach(&self, mount: &Mount) -> io::Result<Reached> {
        Reached::is(reach_by_inode(self.file, self.generation, mount)?, self.file)
    }
}

/// Whether this failure to reach or open a [known](Known) file means that the file is gone. Other failures say nothing
/// about it.
pub fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ESTALE)
}

impl Reached {
    /// Checks that this is that file.
    pub(crate) fn is(file: OwnedFd, key: FileKey) -> io::Result<Self> {
        Self::with_key(file).and_then(|(reached, found)| {
            if found == key { Ok(reached) } else { Err(io::ErrorKind::NotFound.into()) }
        })
    }

    fn with_key(file: OwnedFd) -> io::Result<(Self, FileKey)> {
        let asked = LOOKED_AT.union(StatxFlags::SIZE).union(StatxFlags::MTIME);
        let about = statx(&file, c"", AtFlags::EMPTY_PATH | AS_KNOWN, asked)?;
        if !type_of(&about).is_file() {
            return Err(io::ErrorKind::NotFound.into());
        }
        let (seconds, ns) = (about.stx_mtime.tv_sec, about.stx_mtime.tv_nsec);
        let changed_ns = seconds.saturating_mul(1_000_000_000).saturating_add(ns.into());
        Ok((Reached { file, bytes: about.stx_size, changed_ns }, key_in(&about)))
    }

    /// Opens it for reading.
    ///
    /// # Errors
    /// `EAGAIN` if somebody holds a write lease on it, who is asked to give it up.
    pub fn open(&self) -> io::Result<OwnedFd> {
        // With these flags, opening does not make a controlling terminal, does not wait for a lease or a FIFO, and does
        // not change the access time.
        let flags =
            OFlags::RDONLY | OFlags::NOATIME | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        Ok(open(format!("/proc/self/fd/{}", self.file.as_raw_fd()), flags, Mode::empty())?)
    }

    /// A path that leads to it, if the kernel knows one.
    pub fn path(&self) -> Option<PathBuf> {
        let path = fs::read_link(format!("/proc/self/fd/{}", self.file.as_raw_fd())).ok()?;
        let about = statx(CWD, &path, AtFlags::SYMLINK_NOFOLLOW | AS_KNOWN, LOOKED_AT).ok()?;
        let found = look_at(&self.file)?;
        (about.stx_ino == found.stx_ino).then_some(path)
    }
}

impl AsFd for Reached {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Whether the descriptor refers to that file.
pub fn leads_to(file: &OwnedFd, read: FileRef) -> bool {
    look_at(file).is_some_and(|about| {
        is_file(&about, read.file) && (key_in(&about) == read.file || is_on(file, read))
    })
}

/// What a descriptor should refer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
}

/// The file or directory that a descriptor refers to, as far as the kernel knows without asking a server.
///
/// # Errors
/// `InvalidInput` if it refers to something else.
pub fn key_of(file: &OwnedFd, kind: Kind) -> io::Result<FileKey> {
    let about = statx(file, c"", AtFlags::EMPTY_PATH | AS_KNOWN, LOOKED_AT)?;
    let is_it = match kind {
        Kind::File => type_of(&about).is_file(),
        Kind::Directory => type_of(&about).is_dir(),
    };
    if is_it { Ok(key_in(&about)) } else { Err(io::ErrorKind::InvalidInput.into()) }
}

/// Use only attributes that the kernel has already: a server may never answer.
const AS_KNOWN: AtFlags = AtFlags::STATX_DONT_SYNC;

const LOOKED_AT: StatxFlags = StatxFlags::INO.union(StatxFlags::TYPE);

fn look_at(file: &OwnedFd) -> Option<Statx> {
    statx(file, c"", AtFlags::EMPTY_PATH | AS_KNOWN, LOOKED_AT).ok()
}

fn type_of(about: &Statx) -> FileType {
    FileType::from_raw_mode(about.stx_mode.into())
}

fn key_in(about: &Statx) -> FileKey {
    let dev = DeviceNumber { major: about.stx_dev_major, minor: about.stx_dev_minor };
    FileKey { dev, ino: about.stx_ino }
}

/// Whether it is a regular file with that number, according to `statx`. For some files, btrfs and overlay show another
/// device number, with major 0.
fn is_file(about: &Statx, key: FileKey) -> bool {
    let FileKey { dev, ino } = key_in(about);
    type_of(about).is_file() && ino == key.ino && (dev == key.dev || dev.major == 0)
}

/// Whether a file with another device number than its file system is on that file system all the same: according to its
/// reader's table of mounts, or because it is on an overlay. On any other file system a stranger could choose the inode
/// number.
fn is_on(file: &OwnedFd, read: FileRef) -> bool {
    let about = fs::read_to_string(format!("/proc/self/fdinfo/{}", file.as_raw_fd()));
    let Some(id) = about.ok().and_then(|about| number_behind(&about, "mnt_id:")) else {
        return false;
    };
    let Ok(mut mounts) = mounts::of_process(read.tgid) else { return false };
    let mount = mounts.find(|(of, _)| *of == id);
    mount.is_some_and(|(_, mount)| mount.dev == read.file.dev || is_known_overlay(&mount))
}

/// Whether it is an overlay that is also mounted here. One in a user's name space may be on that user's own file
/// system.
fn is_known_overlay(mount: &Mount) -> bool {
    let known = || mounts::of_number(mount.dev).ok().flatten();
    mount.fs_type == "overlay" && known().is_some_and(|known| known.fs_type == "overlay")
}

/// Whether closing a descriptor on such a file system asks nobody. FUSE and network file systems have a `->flush` that
/// asks a server and may wait for ever; it also writes what the program has not written yet.
pub fn closes_at_once(fs_type: &str) -> bool {
    const WITHOUT_FLUSH: [&str; 20] = [
        "bcachefs", "btrfs", "erofs", "exfat", "ext2", "ext3", "ext4", "f2fs", "gfs2", "hfs",
        "hfsplus", "iso9660", "jfs", "msdos", "nilfs2", "ntfs3", "squashfs", "udf", "vfat", "xfs",
    ];
    WITHOUT_FLUSH.contains(&fs_type)
}

/// Whether this file system's handles consist of inode number and generation only.
pub fn encodes_inode_handles(fs_type: &str) -> bool {
    matches!(fs_type, "ext2" | "ext3" | "ext4" | "xfs")
}

/// Reaches an inode of the file system `mount`, without opening it (`O_PATH`).
pub(crate) fn reach_by_inode(key: FileKey, generation: u32, mount: &Mount) -> io::Result<OwnedFd> {
    let ino = u32::try_from(key.ino).map_err(|_| io::ErrorKind::Unsupported)?;
    if !encodes_inode_handles(&mount.fs_type) {
        return Err(io::ErrorKind::Unsupported.into());
    }
    // If something else is there by now, do not open it.
    let folder = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let root = open(&mount.mount_point, folder, Mode::empty())?;
    sys::reach_by_inode(root.as_fd(), ino, generation)
}

/// Looks for the file among the reading process's descriptors.
fn reach_through_process(read: FileRef) -> io::Result<OwnedFd> {
    let FileRef { tgid, file: key, .. } = read;
    let mut descriptors = regular_files_of(tgid)?.peekable();
    let mut leads_there = |found: &Found| is_file(&found.about, key);
    let few = descriptors.by_ref().take(FEW_DESCRIPTORS);
    let mut found = few.flatten().find(&mut leads_there);
    if found.is_none() && descriptors.peek().is_some() {
        found = turns::at_its_owners(tgid, || descriptors.flatten().find(&mut leads_there))?;
    }
    let number = found.ok_or(io::ErrorKind::NotFound)?.number;
    let path = format!("/proc/{tgid}/fd/{number}");
    let reached = open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    if leads_to(&reached, read) { Ok(reached) } else { Err(io::ErrorKind::NotFound.into()) }
}

/// Examine this many descriptors of any process, in half a millisecond. Few programs have more.
const FEW_DESCRIPTORS: usize = 256;

/// Most descriptors of a process that are examined, at about 2 us each. A process may have a million, and cause a
/// search with each of its reads.
const MOST_DESCRIPTORS: usize = 10_000;

/// A descriptor that refers to a regular file.
struct Found {
    number: i32,
    about: Statx,
}

/// The descriptors of a process up to [`MOST_DESCRIPTORS`]; `None` for those that do not refer to a regular file.
///
/// This sends no request to a file system: a server might never answer. Each step takes as long, whatever the
/// descriptor is. `/proc/PID/fdinfo` tells inode numbers, too, but users can make it take a second for each descriptor:
/// by what an `epoll` watches, or by locks.
fn regular_files_of(tgid: u32) -> io::Result<impl Iterator<Item = Option<Found>>> {
    let folder = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = open(format!("/proc/{tgid}/fd"), folder, Mode::empty())?;
    let entries = Dir::read_from(&folder)?.filter_map(|entry| {
        let entry = entry.ok()?;
        let number: i32 = entry.file_name().to_str().ok()?.parse().ok()?;
        Some((number, entry))
    });
    Ok(entries.take(MOST_DESCRIPTORS).map(move |(number, entry)| {
        let about = statx(&folder, entry.file_name(), AS_KNOWN, LOOKED_AT).ok()?;
        type_of(&about).is_file().then_some(Found { number, about })
    }))
}

/// The descriptors of a process that refer to regular files, with the inode numbers of these.
pub(crate) fn descriptors_of(tgid: u32) -> io::Result<impl Iterator<Item = (i32, u64)>> {
    Ok(regular_files_of(tgid)?.flatten().map(|found| (found.number, found.about.stx_ino)))
}

fn number_behind(fdinfo: &str, name: &str) -> Option<u64> {
    fdinfo.lines().find_map(|line| line.strip_prefix(name))?.trim().parse().ok()
}

/// Whether a descriptor of a process refers to the file.
pub(crate) fn is_same_file(tgid: u32, file: FileKey, number: i32) -> bool {
    let about = statx(CWD, format!("/proc/{tgid}/fd/{number}"), AS_KNOWN, LOOKED_AT);
    about.is_ok_and(|about| is_file(&about, file))
}

#[cfg(any(test, fuzzing))]
pub(crate) fn read_any(fdinfo: &str) {
    number_behind(fdinfo, "mnt_id:");
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
    fn a_file_is_opened_through_its_reader_and_no_other_file_is() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let mut cat = Command::new("sleep")
            .arg("1000")
            .stdin(fs::File::open(file.path()).expect("it is there"))
            .stdout(Stdio::null())
            .spawn()
            .expect("it runs");
        let read = |path| FileRef { file: key(path), generation: 0, tgid: cat.id() };
        let regular = read(file.path());
        let reached = reach_through_process(regular);
        let other = reach_through_process(read(std::path::Path::new("/dev/null")));
        cat.kill().expect("it sleeps");
        cat.wait().expect("it ends");
        assert!(leads_to(&reached.expect("it has it open"), regular));
        assert!(other.is_err(), "what is no regular file is never opened");
    }

    #[test]
    fn a_number_is_a_line_of_fdinfo() {
        let fdinfo = "pos:\t0\nflags:\t0100000\nmnt_id:\t29\nino:\t131\n";
        assert_eq!(number_behind(fdinfo, "mnt_id:"), Some(29));
        assert_eq!(number_behind("pos:\t0\n", "mnt_id:"), None);
    }
}
