//! Paths, and the file systems that they lie on.
//!
//! Looking at a path may wait for a server, for ever. So a thread does that, and is waited for for a limited time only.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use linux::mounts::{self, Mount};

/// What is managed: the file systems that some paths lie on, or all.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// None for all file systems.
    pub(crate) paths: Vec<PathBuf>,
    /// Where each path was found.
    pub(crate) found: Vec<Mount>,
}

/// Why a path cannot be managed.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {error}; name a file or folder on a disk or network file system")]
pub struct PlaceError {
    /// The path as given.
    path: PathBuf,
    /// What is wrong with it.
    error: io::Error,
}

impl Places {
    /// All file systems with a page cache.
    pub fn all() -> Places {
        Places::default()
    }

    /// The file systems that these paths lie on, or all if there are none. Waits for them for so long at most.
    ///
    /// # Errors
    /// Names the first path that does not lie on a file system with a page cache, or that cannot be looked at in time.
    pub fn find(paths: &[PathBuf], most: Duration) -> Result<Places, PlaceError> {
        Self::find_by(mounts::of_path, paths, most)
    }

    fn find_by(
        look: impl Fn(&Path) -> io::Result<Mount> + Send + 'static,
        paths: &[PathBuf],
        most: Duration,
    ) -> Result<Places, PlaceError> {
        let until = Instant::now() + most;
        let (tell, told) = mpsc::channel();
        let wanted = paths.to_vec();
        let look = move || wanted.iter().try_for_each(|path| tell.send(look(path)));
        // Without a thread nothing is told.
        let _ = thread::Builder::new().name("bowwave-paths".into()).spawn(look);
        let found = paths.iter().map(|path| {
            let left = until.saturating_duration_since(Instant::now());
            let found = told.recv_timeout(left).unwrap_or_else(|error| Err(untold(error, most)));
            found.map_err(|error| PlaceError { path: path.clone(), error })
        });
        Ok(Places { found: found.collect::<Result<_, _>>()?, paths: paths.to_vec() })
    }
}

fn untold(error: RecvTimeoutError, most: Duration) -> io::Error {
    match error {
        RecvTimeoutError::Timeout => {
            let reason = format!("its file system has not answered for {} s", most.as_secs());
            io::Error::new(io::ErrorKind::TimedOut, reason)
        }
        RecvTimeoutError::Disconnected => io::Error::other("no thread can be started"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn paths_lie_on_file_systems() {
        let places = Places::find(&["/".into(), "/".into()], LONG).map(|it| it.found.len());
        // In some containers / is an overlay.
        assert!(places.as_ref().is_ok_and(|found| *found == 2) || places.is_err());
        assert!(Places::find(&[], LONG).expect("nothing is looked at").found.is_empty());
        let none = Places::find(&["/no/such/place".into()], LONG).expect_err("it is not there");
        assert!(none.to_string().starts_with("/no/such/place: No such file"), "{none}");
    }

    #[test]
    fn a_path_that_is_not_answered_for_is_named_and_not_waited_for() {
        let look = |path: &Path| {
            if path == Path::new("/hung") {
                thread::park();
            }
            Err(io::ErrorKind::NotFound.into())
        };
        let paths = ["/hung".into(), "/other".into()];
        let error = Places::find_by(look, &paths, Duration::ZERO).expect_err("it hangs");
        assert!(
            error.to_string().starts_with("/hung: its file system has not answered"),
            "{error}"
        );
    }
}
