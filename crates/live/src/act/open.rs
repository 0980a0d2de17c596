//! Opening a file that some program reads, without its path.
//!
//! Descriptors are opened for one decision and closed with it: two microseconds, whereas a cached
//! descriptor would keep an administrator from unmounting the file system.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};

use crate::mounts::Mount;
use crate::observe::Event;
use crate::sys;

/// Opens the file of `event` on `mount`.
///
/// # Errors
/// If neither its handle nor a descriptor of the reading process leads to it.
pub(crate) fn open_file(event: &Event, mount: &Mount) -> io::Result<OwnedFd> {
    if encodes_inode_handles(&mount.fs_type)
        && let Ok(ino) = u32::try_from(event.file.ino)
    {
        let root = File::open(&mount.mount_point)?;
        if let Ok(file) = sys::open_by_inode(root.as_fd(), ino, event.generation) {
            return Ok(file);
        }
    }
    open_through_process(event)
}

/// File systems whose handles are inode number and generation, and nothing else.
fn encodes_inode_handles(fs_type: &str) -> bool {
    matches!(fs_type, "ext2" | "ext3" | "ext4" | "xfs")
}

/// Looks for the file among the reading process's descriptors.
fn open_through_process(event: &Event) -> io::Result<OwnedFd> {
    let number = descriptor_of_reader(event)?;
    let mut options = File::options();
    options.read(true).custom_flags(libc::O_NOATIME | libc::O_NONBLOCK);
    Ok(options.open(format!("/proc/{}/fd/{number}", event.tgid))?.into())
}

/// The number of a descriptor of the reading process that leads to the file.
///
/// Only a descriptor that has the inode number is looked at more closely: others may lie on a
/// server that does not answer.
pub(super) fn descriptor_of_reader(event: &Event) -> io::Result<i32> {
    for entry in fs::read_dir(format!("/proc/{}/fdinfo", event.tgid))? {
        let entry = entry?;
        let Ok(about) = fs::read_to_string(entry.path()) else { continue };
        let name = entry.file_name();
        let number = name.to_string_lossy().parse::<i32>().ok();
        if let Some(number) = number.filter(|_| inode_in(&about) == Some(event.file.ino))
            && is_same_file(event, number)
        {
            return Ok(number);
        }
    }
    Err(io::ErrorKind::NotFound.into())
}

fn inode_in(fdinfo: &str) -> Option<u64> {
    fdinfo.lines().find_map(|line| line.strip_prefix("ino:"))?.trim().parse().ok()
}

/// btrfs shows a number of its own for each subvolume: major 0, like network file systems.
fn is_same_file(event: &Event, number: i32) -> bool {
    let path = format!("/proc/{}/fd/{number}", event.tgid);
    fs::metadata(path).is_ok_and(|about| {
        let dev = event.file.dev;
        let same_device = libc::makedev(dev.major, dev.minor) == about.dev();
        about.is_file()
            && about.ino() == event.file.ino
            && (same_device || libc::major(about.dev()) == 0)
    })
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
