//! The names of file systems, as the mount table has them.

use std::collections::HashSet;

use linux::mounts;
use readahead::DeviceNumber;
use top::{Names, Use};

/// Looks up file systems when they are first seen.
#[derive(Debug, Default)]
pub(super) struct Naming {
    /// File systems that are mounted elsewhere only, as in a container.
    unmounted: HashSet<DeviceNumber>,
}

impl Naming {
    /// Adds the names of these files' file systems.
    pub(super) fn name_file_systems(&mut self, uses: &[Use], names: &mut Names) {
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
