//! Creates such a file: always a new file of our own, never through a link, and never over a file of another kind.

use std::fs::{self, File};
use std::io::{self, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use crate::{Kind, fill};

/// Why a file cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    /// The file system refuses.
    #[error("cannot make the {kind} {}: {cause}", path.display())]
    Io {
        /// What it would hold.
        kind: &'static str,
        /// The file.
        path: PathBuf,
        /// The error.
        cause: io::Error,
    },
    /// Something exists that must not be replaced.
    #[error("{} {why}; name another file for the {kind}", path.display())]
    Taken {
        /// What it would hold.
        kind: &'static str,
        /// The file.
        path: PathBuf,
        /// Why it must not be replaced.
        why: String,
    },
}

/// A new, empty file.
#[derive(Debug)]
pub struct Place {
    /// Its path, as given.
    pub path: PathBuf,
    /// The file, open for writing.
    pub file: File,
}

impl Place {
    /// Creates the file, so that the user learns about a wrong path or a full disk at once.
    ///
    /// # Errors
    /// [`CreateError`]; then no file is left.
    pub fn take(path: &Path, kind: &Kind) -> Result<Self, CreateError> {
        let mut file = create(path, kind)?;
        if let Err(cause) = try_out(&mut file) {
            // Report the first error, not this one.
            let _ = fs::remove_file(path);
            return Err(CreateError::Io { kind: kind.name, path: path.into(), cause });
        }
        Ok(Place { path: path.into(), file })
    }
}

/// More than a header takes.
const TRIAL_BYTES: usize = 4096;

/// Checks that the disk has room, and empties the file again.
fn try_out(file: &mut File) -> io::Result<()> {
    file.write_all(&[0; TRIAL_BYTES])?;
    file.set_len(0)?;
    file.rewind()
}

/// Creates a file that only its owner may read, since it shows who read what. Removes an older file of that name instead
/// of writing to it, since somebody may have it open.
fn create(path: &Path, kind: &Kind) -> Result<File, CreateError> {
    let io = |cause| CreateError::Io { kind: kind.name, path: path.into(), cause };
    match anew(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            if let Some(why) = why_kept(path, kind).map_err(io)? {
                return Err(CreateError::Taken { kind: kind.name, path: path.into(), why });
            }
            fs::remove_file(path).map_err(io)?;
            anew(path).map_err(io)
        }
        outcome => outcome.map_err(io),
    }
}

/// Creates the file only if the name is free. Even a dangling link fails.
fn anew(path: &Path) -> io::Result<File> {
    File::options().write(true).create_new(true).mode(0o600).open(path)
}

/// Why the existing file must not be replaced; `None` if it may be.
fn why_kept(path: &Path, kind: &Kind) -> io::Result<Option<String>> {
    let about = fs::symlink_metadata(path)?;
    if about.is_symlink() {
        return Ok(Some("is a symbolic link".into()));
    }
    if !about.is_file() {
        return Ok(Some("is not a regular file".into()));
    }
    if about.uid() != rustix::process::geteuid().as_raw() {
        return Ok(Some("belongs to another user".into()));
    }
    if about.len() == 0 {
        return Ok(None);
    }
    // If it has been replaced meanwhile, follow no link and wait for no pipe.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    let mut file = File::options().read(true).custom_flags(flags).open(path)?;
    let mut start = [0; 8];
    fill(&mut file, &mut start)?;
    Ok((!kind.begins(&start)).then(|| format!("is no {}, and is not overwritten", kind.name)))
}
