//! Which file systems are led, and what is known of the disks under them.

use std::path::PathBuf;

use linux::mounts::{self, Disk, Mount};

use super::{Engine, EngineError};
use crate::disk::Backing;
use crate::observe::{DISK_SLOTS, Interest};

pub(super) struct Led {
    pub(super) mount: Mount,
    /// The kernel's own window of this file system.
    pub(super) knob: PathBuf,
    pub(super) backing: usize,
}

impl Engine {
    pub(super) fn lead_file_systems(&mut self, wanted: Vec<Mount>) -> Result<(), EngineError> {
        self.forget_what_is_gone(&wanted)?;
        for mount in wanted {
            if !self.file_systems.contains_key(&mount.dev) {
                self.lead(mount)?;
            }
        }
        Ok(())
    }

    /// File systems that were unmounted, or whose number now means another one, and the disks under
    /// them.
    fn forget_what_is_gone(&mut self, wanted: &[Mount]) -> Result<(), EngineError> {
        let is_there = |led: &Led| {
            let disk_is_the_same = self.backings[led.backing].disk == Disk::under(&led.mount);
            wanted.contains(&led.mount) && disk_is_the_same
        };
        let gone = self.file_systems.iter().filter(|(_, led)| !is_there(led));
        for dev in gone.map(|(dev, _)| *dev).collect::<Vec<_>>() {
            self.file_systems.remove(&dev);
            self.observer.forget_file_system(dev)?;
            if let Some(behind) = &mut self.behind {
                behind.forget_file_system(dev, &mut *self.observer)?;
            }
        }
        for index in 0..self.backings.len() {
            let is_used = self.file_systems.values().any(|led| led.backing == index);
            let backing = &mut self.backings[index];
            if !is_used
                && let Some(disk) = backing.disk.take()
                && backing.slot.take().is_some()
            {
                self.observer.forget_disk(disk.dev)?;
            }
        }
        Ok(())
    }

    pub(super) fn wanted_mounts(&self) -> Result<Vec<Mount>, EngineError> {
        if self.options.paths.is_empty() {
            return mounts::list().map_err(EngineError::Mounts);
        }
        let paths = self.options.paths.iter();
        paths
            .map(|path| {
                mounts::of_path(path)
                    .map_err(|error| EngineError::Path { path: path.clone(), error })
            })
            .collect()
    }

    /// As [`Engine::wanted_mounts`], but a path that is not there at the moment may be mounted again;
    /// `None` if nothing can be said.
    pub(super) fn mounts_now(&self) -> Option<Vec<Mount>> {
        if self.options.paths.is_empty() {
            return mounts::list().ok();
        }
        Some(self.options.paths.iter().filter_map(|path| mounts::of_path(path).ok()).collect())
    }

    fn lead(&mut self, mount: Mount) -> Result<(), EngineError> {
        let backing = self.backing_of(&mount)?;
        self.observer.watch_file_system(mount.dev, self.backings[backing].interest())?;
        let knob = mounts::read_ahead_knob(&mount);
        self.file_systems.insert(mount.dev, Led { mount, knob, backing });
        Ok(())
    }

    fn backing_of(&mut self, mount: &Mount) -> Result<usize, EngineError> {
        let disk = Disk::under(mount);
        let known = self.backings.iter().position(|b| disk.is_some() && b.disk == disk);
        if let Some(known) = known {
            return Ok(known);
        }
        let is_free = |slot: &usize| self.backings.iter().all(|b| b.slot != Some(*slot));
        let slot = disk.as_ref().and_then(|_| (0..DISK_SLOTS).find(is_free));
        if let (Some(disk), Some(slot)) = (&disk, slot) {
            self.observer.watch_disk(disk.dev, slot)?;
        }
        let backing = Backing::of(mount, disk, slot, &self.options.state);
        let is_unused = |index: &usize| self.file_systems.values().all(|led| led.backing != *index);
        let unused = (0..self.backings.len()).find(is_unused);
        let index = unused.unwrap_or(self.backings.len());
        match unused {
            Some(index) => self.backings[index] = backing,
            None => self.backings.push(backing),
        }
        self.ease(index)?;
        Ok(index)
    }

    /// Where nothing is to be gained from plain forward reading, nothing is heard of it, and the
    /// block layer's counters, which cost every request something, are left alone.
    pub(super) fn ease(&mut self, index: usize) -> Result<(), EngineError> {
        let backing = &mut self.backings[index];
        let interest = backing.interest();
        if interest == Interest::NotForward && backing.slot.take().is_some() {
            let disk = backing.disk.as_ref();
            disk.map_or(Ok(()), |disk| self.observer.forget_disk(disk.dev))?;
        }
        for (dev, _) in self.file_systems.iter().filter(|(_, led)| led.backing == index) {
            self.observer.watch_file_system(*dev, interest)?;
        }
        Ok(())
    }
}
