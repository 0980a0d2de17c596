//! A lock on a lab's folder, so that only one command at a time makes or removes the lab.

use std::fs::{self, DirBuilder, File};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::error::LabError;
use crate::state::{self, State};

/// How often to try: half a second in all.
const TRIES: u32 = 10;
const PAUSE: Duration = Duration::from_millis(50);

/// A lab's folder, locked until this is dropped or the process ends in any way.
pub(crate) struct Claim {
    name: String,
    is_new: bool,
    held: std::cell::RefCell<File>,
}

impl Claim {
    /// Creates the folder if it does not exist, and locks it.
    ///
    /// # Errors
    /// [`LabError::InTheWay`] if something else has that path, [`LabError::AtWork`] if another command holds the lock.
    pub(crate) fn make(name: &str) -> Result<Self, LabError> {
        let folder = State::folder(name);
        create(&folder)?;
        if !state::is_labs(&folder) {
            return Err(LabError::InTheWay(folder));
        }
        let held = hold(name)?;
        // Before it was locked, another command may have made its lab there.
        let is_new = is_empty(&folder)?;
        Ok(Claim { name: name.into(), is_new, held: held.into() })
    }

    /// Locks the folder of a lab, also of one that was left behind.
    ///
    /// # Errors
    /// [`LabError::Unknown`] if there is none, [`LabError::AtWork`] if another command holds the lock.
    pub(crate) fn of(name: &str) -> Result<Self, LabError> {
        state::check_name(name)?;
        if !state::is_own(&State::folder(name)) {
            return Err(LabError::Unknown(name.into()));
        }
        Ok(Claim { name: name.into(), is_new: false, held: hold(name)?.into() })
    }

    /// Creates the folder again after it was cleared away, and locks it.
    pub(crate) fn renew(&self) -> Result<(), LabError> {
        create(&self.folder())?;
        self.held.replace(hold(&self.name)?);
        Ok(())
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn folder(&self) -> PathBuf {
        State::folder(&self.name)
    }

    /// Whether the folder was empty when it was locked.
    pub(crate) fn is_new(&self) -> bool {
        self.is_new
    }
}

/// Creates a folder that only root may enter, unless it exists.
fn create(folder: &Path) -> Result<(), LabError> {
    fs::create_dir_all(state::ROOT).map_err(LabError::file(state::ROOT))?;
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            Err(LabError::file(folder)(error))
        }
        _ => Ok(()),
    }
}

fn is_empty(folder: &Path) -> Result<bool, LabError> {
    let mut entries = fs::read_dir(folder).map_err(LabError::file(folder))?;
    Ok(entries.next().is_none())
}

/// Locks the folder. A child of a killed command holds the lock, too, until it has called `exec`.
fn hold(name: &str) -> Result<File, LabError> {
    for _ in 0..TRIES {
        if let Some(held) = try_hold(&State::folder(name))? {
            return Ok(held);
        }
        thread::sleep(PAUSE);
    }
    Err(LabError::AtWork(name.into()))
}

fn try_hold(folder: &Path) -> Result<Option<File>, LabError> {
    let held = match File::open(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(LabError::file(folder))?,
    };
    match flock(&held, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => return Ok(None),
        Err(error) => return Err(LabError::file(folder)(error.into())),
    }
    // The previous holder may have removed the folder, and a third command may have created another.
    let ino = |about: std::io::Result<fs::Metadata>| about.ok().map(|about| about.ino());
    Ok((ino(held.metadata()) == ino(fs::metadata(folder))).then_some(held))
}
