//! Keeps the list of managed file systems. A thread of its own updates it, as looking at a path may wait for a server.
//!
//! ```text
//!   bowwave-mounts                                                             engine
//!   poll /proc/self/mountinfo, 10 s -> compare with the list --> channel --> Change::Mounted, Change::Gone
//! ```

use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use controller::DeviceFacts;
use controller::ids::{BackingId, DeviceNumber};
use linux::mounts::{self, Disk, Mount};
use readahead::History;

use crate::devices;
use crate::histories;
use crate::pieces::PieceLimit;
use crate::places::Places;

/// How often to look, if the table of mounts does not change: nobody tells that the disk under a mount is another one now
/// (`pvmove`), or that a path exists now.
const LOOK: Duration = Duration::from_secs(10);

/// A managed file system.
#[derive(Debug)]
pub(crate) struct Volume {
    pub(crate) mount: Mount,
    /// The disk or volume that it is on.
    pub(crate) disk: Option<Disk>,
    /// The file that sets the kernel's window of this file system (`read_ahead_kb`).
    pub(crate) knob: PathBuf,
    /// How much one `readahead(2)` call reads.
    pub(crate) piece_limit: PieceLimit,
    pub(crate) backing: BackingId,
    /// Where to keep how its files were read.
    pub(crate) history_file: Option<PathBuf>,
}

/// The disk or array under one or more file systems, or the server of a network file system.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Device {
    pub(crate) backing: BackingId,
    /// The disk to which all reads of these file systems go; below LVM and LUKS.
    pub(crate) disk: Option<Disk>,
    /// The disks that serve its requests: several below md.
    pub(crate) members: Vec<Disk>,
    pub(crate) facts: DeviceFacts,
}

#[derive(Debug)]
pub(crate) enum Change {
    /// A file system can be managed. Its files were read like this before, if that is known.
    Mounted(Arc<Volume>, Arc<Device>, Option<Box<History>>),
    /// A file system was unmounted, or its device number now means another one.
    Gone(DeviceNumber),
}

/// The managed file systems.
pub(crate) struct Mounts {
    places: Places,
    state: PathBuf,
    volumes: Vec<(Arc<Volume>, Arc<Device>)>,
    last_backing: u32,
}

impl Mounts {
    pub(crate) fn new(places: Places, state: &Path) -> Self {
        Mounts { places, state: state.to_owned(), volumes: Vec::new(), last_backing: 0 }
    }

    /// The file systems at the start.
    ///
    /// # Errors
    /// If the table of mounts cannot be read.
    pub(crate) fn initial(&mut self) -> io::Result<Vec<Change>> {
        let wanted = if self.places.are_all() { mounts::list()? } else { self.places.mounts() };
        Ok(self.update(wanted))
    }

    /// The changes since the last call.
    fn refresh(&mut self) -> Vec<Change> {
        if self.places.are_all() {
            return mounts::list().map_or(Vec::new(), |wanted| self.update(wanted));
        }
        self.places.look_again();
        self.update(self.places.mounts())
    }

    fn update(&mut self, wanted: Vec<Mount>) -> Vec<Change> {
        let mut changes = Vec::new();
        self.volumes.retain(|(volume, device)| {
            let disks_are_the_same = || {
                let disk = Disk::under(&volume.mount);
                volume.disk == disk
                    && (device.disk.clone(), device.members.clone()) == below(disk.as_ref())
            };
            let stays = wanted.contains(&volume.mount) && disks_are_the_same();
            if !stays {
                changes.push(Change::Gone(volume.mount.dev));
            }
            stays
        });
        for mount in wanted {
            if self.volumes.iter().all(|(volume, _)| volume.mount.dev != mount.dev) {
                let (volume, device) = self.look_up(mount);
                let history = volume.history_file.as_deref().and_then(histories::read);
                changes.push(Change::Mounted(Arc::clone(&volume), Arc::clone(&device), history));
                self.volumes.push((volume, device));
            }
        }
        changes
    }

    fn look_up(&mut self, mount: Mount) -> (Arc<Volume>, Arc<Device>) {
        let disk = Disk::under(&mount);
        let (carrier, members) = below(disk.as_ref());
        let mut known = self.volumes.iter().map(|(_, device)| device);
        let is_its = |device: &&Arc<Device>| {
            carrier.is_some() && device.disk == carrier && device.members == members
        };
        let device = known.find(is_its).cloned().unwrap_or_else(|| {
            self.last_backing += 1;
            let facts = devices::facts_of(&mount, disk.as_ref(), carrier.as_ref(), &self.state);
            let backing = BackingId(self.last_backing);
            Arc::new(Device { backing, disk: carrier, members, facts })
        });
        let knob = mounts::read_ahead_knob(&mount);
        let piece_limit = PieceLimit::of(disk.clone(), knob.clone());
        let history_file = histories::file_of(&mount, disk.as_ref(), &self.state);
        let backing = device.backing;
        (Arc::new(Volume { mount, disk, knob, piece_limit, backing, history_file }), device)
    }

    /// Starts a thread that sends `changes` and calls `wake` after each, until the engine drops `running`. It looks
    /// whenever the table of mounts changes, and after `LOOK`.
    ///
    /// # Errors
    /// If the thread cannot be started. Then file systems that are mounted later would not be managed.
    pub(crate) fn watch(
        mut self,
        changes: Sender<Change>,
        running: Weak<()>,
        wake: impl Fn() + Send + 'static,
    ) -> io::Result<()> {
        let watch = move || {
            let table = mounts::Changes::watch();
            while running.strong_count() > 0 {
                match &table {
                    // After a signal, it looks too early.
                    Ok(table) => drop(table.wait(LOOK)),
                    Err(_) => thread::sleep(LOOK),
                }
                for change in self.refresh() {
                    if changes.send(change).is_err() {
                        return;
                    }
                    wake();
                }
            }
        };
        thread::Builder::new().name("bowwave-mounts".into()).spawn(watch).map(drop)
    }
}

/// The disk to which all reads of `disk` go, and the disks that serve them.
fn below(disk: Option<&Disk>) -> (Option<Disk>, Vec<Disk>) {
    (disk.map(Disk::carrier), disk.map(Disk::members).unwrap_or_default())
}
