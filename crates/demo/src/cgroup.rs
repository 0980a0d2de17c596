//! A memory cgroup for some readers, version 1 or 2, removed afterwards.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// The start of its name; the process id follows.
const PREFIX: &str = "bowwave-demo-";

/// A memory cgroup, removed when this is dropped. Its processes must have ended by then.
pub struct MemoryCgroup {
    folder: PathBuf,
    /// Name of the file with its usage.
    used: &'static str,
}

/// Where memory cgroups are created, and the names of the files with limit and usage.
#[derive(Debug, PartialEq)]
struct Hierarchy {
    root: PathBuf,
    limit: &'static str,
    used: &'static str,
}

impl MemoryCgroup {
    /// Creates one that may hold `bytes`.
    ///
    /// # Errors
    /// If no memory cgroup can be created: not root, not mounted, or not delegated.
    pub fn new(bytes: u64) -> io::Result<Self> {
        let hierarchy = mounted_hierarchy()?;
        let folder = hierarchy.root.join(format!("{PREFIX}{}", std::process::id()));
        fs::create_dir(&folder)?;
        let cgroup = MemoryCgroup { folder, used: hierarchy.used };
        fs::write(cgroup.folder.join(hierarchy.limit), bytes.to_string())?;
        Ok(cgroup)
    }

    /// The path of the file to which ids of processes are written that are to be in it.
    pub fn members(&self) -> PathBuf {
        self.folder.join("cgroup.procs")
    }

    /// That file, for [`begin_in`](crate::child::begin_in).
    pub(crate) fn processes(&self) -> io::Result<File> {
        File::options().write(true).open(self.members())
    }

    /// Bytes that it holds now.
    pub(crate) fn used_bytes(&self) -> io::Result<u64> {
        let used = fs::read_to_string(self.folder.join(self.used))?;
        used.trim().parse().map_err(io::Error::other)
    }

    /// Moves a process into the cgroup.
    pub(crate) fn admit(&self, pid: u32) -> io::Result<()> {
        fs::write(self.members(), pid.to_string())
    }
}

/// The cgroups of demonstrations, each with the id of its process.
pub(crate) fn all() -> Vec<(u32, PathBuf)> {
    let Ok(hierarchy) = mounted_hierarchy() else {
        return Vec::new();
    };
    let entries = fs::read_dir(hierarchy.root).into_iter().flatten().flatten();
    let process = |name: &str| name.strip_prefix(PREFIX)?.parse().ok();
    entries
        .filter_map(|entry| Some((process(entry.file_name().to_str()?)?, entry.path())))
        .collect()
}

fn mounted_hierarchy() -> io::Result<Hierarchy> {
    hierarchy(&fs::read_to_string("/proc/self/mounts")?)
        .ok_or_else(|| io::Error::other("no cgroup file system is mounted"))
}

impl Drop for MemoryCgroup {
    fn drop(&mut self) {
        // A process that has just been reaped may keep its cgroup for a moment longer.
        for _ in 0..50 {
            match fs::remove_dir(&self.folder) {
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                    thread::sleep(Duration::from_millis(10));
                }
                _ => break,
            }
        }
        if self.folder.exists() {
            let folder = self.folder.display();
            linux::stderr::note(format_args!("the cgroup {folder} could not be removed"));
        }
    }
}

/// The memory controller belongs to version 1 if it is mounted there, otherwise to version 2.
fn hierarchy(mounts: &str) -> Option<Hierarchy> {
    let find = |is_it: fn(&str, &str) -> bool, limit, used| {
        mounts.lines().find_map(|line| {
            let fields: Vec<&str> = line.split(' ').collect();
            let root = Path::new(fields.get(1)?).into();
            is_it(fields.get(2)?, fields.get(3)?).then_some(Hierarchy { root, limit, used })
        })
    };
    let is_v1 =
        |kind: &str, options: &str| kind == "cgroup" && options.split(',').any(|o| o == "memory");
    find(is_v1, "memory.limit_in_bytes", "memory.usage_in_bytes")
        .or_else(|| find(|kind, _| kind == "cgroup2", "memory.max", "memory.current"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const V2: &str = "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n";
    const V1: &str = "cgroup /sys/fs/cgroup/memory cgroup rw,nosuid,memory 0 0\n";
    const CPU: &str = "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu,cpuacct 0 0\n";

    #[test]
    fn version_1_has_the_controller_where_it_is_mounted() {
        let found = hierarchy(&[V2, CPU, V1].concat()).expect("it is there");
        assert_eq!(found.root, Path::new("/sys/fs/cgroup/memory"));
        assert_eq!(found.limit, "memory.limit_in_bytes");
    }

    #[test]
    fn version_2_has_it_otherwise() {
        let found = hierarchy(&[CPU, V2].concat()).expect("it is there");
        assert_eq!(found.root, Path::new("/sys/fs/cgroup"));
        assert_eq!(found.limit, "memory.max");
        assert_eq!(hierarchy(CPU), None);
    }
}
