//! Memory cgroups, version 1 and 2: which limits apply to a process.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Where cgroup file systems are mounted.
const ROOT: &str = "/sys/fs/cgroup";

/// The memory cgroup of a process. The version 2 cgroup also reports its memory pressure.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Place {
    /// In version 1, if the memory controller is mounted there.
    v1: Option<PathBuf>,
    v2: Option<PathBuf>,
}

impl Place {
    /// The cgroup of a process. Returns the root cgroup if the process has ended.
    pub fn of(pid: &str) -> Self {
        let cgroups = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
        Self::in_table(&cgroups)
    }

    /// The innermost of this cgroup and its ancestors that only root can have made: it and all its ancestors belong to
    /// root.
    pub fn made_by_root(self) -> Self {
        let root = Path::new(ROOT);
        let kept = |path: PathBuf, at: &[PathBuf]| {
            let is_roots = |path: &Path| {
                let about = at.iter().find_map(|at| fs::metadata(at.join(path)).ok());
                about.is_none_or(|about| about.uid() == 0)
            };
            let others = up(Some(&path)).filter(|path| !is_roots(path)).last();
            others.and_then(Path::parent).map_or(path.clone(), Path::to_owned)
        };
        Place {
            v1: self.v1.map(|path| kept(path, &[root.join("memory")])),
            v2: self.v2.map(|path| kept(path, &[root.to_owned(), root.join("unified")])),
        }
    }

    /// Parses the text of `/proc/PID/cgroup`.
    fn in_table(cgroups: &str) -> Self {
        let mut place = Place::default();
        for (controllers, path) in entries(cgroups) {
            if controllers.split(',').any(|name| name == "memory") {
                place.v1 = Some(path.into());
            } else if controllers.is_empty() {
                place.v2 = Some(path.into());
            }
        }
        place
    }

    /// Bytes of file pages that the cgroup may hold; `None` without a limit. Each level from this
    /// cgroup up to the root allows its limit minus its non-file memory; the smallest level counts.
    pub fn file_room(&self) -> Option<u64> {
        self.levels().iter().filter_map(Level::file_room).min()
    }

    fn levels(&self) -> Vec<Level> {
        let root = Path::new(ROOT);
        let v1 = up(self.v1.as_deref()).map(|path| Level {
            folder: root.join("memory").join(path),
            limit: "memory.limit_in_bytes",
            used: "memory.usage_in_bytes",
            files: "total_cache ",
        });
        let v2 = up(self.v2.as_deref()).map(|path| Level {
            folder: root.join(path),
            limit: "memory.max",
            used: "memory.current",
            files: "file ",
        });
        v1.chain(v2).collect()
    }

    /// The file that reports memory pressure: the cgroup's own, or the machine's for the root
    /// cgroup and where only version 1 is mounted.
    pub fn pressure_file(&self) -> PathBuf {
        let below_root = self.v2.as_deref().filter(|path| !path.as_os_str().is_empty());
        let own = below_root.into_iter().flat_map(|path| {
            let root = Path::new(ROOT);
            [root.join(path), root.join("unified").join(path)]
        });
        let mut own = own.map(|folder| folder.join("memory.pressure"));
        own.find(|file| file.exists()).unwrap_or_else(|| crate::psi::MACHINE.into())
    }
}

/// The path of a process's cgroup, such as `/system.slice`: of version 2, or where that is the root, of version 1's
/// memory controller. `None` if the process has ended.
pub fn path_of(pid: u32) -> Option<String> {
    path_in(&fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?)
}

fn path_in(cgroups: &str) -> Option<String> {
    let Place { v1, v2 } = Place::in_table(cgroups);
    let below_root = |path: &PathBuf| !path.as_os_str().is_empty();
    let known = v1.is_some() || v2.is_some();
    let path = v2.filter(below_root).or(v1).unwrap_or_default();
    known.then(|| format!("/{}", path.display()))
}

