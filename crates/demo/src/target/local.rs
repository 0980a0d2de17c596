//! A folder of the demonstration's own on a disk of the machine's own.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rustix::fs::{Advice, fadvise};
use tempfile::TempDir;

use crate::error::DemoError;
use crate::mapping;
use crate::pattern::Files;

/// Pages that are being read cannot be evicted, so it is tried so often, and so far apart.
const EVICTIONS: u32 = 20;
const PAUSE: Duration = Duration::from_millis(50);

/// Dropping it removes the folder and puts the disk's window back.
pub(crate) struct LocalDisk {
    folder: TempDir,
    window: Window,
    /// The disk's counters, where there is one.
    counters: PathBuf,
}

impl LocalDisk {
    pub(super) fn open(parent: &Path) -> Result<Self, DemoError> {
        let number = number_of(parent).map_err(DemoError::file(parent))?;
        let disk = disk_of(&number);
        let window =
            Window::of(&number, disk.as_deref()).ok_or_else(|| DemoError::NoDisk(parent.into()))?;
        let folder = tempfile::Builder::new().prefix("bowwave-demo-").tempdir_in(parent);
        let counters = PathBuf::from(format!("/sys/dev/block/{number}/stat"));
        Ok(LocalDisk { folder: folder.map_err(DemoError::file(parent))?, window, counters })
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(super) fn set_read_ahead_kb(&self, kb: u64) -> Result<(), DemoError> {
        fs::write(&self.window.knob, kb.to_string()).map_err(DemoError::file(&self.window.knob))
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

/// The kernel's window of a file system; put back when this is dropped.
struct Window {
    knob: PathBuf,
    was: String,
}

impl Window {
    /// Partitions share that of their disk; network file systems have one by their own number.
    fn of(number: &str, disk: Option<&Path>) -> Option<Self> {
        let of_disk = disk.map(|disk| disk.join("bdi/read_ahead_kb"));
        let own = PathBuf::from(format!("/sys/class/bdi/{number}/read_ahead_kb"));
        of_disk.into_iter().chain([own]).find_map(|knob| {
            let was = fs::read_to_string(&knob).ok()?;
            Some(Window { knob, was })
        })
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        let was = self.was.trim();
        if let Err(error) = fs::write(&self.knob, was) {
            eprintln!("bowwave: {} is not put back to {was}: {error}", self.knob.display());
        }
    }
}

/// Whether a head moves to read what is in `folder`, as far as the kernel knows.
pub(super) fn is_rotational(folder: &Path) -> bool {
    let disk = number_of(folder).ok().and_then(|number| disk_of(&number));
    disk.is_some_and(|disk| {
        fs::read_to_string(disk.join("queue/rotational")).is_ok_and(|text| text.trim() == "1")
    })
}

/// `MAJOR:MINOR` of the file system.
fn number_of(folder: &Path) -> std::io::Result<String> {
    let device = fs::metadata(folder)?.dev();
    Ok(format!("{}:{}", libc::major(device), libc::minor(device)))
}

/// The folder in sysfs of the whole disk, of which the file system may have a partition.
fn disk_of(number: &str) -> Option<PathBuf> {
    let device = fs::canonicalize(format!("/sys/dev/block/{number}")).ok()?;
    if device.join("partition").exists() {
        device.parent().map(Path::to_path_buf)
    } else {
        Some(device)
    }
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
    fn a_window_is_put_back() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let knob = folder.path().join("bdi/read_ahead_kb");
        fs::create_dir(folder.path().join("bdi")).expect("a fake sysfs");
        fs::write(&knob, "128\n").expect("a fake sysfs");
        let window = Window::of("no:number", Some(folder.path())).expect("it is there");
        fs::write(&window.knob, "4096").expect("a fake sysfs");
        drop(window);
        assert_eq!(fs::read_to_string(&knob).ok().as_deref(), Some("128"));
    }

    #[test]
    fn what_is_on_no_disk_is_refused() {
        assert!(matches!(LocalDisk::open(Path::new("/proc")), Err(DemoError::NoDisk(_))));
    }
}
