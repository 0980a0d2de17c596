//! What tuning found out about a device, kept as a readable device file.
//!
//! ```text
//!   description = "..."
//!   [channels] or [disk]    the model, for the simulator, the lab and the daemon
//!   [tuned]                 which device, when, what was measured and chosen
//! ```

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use device::Spec;
use linux::identity::Identity;
use linux::state;
use serde::{Deserialize, Serialize};

use crate::curve::Point;

/// The table `[tuned]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Tuned {
    /// The target, as the user named it.
    pub target: PathBuf,
    /// The date, as in `2011-11-29`.
    pub date: String,
    /// The kernel's release.
    pub kernel: String,
    /// The window to set, in KiB.
    pub chosen_kb: u64,
    /// The window before tuning, in KiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous_kb: Option<u64>,
    /// Root mean square of the model's errors, in percent.
    pub fit_error_percent: f64,
    /// Whether other programs used the device during the measurement.
    pub disturbed: bool,
    /// Which device.
    pub identity: Identity,
    /// The measured curve.
    pub curve: Vec<Point>,
}

/// A remembered device.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// Its model.
    pub spec: Spec,
    /// The results of tuning.
    pub tuned: Tuned,
}

/// Why a profile cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// A file cannot be written, read or removed.
    #[error("cannot read or write {path}: {error}")]
    File {
        /// The file.
        path: PathBuf,
        /// The cause.
        error: io::Error,
    },
    /// A file is not a profile.
    #[error(
        "{path} is no profile of a tuned device: {reason}; remove it, or tune the device again"
    )]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The cause.
        reason: String,
    },
    /// It contains a number that TOML cannot express.
    #[error("the results cannot be written: {0}; tune the device again")]
    Unwritable(#[from] toml::ser::Error),
    /// There is no such profile.
    #[error("no device is remembered as {0:?}; `bowwave tune --list` lists the names")]
    Unknown(String),
}

impl Profile {
    /// The path of its file in `folder`.
    pub fn file(&self, folder: &Path) -> PathBuf {
        state::profile_of(&self.tuned.identity, folder)
    }

    /// The text of its file.
    ///
    /// # Errors
    /// [`ProfileError::Unwritable`] if a number cannot be written.
    pub fn text(&self) -> Result<String, ProfileError> {
        let tuned = toml::Table::try_from(&self.tuned)?;
        let spec = Spec { tuned: Some(tuned), ..self.spec.clone() };
        Ok(toml::to_string(&spec)?)
    }

    /// Writes it to `folder`, entirely or not at all.
    ///
    /// # Errors
    /// See [`ProfileError`].
    pub fn write(&self, folder: &Path) -> Result<PathBuf, ProfileError> {
        let path = self.file(folder);
        let file = |error| ProfileError::File { path: path.clone(), error };
        linux::whole::write_durably(&path, &self.text()?).map_err(file)?;
        Ok(path)
    }

    /// Reads a profile.
    ///
    /// # Errors
    /// See [`ProfileError`].
    pub fn read(path: &Path) -> Result<Profile, ProfileError> {
        let malformed = |reason: String| ProfileError::Malformed { path: path.to_owned(), reason };
        let name = path.to_str().ok_or_else(|| malformed("its name is not UTF-8".into()))?;
        Self::of_spec(device::load(name).map_err(|error| malformed(error.to_string()))?)
            .map_err(malformed)
    }

    /// Parses the text of a profile.
    ///
    /// # Errors
    /// Why it is not a profile.
    pub fn parse(text: &str) -> Result<Profile, String> {
        Self::of_spec(Spec::parse(text, "profile").map_err(|error| error.to_string())?)
    }

    /// Splits a device description into the model and the results of tuning.
    fn of_spec(mut spec: Spec) -> Result<Profile, String> {
        let table = spec.tuned.take().ok_or("it has no table [tuned]")?;
        let tuned = table.try_into().map_err(|error: toml::de::Error| {
            error.message().lines().collect::<Vec<_>>().join(", ")
        })?;
        Ok(Profile { spec, tuned })
    }

    /// The profile of a device in `folder`.
    ///
    /// # Errors
    /// [`ProfileError::Unknown`] if there is none.
    pub fn of(identity: &Identity, folder: &Path) -> Result<Profile, ProfileError> {
        let path = state::profile_of(identity, folder);
        if !path.exists() {
            return Err(ProfileError::Unknown(identity.slug()));
        }
        // Two identities may share a file name.
        Self::read(&path).and_then(|profile| match profile.tuned.identity == *identity {
            true => Ok(profile),
            false => Err(ProfileError::Unknown(identity.slug())),
        })
    }
}

/// All profiles in `folder` by name, unreadable ones included.
///
/// # Errors
/// If the folder cannot be read. A missing folder holds no profiles.
pub fn list(folder: &Path) -> io::Result<Vec<(String, Result<Profile, ProfileError>)>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == "toml") {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            found.push((name, Profile::read(&path)));
        }
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(found)
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    pub(crate) fn profile() -> Profile {
        let spec = device::load("sd").expect("in the catalogue");
        let tuned = Tuned {
            target: "/dev/sdz".into(),
            date: "2011-11-29".into(),
            kernel: "6.18.0".into(),
            chosen_kb: 512,
            previous_kb: Some(128),
            fit_error_percent: 1.5,
            disturbed: false,
            identity: Identity::Mount { fs_type: "nfs4".into(), source: "server:/x".into() },
            curve: vec![Point { readahead_kb: 4, mb_s: 7.0 }],
        };
        Profile { spec, tuned }
    }

    #[test]
    fn a_profile_is_a_device_file_and_is_read_back_as_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = profile().write(&folder.path().join("devices")).expect("written");
        assert_eq!(Profile::read(&path).expect("it is one"), profile());
        let spec = device::load(path.to_str().expect("UTF-8")).expect("simulator and lab take it");
        assert_eq!(spec.channels, profile().spec.channels);
    }

    #[test]
    fn damaged_profiles_are_listed_with_their_errors() {
        let folder = tempfile::tempdir().expect("a folder");
        profile().write(folder.path()).expect("written");
        fs::write(folder.path().join("a.toml"), "description = 'x'").expect("written");
        fs::write(folder.path().join("b.toml"), include_str!("../../device/devices/sd.toml"))
            .expect("written");
        fs::write(folder.path().join("readme"), "").expect("written");
        let found = list(folder.path()).expect("it is a folder");
        let outcomes: Vec<bool> = found.iter().map(|(_, profile)| profile.is_ok()).collect();
        assert_eq!(outcomes, [false, false, true]);
        let error = found[1].1.as_ref().expect_err("no table").to_string();
        assert!(error.contains("b.toml is no profile") && error.contains("[tuned]"), "{error}");
        assert_eq!(list(Path::new("/no/such/folder")).expect("none").len(), 0);
    }

    proptest! {
        #[test]
        fn any_text_is_a_profile_or_an_error_and_a_profile_is_read_back(
            at in any::<prop::sample::Index>(),
            change in prop_oneof!["[0-9]{1,20}", "[\\[\\]=\"'.#\n -]{0,3}", any::<String>()],
        ) {
            let mut text = profile().text().expect("it can be written");
            let at = at.index(text.len());
            let at = (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
            text.insert_str(at, &change);
            if let Ok(profile) = Profile::parse(&text) {
                let written = profile.text().expect("it was read");
                prop_assert_eq!(Profile::parse(&written), Ok(profile));
            }
        }
    }
}
