//! The names of file systems, as the mount table has them.

use std::collections::HashSet;

use linux::mount_points::MountPoints;
use readahead::DeviceNumber;
use top::{FileSystem, Names, Use};

/// Names these files' file systems. Those that are mounted elsewhere only, as in a container, have no name.
pub(super) fn name_file_systems(uses: &[Use], names: &mut Names, mounts: &mut MountPoints) {
    let devices: HashSet<DeviceNumber> = uses.iter().map(|used| used.key.file.dev).collect();
    names.set_file_systems(devices.into_iter().filter_map(|dev| {
        let place = mounts.of_file_system(dev)?;
        let (source, mount_point) = (place.source.clone(), place.path.clone());
        Some((dev, FileSystem { source, mount_point }))
    }));
}
