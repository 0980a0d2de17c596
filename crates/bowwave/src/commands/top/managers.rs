//! What running bowwaves manage, as they tell.

use std::path::Path;

use readahead::{DeviceNumber, FileKey};
use status::Report;
use top::Managers;

/// Asks the processes of bowwave with this state folder what they manage.
pub(super) fn managers(state: &Path) -> Managers {
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