/// The path of the version 2 cgroup with this number, which is the inode number of its folder. `None` if it is gone.
pub fn path_of_number(number: u64) -> Option<String> {
    let roots = [Path::new(ROOT).join("unified"), ROOT.into()];
    let root = roots.into_iter().find(|root| root.join("cgroup.procs").exists())?;
    let mut to_look_at = vec![root.clone()];
    while let Some(folder) = to_look_at.pop() {
        if fs::metadata(&folder).is_ok_and(|about| about.ino() == number) {
            return Some(format!("/{}", folder.strip_prefix(&root).ok()?.display()));
        }
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        let is_folder = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|it| it.is_dir());
        to_look_at.extend(entries.filter(is_folder).map(|entry| entry.path()));
    }
    None
}

/// Controllers and path of each line of `/proc/PID/cgroup`. Version 2 names no controllers.
fn entries(cgroups: &str) -> impl Iterator<Item = (&str, &Path)> {
    cgroups.lines().filter_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        Some((controllers, Path::new(path.trim_start_matches('/'))))
    })
}

/// Whether the process's cgroup, or one above it, limits reads per second from some device (`io.max`, or version 1's
/// `blkio.throttle`).
pub fn is_throttled(pid: u32) -> bool {
    let table = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    limits_of_reading(&table)
        .iter()
        .any(|file| fs::read_to_string(file).is_ok_and(|limits| limits_reading(&limits)))
}

/// The files with these limits, for the cgroups in the text of `/proc/PID/cgroup`.
fn limits_of_reading(cgroups: &str) -> Vec<PathBuf> {
    let root = Path::new(ROOT);
    let mut files = Vec::new();
    for (controllers, path) in entries(cgroups) {
        if controllers.split(',').any(|name| name == "blkio") {
            for folder in up(Some(path)).map(|path| root.join("blkio").join(path)) {
                files.push(folder.join("blkio.throttle.read_bps_device"));
                files.push(folder.join("blkio.throttle.read_iops_device"));
            }
        } else if controllers.is_empty() {
            files.extend(up(Some(path)).map(|path| root.join(path).join("io.max")));
        }
    }
    files
}

/// `8:0 rbps=1048576 wbps=max riops=max wiops=max`, or of version 1 `8:0 1048576`.
fn limits_reading(limits: &str) -> bool {
    let is_limit = |field: &str| match field.split_once('=') {
        Some((name, value)) => matches!(name, "rbps" | "riops") && value != "max",
        None => true,
    };
    limits.lines().any(|line| line.split(' ').skip(1).any(is_limit))
}

/// One cgroup, with the file names of its version.
#[derive(Debug, PartialEq, Eq)]
struct Level {
    folder: PathBuf,
    limit: &'static str,
    used: &'static str,
    /// Prefix of the `memory.stat` line that gives the bytes of file pages.
    files: &'static str,
}

/// Limits from here on mean no limit: version 1 reports a very large number then.
const UNLIMITED: u64 = 1 << 60;

impl Level {
    fn file_room(&self) -> Option<u64> {
        let read = |file| fs::read_to_string(self.folder.join(file)).unwrap_or_default();
        let limit: u64 = read(self.limit).trim().parse().ok()?;
        if limit >= UNLIMITED {
            return None;
        }
        let used = read(self.used).trim().parse().unwrap_or(0);
        let files = field(&read("memory.stat"), self.files).unwrap_or(used);
        Some(limit.saturating_sub(used.saturating_sub(files)))
    }
}

/// The number that follows `name` at the start of a line.
fn field(stat: &str, name: &str) -> Option<u64> {
    stat.lines().find_map(|line| line.strip_prefix(name))?.trim().parse().ok()
}

/// The cgroup and its ancestors, except the root, which has no limit.
fn up(path: Option<&Path>) -> impl Iterator<Item = &Path> {
    let all = path.into_iter().flat_map(Path::ancestors);
    all.filter(|path| !path.as_os_str().is_empty())
}

