//! What can go wrong, and what to do about it.

use std::io;
use std::path::PathBuf;

/// Why the demonstration cannot be given.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// The lab cannot be made.
    #[error(transparent)]
    Lab(#[from] lab::LabError),
    /// No such pattern.
    #[error("there is no pattern {0:?}; `bowwave demo --list` names them")]
    UnknownPattern(String),
    /// None of the patterns asked for makes sense on the device.
    #[error("none of the patterns chosen runs on {0}")]
    NothingToRun(String),
    /// The daemon did not start.
    #[error("bowwave itself cannot run here: {0}; `bowwave doctor` tells what is missing")]
    Daemon(String),
    /// A reader failed.
    #[error("the reader of pattern {pattern} failed: {reason}")]
    Reader {
        /// Which.
        pattern: String,
        /// What it said.
        reason: String,
    },
    /// Two settings gave different bytes: never to happen.
    #[error("pattern {0} read different bytes under different settings; please report this")]
    DifferentBytes(String),
    /// Files stayed in the page cache.
    #[error("{0} could not be evicted from the page cache; another program has it open or mapped")]
    NotEvicted(PathBuf),
    /// Stopped by a signal.
    #[error("stopped")]
    Stopped,
    /// A file is at fault.
    #[error("{path}: {error}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

impl DemoError {
    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> DemoError {
        let path = path.into();
        move |error| DemoError::File { path, error }
    }
}
