//! Which directories a process can name. One in a mount namespace or a changed root sees only a part of a file system.

use std::io;
use std::path::{Path, PathBuf};

use readahead::DeviceNumber;

use crate::mounts::{self, Mount};

/// Whether the process sees the directory at `path` within the file system, which has that number.
///
/// # Errors
/// If its table of mounts cannot be read.
pub(crate) fn includes(process: u32, dev: DeviceNumber, path: &Path) -> io::Result<bool> {
    // The kernel shows only mounts below the process's own root.
    let mut mounts = mounts::of_process(process)?;
    Ok(mounts.any(|(_, mount)| mount.dev == dev && path.starts_with(mount.root)))
}

/// Where a directory lies within its file system: `opened` is its path by way of `mount`.
pub(crate) fn path_within(mount: &Mount, opened: &Path) -> Option<PathBuf> {
    Some(mount.root.join(opened.strip_prefix(&mount.mount_point).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_leads_from_the_root_of_the_file_system() {
        let mount = |root: &str, mount_point: &str| Mount {
            dev: DeviceNumber { major: 8, minor: 1 },
            root: root.into(),
            mount_point: mount_point.into(),
            fs_type: "ext4".into(),
            source: "/dev/sda1".into(),
        };
        let within = |mount: &Mount, path: &str| path_within(mount, Path::new(path));
        assert_eq!(within(&mount("/", "/"), "/srv/a"), Some("/srv/a".into()));
        assert_eq!(within(&mount("/home", "/mnt"), "/mnt/a/b"), Some("/home/a/b".into()));
        assert_eq!(within(&mount("/home", "/mnt"), "/mnt"), Some("/home/".into()));
        assert_eq!(within(&mount("/home", "/mnt"), "/mnt2/a"), None);
        assert_eq!(within(&mount("/", "/mnt"), "(unreachable)/a"), None);
    }
}
