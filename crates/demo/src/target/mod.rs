//! Where a demonstration runs: on a lab device, or on a disk of the machine.

mod local;

use std::path::{Path, PathBuf};

use device::Spec;
use lab::{LabGuard, Status};

use crate::error::DemoError;
use local::LocalDisk;
use patterns::Files;

/// Size of a lab device: room for the files of all patterns. It is the same for any choice of patterns, so that
/// distances on the disk are the same. The image is sparse, so only written files take memory.
const LAB_BYTES: u64 = 5 << 30;

/// Where `local` is: `/tmp` may be in memory.
pub(crate) const DEFAULT_FOLDER: &str = "/var/tmp";

/// A device as the user names it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Place {
    /// A device of the catalogue, or a TOML file.
    Lab(String, Box<Spec>),
    /// A folder on a disk of the machine.
    Local(PathBuf),
}

impl Place {
    /// `local`, `local:FOLDER`, a device of the catalogue or a TOML file.
    pub(crate) fn parse(device: &str) -> Result<Self, DemoError> {
        match device.split_once(':') {
            None if device == "local" => Ok(Place::Local(DEFAULT_FOLDER.into())),
            Some(("local", folder)) if Path::new(folder).is_dir() => {
                Ok(Place::Local(folder.into()))
            }
            Some(("local", folder)) => Err(DemoError::NoFolder(folder.into())),
            _ => Ok(Place::Lab(device.into(), Box::new(device::load(device)?))),
        }
    }

    /// Checks that a folder of the machine can be used, before anything is shown.
    ///
    /// # Errors
    /// [`DemoError::NoDisk`].
    pub(crate) fn check(&self) -> Result<(), DemoError> {
        match self {
            Place::Local(folder) => local::mount_of(folder).map(drop),
            Place::Lab(..) => Ok(()),
        }
    }

    /// Makes the device. It is removed when the target is dropped. For tests, a modelled device replies late by
    /// `inject_late_us` microseconds on average.
    pub(crate) fn open(&self, inject_late_us: f64) -> Result<Target, DemoError> {
        match self {
            Place::Lab(device, _) => {
                let options = lab::Options {
                    name: crate::leftovers::lab_name(device),
                    device: device.clone(),
                    size_bytes: LAB_BYTES,
                    fs_type: "ext4".into(),
                    scheduler: None,
                    server: None,
                    inject_late_us,
                    faults: Vec::new(),
                };
                Ok(Target::Lab(Box::new(LabGuard::up(&options)?)))
            }
            Place::Local(folder) => LocalDisk::open(folder).map(Target::Local),
        }
    }

    /// The folder, if it is on a disk of this machine. Demonstrations of other machines may use one of a server.
    pub(crate) fn own_folder(&self) -> Option<&Path> {
        match self {
            Place::Local(folder) if local::disk_of(folder).is_some() => Some(folder),
            _ => None,
        }
    }

    pub(crate) fn is_rotational(&self) -> bool {
        match self {
            Place::Lab(_, spec) => spec.is_rotational(),
            Place::Local(folder) => local::is_rotational(folder),
        }
    }
}

/// A device with a folder for files.
pub(crate) enum Target {
    /// A modelled device.
    Lab(Box<LabGuard>),
    /// A folder of the machine.
    Local(LocalDisk),
}

impl Target {
    pub(crate) fn folder(&self) -> PathBuf {
        match self {
            Target::Lab(lab) => lab.mount_point(),
            Target::Local(disk) => disk.folder().into(),
        }
    }

    /// Switches delays off (`true`) while files are written, or on.
    pub(crate) fn set_fast(&self, is_fast: bool) -> Result<(), DemoError> {
        match self {
            Target::Lab(lab) => Ok(lab.set_fast(is_fast)?),
            Target::Local(_) => Ok(()),
        }
    }

