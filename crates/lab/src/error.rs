//! What can go wrong, and what to do about it.

use std::io;
use std::path::PathBuf;

/// Why a lab cannot be made, found or removed.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// Loop devices and mounts are root's.
    #[error("a lab needs root (loop devices, mounts); run it with sudo")]
    NotRoot,
    /// No FUSE.
    #[error("/dev/fuse is missing; load the module (modprobe fuse) or run where FUSE is allowed")]
    NoFuse,
    /// The device's description is at fault.
    #[error(transparent)]
    Device(#[from] device::SpecError),
    /// There is one of that name.
    #[error(
        "a lab named {0:?} is up already; `bowwave lab down {0}` removes it, --name chooses another name"
    )]
    NameTaken(String),
    /// There is none of that name.
    #[error("there is no lab named {0:?}; `bowwave lab status` names those that are up")]
    Unknown(String),
    /// The name cannot be part of a path.
    #[error("{0:?} cannot be a lab's name; use letters, digits and dashes")]
    BadName(String),
    /// The image would not fit into memory.
    #[error(
        "a lab of {wanted_mb} MB cannot be made with {free_mb} MB of memory available; choose a smaller --size"
    )]
    NoMemory {
        /// Asked for.
        wanted_mb: u64,
        /// What there is.
        free_mb: u64,
    },
    /// A tool failed.
    #[error("{command} failed: {reason}")]
    Tool {
        /// The command line.
        command: String,
        /// What it said.
        reason: String,
    },
    /// The server did not come up, or is gone.
    #[error("the lab's server {0}; `bowwave lab down --all` cleans up")]
    Server(String),
    /// A file is at fault.
    #[error("{path}: {error}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

impl LabError {
    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> LabError {
        let path = path.into();
        move |error| LabError::File { path, error }
    }
}
