//! A memory cgroup for one reader, version 1 or 2, removed afterwards.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::DemoError;

/// A memory cgroup that goes when this is dropped.
pub(crate) struct MemoryCgroup {
    folder: PathBuf,
}

impl MemoryCgroup {
    pub(crate) fn new(bytes: u64) -> Result<Self, DemoError> {
        let (root, limit) = if Path::new("/sys/fs/cgroup/memory").is_dir() {
            (Path::new("/sys/fs/cgroup/memory"), "memory.limit_in_bytes")
        } else {
            (Path::new("/sys/fs/cgroup"), "memory.max")
        };
        let folder = root.join(format!("bowwave-demo-{}", std::process::id()));
        fs::create_dir(&folder).map_err(DemoError::file(&folder))?;
        let cgroup = MemoryCgroup { folder };
        let limit = cgroup.folder.join(limit);
        fs::write(&limit, bytes.to_string()).map_err(DemoError::file(limit))?;
        Ok(cgroup)
    }

    /// The file that takes a process in.
    pub(crate) fn procs(&self) -> PathBuf {
        self.folder.join("cgroup.procs")
    }
}

impl Drop for MemoryCgroup {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir(&self.folder) {
            eprintln!("bowwave: {} is not removed: {error}", self.folder.display());
        }
    }
}
