//! Finds the file systems that given paths lie on. Looking at a path may wait for a server for ever.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use linux::limited::within;
use linux::mounts::{self, Mount};

/// Which file systems to manage: those of some paths, or all.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// Empty for all file systems.
    pub(crate) paths: Vec<PathBuf>,
    /// The file system of each path.
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

    /// Finds the file systems of these paths, or takes all if there are no paths. Waits up to `timeout`.
    ///
    /// # Errors
    /// Names the first path whose file system has no page cache or does not answer in time.
    pub fn find(paths: &[PathBuf], timeout: Duration) -> Result<Places, PlaceError> {
        Self::find_by(mounts::of_path, paths, timeout)
    }

    /// The file systems that hold the paths now. One that was unmounted is missing, and may come back later: the folder
    /// that is left lies on the file system above, which nobody has named.
    pub(crate) fn look_again(
        &mut self,
        find_mount: impl Fn(&Path) -> io::Result<Mount>,
    ) -> Vec<Mount> {
        let known = self.paths.iter().zip(&mut self.found);
        let look = |(path, known): (&PathBuf, &mut Mount)| {
            let now = find_mount(path).ok()?;
            let is_above = known.mount_point != now.mount_point
                && known.mount_point.starts_with(&now.mount_point);
            if is_above {
                return None;
            }
            *known = now.clone();
            Some(now)
        };
        known.filter_map(look).collect()
    }

    fn find_by(
        find_mount: fn(&Path) -> io::Result<Mount>,
        paths: &[PathBuf],
        timeout: Duration,
    ) -> Result<Places, PlaceError> {
        let until = Instant::now() + timeout;
        let found = paths.iter().map(|path| {
            let (path, wanted) = (path.clone(), path.clone());
            let left = until.saturating_duration_since(Instant::now());
            let found = within(left, move || find_mount(&wanted));
            let found = found.unwrap_or_else(|error| Err(why_no_answer(error, timeout)));
            found.map_err(|error| PlaceError { path, error })
        });
        Ok(Places { found: found.collect::<Result<_, _>>()?, paths: paths.to_vec() })
    }
}

fn why_no_answer(error: io::Error, timeout: Duration) -> io::Error {
    if error.kind() != io::ErrorKind::TimedOut {
        return error;
    }
    let reason = format!("its file system has not answered for {} s", timeout.as_secs());
    io::Error::new(io::ErrorKind::TimedOut, reason)
}

#[cfg(test)]
mod tests {
    use std::slice;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn paths_lie_on_file_systems() {
        // In some containers / is an overlay, which cannot be managed.
        let root = mounts::of_path(Path::new("/")).ok();
        let places = Places::find(&["/".into(), "/".into()], LONG).ok();
        assert_eq!(places.map(|places| places.found), root.map(|mount| vec![mount.clone(), mount]));
        assert!(Places::find(&[], LONG).expect("nothing is looked at").found.is_empty());
        let none = Places::find(&["/no/such/place".into()], LONG).expect_err("it is not there");
        assert!(none.to_string().starts_with("/no/such/place: No such file"), "{none}");
    }

    #[test]
    fn when_a_file_system_is_unmounted_its_path_does_not_mean_the_one_above() {
        let mount = |minor, mount_point: &str| Mount {
            dev: controller::ids::DeviceNumber { major: 8, minor },
            root: "/".into(),
            mount_point: mount_point.into(),
            fs_type: "ext4".into(),
            source: "/dev/sda".into(),
        };
        let (root, srv) = (mount(1, "/"), mount(2, "/srv"));
        let mut places = Places { paths: vec!["/srv/data".into()], found: vec![srv.clone()] };
        let mut holds = |mount: &Mount| places.look_again(|_| Ok(mount.clone()));
        assert_eq!(holds(&srv), slice::from_ref(&srv));
        assert_eq!(holds(&root), [], "it is unmounted");
        let again = mount(3, "/srv");
        assert_eq!(holds(&again), slice::from_ref(&again), "it is mounted again");
        let below = mount(4, "/srv/data");
        assert_eq!(holds(&below), slice::from_ref(&below), "another is mounted there");
        assert_eq!(places.look_again(|_| Err(io::ErrorKind::NotFound.into())), []);
    }

    #[test]
    fn a_path_on_a_hung_server_is_named_after_the_timeout() {
        let look = |path: &Path| {
            if path == Path::new("/hung") {
                std::thread::park();
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
