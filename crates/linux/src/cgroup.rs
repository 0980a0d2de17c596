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
    /// The innermost cgroup of a process that only root can have made: it and all its ancestors belong to root. Users
    /// may make cgroups below it, as many and as deep as they like. Returns the root cgroup if the process has ended.
    pub fn of(pid: &str) -> Self {
        let cgroups = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
        let Place { v1, v2 } = Self::in_table(&cgroups);
        let root = Path::new(ROOT);
        let made_by_root = |path: Option<PathBuf>, at: &[PathBuf]| {
            path.map(|path| made_by_root(&path, at).to_owned())
        };
        Place {
            v1: made_by_root(v1, &[root.join("memory")]),
            v2: made_by_root(v2, &[root.to_owned(), root.join("unified")]),
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

/// The innermost of a cgroup and its ancestors that root has made below one of these folders. It looks from the outermost
/// on, and at nothing below what a user has made.
fn made_by_root<'a>(path: &'a Path, at: &[PathBuf]) -> &'a Path {
    let is_roots = |path: &&Path| {
        let about = at.iter().find_map(|at| fs::metadata(at.join(path)).ok());
        about.is_none_or(|about| about.uid() == 0)
    };
    let from_outermost: Vec<&Path> = path.ancestors().collect();
    from_outermost.into_iter().rev().take_while(is_roots).last().unwrap_or(Path::new(""))
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

/// Whether a process shall read less than others: its cgroup, or one above it that root has made, limits reads per
/// second from some device (`io.max`, or version 1's `blkio.throttle`), or has a smaller weight than usual. `None` if it
/// has ended: its cgroup is not known any more.
pub fn is_limited(pid: u32) -> Option<bool> {
    let table = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    let mut limits = limits_of_reading(&table).into_iter();
    Some(limits.any(|(file, limits)| fs::read_to_string(file).is_ok_and(|text| limits(&text))))
}

/// Whether a file's text is a limit.
type IsLimit = fn(&str) -> bool;

/// A file of a cgroup, and what its text means.
type Limit = (PathBuf, IsLimit);

/// The files with these limits, for the cgroups in the text of `/proc/PID/cgroup`.
fn limits_of_reading(cgroups: &str) -> Vec<Limit> {
    let v2: [(&str, IsLimit); 3] = [
        ("io.max", limits_reading),
        ("io.weight", |text| is_below_usual(text, 100)),
        ("io.bfq.weight", |text| is_below_usual(text, 100)),
    ];
    let v1: [(&str, IsLimit); 4] = [
        ("blkio.throttle.read_bps_device", limits_reading),
        ("blkio.throttle.read_iops_device", limits_reading),
        ("blkio.weight", |text| is_below_usual(text, 500)),
        ("blkio.bfq.weight", |text| is_below_usual(text, 100)),
    ];
    let root = Path::new(ROOT);
    let mut files = Vec::new();
    let mut add = |at: PathBuf, path: &Path, limits: &[(&str, IsLimit)]| {
        for folder in
            up(Some(made_by_root(path, std::slice::from_ref(&at)))).map(|path| at.join(path))
        {
            files.extend(limits.iter().map(|(name, limits)| (folder.join(name), *limits)));
        }
    };
    for (controllers, path) in entries(cgroups) {
        if controllers.split(',').any(|name| name == "blkio") {
            add(root.join("blkio"), path, &v1);
        } else if controllers.is_empty() {
            add(root.to_owned(), path, &v2);
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

/// `default 50`, or of version 1 `50`; further lines are for single devices.
fn is_below_usual(weights: &str, usual: u32) -> bool {
    let weights = weights.lines().filter_map(|line| line.split(' ').next_back()?.parse().ok());
    weights.min().is_some_and(|least: u32| least < usual)
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
    fn limits_of_a_process_that_has_ended_are_not_known() {
        assert_eq!(is_limited(u32::MAX), None, "there is none with that number");
    }

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
        let names: Vec<_> = files.iter().map(|(file, _)| file.display().to_string()).collect();
        assert_eq!(names.len(), 11, "{names:?}");
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
    fn a_smaller_weight_than_usual_is_a_limit() {
        for (weights, usual) in
            [("default 50\n", 100), ("default 100\n8:0 10\n", 100), ("499\n", 500)]
        {
            assert!(is_below_usual(weights, usual), "{weights}");
        }
        for (weights, usual) in [("default 100\n", 100), ("500\n", 500), ("", 100)] {
            assert!(!is_below_usual(weights, usual), "{weights}");
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
        let path = |folder: &Path| folder.strip_prefix(at).expect("below").to_owned();
        let found = [&inner, &above]
            .map(|folder| made_by_root(&path(folder), std::slice::from_ref(at)).to_owned());
        let limits = limits_of_reading(&format!("0::/{}", path(&inner).display()));
        [&inner, &given, &above].into_iter().for_each(|it| fs::remove_dir(it).expect("empty"));
        assert_eq!(found, [path(&above), path(&above)]);
        let is_at_users = |(file, _): &Limit| file.starts_with(root.join(path(&given)));
        assert!(*at != root || !limits.iter().any(is_at_users), "users make as many as they like");
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
