//! Finds out, for a target, where it can be read and which knob sets its window.
//!
//! ```text
//!   block device ----------------------------------> its node          /sys/class/bdi/<its number>/read_ahead_kb
//!   file --------------------------------------------> itself       \
//!   folder, mount point -- on a disk of its own -----> the disk's node } the window of its file system:
//!                      '-- network, FUSE, btrfs, ... -> its large files/  a disk's, or /sys/class/bdi/...
//! ```
//!
//! An overlay has no window; the file system of its upper layer has one.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use linux::identity::Identity;
use linux::knob::Knob;
use linux::mounts::{self, Disk, Mount};
use readahead::DeviceNumber;
use rustix::io::Errno;

use crate::sources;
pub use crate::sources::Source;

/// The target of tuning.
#[derive(Debug)]
pub struct Target {
    /// The path that the user gave.
    pub given: PathBuf,
    /// The sources to read; none if this process may not read the device.
    pub sources: Vec<Source>,
    /// The knob of its window; `None` if the kernel offers none.
    pub knob: Option<Knob>,
    /// The whole disk below it; `None` for file systems without a disk, such as network file
    /// systems.
    pub disk: Option<Disk>,
    /// How to recognise it after a reboot.
    pub identity: Identity,
}

/// Why a target cannot be tuned.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// It does not exist or may not be read.
    #[error("cannot read {path}: {error}{remedy}", remedy = remedy(error))]
    Unreadable {
        /// The path that the user gave.
        path: PathBuf,
        /// The cause.
        error: io::Error,
    },
    /// It is a pipe, a terminal or similar.
    #[error("{0} is neither a block device nor a file or folder on one; name one of these")]
    NoStorage(PathBuf),
    /// It has no bytes.
    #[error("{0} is empty: insert a medium or attach an image, then repeat this")]
    Empty(PathBuf),
    /// It has no file to read.
    #[error(
        "{0} has no readable file of at least {least} KiB; name a large file on it",
        least = sources::LEAST_BYTES >> 10
    )]
    NothingToRead(PathBuf),
}

/// What to do if that is the cause.
fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "; run this with sudo, or name something that you may read"
        }
        _ => "",
    }
}

impl Target {
    /// Examines `path`.
    ///
    /// # Errors
    /// See [`TargetError`].
    pub fn of(path: &Path) -> Result<Target, TargetError> {
        let unreadable = |error| TargetError::Unreadable { path: path.into(), error };
        let real = path.canonicalize().map_err(unreadable)?;
        let about = real.metadata().map_err(unreadable)?;
        let kind = about.file_type();
        if kind.is_block_device() {
            return Self::of_device(path, &real, about.rdev());
        }
        if !kind.is_file() && !kind.is_dir() {
            return Err(TargetError::NoStorage(path.into()));
        }
        let mount = mount_of(&real).map_err(unreadable)?;
        let disk = Disk::under(&mount);
        let knob = Knob::at(&mounts::read_ahead_knob(&mount));
        let sources = if kind.is_file() {
            vec![Source { path: real, bytes: about.len() }]
        } else {
            match node_of(&mount, disk.as_ref(), knob.as_ref()) {
                Some(node) => vec![node],
                None => sources::largest(&real, about.dev()),
            }
        };
        if !sources.iter().any(|source| source.bytes >= sources::LEAST_BYTES) {
            return Err(TargetError::NothingToRead(path.into()));
        }
        let identity = Identity::of(&mount, disk.as_ref());
        Ok(Target { given: path.into(), sources, knob, disk, identity })
    }

    fn of_device(path: &Path, real: &Path, number: u64) -> Result<Target, TargetError> {
        let unreadable = |error| TargetError::Unreadable { path: path.into(), error };
        let disk = Disk::of(DeviceNumber::from_stat(number))
            .ok_or_else(|| unreadable(io::ErrorKind::NotFound.into()))?;
        let knob = knob_of(&disk);
        let identity = Identity::of_disk(&disk);
        let sources = match size_of(real) {
            Ok(0) => return Err(TargetError::Empty(path.into())),
            Err(error) if error.raw_os_error() == Some(Errno::NOMEDIUM.raw_os_error()) => {
                return Err(TargetError::Empty(path.into()));
            }
            Ok(bytes) => vec![Source { path: real.into(), bytes }],
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Vec::new(),
            Err(error) => return Err(unreadable(error)),
        };
        Ok(Target { given: path.into(), sources, knob, disk: Some(disk), identity })
    }

    /// Whether a [rule](crate::persist) can set its window at boot.
    pub fn has_lasting_window(&self) -> bool {
        let of_disk = self.disk.as_ref().and_then(knob_of);
        let of_disk = of_disk.as_ref().map(Knob::path);
        self.knob.as_ref().is_some_and(|knob| is_lasting(knob.path(), of_disk, &self.identity))
    }

    /// Bytes that can be read in total.
    pub fn readable_bytes(&self) -> u64 {
        self.sources.iter().map(|source| source.bytes).sum()
    }

    /// The device's size in bytes, if the target is on a device and its size is known.
    pub fn device_bytes(&self) -> Option<u64> {
        self.disk.as_ref().and_then(Disk::bytes).filter(|bytes| *bytes > 0)
    }
}

