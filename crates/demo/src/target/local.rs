//! A temporary folder on a disk of the machine.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use linux::knob::{Borrowed, Knob};
use linux::mounts::{self, Disk, Mount};
use rustix::fs::{Advice, fadvise};
use tempfile::TempDir;

use crate::error::DemoError;
use crate::leftovers;
use crate::mapping;
use patterns::Files;

/// Pages that are being read cannot be evicted. How often to try, and the pause in between.
const EVICTIONS: u32 = 20;
const PAUSE: Duration = Duration::from_millis(50);

/// Removes the folder and restores the disk's window when dropped.
pub(crate) struct LocalDisk {
    folder: TempDir,
    window: Borrowed,
    /// The disk's counters.
    counters: PathBuf,
}

/// The mount of `parent`, and its window.
///
/// # Errors
/// If it has no window.
pub(super) fn mount_of(parent: &Path) -> Result<(Mount, Knob), DemoError> {
    let mount = mounts::of_path(parent).map_err(|error| match error.kind() {
        ErrorKind::Unsupported => DemoError::NoDisk(parent.into()),
        _ => DemoError::file(parent)(error),
    })?;
    let knob = Knob::at(&mounts::read_ahead_knob(&mount));
    Ok((mount, knob.ok_or_else(|| DemoError::NoDisk(parent.into()))?))
}

impl LocalDisk {
    pub(super) fn open(parent: &Path) -> Result<Self, DemoError> {
        let (mount, knob) = mount_of(parent)?;
        let window = Borrowed::take(knob)?;
        let folder = leftovers::folder_in(parent);
        let counters = PathBuf::from(format!("/sys/dev/block/{}/stat", mount.dev));
        Ok(LocalDisk { folder: folder.map_err(DemoError::file(parent))?, window, counters })
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(super) fn set_read_ahead_kb(&self, kb: u64) -> Result<(), DemoError> {
        Ok(self.window.set(kb)?)
    }

    pub(super) fn bytes_read(&self) -> Option<u64> {
        sectors_read(&fs::read_to_string(&self.counters).ok()?).map(|sectors| sectors * 512)
    }

    pub(super) fn evict(&self, files: &[Files]) -> Result<(), DemoError> {
        let names = files.iter().flat_map(Files::names);
        names.into_iter().try_for_each(|name| evict(&self.folder().join(name)))
    }
}

fn evict(path: &Path) -> Result<(), DemoError> {
    let file = File::open(path).map_err(DemoError::file(path))?;
    for _ in 0..EVICTIONS {
        fadvise(&file, 0, None, Advice::DontNeed)
            .map_err(|error| DemoError::file(path)(error.into()))?;
        if mapping::resident_pages(&file).map_err(DemoError::file(path))? == 0 {
            return Ok(());
        }
        thread::sleep(PAUSE);
    }
    Err(DemoError::NotEvicted(path.into()))
}

/// The disk that holds `folder`; `None` if a server does.
pub(super) fn disk_of(folder: &Path) -> Option<Disk> {
    Disk::under(&mounts::of_path(folder).ok()?)
}

/// Whether `folder` is on a disk with a head, as far as the kernel knows.
pub(super) fn is_rotational(folder: &Path) -> bool {
    disk_of(folder).is_some_and(|disk| disk.is_rotational())
}

/// The third field of a disk's counters.
fn sectors_read(counters: &str) -> Option<u64> {
    counters.split_whitespace().nth(2)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sectors_are_the_third_counter() {
        assert_eq!(sectors_read("     100        0     2048       50        7 "), Some(2048));
        assert_eq!(sectors_read(""), None);
    }

    #[test]
    fn a_file_in_the_page_cache_can_be_evicted() {
        let folder = tempfile::tempdir_in("/var/tmp").expect("a temporary folder");
        let path = folder.path().join("file");
        fs::write(&path, vec![1; 1 << 20]).expect("room for a megabyte");
        let file = File::open(&path).expect("it is there");
        file.sync_all().expect("it can be written back");
        assert!(mapping::resident_pages(&file).is_ok_and(|pages| pages > 0));
        evict(&path).expect("nobody else has it open");
        assert_eq!(mapping::resident_pages(&file).ok(), Some(0));
    }

    #[test]
    fn what_is_on_no_disk_is_refused() {
        assert!(matches!(LocalDisk::open(Path::new("/proc")), Err(DemoError::NoDisk(_))));
    }
}
