//! Where a recording is made: a new file of ours alone, never through a link, never in place of what is no recording.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use crate::block::{self, MAGIC};

/// Why a recording cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    /// The file system says no.
    #[error("cannot make the recording {}: {cause}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What it says.
        cause: io::Error,
    },
    /// Something is there that must not be replaced.
    #[error("{} {why}; name another file for the recording", path.display())]
    Taken {
        /// The file.
        path: PathBuf,
        /// What it is.
        why: &'static str,
    },
}

/// A file that was made to record to; nothing is in it yet.
#[derive(Debug)]
pub struct Place {
    pub(crate) path: PathBuf,
    pub(crate) file: File,
}

impl Place {
    /// Makes the file, so that whoever names a wrong one is told at once.
    ///
    /// # Errors
    /// [`CreateError`].
    pub fn take(path: &Path) -> Result<Self, CreateError> {
        Ok(Place { path: path.into(), file: create(path)? })
    }
}

/// A new file that only its owner may read: it tells who read what. An older recording in its place is removed, and
/// never written to, as somebody may have it open.
fn create(path: &Path) -> Result<File, CreateError> {
    let io = |cause| CreateError::Io { path: path.into(), cause };
    match anew(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            if let Some(why) = why_kept(path).map_err(io)? {
                return Err(CreateError::Taken { path: path.into(), why });
            }
            fs::remove_file(path).map_err(io)?;
            anew(path).map_err(io)
        }
        outcome => outcome.map_err(io),
    }
}

/// Only if nothing has that name, not even a link that leads nowhere.
fn anew(path: &Path) -> io::Result<File> {
    File::options().write(true).create_new(true).mode(0o600).open(path)
}

/// Why what has this name is not to be replaced, if so.
fn why_kept(path: &Path) -> io::Result<Option<&'static str>> {
    let about = fs::symlink_metadata(path)?;
    if about.is_symlink() {
        return Ok(Some("is a symbolic link"));
    }
    if !about.is_file() {
        return Ok(Some("is not a regular file"));
    }
    if about.uid() != rustix::process::geteuid().as_raw() {
        return Ok(Some("belongs to another user"));
    }
    if about.len() == 0 {
        return Ok(None);
    }
    // Should it have become something else since, no link is followed and no pipe waited for.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    let mut file = File::options().read(true).custom_flags(flags).open(path)?;
    let mut magic = [0; MAGIC.len()];
    block::fill(&mut file, &mut magic)?;
    Ok((magic != MAGIC).then_some("is no recording, and is not overwritten"))
}
