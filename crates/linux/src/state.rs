//! Where bowwave keeps state: a state folder that a reboot empties, and profiles that stay.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, FlockOperation, access, flock};
use rustix::io::Errno;

use crate::identity::Identity;
use crate::private::{self, PrivateError};
use crate::whole;

/// The default state folder. A reboot empties it.
pub const FOLDER: &str = "/run/bowwave";

/// Profiles of devices that were measured thoroughly (`bowwave tune --persist`).
pub const PROFILES: &str = "/var/lib/bowwave/devices";

/// Start-up lists of commands (`bowwave run --remember`).
pub const REMEMBERED: &str = "/var/lib/bowwave/remembered";

/// What survives a reboot.
const LASTING: &str = "/var/lib/bowwave";

/// The folder with a file for each volume that tells how its files were read. It outlasts a reboot if `state` is the
/// default state folder.
pub fn histories(state: &Path) -> PathBuf {
    let lasting = if state == Path::new(FOLDER) { Path::new(LASTING) } else { state };
    lasting.join("volumes")
}

/// The path of a device's profile in `folder`, whether or not it exists. A profile is a device file
/// as in the catalogue, named after the device's identity.
pub fn profile_of(identity: &Identity, folder: &Path) -> PathBuf {
    folder.join(format!("{}.toml", identity.slug()))
}

/// Why a state folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// It cannot be created or written.
    #[error("cannot keep state in {folder}: {error}")]
    Unusable {
        /// The folder.
        folder: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// Somebody else can put files or links there.
    #[error("others can change {place}, so the state folder {folder} is not used")]
    Foreign {
        /// The folder.
        folder: PathBuf,
        /// It, or a folder above it.
        place: PathBuf,
    },
    /// The folder that it should be made in is not there. Its name may be misspelt.
    #[error("{above} does not exist, so the state folder {folder} is not made in it")]
    Missing {
        /// The folder.
        folder: PathBuf,
        /// The one above it.
        above: PathBuf,
    },
    /// Another daemon uses it.
    #[error(
        "a bowwave daemon (process {pid}) already uses {folder}; stop it first \
         (systemctl stop bowwave, or kill {pid})"
    )]
    Taken {
        /// The folder.
        folder: PathBuf,
        /// The daemon's process id, as it noted it.
        pid: String,
    },
}

/// Creates the folder, and checks that files can be written there and that nobody else can.
///
/// # Errors
/// [`StateError::Unusable`], [`StateError::Foreign`], [`StateError::Missing`].
pub fn prepare(folder: &Path) -> Result<(), StateError> {
    check_above(folder)?;
    check_owner(folder)?;
    whole::probe(folder).map_err(|error| unusable(folder, error))?;
    // Now there is one.
    check_owner(folder)
}

/// Checks that [`prepare`] would succeed, as far as that shows without making the folder.
///
/// # Errors
/// As `prepare`.
pub fn examine(folder: &Path) -> Result<(), StateError> {
    check_above(folder)?;
    check_owner(folder)?;
    let looked_at = match folder.ancestors().find(|place| place.exists()) {
        Some(place) if place != folder => access(place, Access::WRITE_OK).map_err(Into::into),
        _ => whole::probe(folder),
    };
    looked_at.map_err(|error| unusable(folder, error))
}

fn unusable(folder: &Path, error: io::Error) -> StateError {
    StateError::Unusable { folder: folder.into(), error }
}

/// Checks that the folder above is there, unless it is one that bowwave makes.
fn check_above(folder: &Path) -> Result<(), StateError> {
    let is_named = |above: &&Path| !above.as_os_str().is_empty() && *above != Path::new(FOLDER);
    let Some(above) = folder.parent().filter(is_named) else { return Ok(()) };
    match above.try_exists() {
        Ok(true) => Ok(()),
        Ok(false) => Err(StateError::Missing { folder: folder.into(), above: above.into() }),
        Err(error) => Err(unusable(folder, error)),
    }
}

/// Checks that nobody else can change the folder.
fn check_owner(folder: &Path) -> Result<(), StateError> {
    let foreign = |place| StateError::Foreign { folder: folder.into(), place };
    private::check(folder).map_err(|error| match error {
        PrivateError::Io(error) => unusable(folder, error),
        PrivateError::Foreign => foreign(folder.into()),
        PrivateError::ForeignWay(place) => foreign(place),
    })
}

