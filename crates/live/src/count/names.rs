//! What `/proc` and the mount table say about processes and file systems.

use std::collections::HashSet;
use std::path::Path;

use linux::mounts;
use readahead::{DeviceNumber, FileKey};
use top::{Managers, Names, Use};

use crate::status::{self, Report};

/// Looks up names when they are first needed.
#[derive(Debug, Default)]
pub struct Naming {
    /// File systems whose data are in memory only, or that are mounted elsewhere.
    unmounted: HashSet<DeviceNumber>,
    /// File systems without read-ahead.
    without_backing: HashSet<DeviceNumber>,
}

impl Naming {
    /// Looks up the file systems of these files. Removes uses of file systems that only have memory, such as tmpfs.
    pub fn name_file_systems(&mut self, uses: &mut Vec<Use>, names: &mut Names) {
        let unknown = |naming: &Self, names: &Names, dev: DeviceNumber| {
            !names.knows_file_system(dev)
                && !naming.unmounted.contains(&dev)
                && !naming.without_backing.contains(&dev)
        };
        let devices: HashSet<DeviceNumber> = uses.iter().map(|used| used.key.file.dev).collect();
        let new: Vec<_> = devices.into_iter().filter(|dev| unknown(self, names, *dev)).collect();
        if !new.is_empty() {
            for mount in mounts::list().unwrap_or_default() {
                let place = mount.mount_point.display().to_string();
                names.add_file_system(mount.dev, mount.source, place);
            }
        }
        for dev in new {
            if names.knows_file_system(dev) {
                continue;
            }
            match mounts::of_number(dev) {
                Ok(Some(_)) => self.without_backing.insert(dev),
                _ => self.unmounted.insert(dev),
            };
        }
        uses.retain(|used| !self.without_backing.contains(&used.key.file.dev));
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

/// The path of the cgroup of a process: of the hierarchy of version 2, else of version 1's memory controller. `number` is
/// that of its cgroup of version 2; it tells the path if the process has ended.
#[cfg_attr(not(feature = "bpf"), allow(dead_code))]
pub(super) fn cgroup(pid: u32, number: u64) -> String {
    linux::cgroup::path_of(pid)
        .or_else(|| linux::cgroup::path_of_number(number))
        .unwrap_or_default()
}