/// A disk's window. Uses the same path as for the disk's files, since journals and locks are named
/// after it.
fn knob_of(disk: &Disk) -> Option<Knob> {
    Knob::at(Path::new(&format!("/sys/class/bdi/{}/read_ahead_kb", disk.dev)))
        .or_else(|| Knob::at(&disk.sysfs.join("queue/read_ahead_kb")))
}

/// Whether a rule for that identity sets this window. The window of a btrfs is not its disk's, and the number in the name
/// of another file system's window (`cifs-1`) is not that of its device.
fn is_lasting(window: &Path, of_disk: Option<&Path>, identity: &Identity) -> bool {
    match identity {
        Identity::Disk(_) => of_disk == Some(window),
        Identity::Mount { .. } => {
            let entry = window.parent().and_then(Path::file_name);
            entry.is_some_and(|name| name.to_string_lossy().starts_with("0:"))
        }
    }
}

/// The device node below a file system, if its window is the disk's and this process may read it.
fn node_of(mount: &Mount, disk: Option<&Disk>, knob: Option<&Knob>) -> Option<Source> {
    if knob.is_none() || knob_of(disk?).as_ref() != knob {
        return None;
    }
    let by_number = format!("/sys/dev/block/{}", mount.dev);
    let name = fs::canonicalize(by_number).ok()?.file_name()?.to_string_lossy().into_owned();
    // Where a node is in a folder of /dev, sysfs has `!` in place of the slash.
    let path = Path::new("/dev").join(name.replace('!', "/"));
    let bytes = size_of(&path).ok()?;
    Some(Source { path, bytes })
}

/// Size in bytes of a device or file.
fn size_of(path: &Path) -> io::Result<u64> {
    use std::io::{Seek, SeekFrom};
    File::open(path)?.seek(SeekFrom::End(0))
}

fn mount_of(path: &Path) -> io::Result<Mount> {
    let layer = mounts::upper_layer(path)?;
    mounts::of_path(layer.as_deref().unwrap_or(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_that_cannot_be_tuned_is_refused_in_one_sentence() {
        let error = Target::of(Path::new("/dev/null")).unwrap_err().to_string();
        assert!(error.starts_with("/dev/null is neither a block device"), "{error}");
        let error = Target::of(Path::new("/no/such/file")).unwrap_err().to_string();
        assert!(error.starts_with("cannot read /no/such/file"), "{error}");
        let forbidden = TargetError::Unreadable {
            path: "/mnt/private".into(),
            error: io::ErrorKind::PermissionDenied.into(),
        };
        assert_eq!(
            forbidden.to_string(),
            "cannot read /mnt/private: permission denied; run this with sudo, or name something that you may read"
        );
        let error = Target::of(Path::new("/proc/version")).unwrap_err().to_string();
        assert!(error.contains("no page cache"), "{error}");
    }

    #[test]
    fn a_file_is_read_itself_and_its_file_system_has_a_window() {
        let folder = tempfile::tempdir_in("/var/tmp").expect("a folder");
        let path = folder.path().join("large");
        fs::write(&path, vec![1; 1 << 20]).expect("written");
        let target = Target::of(&path).expect("it is a file on a disk");
        assert_eq!(target.sources, [Source { path, bytes: 1 << 20 }]);
    }

    #[test]
    fn a_rule_sets_the_window_of_a_disk_or_that_of_a_device_number_without_one() {
        let window = |name: &str| Path::new("/sys/class/bdi").join(name).join("read_ahead_kb");
        let [sda, btrfs, nfs, cifs] = ["8:0", "btrfs-1", "0:44", "cifs-1"].map(window);
        let disk = Identity::Disk(Vec::new());
        assert!(is_lasting(&sda, Some(&sda), &disk));
        assert!(!is_lasting(&btrfs, Some(&sda), &disk) && !is_lasting(&sda, None, &disk));
        let mount = Identity::Mount { fs_type: "nfs4".into(), source: "server:/".into() };
        assert!(is_lasting(&nfs, None, &mount) && !is_lasting(&cifs, None, &mount));
    }

    #[test]
    fn an_empty_loop_device_is_refused() {
        let is_free = |number: &u32| {
            let size = fs::read_to_string(format!("/sys/block/loop{number}/size"));
            size.is_ok_and(|size| size.trim() == "0")
        };
        // The last free one: labs started meanwhile take the first.
        let Some(number) = (0..64).rev().find(is_free) else {
            eprintln!("skipped: no loop device is free");
            return;
        };
        let path = format!("/dev/loop{number}");
        if File::open(&path).is_err() {
            eprintln!("skipped: {path} may not be read");
            return;
        }
        let refused = Target::of(Path::new(&path));
        assert!(matches!(refused, Err(TargetError::Empty(_))), "{refused:?}");
    }

    #[test]
    fn a_file_too_small_to_measure_is_refused() {
        let folder = tempfile::tempdir_in("/var/tmp").expect("a folder");
        let path = folder.path().join("small");
        fs::write(&path, "x").expect("written");
        assert!(matches!(Target::of(&path), Err(TargetError::NothingToRead(_))));
    }
}