/// The right to be the daemon of a state folder. It ends with the process, however that ends.
#[derive(Debug)]
pub struct DaemonLock(#[allow(dead_code)] File);

impl DaemonLock {
    /// Locks the folder.
    ///
    /// # Errors
    /// See [`StateError`].
    pub fn take(folder: &Path) -> Result<DaemonLock, StateError> {
        prepare(folder)?;
        let unusable = |error| unusable(folder, error);
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false);
        // Who can open it can lock it.
        options.mode(0o600);
        let mut file = options.open(folder.join("daemon.lock")).map_err(unusable)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                let mut pid = String::new();
                file.read_to_string(&mut pid).map_err(unusable)?;
                return Err(StateError::Taken { folder: folder.into(), pid: pid.trim().into() });
            }
            Err(error) => return Err(unusable(error.into())),
        }
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| writeln!(file, "{}", std::process::id()))
            .map_err(unusable)?;
        Ok(DaemonLock(file))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_folder_has_one_daemon_at_a_time() {
        let folder = tempfile::tempdir().expect("a folder");
        let first = DaemonLock::take(folder.path()).expect("it is free");
        let second = DaemonLock::take(folder.path()).unwrap_err();
        let own = std::process::id().to_string();
        assert!(matches!(second, StateError::Taken { pid, .. } if pid == own));
        drop(first);
        DaemonLock::take(folder.path()).expect("it is free again");
    }

    #[test]
    fn histories_outlast_a_reboot_but_stay_in_a_folder_of_their_own() {
        assert_eq!(histories(Path::new(FOLDER)), Path::new("/var/lib/bowwave/volumes"));
        assert_eq!(histories(Path::new("/tmp/own")), Path::new("/tmp/own/volumes"));
    }

    #[test]
    fn a_folder_that_others_can_change_keeps_no_state() {
        let root = tempfile::tempdir().expect("a folder");
        let (theirs, victim) = (root.path().join("theirs"), root.path().join("victim"));
        fs::create_dir(&theirs).expect("made");
        fs::set_permissions(&theirs, PermissionsExt::from_mode(0o777)).expect("ours");
        fs::write(&victim, "as it was").expect("written");
        symlink(&victim, theirs.join("daemon.lock")).expect("planted");
        let link = root.path().join("link");
        symlink(&theirs, &link).expect("linked");
        for folder in [&theirs, &link, &theirs.join("below")] {
            let taken = DaemonLock::take(folder);
            assert!(matches!(taken, Err(StateError::Foreign { .. })), "{taken:?}");
        }
        assert_eq!(fs::read_to_string(&victim).expect("there"), "as it was");
        assert!(!theirs.join("below").exists());
        fs::set_permissions(&theirs, PermissionsExt::from_mode(0o755)).expect("ours");
        prepare(&link).expect("all of it is ours");
    }

    #[test]
    fn a_file_is_no_state_folder_and_a_probe_leaves_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("file");
        fs::write(&file, "").expect("written");
        assert!(matches!(prepare(&file), Err(StateError::Unusable { .. })));
        assert!(matches!(examine(&file), Err(StateError::Unusable { .. })));
        let new = folder.path().join("new");
        examine(&new).expect("it could be made");
        assert!(!new.exists());
        prepare(&new).expect("it is made");
        assert_eq!(fs::read_dir(&new).expect("it is there").count(), 0);
    }

    #[test]
    fn a_state_folder_in_a_folder_that_is_not_there_may_be_misspelt_and_is_not_made() {
        let root = tempfile::tempdir().expect("a folder");
        let missing = root.path().join("missing");
        let folder = missing.join("state");
        assert!(matches!(examine(&folder), Err(StateError::Missing { .. })));
        assert!(matches!(prepare(&folder), Err(StateError::Missing { .. })));
        let taken = DaemonLock::take(&folder);
        assert!(matches!(taken, Err(StateError::Missing { above, .. }) if above == missing));
        assert!(!missing.exists());
    }
}
