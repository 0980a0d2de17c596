//! Which labs are up: one folder each under `/run/bowwave/lab`.
//!
//! ```text
//!   /run/bowwave/lab/NAME/state.json    what was made
//!                        /fuse/         the server's three files
//!                        /mnt/          the file system
//! ```
//!
//! A folder that contains nothing else belongs to a lab, whatever its state.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use device::Spec;
use serde::{Deserialize, Serialize};

use crate::error::LabError;

pub(crate) const ROOT: &str = "/run/bowwave/lab";

/// Whether a path lies in a lab.
pub fn is_in_lab(path: &Path) -> bool {
    path.starts_with(ROOT)
}

pub(crate) const FUSE: &str = "fuse";
pub(crate) const MOUNT_POINT: &str = "mnt";

/// What was made, in a lab's folder. Drafts of it have names that begin the same.
const NOTE: &str = "state.json";

/// Longest name in bytes; keeps paths short.
const LONGEST_NAME: usize = 64;

/// What was made. Removing a lab does not rely on it, but on what is mounted and attached.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct State {
    pub(crate) name: String,
    pub(crate) device: String,
    /// The device when the lab was made: its file may have changed or gone since.
    pub(crate) spec: Spec,
    pub(crate) size_bytes: u64,
    pub(crate) server_pid: u32,
    /// `None` until the lab is up.
    pub(crate) block_device: Option<PathBuf>,
}

impl State {
    pub(crate) fn folder(name: &str) -> PathBuf {
        Path::new(ROOT).join(name)
    }

    pub(crate) fn fuse(&self) -> PathBuf {
        Self::folder(&self.name).join(FUSE)
    }

    pub(crate) fn mount_point(&self) -> PathBuf {
        Self::folder(&self.name).join(MOUNT_POINT)
    }

    pub(crate) fn save(&self) -> Result<(), LabError> {
        let path = Self::folder(&self.name).join(NOTE);
        let text = serde_json::to_string_pretty(self).unwrap_or_default();
        linux::whole::write(&path, text).map_err(LabError::file(path))
    }

    pub(crate) fn load(name: &str) -> Result<Self, LabError> {
        check_name(name)?;
        let path = Self::folder(name).join(NOTE);
        let text = fs::read_to_string(&path).map_err(|error| match error.kind() {
            ErrorKind::PermissionDenied => LabError::NotRoot,
            ErrorKind::NotFound if is_own(&Self::folder(name)) => LabError::HalfMade(name.into()),
            _ => LabError::Unknown(name.into()),
        })?;
        let damaged = |reason| LabError::Damaged { name: name.into(), path, reason };
        Self::parse(&text).map_err(damaged)
    }

    /// Parses the text of `state.json`. The error says what is wrong.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    /// Creates the mount points.
    pub(crate) fn create_mount_points(&self) -> Result<(), LabError> {
        [self.fuse(), self.mount_point()]
            .into_iter()
            .try_for_each(|folder| fs::create_dir(&folder).map_err(LabError::file(folder)))
    }
}

/// Removes a lab's folder and its contents, but not recursively. If something is still mounted there, the folder and
/// its `state.json` stay.
pub(crate) fn remove_folders(own: &Path) {
    let is_gone = |folder: PathBuf| fs::remove_dir(&folder).is_ok() || !folder.exists();
    if [MOUNT_POINT, FUSE].map(|name| is_gone(own.join(name))) != [true, true] {
        return;
    }
    let names = names_in(own).unwrap_or_default();
    for note in names.into_iter().filter(|name| name.starts_with(NOTE)) {
        let _ = fs::remove_file(own.join(note));
    }
    let _ = fs::remove_dir(own);
}

/// Whether a folder contains only what labs make. One that cannot be read may belong to a lab.
pub(crate) fn is_labs(folder: &Path) -> bool {
    let is_known = |name: &String| name == FUSE || name == MOUNT_POINT || name.starts_with(NOTE);
    match names_in(folder) {
        Ok(names) => names.iter().all(is_known),
        Err(error) => error.kind() == ErrorKind::PermissionDenied,
    }
}

/// Whether the folder exists and belongs to a lab.
pub(crate) fn is_own(folder: &Path) -> bool {
    folder.is_dir() && is_labs(folder)
}

fn names_in(folder: &Path) -> std::io::Result<Vec<String>> {
    let entries = fs::read_dir(folder)?.flatten();
    Ok(entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect())
}

/// Checks a name, which becomes part of paths.
pub(crate) fn check_name(name: &str) -> Result<(), LabError> {
    if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(is_plain) {
        return Err(LabError::BadName(name.into()));
    }
    Ok(())
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '-' || c == '_'
}

/// A name for a lab of this device: that of the device, or of its file without folder and extension. At most half as
/// long as a name may be, so that callers can add to it.
pub fn name_for(device: &str) -> String {
    let stem = Path::new(device).file_stem().unwrap_or_default().to_string_lossy();
    stem.chars().map(|c| if is_plain(c) { c } else { '-' }).take(LONGEST_NAME / 2).collect()
}

/// Names of all labs that are up or were left behind. Without root, also of folders that may belong to one.
pub fn list() -> Vec<String> {
    let Ok(entries) = fs::read_dir(ROOT) else {
        return Vec::new();
    };
    let mut names: Vec<String> = entries
        .flatten()
        .filter(|entry| is_labs(&entry.path()))
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
    fn a_folder_with_anything_else_in_it_is_no_labs() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(is_labs(folder.path()), "killed before it had a note");
        for name in [FUSE, MOUNT_POINT] {
            fs::create_dir(folder.path().join(name)).expect("made");
        }
        for note in [NOTE, "state.json.new-17"] {
            fs::write(folder.path().join(note), "").expect("written");
        }
        assert!(is_labs(folder.path()));
        fs::write(folder.path().join("thesis"), "").expect("written");
        assert!(!is_labs(folder.path()));
        fs::remove_file(folder.path().join("thesis")).expect("removed");
        remove_folders(folder.path());
        assert!(!folder.path().exists());
    }

    #[test]
    fn a_lab_is_named_after_its_device() {
        assert_eq!(name_for("hdd"), "hdd");
        assert_eq!(name_for("/srv/my stick.toml"), "my-stick");
        assert!(check_name(&name_for(&"é".repeat(200))).is_ok());
    }
}
