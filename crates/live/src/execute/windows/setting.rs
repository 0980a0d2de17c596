//! Sets the window of one open file, by making the kernel copy the device's window into it.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use ebpf::open_file;
use linux::knob::{Borrowed, Knob};
use linux::{failpoint, sys};
use rustix::fs::{Advice, fadvise};
use serde::{Deserialize, Serialize};

#[derive(Default)]
pub(super) struct Setter {
    /// Begin and end of the last change, in monotonic ns.
    last_change: (u64, u64),
}

impl Setter {
    /// Sets the window of `file` to `kb` KiB. Advice of its program stays.
    ///
    /// # Errors
    /// If another process is changing the device's window, or if it or its journal cannot be written. The window of
    /// `file` is then unchanged.
    pub(super) fn set(
        &mut self,
        file: &OwnedFd,
        knob: &Path,
        kb: u64,
        random_by: RandomBy,
    ) -> io::Result<()> {
        let begin = sys::monotonic_ns();
        let result = copy_window(file, knob, kb, random_by);
        self.last_change = (begin, sys::monotonic_ns());
        result
    }

    /// When the device's window was last a different one: begin and end, in monotonic ns. Open files' windows seen
    /// meanwhile look as if programs had given advice.
    pub(super) fn last_change(&self) -> (u64, u64) {
        self.last_change
    }
}

/// Whose random advice an open file may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum RandomBy {
    /// Its program's: it stays.
    Program,
    /// Bowwave's, which has switched its look-ahead off: it goes.
    #[default]
    Bowwave,
}

fn copy_window(file: &OwnedFd, knob: &Path, kb: u64, random_by: RandomBy) -> io::Result<()> {
    let advised = open_file::look_at(file);
    // The file is missing if the disk is gone.
    let knob = Knob::at(knob).ok_or(io::ErrorKind::NotFound)?;
    let device = Borrowed::take(knob).map_err(io::Error::other)?;
    // SEQUENTIAL doubles the device's window, so that needs no change which others could see.
    let advice = if kb == 2 * device.was_kb() { Advice::Sequential } else { Advice::Normal };
    if advice == Advice::Normal && device.was_kb() != kb {
        device.set(kb).map_err(io::Error::other)?;
    }
    fadvise(file, 0, None, advice)?;
    if let Some(before) = advised {
        // Both are cleared together with the window. Failing would leave the window set and the advice lost.
        if before.random && random_by == RandomBy::Program {
            let _ = fadvise(file, 0, None, Advice::Random);
        }
        if before.noreuse {
            let _ = fadvise(file, 0, None, Advice::NoReuse);
        }
    }
    failpoint::reach("window-copied");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_change_is_known_even_if_it_failed() {
        let mut setter = Setter::default();
        let file = tempfile::tempfile().expect("a file").into();
        let before = sys::monotonic_ns();
        assert!(
            setter.set(&file, Path::new("/none"), 4, RandomBy::Program).is_err(),
            "no such knob"
        );
        let (from, to) = setter.last_change();
        assert!(before <= from && from <= to && to <= sys::monotonic_ns());
    }
}