#[cfg(any(test, fuzzing))]
pub(crate) fn read_any(text: &str) {
    Place::in_table(text).levels();
    field(text, "file ");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_version_is_read_up_to_the_root() {
        let place = Place::in_table("7:memory:/a/small\n3:cpu:/x\n0::/user.slice\nnonsense\n");
        let files = place.levels().into_iter().map(|level| level.folder.join(level.limit));
        let expected = [
            "/sys/fs/cgroup/memory/a/small/memory.limit_in_bytes",
            "/sys/fs/cgroup/memory/a/memory.limit_in_bytes",
            "/sys/fs/cgroup/user.slice/memory.max",
        ];
        assert_eq!(files.collect::<Vec<_>>(), expected.map(PathBuf::from));
    }

    #[test]
    fn other_memory_of_the_cgroup_leaves_less_room_for_files() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| {
            fs::write(folder.path().join(name), text).expect("written");
        };
        write("memory.limit_in_bytes", "1000\n");
        write("memory.usage_in_bytes", "900\n");
        let level = || Level {
            folder: folder.path().into(),
            limit: "memory.limit_in_bytes",
            used: "memory.usage_in_bytes",
            files: "total_cache ",
        };
        assert_eq!(level().file_room(), Some(1000), "nothing more is known");
        write("memory.stat", "cache 1\ntotal_cache 600\ntotal_rss 200\n");
        assert_eq!(level().file_room(), Some(700));
        write("memory.limit_in_bytes", "9223372036854771712\n");
        assert_eq!(level().file_room(), None);
        write("memory.limit_in_bytes", "max\n");
        assert_eq!(level().file_room(), None);
    }

    #[test]
    fn limits_of_reading_are_found_up_to_the_root() {
        let files = limits_of_reading("7:blkio:/a/b\n4:memory:/x\n0::/user.slice\nnonsense\n");
        let names: Vec<_> = files.iter().map(|file| file.display().to_string()).collect();
        assert_eq!(names.len(), 5, "{names:?}");
        assert!(names.contains(&"/sys/fs/cgroup/blkio/a/blkio.throttle.read_bps_device".into()));
        assert!(names.contains(&"/sys/fs/cgroup/user.slice/io.max".into()));
        for limits in ["8:0 rbps=1048576 wbps=max riops=max wiops=max\n", "7:0 1048576\n"] {
            assert!(limits_reading(limits), "{limits}");
        }
        for none in ["", "\n", "8:0 rbps=max wbps=1 riops=max wiops=1\n"] {
            assert!(!limits_reading(none), "{none}");
        }
    }

    #[test]
    fn a_cgroup_whose_owner_is_a_user_counts_as_that_of_root_above_it() {
        let (root, unified) = (Path::new(ROOT), Path::new("/sys/fs/cgroup/unified"));
        let name = format!("bowwave-test-{}", std::process::id());
        let folders = [root.join("memory"), unified.to_owned(), root.to_owned()];
        let Some(at) = folders.iter().find(|at| fs::create_dir(at.join(&name)).is_ok()) else {
            return eprintln!("skipped: no cgroup can be made");
        };
        let (above, given) = (at.join(&name), at.join(&name).join("given"));
        let inner = given.join("inner");
        fs::create_dir_all(&inner).expect("made");
        std::os::unix::fs::chown(&given, Some(1000), Some(1000)).expect("root may");
        let path = |folder: &Path| Some(folder.strip_prefix(at).expect("below").to_owned());
        let place = |folder: &Path| match at.ends_with("memory") {
            true => Place { v1: path(folder), v2: None },
            false => Place { v1: None, v2: path(folder) },
        };
        let found = [&inner, &above].map(|folder| place(folder).made_by_root());
        [&inner, &given, &above].into_iter().for_each(|it| fs::remove_dir(it).expect("empty"));
        assert_eq!(found, [place(&above), place(&above)]);
    }

    #[test]
    fn a_cgroups_path_is_that_of_version_2_unless_that_is_the_root() {
        let path = |table: &str| path_in(table).unwrap_or_default();
        assert_eq!(path("4:memory:/old\n0::/new.slice\n"), "/new.slice");
        assert_eq!(path("4:memory:/old\n0::/\n"), "/old");
        assert_eq!(path("0::/\n"), "/");
        assert_eq!(path_in(""), None);
        assert_eq!(path_of_number(u64::MAX), None);
    }

    #[test]
    fn the_root_has_no_limit_and_uses_the_machines_pressure() {
        let root = Place::in_table("4:memory:/\n0::/\n");
        assert_eq!(root.levels(), []);
        assert_eq!(root.file_room(), None);
        assert_eq!(root.pressure_file(), Path::new("/proc/pressure/memory"));
        assert_eq!(Place::of("no process"), Place::default());
    }
}
