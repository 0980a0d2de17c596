//! Memory cgroups: whose limit a process lives under, version 1 and 2.

use std::fs;
use std::path::{Path, PathBuf};

/// Where cgroup file systems are mounted.
const ROOT: &str = "/sys/fs/cgroup";

/// The memory cgroup of a process, and its cgroup of version 2, which tells of its pressure.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Place {
    /// Of version 1, where the memory controller is mounted as such.
    v1: Option<PathBuf>,
    v2: Option<PathBuf>,
}

impl Place {
    /// Of a process; the root of everything if it is gone.
    pub(super) fn of(pid: &str) -> Self {
        let cgroups = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
        Self::in_table(&cgroups)
    }

    /// From the text of `/proc/PID/cgroup`.
    fn in_table(cgroups: &str) -> Self {
        let mut place = Place::default();
        for line in cgroups.lines() {
            let mut fields = line.splitn(3, ':').skip(1);
            let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
            let path = PathBuf::from(path.trim_start_matches('/'));
            if controllers.split(',').any(|name| name == "memory") {
                place.v1 = Some(path);
            } else if controllers.is_empty() {
                place.v2 = Some(path);
            }
        }
        place
    }

    /// Most bytes that the cgroup may hold: the least of its own limit and those above it; `None` if
    /// there are none.
    pub(super) fn limit(&self) -> Option<u64> {
        let limits = self.limit_files();
        limits.iter().filter_map(|file| fs::read_to_string(file).ok()?.trim().parse().ok()).min()
    }

    fn limit_files(&self) -> Vec<PathBuf> {
        let root = Path::new(ROOT);
        let v1 = up(self.v1.as_deref())
            .map(|path| root.join("memory").join(path).join("memory.limit_in_bytes"));
        let v2 = up(self.v2.as_deref()).map(|path| root.join(path).join("memory.max"));
        v1.chain(v2).collect()
    }

    /// What tells of the cgroup's memory pressure: its own file, or the machine's at the root and where
    /// only version 1 is mounted.
    pub(super) fn pressure_file(&self) -> PathBuf {
        let below_root = self.v2.as_deref().filter(|path| !path.as_os_str().is_empty());
        let own = below_root.into_iter().flat_map(|path| {
            let root = Path::new(ROOT);
            [root.join(path), root.join("unified").join(path)]
        });
        let mut own = own.map(|folder| folder.join("memory.pressure"));
        own.find(|file| file.exists()).unwrap_or_else(|| super::psi::MACHINE.into())
    }
}

/// A cgroup and those above it, without the root, which has no limit.
fn up(path: Option<&Path>) -> impl Iterator<Item = &Path> {
    let all = path.into_iter().flat_map(Path::ancestors);
    all.filter(|path| !path.as_os_str().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_are_understood_up_to_the_root() {
        let place = Place::in_table("7:memory:/a/small\n3:cpu:/x\n0::/user.slice\nnonsense\n");
        let expected = [
            "/sys/fs/cgroup/memory/a/small/memory.limit_in_bytes",
            "/sys/fs/cgroup/memory/a/memory.limit_in_bytes",
            "/sys/fs/cgroup/user.slice/memory.max",
        ];
        assert_eq!(place.limit_files(), expected.map(PathBuf::from));
    }

    #[test]
    fn the_root_has_no_limit_and_the_machines_pressure() {
        let root = Place::in_table("4:memory:/\n0::/\n");
        assert_eq!(root.limit_files(), Vec::<PathBuf>::new());
        assert_eq!(root.limit(), None);
        assert_eq!(root.pressure_file(), Path::new("/proc/pressure/memory"));
        assert_eq!(Place::of("no process"), Place::default());
    }
}
