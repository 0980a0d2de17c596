//! Names of devices and mount points, which the controller does not know.

use std::collections::HashMap;

use controller::Status;
use controller::ids::BackingId;
use linux::mounts::Mount;

use crate::mounted::{Device, Volume};

/// Adds them to what the controller tells.
pub(crate) fn add_names<'a>(
    status: &mut Status,
    volumes: impl Iterator<Item = &'a Volume>,
    device_of: impl Fn(BackingId) -> Option<&'a Device>,
) {
    let mounts: HashMap<String, &Mount> =
        volumes.map(|volume| (volume.mount.dev.to_string(), &volume.mount)).collect();
    let place = |volume: &String| {
        mounts.get(volume).map(|mount| mount.mount_point.display().to_string()).unwrap_or_default()
    };
    for device in &mut status.devices {
        device.mount_points = device.volumes.iter().map(place).collect();
        let known = device_of(BackingId(device.backing));
        let names = known.iter().flat_map(|known| &known.members).map(|disk| disk.name.clone());
        device.disks = names.collect();
        let disk = known.and_then(|known| known.disk.as_ref()).map(|disk| &disk.name);
        let source = || mounts.get(device.volumes.first()?).map(|mount| &mount.source);
        device.is_disk = disk.is_some();
        device.name = disk.or_else(source).cloned().unwrap_or_default();
    }
    for file in &mut status.busiest_files {
        file.mount_point = place(&file.volume);
    }
}
