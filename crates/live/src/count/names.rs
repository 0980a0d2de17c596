//! What `/proc` and the mount table say about processes and file systems.

use std::collections::HashSet;
use std::path::Path;

use linux::mounts;
use readahead::{DeviceNumber, FileKey};
use top::{Managers, Names, Use};

use crate::status::{self, Report};

/// Looks up file systems when they are first seen.
#[derive(Debug, Default)]
pub struct Naming {
    /// File systems that are mounted elsewhere only, as in a container.
    unmounted: HashSet<DeviceNumber>,
}

impl Naming {
    /// Adds the names of these files' file systems.
    pub fn name_file_systems(&mut self, uses: &[Use], names: &mut Names) {
        let devices = uses.iter().map(|used| used.key.file.dev);
        let is_new =
            |dev: &DeviceNumber| !names.knows_file_system(*dev) && !self.unmounted.contains(dev);
        let new: HashSet<DeviceNumber> = devices.filter(is_new).collect();
        if new.is_empty() {
            return;
        }
        for mount in mounts::list().unwrap_or_default() {
            let place = mount.mount_point.display().to_string();
            names.add_file_system(mount.dev, mount.source, place);
        }
        self.unmounted.extend(new.into_iter().filter(|dev| !names.knows_file_system(*dev)));
    }
}

/// Asks the processes of bowwave with this state folder what they manage.
pub fn managers(state: &Path) -> Managers {
    let mut managers = Managers::default();
    for answer in status::ask(state).unwrap_or_default() {
        let Some(report) = answer.ok().and_then(|answer| Report::parse(&answer).ok()) else {
            continue;
        };
        managers.pids.insert(report.pid);
        for device in &report.status.devices {
            let volumes = device.volumes.iter();
            managers
                .file_systems
                .extend(volumes.filter_map(|dev| dev.parse::<DeviceNumber>().ok()));
        }
        for file in &report.status.busiest_files {
            if let Ok(dev) = file.volume.parse::<DeviceNumber>() {
                managers.files.insert(FileKey { dev, ino: file.inode });
            }
        }
    }
    managers
}

/// The path of a process's cgroup, in the hierarchy of version 2 or else in that of version 1's memory controller.
/// `number` is the number of its cgroup of version 2, which gives the path if the process has ended.
#[cfg_attr(not(feature = "bpf"), allow(dead_code))]
pub(super) fn cgroup(pid: u32, number: u64) -> String {
    linux::cgroup::path_of(pid)
        .or_else(|| linux::cgroup::path_of_number(number))
        .unwrap_or_default()
}
