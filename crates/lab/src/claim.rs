//! One command at a time makes or removes a lab: it holds the lab's folder, locked.

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

/// Half a second in all, in which a lab may come up.
const TRIES: u32 = 10;
const PAUSE: Duration = Duration::from_millis(50);

/// A lab's folder, held until this is dropped or the process ends, however it ends.
pub(crate) struct Claim {
    name: String,
    is_new: bool,
    held: std::cell::RefCell<File>,
}

impl Claim {
    /// Makes the folder if it is not there, and holds it.
    ///
    /// # Errors
    /// [`LabError::InTheWay`] if something else lies there, [`LabError::AtWork`] if another holds it.
    pub(crate) fn make(name: &str) -> Result<Self, LabError> {
        let folder = State::folder(name);
        let is_new = create(&folder)?;
        if !state::is_labs(&folder) {
            return Err(LabError::InTheWay(folder));
        }
        Ok(Claim { name: name.into(), is_new, held: hold(name)?.into() })
    }

    /// Holds the folder of a lab that there is, or was.
    ///
    /// # Errors
    /// [`LabError::Unknown`] if there is none, [`LabError::AtWork`] if another holds it.
    pub(crate) fn of(name: &str) -> Result<Self, LabError> {
        state::check_name(name)?;
        if !state::is_own(&State::folder(name)) {
            return Err(LabError::Unknown(name.into()));
        }
        Ok(Claim { name: name.into(), is_new: false, held: hold(name)?.into() })
    }

    /// Makes the folder once more after all in it was cleared away, and holds that.
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

    /// Whether the folder was made for this claim, and so is empty.
    pub(crate) fn is_new(&self) -> bool {
        self.is_new
    }
}

/// Makes a folder for root alone; `false` if there is one.
fn create(folder: &Path) -> Result<bool, LabError> {
    fs::create_dir_all(state::ROOT).map_err(LabError::file(state::ROOT))?;
    match DirBuilder::new().mode(0o700).create(folder) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(LabError::file(folder)(error)),
    }
}

/// A child of a command that was killed holds the folder, too, until it has become the tool that it was to be.
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
    // Whoever held it before may have removed it meanwhile, and a third made another.
    let ino = |about: std::io::Result<fs::Metadata>| about.ok().map(|about| about.ino());
    Ok((ino(held.metadata()) == ino(fs::metadata(folder))).then_some(held))
}
