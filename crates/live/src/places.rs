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
    places: Vec<Place>,
}

/// A path, and the file system that holds it.
#[derive(Clone, Debug)]
struct Place {
    path: PathBuf,
    /// Where it leads.
    real: PathBuf,
    /// The mount point of the file system that held it at first.
    meant: PathBuf,
    /// The file system that holds it now; `None` after that one was unmounted.
    mount: Option<Mount>,
}

impl Place {
    /// Now this file system holds the path, which leads there. If it is above the one that was meant, that was
    /// unmounted: nobody has named the one above, on which the folder lies that is left.
    fn found(&mut self, real: PathBuf, mount: Mount) {
        let is_above =
            mount.mount_point != self.meant && self.meant.starts_with(&mount.mount_point);
        let is_left = is_above && real.starts_with(&self.meant);
        self.mount = (!is_left).then_some(mount);
        self.real = real;
    }
}

/// Where a path leads, and the file system that holds it.
type Found = io::Result<(PathBuf, Mount)>;

fn look_up(path: &Path) -> Found {
    let real = path.canonicalize()?;
    let mount = mounts::of_path(&real)?;
    Ok((real, mount))
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
        Self::find_by(look_up, paths, timeout)
    }

    fn find_by(
        look_up: fn(&Path) -> Found,
        paths: &[PathBuf],
        timeout: Duration,
    ) -> Result<Places, PlaceError> {
        let until = Instant::now() + timeout;
        let places = paths.iter().map(|path| {
            let (path, wanted) = (path.clone(), path.clone());
            let left = until.saturating_duration_since(Instant::now());
            let found = within(left, move || look_up(&wanted));
            match found.unwrap_or_else(|error| Err(why_no_answer(error, timeout))) {
                Ok((real, mount)) => {
                    let meant = mount.mount_point.clone();
                    Ok(Place { path, real, meant, mount: Some(mount) })
                }
                Err(error) => Err(PlaceError { path, error }),
            }
        });
        Ok(Places { places: places.collect::<Result<_, _>>()? })
    }

    /// Paths that were named before still mean the file systems that they meant then.
    pub fn mean_as_before(&mut self, before: &Places) {
        for place in &mut self.places {
            let Some(before) = before.places.iter().find(|of| of.path == place.path) else {
                continue;
            };
            place.meant.clone_from(&before.meant);
            if let Some(mount) = place.mount.take() {
                place.found(place.real.clone(), mount);
            }
        }
    }

    pub(crate) fn are_all(&self) -> bool {
        self.places.is_empty()
    }

    /// The file systems that hold the paths, as they were found last. One that was unmounted is missing.
    pub(crate) fn mounts(&self) -> Vec<Mount> {
        self.places.iter().filter_map(|place| place.mount.clone()).collect()
    }

    /// Looks again which file systems hold the paths.
    pub(crate) fn look_again(&mut self) {
        self.look_again_by(look_up);
    }

    fn look_again_by(&mut self, look_up: impl Fn(&Path) -> Found) {
        for place in &mut self.places {
            match look_up(&place.path) {
                Ok((real, mount)) => place.found(real, mount),
                Err(_) => place.mount = None,
            }
        }
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
        assert_eq!(
            places.map(|places| places.mounts()),
            root.map(|mount| vec![mount.clone(), mount])
        );
        assert!(Places::find(&[], LONG).expect("nothing is looked at").are_all());
        let none = Places::find(&["/no/such/place".into()], LONG).expect_err("it is not there");
        assert!(none.to_string().starts_with("/no/such/place: No such file"), "{none}");
    }

    fn mount(minor: u32, mount_point: &str) -> Mount {
        Mount {
            dev: controller::ids::DeviceNumber { major: 8, minor },
            root: "/".into(),
            mount_point: mount_point.into(),
            fs_type: "ext4".into(),
            source: "/dev/sda".into(),
        }
    }

    /// The places of `/srv/data`, which lies on `/srv`.
    fn data_on_srv() -> Places {
        let look_up = |path: &Path| Ok((path.to_owned(), mount(2, "/srv")));
        Places::find_by(look_up, &["/srv/data".into()], LONG).expect("it is there")
    }

    /// After the path was found to lead there, on that file system.
    fn after(places: &mut Places, real: &str, mount: &Mount) -> Vec<Mount> {
        places.look_again_by(|_| Ok((real.into(), mount.clone())));
        places.mounts()
    }

    #[test]
    fn when_a_file_system_is_unmounted_its_path_does_not_mean_the_one_above() {
        let (root, srv) = (mount(1, "/"), mount(2, "/srv"));
        let (again, below) = (mount(3, "/srv"), mount(4, "/srv/data"));
        let mut places = data_on_srv();
        let mut holds = |mount: &Mount| after(&mut places, "/srv/data", mount);
        assert_eq!(holds(&srv), slice::from_ref(&srv));
        assert_eq!(holds(&root), [], "it is unmounted");
        assert_eq!(holds(&again), slice::from_ref(&again), "it is mounted again");
        assert_eq!(holds(&below), slice::from_ref(&below), "another is mounted there");
        assert_eq!(holds(&again), slice::from_ref(&again), "and unmounted");
        places.look_again_by(|_| Err(io::ErrorKind::NotFound.into()));
        assert_eq!(places.mounts(), []);
    }

    #[test]
    fn a_link_that_leads_elsewhere_means_the_file_system_there() {
        let root = mount(1, "/");
        let mut places = data_on_srv();
        assert_eq!(after(&mut places, "/home/data", &root), slice::from_ref(&root));
    }

    #[test]
    fn a_path_that_stays_means_what_it_meant_before_the_settings_changed() {
        let before = data_on_srv();
        let look_up = |path: &Path| Ok((path.to_owned(), mount(1, "/")));
        let paths = ["/srv/data".into(), "/home".into()];
        let mut places = Places::find_by(look_up, &paths, LONG).expect("they are there");
        places.mean_as_before(&before);
        assert_eq!(places.mounts(), [mount(1, "/")], "only that of /home");
        assert_eq!(after(&mut places, "/srv/data", &mount(2, "/srv")).len(), 2);
    }

    #[test]
    fn a_path_on_a_hung_server_is_named_after_the_timeout() {
        let look_up = |path: &Path| {
            if path == Path::new("/hung") {
                std::thread::park();
            }
            Err(io::ErrorKind::NotFound.into())
        };
        let paths = ["/hung".into(), "/other".into()];
        let error = Places::find_by(look_up, &paths, Duration::ZERO).expect_err("it hangs");
        assert!(
            error.to_string().starts_with("/hung: its file system has not answered"),
            "{error}"
        );
    }
}
