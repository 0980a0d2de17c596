//! Questions whose answers may have to wait for a device or a server.

use std::fs;
use std::io::PipeReader;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;

use controller::ids::FileRef;
use controller::{Attributes, Origin};
use linux::handles;
use linux::mounts::{Disk, Mount};
use readahead::DeviceCost;

use crate::devices::{self, prober};
use crate::helper::Helper;

/// What drop-behind's rules need to know of a stream.
pub(super) fn describe(of: FileRef, mount: &Mount) -> Attributes {
    let link = handles::reach(of, mount)
        .ok()
        .and_then(|file| fs::read_link(format!("/proc/self/fd/{}", file.as_fd().as_raw_fd())).ok());
    let table = fs::read_to_string(format!("/proc/{}/cgroup", of.tgid)).unwrap_or_default();
    let name = fs::read_to_string(format!("/proc/{}/comm", of.tgid)).unwrap_or_default();
    Attributes {
        path: link.map(|path| path.to_string_lossy().into_owned()).unwrap_or_default(),
        cgroups: table.lines().filter_map(|l| Some(l.splitn(3, ':').nth(2)?.to_owned())).collect(),
        command: name.trim_end_matches('\n').to_owned(),
    }
}

/// What the disk costs, measured and written down; `None` if it cannot be measured, or not before the other end of
/// `until` is closed.
pub(super) fn probe(
    disk: &Disk,
    until: PipeReader,
    helper: &Helper,
    state: &Path,
) -> Option<DeviceCost> {
    let cost = prober::measure_by(helper, disk, until).ok()?;
    devices::note(disk, &cost, Origin::Measured, state);
    Some(cost)
}
