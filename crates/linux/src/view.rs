//! Which directories a process can name. One in a mount namespace or a changed root sees only a part of a file system.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use readahead::DeviceNumber;

use crate::mounts::{self, Mount};

/// Read this much of a process's table of mounts, some 2,000 mounts in half a millisecond. A user may have 100,000.
const MOST_BYTES: u64 = 256 << 10;

/// Whether the process sees the directory at `path` within the file system, which has that number.
///
/// # Errors
/// If its table of mounts cannot be read.
pub(crate) fn includes(process: u32, dev: DeviceNumber, path: &Path) -> io::Result<bool> {
    // The kernel shows only mounts below the process's own root.
    let table = File::open(format!("/proc/{process}/mountinfo"))?.take(MOST_BYTES);
    for line in BufReader::new(table).split(b'\n') {
        let mount = mounts::parse_line(&String::from_utf8_lossy(&line?));
        if mount.is_some_and(|mount| mount.dev == dev && path.starts_with(mount.root)) {
            return Ok(true);
        }
    }
    Ok(false)
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
