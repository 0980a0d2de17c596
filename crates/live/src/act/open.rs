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
    for entry in fs::read_dir(format!("/proc/{}/fd", event.tgid))? {
        let path = entry?.path();
        let Ok(metadata) = fs::metadata(&path) else {
            continue;
        };
        if metadata.is_file() && metadata.ino() == event.file.ino {
            let mut options = File::options();
            options.read(true).custom_flags(libc::O_NOATIME | libc::O_NONBLOCK);
            return Ok(options.open(path)?.into());
        }
    }
    Err(io::ErrorKind::NotFound.into())
}
