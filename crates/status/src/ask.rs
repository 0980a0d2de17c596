//! The side of the client that asks.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::io::Errno;
use serde_json::Value;

use crate::SCHEMA;
use crate::folder::{connect_to, sockets};

/// An engine answers within milliseconds, unless it is stopped.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

/// Read no more of an answer. Each mount takes some hundred bytes, and one user may have a thousand.
const MOST_BYTES: u64 = 16 << 20;

/// Why there is no answer of a process.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The client is neither root nor in its group.
    #[error("may not ask {0}: only root and its group may; use sudo")]
    NotPermitted(PathBuf),
    /// There was no answer in time.
    #[error("{0} does not answer; is its process stopped?")]
    Silent(PathBuf),
    /// The answer is cut or not JSON.
    #[error("{path} gives no complete answer ({reason}); ask again")]
    Garbled {
        /// Its socket.
        path: PathBuf,
        /// Why it cannot be parsed.
        reason: String,
    },
    /// The process is of another version of bowwave.
    #[error(
        "process {pid} reports in schema {schema}, this bowwave reads {SCHEMA}: use the bowwave that it \
         runs, or --json"
    )]
    OtherSchema {
        /// Its process id.
        pid: u64,
        /// Its schema.
        schema: u64,
    },
    /// The answer is JSON with this schema, and yet none of its reports.
    #[error("process {pid} gives an answer that this bowwave cannot read ({reason}); try --json")]
    Malformed {
        /// Its process id.
        pid: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// The folder or socket cannot be used.
    #[error("cannot ask {path}: {error}")]
    Unusable {
        /// The folder or socket.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

/// Asks every process of bowwave with this state folder, the daemon first, and returns their answers.
///
/// # Errors
/// If the folder cannot be read. A missing folder means that none runs.
pub fn ask(folder: &Path) -> Result<Vec<Result<Value, AskError>>, AskError> {
    match sockets(folder) {
        Ok(found) => Ok(found.iter().filter_map(|path| ask_one(path).transpose()).collect()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(AskError::of(folder, error)),
    }
}

/// Asks one process; `None` if it has ended.
fn ask_one(path: &Path) -> Result<Option<Value>, AskError> {
    let stream = match connect_to(path, ANSWER_TIMEOUT) {
        Ok(stream) => stream,
        Err(Errno::CONNREFUSED | Errno::NOENT) => return Ok(None),
        Err(error) => return Err(AskError::of(path, error.into())),
    };
    let mut text = Vec::new();
    match stream.take(MOST_BYTES).read_to_end(&mut text) {
        Ok(0) if !rustix::process::geteuid().is_root() => {
            Err(AskError::NotPermitted(path.to_owned()))
        }
        Ok(_) => serde_json::from_slice(&text).map(Some).map_err(|error| AskError::Garbled {
            path: path.to_owned(),
            reason: error.to_string(),
        }),
        // It ended before it accepted the connection.
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(None),
        Err(error) => Err(AskError::of(path, error)),
    }
}

impl AskError {
    fn of(path: &Path, error: io::Error) -> AskError {
        let path = path.to_owned();
        match error.kind() {
            io::ErrorKind::PermissionDenied => AskError::NotPermitted(path),
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => AskError::Silent(path),
            _ => AskError::Unusable { path, error },
        }
    }
}
