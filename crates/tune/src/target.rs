//! What is to be tuned: where it can be read, and which knob sets its window.
//!
//! ```text
//!   block device ----------------------------------> its node          /sys/class/bdi/<its number>/read_ahead_kb
//!   file --------------------------------------------> itself       \
//!   folder, mount point -- on a disk of its own -----> the disk's node } the window of its file system:
//!                      '-- network, FUSE, btrfs, ... -> its large files/  a disk's, or /sys/class/bdi/...
//! ```
//!
//! An overlay has no window; the file system of its upper layer has.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use linux::identity::Identity;
use linux::knob::Knob;
use linux::mounts::{self, Disk, Mount};
use readahead::DeviceNumber;

use crate::large_files;

/// Something that can be read to see how fast a device is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// A device node or a file.
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
}

/// What is to be tuned.
#[derive(Debug)]
pub struct Target {
    /// As the user gave it.
    pub given: PathBuf,
    /// What is read; nothing if it is a device that this process may not read.
    pub sources: Vec<Source>,
    /// The window; `None` where the kernel shows none.
    pub knob: Option<Knob>,
    /// The disk under it, whole; `None` for network and other file systems without one.
    pub disk: Option<Disk>,
    /// By what it is recognised again.
    pub identity: Identity,
}

/// Why something cannot be tuned.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// It is not there, or must not be read.
    #[error("cannot read {path}: {error}")]
    Unreadable {
        /// As given.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// It is a pipe, a terminal...
    #[error("{0} is neither a block device nor a file or folder on one; name one of these")]
    NoStorage(PathBuf),
    /// It has no bytes.
    #[error(
        "{0} is empty: no medium is in it, or nothing attached to it; see to that, then repeat"
    )]
    Empty(PathBuf),
    /// There is nothing to read.
    #[error(
        "{0} has no file of at least {least} KiB that may be read; name a large file on it",
        least = large_files::LEAST_BYTES >> 10
    )]
    NothingToRead(PathBuf),
}

impl Target {
    /// Finds out about `path`.
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
                None => large_files::largest(&real, about.dev()),
            }
        };
        if !sources.iter().any(|source| source.bytes >= large_files::LEAST_BYTES) {
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
            Ok(bytes) => vec![Source { path: real.into(), bytes }],
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Vec::new(),
            Err(error) => return Err(unreadable(error)),
        };
        Ok(Target { given: path.into(), sources, knob, disk: Some(disk), identity })
    }

    /// Bytes that can be read.
    pub fn readable_bytes(&self) -> u64 {
        self.sources.iter().map(|source| source.bytes).sum()
    }

    /// The device's size, where it is one and has any.
    pub fn device_bytes(&self) -> Option<u64> {
        self.disk.as_ref().and_then(Disk::bytes).filter(|bytes| *bytes > 0)
    }
}

/// A disk's window, under the one name by which its files have it, too: journals and locks go by names.
fn knob_of(disk: &Disk) -> Option<Knob> {
    Knob::at(Path::new(&format!("/sys/class/bdi/{}/read_ahead_kb", disk.dev)))
        .or_else(|| Knob::at(&disk.sysfs.join("queue/read_ahead_kb")))
}

/// The node under a file system, if its window is the disk's and this process may read it.
fn node_of(mount: &Mount, disk: Option<&Disk>, knob: Option<&Knob>) -> Option<Source> {
    if knob.is_none() || knob_of(disk?).as_ref() != knob {
        return None;
    }
    let by_number = format!("/sys/dev/block/{}", mount.dev);
    let name = fs::canonicalize(by_number).ok()?.file_name()?.to_owned();
    let path = Path::new("/dev").join(name);
    let bytes = size_of(&path).ok()?;
    Some(Source { path, bytes })
}

/// Bytes of a device, or file, that can be read.
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
    fn what_cannot_be_tuned_is_said_in_one_sentence() {
        let error = Target::of(Path::new("/dev/null")).unwrap_err().to_string();
        assert!(error.starts_with("/dev/null is neither a block device"), "{error}");
        let error = Target::of(Path::new("/no/such/file")).unwrap_err().to_string();
        assert!(error.starts_with("cannot read /no/such/file"), "{error}");
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
    fn a_device_that_nothing_is_attached_to_is_refused() {
        let is_free = |number: &u32| {
            let size = fs::read_to_string(format!("/sys/block/loop{number}/size"));
            size.is_ok_and(|size| size.trim() == "0")
        };
        // The last one: labs that come up meanwhile take the first.
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
