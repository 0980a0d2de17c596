//! What processes, files, file systems and cgroups are called, and which files bowwave manages.

use std::collections::{HashMap, HashSet};

use readahead::{DeviceNumber, FileKey};

use crate::activity::Activity;
use crate::sample::Key;

/// A process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// The name of its program.
    pub name: String,
    /// The number of its cgroup of version 2.
    pub cgroup_number: u64,
    /// The path of its cgroup; empty if it is not known.
    pub cgroup: String,
}

/// A mounted file system.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileSystem {
    /// For example `/dev/sda1`.
    pub source: String,
    /// For example `/srv`.
    pub mount_point: String,
}

/// The processes of bowwave, and what they manage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Managers {
    /// Their numbers.
    pub pids: HashSet<u32>,
    /// The file systems that they manage.
    pub file_systems: HashSet<DeviceNumber>,
    /// Files of which they have read most ahead recently.
    pub files: HashSet<FileKey>,
}

/// All names that are known.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// Processes by their number, also those that have ended.
    pub processes: HashMap<u32, Process>,
    /// The paths of cgroups of processes that had ended when these were looked for, by number; empty if there was none.
    pub cgroups: HashMap<u64, String>,
    /// The paths of files, or the ends of long ones.
    pub files: HashMap<FileKey, String>,
    file_systems: HashMap<DeviceNumber, FileSystem>,
    /// Who manages reads.
    pub managers: Managers,
}

impl Names {
    /// Learns where file systems are mounted now.
    pub fn set_file_systems(
        &mut self,
        file_systems: impl IntoIterator<Item = (DeviceNumber, FileSystem)>,
    ) {
        self.file_systems = file_systems.into_iter().collect();
    }

    /// Forgets the names of everything but `kept`.
    pub fn retain(&mut self, kept: &[Key]) {
        let pids: HashSet<u32> = kept.iter().map(|key| key.pid).collect();
        let files: HashSet<FileKey> = kept.iter().map(|key| key.file).collect();
        self.processes.retain(|pid, _| pids.contains(pid));
        let numbers: HashSet<u64> =
            self.processes.values().map(|process| process.cgroup_number).collect();
        self.cgroups.retain(|number, _| numbers.contains(number));
        self.files.retain(|file, _| files.contains(file));
    }

    /// `1234 tar`.
    pub fn of_process(&self, pid: u32) -> String {
        let name = self.processes.get(&pid).map_or("?", |process| process.name.as_str());
        format!("{pid} {name}")
    }

    /// `1234 tar /srv/data`.
    pub fn of_stream(&self, key: Key) -> String {
        format!("{} {}", self.of_process(key.pid), self.of_file(key.file))
    }

    /// The path of a cgroup, `?` if it is not known.
    pub fn of_cgroup(&self, pid: u32) -> String {
        let cgroup = self.processes.get(&pid).map(|process| process.cgroup.as_str());
        cgroup.filter(|path| !path.is_empty()).unwrap_or("?").to_owned()
    }

    /// The path of a file; the end of it if it is long; else its inode number.
    pub fn of_file(&self, file: FileKey) -> String {
        if let Some(path) = self.files.get(&file) {
            return path.clone();
        }
        let place = self.file_systems.get(&file.dev);
        let place = place.map_or_else(|| file.dev.to_string(), |of| of.mount_point.clone());
        match file.ino {
            0 => format!("other files of {place}"),
            inode => format!("inode {inode} of {place}"),
        }
    }

    /// `/dev/sda1 /srv`; the number of a file system that is mounted elsewhere, as in a container.
    pub fn of_file_system(&self, dev: DeviceNumber) -> String {
        match self.file_systems.get(&dev) {
            Some(of) => format!("{} {}", of.source, of.mount_point),
            None => dev.to_string(),
        }
    }

    /// Whether bowwave manages this file's reads, and if not, why.
    pub fn managed(&self, file: FileKey, activity: &Activity) -> &'static str {
        match () {
            () if self.managers.pids.is_empty() => "no bowwave runs",
            () if activity.bowwave_pages > 0 || self.managers.files.contains(&file) => "managed",
            () if !self.managers.file_systems.contains(&file.dev) => "file system not managed",
            () if activity.missing_pages == 0 && activity.stalls == 0 => "nothing was missing",
            () => "nothing to read ahead",
        }
    }
}
