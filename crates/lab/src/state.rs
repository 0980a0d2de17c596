//! Which labs are up: one folder each under `/run/bowwave/lab`.
//!
//! ```text
//!   /run/bowwave/lab/NAME/state.json    what was made, so that it can be removed
//!                        /fuse/         the server's three files
//!                        /mnt/          the file system
//! ```

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::LabError;

const ROOT: &str = "/run/bowwave/lab";

/// What was made, noted step by step so that any half can be removed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct State {
    pub(crate) name: String,
    pub(crate) device: String,
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
        let text = fs::read_to_string(&path).map_err(|_| LabError::Unknown(name.into()))?;
        serde_json::from_str(&text)
            .map_err(|error| LabError::File { path, error: std::io::Error::other(error) })
    }

    /// Makes the folders.
    pub(crate) fn create_folders(&self) -> Result<(), LabError> {
        for folder in [self.fuse(), self.mount_point()] {
            fs::create_dir_all(&folder).map_err(LabError::file(folder))?;
        }
        let own = Self::folder(&self.name);
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        fs::set_permissions(&own, private).map_err(LabError::file(own))
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
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || name.len() > 64 || !name.chars().all(is_plain) {
        return Err(LabError::BadName(name.into()));
    }
    Ok(())
}

/// Names of all labs that are up, or were left behind.
pub fn list() -> Vec<String> {
    let Ok(entries) = fs::read_dir(ROOT) else {
        return Vec::new();
    };
    let mut names: Vec<String> = entries
        .flatten()
        .filter(|entry| entry.path().join("state.json").exists())
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
}
