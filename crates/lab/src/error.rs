//! Errors, and what to do about each.

use std::io;
use std::path::{Path, PathBuf};

/// Why a lab cannot be made, found or removed.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// Only root may use loop devices, mounts and the server's counters.
    #[error("a lab needs root (loop devices, mounts, counters); run it with sudo")]
    NotRoot,
    /// No FUSE.
    #[error("/dev/fuse is missing; load the module (modprobe fuse) or run where FUSE is allowed")]
    NoFuse,
    /// The device's description is wrong.
    #[error(transparent)]
    Device(#[from] device::SpecError),
    /// The device cannot have that fault.
    #[error(transparent)]
    Fault(#[from] crate::fault::FaultError),
    /// A lab of that name exists.
    #[error(
        "a lab named {0:?} is up already; `bowwave lab down {0}` removes it, --name chooses another name"
    )]
    NameTaken(String),
    /// No lab has that name.
    #[error("there is no lab named {0:?}; `bowwave lab status` names those that are up")]
    Unknown(String),
    /// It is not up yet, and may never be.
    #[error(
        "it is being made; if whoever made it was killed, `bowwave lab down {0}` removes what is left"
    )]
    HalfMade(String),
    /// Its `state.json` cannot be read.
    #[error("{path} is damaged ({reason}); `bowwave lab down {name}` removes the lab all the same")]
    Damaged {
        /// The lab.
        name: String,
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Another command makes or removes it.
    #[error("another command makes or removes the lab {0:?} just now; wait until it is done")]
    AtWork(String),
    /// The user has stopped the command.
    #[error("stopped; what was made of the lab is removed again")]
    Stopped,
    /// The name cannot be part of a path.
    #[error("{0:?} cannot be a lab's name; use up to 64 letters, digits and dashes")]
    BadName(String),
    /// Something else has the path of the lab's folder.
    #[error("{0} is there already and is no lab; remove it, or choose another --name")]
    InTheWay(PathBuf),
    /// Not a file system that labs are made with.
    #[error("a lab cannot have the file system {0:?}; choose one of {1}")]
    FileSystem(String, String),
    /// The tool that makes the file system is not installed.
    #[error("{tool} is missing; install {package}")]
    NoTool {
        /// The tool.
        tool: String,
        /// The package that has it, by Debian's name.
        package: &'static str,
    },
    /// The kernel has no such scheduler.
    #[error("there is no I/O scheduler {0:?} here; choose one of {1}")]
    Scheduler(String, String),
    /// A program uses it.
    #[error("{folder} is in use by {users}; end that or wait, then repeat")]
    Busy {
        /// Where it is mounted.
        folder: PathBuf,
        /// Programs with their process ids.
        users: String,
    },
    /// The image would not fit into memory.
    #[error(
        "a lab of {wanted_mb} MB cannot be made with {free_mb} MB of memory available; choose a smaller --size"
    )]
    NoMemory {
        /// Requested.
        wanted_mb: u64,
        /// Available.
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
    /// The server did not come up.
    #[error("the lab's server did not start: {0}")]
    NotStarted(String),
    /// The server is gone.
    #[error(
        "its server does not answer ({reason}); `bowwave lab down {name}` removes what is left"
    )]
    Gone {
        /// The lab.
        name: String,
        /// The error.
        reason: String,
    },
    /// A file operation failed.
    #[error("{path}: {error}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

impl LabError {
    pub(crate) fn busy(folder: &Path, users: &[String]) -> LabError {
        let users = if users.is_empty() { "a program".into() } else { users.join(", ") };
        LabError::Busy { folder: folder.into(), users }
    }

    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> LabError {
        let path = path.into();
        move |error| LabError::File { path, error }
    }
}