    /// The kernel's own window, in KiB.
    pub(crate) fn set_read_ahead_kb(&self, kb: u64) -> Result<(), DemoError> {
        match self {
            Target::Lab(lab) => Ok(lab.set_read_ahead_kb(kb)?),
            Target::Local(disk) => disk.set_read_ahead_kb(kb),
        }
    }

    /// Evicts the files from the page cache; in a lab, everything.
    pub(crate) fn evict(&self, files: &[Files]) -> Result<(), DemoError> {
        match self {
            Target::Lab(lab) => Ok(lab.evict()?),
            Target::Local(disk) => disk.evict(files),
        }
    }

    pub(crate) fn reading(&self) -> Result<Reading, DemoError> {
        match self {
            Target::Lab(lab) => {
                let status = lab.status()?;
                Ok(Reading { bytes_read: Some(status.bytes_read), status: Some(status) })
            }
            Target::Local(disk) => Ok(Reading { bytes_read: disk.bytes_read(), status: None }),
        }
    }

    /// The least time in which the device delivers `bytes`, in seconds, if known.
    pub(crate) fn limit_seconds(&self, bytes: u64) -> Option<f64> {
        match self {
            Target::Lab(lab) => Some(lab.spec().limit_seconds(bytes)),
            Target::Local(_) => None,
        }
    }
}

/// The counters of a device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    /// `None` if nothing counts them.
    pub(crate) bytes_read: Option<u64>,
    status: Option<Status>,
}

impl Reading {
    pub(crate) fn since(&self, earlier: &Reading) -> Reading {
        let bytes = self.bytes_read.zip(earlier.bytes_read);
        let status = self.status.zip(earlier.status);
        Reading {
            bytes_read: bytes.map(|(now, then)| now.saturating_sub(then)),
            status: status.map(|(now, then)| now.since(&then)),
        }
    }

    /// How far measured times may be wrong because a modelled device replied late, in seconds.
    pub(crate) fn error_s(&self) -> f64 {
        self.status.map_or(0.0, |status| status.error_us() * 1e-6)
    }

    /// Mean number of requests in flight; 1 if unknown.
    pub(crate) fn depth(&self) -> f64 {
        self.status.map_or(1.0, |status| status.depth_mean())
    }

    /// Why a run that needs `bytes_needed` does not count, if so: the device delivered less, so some pages were cached.
    pub(crate) fn rejection(&self, bytes_needed: Option<u64>) -> Option<String> {
        let (read, needed) = self.bytes_read.zip(bytes_needed)?;
        (read < needed).then(|| format!("not cold, {read} bytes read for {needed} needed"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_lab_devices_or_folders() {
        assert_eq!(Place::parse("local").ok(), Some(Place::Local("/var/tmp".into())));
        assert_eq!(Place::parse("local:/usr").ok(), Some(Place::Local("/usr".into())));
        assert!(matches!(Place::parse("hdd"), Ok(Place::Lab(name, _)) if name == "hdd"));
        assert!(matches!(Place::parse("locals"), Err(DemoError::Device(_))));
        for missing in ["local:", "local:/no/such/folder", "local:/proc/self/status"] {
            assert!(matches!(Place::parse(missing), Err(DemoError::NoFolder(_))), "{missing}");
        }
    }

    #[test]
    fn a_run_that_read_less_than_it_needs_was_not_cold() {
        let reading = |bytes_read| Reading { bytes_read, status: None };
        assert_eq!(reading(Some(100)).rejection(Some(100)), None);
        assert!(reading(Some(99)).rejection(Some(100)).is_some_and(|why| why.contains("cold")));
        assert_eq!(reading(Some(0)).rejection(None), None);
        assert_eq!(reading(None).rejection(Some(100)), None, "nothing counts there");
    }

    #[test]
    fn the_error_of_a_late_device_is_known_and_it_counts_all_the_same() {
        let status = Status { lost_us: 2e4, ..Status::default() };
        let reading = Reading { bytes_read: Some(1), status: Some(status) };
        assert_eq!(reading.error_s(), 0.02);
        assert_eq!(reading.rejection(None), None);
    }
}
