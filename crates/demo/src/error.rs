//! Errors, and what to do about each.

use std::io;
use std::path::PathBuf;

/// Why the demonstration cannot run.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// Only root may empty caches, set windows and load eBPF.
    #[error(
        "the demonstration needs root (it makes disks and loads eBPF programs); run it with sudo"
    )]
    NotRoot,
    /// The lab cannot be made.
    #[error(transparent)]
    Lab(#[from] lab::LabError),
    /// The window of a disk cannot be set.
    #[error(transparent)]
    Knob(#[from] linux::knob::KnobError),
    /// No such device.
    #[error(transparent)]
    Device(#[from] device::SpecError),
    /// No such pattern.
    #[error("there is no pattern {0:?}; `bowwave demo --list` names them")]
    UnknownPattern(String),
    /// `--only` without a name.
    #[error("a pattern without a name; `bowwave demo --list` names them")]
    UnnamedPattern,
    /// The results could not be printed.
    #[error("cannot write the results: {0}")]
    Output(io::Error),
    /// The user's folder does not exist.
    #[error("{0:?} is no folder; name one on the disk to be shown, as local:FOLDER")]
    NoFolder(PathBuf),
    /// A daemon manages all reads already, even those meant for the stock kernel.
    #[error(
        "a bowwave daemon (process {0}) is running and would help the stock kernel too; stop it first (systemctl stop bowwave, or kill {0})"
    )]
    DaemonRuns(u32),
    /// The daemon did not start, or ended early.
    #[error("bowwave itself cannot run here: {0}")]
    Daemon(String),
    /// A reader failed.
    #[error("the reader of pattern {pattern} failed: {reason}")]
    Reader {
        /// The pattern.
        pattern: String,
        /// The reader's message.
        reason: String,
    },
    /// A process of a small machine failed.
    #[error("a process of the small machine failed: {0}")]
    Process(String),
    /// Two runs read different bytes, which must never happen.
    #[error("pattern {0} read different bytes in two runs; please report this")]
    DifferentBytes(String),
    /// The user's folder is on no disk.
    #[error(
        "{0} is on no disk or network file system whose read-ahead can be set; name another folder as local:FOLDER"
    )]
    NoDisk(PathBuf),
    /// Files stayed in the page cache.
    #[error("{0} could not be evicted from the page cache; does another program have it open?")]
    NotEvicted(PathBuf),
    /// Stopped by a signal.
    #[error("stopped")]
    Stopped,
    /// A file operation failed.
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
