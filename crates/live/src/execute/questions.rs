//! Questions whose answers may have to wait for a device or a server.

use std::fs;
use std::os::fd::AsRawFd;
use std::path::Path;

use controller::ids::{BackingId, FileRef, StreamKey};
use controller::{Attributes, Completed};
use linux::handles;
use readahead::DeviceCost;

use crate::devices;
use crate::devices::prober;
use crate::helper::Helper;
use crate::mounted::{Device, Volume};

pub(super) enum Question {
    /// What drop-behind's rules need to know: path, cgroups and command.
    Describe { stream: StreamKey, of: FileRef },
    /// What the device costs, measured.
    Probe(BackingId),
    /// No question: writes down what the controller learned of the device's cost.
    Remember(DeviceCost),
}

impl Question {
    /// Finds the answer, if there is one to give.
    pub(super) fn answer(
        self,
        device: &Device,
        volume: &Volume,
        state: &Path,
        helper: &Helper,
    ) -> Option<Completed> {
        match self {
            Question::Describe { stream, of } => {
                Some(Completed::Described { stream, attributes: describe(of, volume) })
            }
            Question::Probe(backing) => {
                let measured = device.disk.as_ref().and_then(|disk| {
                    let cost = prober::measure_by(helper, disk).ok()?;
                    devices::note(disk, &cost, devices::Found::Measured, state);
                    Some(cost)
                });
                Some(Completed::Probed { backing, cost: measured })
            }
            Question::Remember(cost) => {
                let disk = device.disk.as_ref()?;
                devices::note(disk, &cost, devices::Found::Learned, state);
                None
            }
        }
    }
}

fn describe(of: FileRef, volume: &Volume) -> Attributes {
    let file = handles::open_file(of, &volume.mount).ok();
    let link =
        file.and_then(|file| fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok());
    let table = fs::read_to_string(format!("/proc/{}/cgroup", of.tgid)).unwrap_or_default();
    let name = fs::read_to_string(format!("/proc/{}/comm", of.tgid)).unwrap_or_default();
    Attributes {
        path: link.map(|path| path.to_string_lossy().into_owned()).unwrap_or_default(),
        cgroups: table.lines().filter_map(|l| Some(l.splitn(3, ':').nth(2)?.to_owned())).collect(),
        command: name.trim_end_matches('\n').to_owned(),
    }
}
