//! Which labs are up: one folder each under `/run/bowwave/lab`.
//!
//! ```text
//!   /run/bowwave/lab/NAME/state.json    what was made, so that it can be removed
//!                        /fuse/         the server's three files
//!                        /mnt/          the file system
//! ```

use std::fs::{self, DirBuilder};
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use device::Spec;
use serde::{Deserialize, Serialize};

use crate::error::LabError;

const ROOT: &str = "/run/bowwave/lab";

/// In bytes; any limit serves that keeps paths short.
const LONGEST_NAME: usize = 64;

/// What was made, noted step by step so that any half can be removed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct State {
    pub(crate) name: String,
    pub(crate) device: String,
    /// As it was when the lab was made: the file may have changed or gone.
    pub(crate) spec: Spec,
    pub(crate) size_bytes: u64,
    pub(crate) server_pid: u32,
    pub(crate) block_device: Option<PathBuf>,
}

impl State {
    pub(crate) fn folder(name: &str) -> PathBuf {
        Path::new(ROOT).join(name)
    }

    pub(crate) fn fuse(&self) -> PathBuf {
        Self::folder(&self.name).join("fuse")
    }

    pub(crate) fn mount_point(&self) -> PathBuf {
        Self::folder(&self.name).join("mnt")
    }

    pub(crate) fn save(&self) -> Result<(), LabError> {
        let path = Self::folder(&self.name).join("state.json");
        let text = serde_json::to_string_pretty(self).unwrap_or_default();
        fs::write(&path, text).map_err(LabError::file(path))
    }

    pub(crate) fn load(name: &str) -> Result<Self, LabError> {
        check_name(name)?;
        let path = Self::folder(name).join("state.json");
        let text = fs::read_to_string(&path).map_err(|error| match error.kind() {
            ErrorKind::PermissionDenied => LabError::NotRoot,
            _ => LabError::Unknown(name.into()),
        })?;
        serde_json::from_str(&text)
            .map_err(|error| LabError::File { path, error: std::io::Error::other(error) })
    }

    /// Makes the lab's own folder, which nobody else may have made.
    pub(crate) fn claim_folder(&self) -> Result<(), LabError> {
        fs::create_dir_all(ROOT).map_err(LabError::file(ROOT))?;
        let own = Self::folder(&self.name);
        DirBuilder::new().mode(0o700).create(&own).map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => LabError::InTheWay(own),
            _ => LabError::File { path: own, error },
        })
    }

    /// Makes the folders to mount on.
    pub(crate) fn create_mount_points(&self) -> Result<(), LabError> {
        [self.fuse(), self.mount_point()]
            .into_iter()
            .try_for_each(|folder| fs::create_dir(&folder).map_err(LabError::file(folder)))
    }

    /// Removes the folders, not recursively: one that is still mounted on stays, and so does the
    /// note that it is there.
    pub(crate) fn remove_folders(&self) {
        let is_gone = |folder: PathBuf| fs::remove_dir(&folder).is_ok() || !folder.exists();
        let are_gone = [self.mount_point(), self.fuse()].map(is_gone);
        if are_gone == [true, true] {
            let own = Self::folder(&self.name);
            let _ = fs::remove_file(own.join("state.json"));
            let _ = fs::remove_dir(own);
        }
    }
}

/// A name becomes part of paths.
pub(crate) fn check_name(name: &str) -> Result<(), LabError> {
    if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(is_plain) {
        return Err(LabError::BadName(name.into()));
    }
    Ok(())
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '-' || c == '_'
}

/// A name for a lab of this device: the device's own, or its file's without folder and ending.
pub fn name_for(device: &str) -> String {
    let stem = Path::new(device).file_stem().unwrap_or_default().to_string_lossy();
    stem.chars().map(|c| if is_plain(c) { c } else { '-' }).take(LONGEST_NAME / 2).collect()
}

/// Names of all labs that are up, or were left behind; without root also of what may be one.
pub fn list() -> Vec<String> {
    let Ok(entries) = fs::read_dir(ROOT) else {
        return Vec::new();
    };
    let mut names: Vec<String> = entries
        .flatten()
        .filter(|entry| entry.path().join("state.json").try_exists().unwrap_or(true))
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_leave_the_folder() {
        assert!(check_name("hdd-1_a").is_ok());
        for name in ["", "..", "a/b", "a b"] {
            assert!(check_name(name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn a_lab_is_named_after_its_device() {
        assert_eq!(name_for("hdd"), "hdd");
        assert_eq!(name_for("/srv/my stick.toml"), "my-stick");
        assert!(check_name(&name_for(&"é".repeat(200))).is_ok());
    }
}
