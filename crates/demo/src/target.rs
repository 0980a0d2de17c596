//! Where a demonstration runs: a lab device, or the machine's own disk.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use lab::{LabGuard, Status};

use crate::error::DemoError;
use crate::pattern::DataFile;

/// Room for the files of all patterns.
const LAB_BYTES: u64 = 5 << 30;

/// A device with a folder for files.
pub(crate) enum Target {
    /// A modelled device.
    Lab(LabGuard),
    /// A folder of the machine's own.
    Local(LocalDisk),
}

/// What a device counted over one run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    pub(crate) bytes_read: u64,
    status: Option<Status>,
}

impl Reading {
    pub(crate) fn since(&self, earlier: &Reading) -> Reading {
        let status = self.status.zip(earlier.status).map(|(now, then)| now.since(&then));
        Reading { bytes_read: self.bytes_read - earlier.bytes_read, status }
    }

    /// How late the device's replies were, in microseconds; `None` where it is a real one.
    pub(crate) fn lateness_us(&self) -> Option<f64> {
        self.status.map(|status| status.late_mean_us())
    }

    pub(crate) fn rejection(&self) -> Option<String> {
        self.status.and_then(|status| status.rejection())
    }
}

impl Target {
    /// `local`, `local:FOLDER`, or a lab device.
    pub(crate) fn open(device: &str) -> Result<Self, DemoError> {
        if let Some(rest) = device.strip_prefix("local") {
            let folder = rest.strip_prefix(':').unwrap_or("/var/tmp");
            return LocalDisk::open(Path::new(folder)).map(Target::Local);
        }
        let name = Path::new(device).file_stem().unwrap_or_default().to_string_lossy();
        let options = lab::Options {
            name: format!("demo-{name}-{}", std::process::id()),
            device: device.into(),
            size_bytes: LAB_BYTES,
            fs_type: "ext4".into(),
            scheduler: None,
            server: None,
        };
        Ok(Target::Lab(LabGuard::up(&options)?))
    }

    pub(crate) fn folder(&self) -> PathBuf {
        match self {
            Target::Lab(lab) => lab.mount_point(),
            Target::Local(disk) => disk.folder.clone(),
        }
    }

    pub(crate) fn set_fast(&self, is_fast: bool) -> Result<(), DemoError> {
        match self {
            Target::Lab(lab) => Ok(lab.set_fast(is_fast)?),
            Target::Local(_) => Ok(()),
        }
    }

    pub(crate) fn set_read_ahead_kb(&self, kb: u64) -> Result<(), DemoError> {
        match self {
            Target::Lab(lab) => Ok(lab.set_read_ahead_kb(kb)?),
            Target::Local(disk) => disk.set_read_ahead_kb(kb),
        }
    }

    /// Makes sure that nothing of the files is cached.
    pub(crate) fn evict(&self, files: &[DataFile]) -> Result<(), DemoError> {
        if let Target::Lab(lab) = self {
            return Ok(lab.evict()?);
        }
        for file in files {
            evict_file(&self.folder().join(file.name))?;
        }
        Ok(())
    }

    pub(crate) fn reading(&self) -> Result<Reading, DemoError> {
        match self {
            Target::Lab(lab) => {
                let status = lab.status()?;
                Ok(Reading { bytes_read: status.bytes_read, status: Some(status) })
            }
            Target::Local(disk) => Ok(Reading { bytes_read: disk.bytes_read(), status: None }),
        }
    }

    /// The least seconds in which the device delivers so many bytes, where that is known.
    pub(crate) fn limit_seconds(&self, bytes: u64) -> Option<f64> {
        match self {
            Target::Lab(lab) => Some(lab.spec().limit_seconds(bytes)),
            Target::Local(_) => None,
        }
    }
}

/// Some pages stay at first, as they sit in per-CPU lists that the kernel drains now and then.
const EVICTIONS: u32 = 100;

fn evict_file(path: &Path) -> Result<(), DemoError> {
    let file = fs::File::open(path).map_err(DemoError::file(path))?;
    for _ in 0..EVICTIONS {
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)
            .map_err(|error| DemoError::file(path)(error.into()))?;
        let map = crate::mapping::map(&file).map_err(DemoError::file(path))?;
        if crate::mapping::resident_pages(&map) == 0 {
            return Ok(());
        }
        drop(map);
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    Err(DemoError::NotEvicted(path.to_owned()))
}

/// A folder of the demonstration's own on some disk. Dropping it removes the folder and puts the
/// disk's window back.
pub(crate) struct LocalDisk {
    folder: PathBuf,
    knob: PathBuf,
    knob_was: String,
    counters: PathBuf,
}

impl LocalDisk {
    fn open(parent: &Path) -> Result<Self, DemoError> {
        let device = fs::metadata(parent).map_err(DemoError::file(parent))?.dev();
        let number = format!("{}:{}", libc::major(device), libc::minor(device));
        let knob = PathBuf::from(format!("/sys/class/bdi/{number}/read_ahead_kb"));
        let knob_was = fs::read_to_string(&knob).map_err(DemoError::file(&knob))?;
        let folder = parent.join(format!("bowwave-demo-{}", std::process::id()));
        fs::create_dir(&folder).map_err(DemoError::file(&folder))?;
        let counters = PathBuf::from(format!("/sys/dev/block/{number}/stat"));
        Ok(LocalDisk { folder, knob, knob_was, counters })
    }

    fn set_read_ahead_kb(&self, kb: u64) -> Result<(), DemoError> {
        fs::write(&self.knob, kb.to_string()).map_err(DemoError::file(&self.knob))
    }

    /// Sectors read, the third field of the disk's counters.
    fn bytes_read(&self) -> u64 {
        let text = fs::read_to_string(&self.counters).unwrap_or_default();
        text.split_whitespace().nth(2).and_then(|field| field.parse::<u64>().ok()).unwrap_or(0)
            * 512
    }
}

impl Drop for LocalDisk {
    fn drop(&mut self) {
        for (what, outcome) in [
            (&self.knob, fs::write(&self.knob, self.knob_was.trim())),
            (&self.folder, fs::remove_dir_all(&self.folder)),
        ] {
            if let Err(error) = outcome {
                eprintln!("bowwave: {} is not put back: {error}", what.display());
            }
        }
    }
}
