//! Setting the window of one open file: its descriptor is looked for, duplicated, and has the device's
//! window of that moment copied.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use linux::descriptors::Descriptors;
use linux::handles::leads_to;
use linux::knob::{Borrowed, Knob};
use linux::process::Process;
use linux::{failpoint, sys};
use readahead::FileRef;
use rustix::fs::{Advice, fadvise};

use super::ledger::Given;

/// Sets windows, and knows when.
pub(super) struct Setting {
    descriptors: Descriptors,
    /// When a device's window was last another one for a moment, from and to.
    moment: (u64, u64),
}

impl Setting {
    pub(super) fn new() -> Self {
        Setting { descriptors: Descriptors::default(), moment: (0, 0) }
    }

    /// A duplicate of the descriptor through which a process reads a file, and its number.
    ///
    /// # Errors
    /// If the reader has none any more, or several.
    pub(super) fn reach(&mut self, of: FileRef) -> io::Result<(OwnedFd, i32)> {
        // Before anything is looked up by its number, which may be another's when it has ended.
        let process = Process::open(of.tgid)?;
        let number = self.descriptors.sole(of.tgid, of.file, sys::monotonic_ns())?;
        Ok((duplicate(&process, number, of)?, number))
    }

    /// Sets the window of `file` to `kb` KiB.
    ///
    /// # Errors
    /// If somebody else sets the device's, or it or the journal cannot be written; it is then as before.
    pub(super) fn set(&mut self, file: &OwnedFd, knob: &Path, kb: u64) -> io::Result<()> {
        let from = sys::monotonic_ns();
        let result = self.copy_window(file, knob, kb);
        self.moment = (from, sys::monotonic_ns());
        result
    }

    fn copy_window(&self, file: &OwnedFd, knob: &Path, kb: u64) -> io::Result<()> {
        // A disk that is gone has no setting.
        let knob = Knob::at(knob).ok_or(io::ErrorKind::NotFound)?;
        // Nobody else sets it meanwhile, and what it was is journalled.
        let window = Borrowed::take(knob).map_err(io::Error::other)?;
        let advice = match window.was_kb() {
            // What that advice is to the kernel; nobody else sees another window.
            device if kb == 2 * device => Advice::Sequential,
            _ => Advice::Normal,
        };
        if advice == Advice::Normal && window.was_kb() != kb {
            window.set(kb).map_err(io::Error::other)?;
        }
        fadvise(file, 0, None, advice)?;
        failpoint::reach("window-copied");
        Ok(())
    }

    /// The open file has the window again that it had before.
    ///
    /// # Errors
    /// That its process, its descriptor or its disk is gone; or that it cannot be done now.
    pub(super) fn give_back(&mut self, given: &Given) -> io::Result<()> {
        // Before it is asked whether it is still the same one.
        let process = Process::open(given.tgid);
        if !given.is_there() {
            return Err(io::ErrorKind::NotFound.into());
        }
        let (file, now) = (given.file(), sys::monotonic_ns());
        let number = self.descriptors.again(given.tgid, file, given.number, now)?;
        let file = duplicate(&process?, number, given.of())?;
        self.set(&file, &given.knob, given.kb_before)
    }

    /// When a device's window was last another one: a window that looks like twice as large, the sign of
    /// sequential advice, then tells nothing.
    pub(super) fn moment(&self) -> (u64, u64) {
        self.moment
    }
}

fn duplicate(process: &Process, number: i32, of: FileRef) -> io::Result<OwnedFd> {
    let file = process.duplicate(number)?;
    if leads_to(&file, of) { Ok(file) } else { Err(io::ErrorKind::NotFound.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_moment_of_a_setting_is_known_also_of_one_that_failed() {
        let mut setting = Setting::new();
        let file = tempfile::tempfile().expect("a file").into();
        let before = sys::monotonic_ns();
        assert!(setting.set(&file, Path::new("/none"), 4).is_err(), "no such knob");
        let (from, to) = setting.moment();
        assert!(before <= from && from <= to && to <= sys::monotonic_ns());
    }
}
