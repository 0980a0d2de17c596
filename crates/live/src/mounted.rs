//! The file systems that are managed: found by a thread of its own, as finding them may wait for a server.
//!
//! ```text
//!   /proc/self/mountinfo, paths --> which are new, which are gone? --> Change::Mounted, Change::Gone
//!        ^ poll: the table has changed, or a second is over
//! ```

use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Weak};
use std::thread;

use controller::ids::{BackingId, DeviceNumber};
use controller::{DeviceFacts, Mounted};
use linux::mounts::{self, Disk, Mount};
use readahead::PAGE_BYTES;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::devices;
use crate::places::Places;

/// A managed file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Volume {
    pub(crate) mount: Mount,
    /// The kernel's own window of this file system.
    pub(crate) knob: PathBuf,
    /// Most pages that one `readahead(2)` call reads.
    pub(crate) piece_pages: u64,
    pub(crate) backing: BackingId,
}

/// The disk under one or more file systems, or the far end of a network one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Device {
    pub(crate) backing: BackingId,
    pub(crate) disk: Option<Disk>,
    pub(crate) facts: DeviceFacts,
}

/// What has changed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Change {
    /// A file system can be managed.
    Mounted(Arc<Volume>, Arc<Device>),
    /// It is gone, or its number now means another one.
    Gone(DeviceNumber),
}

impl Change {
    /// What the controller hears of a mount.
    pub(crate) fn mounted(volume: &Volume, device: &Device) -> Mounted {
        Mounted { dev: volume.mount.dev, backing: device.backing, device: device.facts }
    }
}

/// What is mounted, as far as it is managed.
pub(crate) struct Mounts {
    places: Places,
    state: PathBuf,
    volumes: Vec<(Arc<Volume>, Arc<Device>)>,
    backings_met: u32,
}

impl Mounts {
    pub(crate) fn new(places: Places, state: &Path) -> Self {
        Mounts { places, state: state.to_owned(), volumes: Vec::new(), backings_met: 0 }
    }

    /// What there is at the start.
    ///
    /// # Errors
    /// If the table of mounts cannot be read.
    pub(crate) fn first(&mut self) -> io::Result<Vec<Change>> {
        let is_all = self.places.paths.is_empty();
        let wanted = if is_all { mounts::list()? } else { self.places.found.clone() };
        Ok(self.compare(wanted))
    }

    /// What has changed since. A path that is not there at the moment may be mounted again.
    fn again(&mut self) -> Vec<Change> {
        let paths = &self.places.paths;
        let wanted = if paths.is_empty() {
            let Ok(wanted) = mounts::list() else { return Vec::new() };
            wanted
        } else {
            paths.iter().filter_map(|path| mounts::of_path(path).ok()).collect()
        };
        self.compare(wanted)
    }

    fn compare(&mut self, wanted: Vec<Mount>) -> Vec<Change> {
        let mut changes = Vec::new();
        self.volumes.retain(|(volume, device)| {
            let disk_is_the_same = || device.disk == Disk::under(&volume.mount);
            let stays = wanted.contains(&volume.mount) && disk_is_the_same();
            if !stays {
                changes.push(Change::Gone(volume.mount.dev));
            }
            stays
        });
        for mount in wanted {
            if self.volumes.iter().all(|(volume, _)| volume.mount.dev != mount.dev) {
                let (volume, device) = self.meet(mount);
                changes.push(Change::Mounted(Arc::clone(&volume), Arc::clone(&device)));
                self.volumes.push((volume, device));
            }
        }
        changes
    }

    fn meet(&mut self, mount: Mount) -> (Arc<Volume>, Arc<Device>) {
        let disk = Disk::under(&mount);
        let mut known = self.volumes.iter().map(|(_, device)| device);
        let known = known.find(|device| disk.is_some() && device.disk == disk).cloned();
        let device = known.unwrap_or_else(|| {
            self.backings_met += 1;
            let facts = devices::facts_of(&mount, disk.as_ref(), &self.state);
            Arc::new(Device { backing: BackingId(self.backings_met), disk: disk.clone(), facts })
        });
        let knob = mounts::read_ahead_knob(&mount);
        let piece_pages = piece_pages(disk.as_ref(), &knob);
        (Arc::new(Volume { mount, knob, piece_pages, backing: device.backing }), device)
    }

    /// Looks again whenever the table of mounts changes, and each second, as long as the engine is `running`; `tell` is
    /// called after each change.
    pub(crate) fn watch(
        mut self,
        changes: Sender<Change>,
        running: Weak<()>,
        tell: impl Fn() + Send + 'static,
    ) {
        let watch = move || {
            let table: Option<OwnedFd> = File::open("/proc/self/mountinfo").ok().map(Into::into);
            while running.strong_count() > 0 {
                wait_for_change(table.as_ref());
                for change in self.again() {
                    if changes.send(change).is_err() {
                        return;
                    }
                    tell();
                }
            }
        };
        // Without a thread what is mounted later is not managed.
        let _ = thread::Builder::new().name("bowwave-mounts".into()).spawn(watch);
    }
}

/// The kernel silently drops what exceeds the larger of a request and the device's window.
fn piece_pages(disk: Option<&Disk>, knob: &Path) -> u64 {
    let request_kb = disk.and_then(|disk| disk.queue("max_sectors_kb"));
    let window_kb = fs::read_to_string(knob).ok().and_then(|text| text.trim().parse().ok());
    request_kb.max(window_kb).unwrap_or(128).max(4) * 1024 / PAGE_BYTES
}

fn wait_for_change(table: Option<&OwnedFd>) {
    let second = Timespec { tv_sec: 1, tv_nsec: 0 };
    let mut fds: Vec<PollFd<'_>> =
        table.iter().map(|fd| PollFd::new(*fd, PollFlags::PRI | PollFlags::ERR)).collect();
    let _ = poll(&mut fds, Some(&second));
}
