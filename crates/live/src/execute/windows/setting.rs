//! Setting the window of one open file, which has the device's window of that moment copied.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use linux::knob::{Borrowed, Knob};
use linux::{failpoint, sys};
use rustix::fs::{Advice, fadvise};

/// Sets windows, and knows when.
#[derive(Default)]
pub(super) struct Setting {
    /// When a device's window was last another one for a moment, from and to.
    moment: (u64, u64),
}

impl Setting {
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

    /// When a device's window was last another one: a window that looks like twice as large, the sign of
    /// sequential advice, then tells nothing.
    pub(super) fn moment(&self) -> (u64, u64) {
        self.moment
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_moment_of_a_setting_is_known_also_of_one_that_failed() {
        let mut setting = Setting::default();
        let file = tempfile::tempfile().expect("a file").into();
        let before = sys::monotonic_ns();
        assert!(setting.set(&file, Path::new("/none"), 4).is_err(), "no such knob");
        let (from, to) = setting.moment();
        assert!(before <= from && from <= to && to <= sys::monotonic_ns());
    }
}
