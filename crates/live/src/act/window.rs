//! Giving one open file a window of its own, on a stock kernel.
//!
//! ```text
//!   bdi read_ahead_kb  128 ----> 4096 ------------------> 128
//!                              |                       ^
//!                              +-- fadvise(NORMAL) ----+   on a duplicate of the reader's own
//!                                  copies the window       descriptor: the same open file
//! ```
//!
//! The kernel then reads ahead by itself, in the reader's memory cgroup.
//! For the microseconds in between, files opened by others inherit the larger window. The old value
//! is written to a journal first, and put back from there at the next start if bowwave was killed
//! in between.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{Advice, fadvise};
use serde::{Deserialize, Serialize};

use super::open::descriptor_of_reader;
use crate::observe::Event;
use crate::sys;

/// What has to be put back if bowwave ends in between.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Entry {
    knob: PathBuf,
    kb: String,
}

/// Sets windows of single open files.
pub(crate) struct Windows {
    journal: PathBuf,
}

impl Windows {
    /// Puts back what an earlier run that was killed had left, then starts a new journal; the old one
    /// stays for a run that may.
    pub(crate) fn recover(state: &Path) -> Self {
        let windows = Windows { journal: state.join("window-journal.json") };
        if let Some(entry) = windows.left_behind() {
            // A disk that is gone has no setting to put back.
            if fs::write(&entry.knob, &entry.kb).is_err() && entry.knob.exists() {
                return windows;
            }
        }
        let _ = fs::remove_file(&windows.journal);
        windows
    }

    fn left_behind(&self) -> Option<Entry> {
        let entry: Entry = serde_json::from_str(&fs::read_to_string(&self.journal).ok()?).ok()?;
        is_window_knob(&entry.knob).then_some(entry)
    }

    /// Gives the open file that `event` came through a window of `kb` KiB.
    ///
    /// # Errors
    /// If the reader has no such descriptor any more, or a file of `/sys` or the journal cannot be
    /// written; the setting is then as before.
    pub(crate) fn set(&self, event: &Event, knob: &Path, kb: u64) -> io::Result<()> {
        let file = duplicate(event)?;
        let before = fs::read_to_string(knob)?.trim().to_owned();
        let entry = Entry { knob: knob.to_owned(), kb: before };
        if let Some(folder) = self.journal.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&self.journal, serde_json::to_string(&entry)?)?;
        let advised = fs::write(knob, kb.to_string())
            .and_then(|()| Ok(fadvise(&file, 0, None, Advice::Normal)?));
        // Put back first; what went wrong is reported afterwards.
        let put_back = fs::write(knob, &entry.kb);
        if put_back.is_ok() {
            fs::remove_file(&self.journal)?;
        }
        advised.and(put_back)
    }
}

/// A damaged journal must not make us write anywhere else.
fn is_window_knob(path: &Path) -> bool {
    let is_plain = !path.components().any(|part| part.as_os_str() == "..");
    path.starts_with("/sys/class/bdi") && path.ends_with("read_ahead_kb") && is_plain
}

/// The reader's own open file.
fn duplicate(event: &Event) -> io::Result<OwnedFd> {
    sys::duplicate_from(event.tgid, descriptor_of_reader(event)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_that_names_anything_but_a_window_is_ignored() {
        for path in
            ["/etc/passwd", "/sys/class/bdi/../../x/read_ahead_kb", "/sys/class/bdi/7:0/max_ratio"]
        {
            assert!(!is_window_knob(Path::new(path)), "{path}");
        }
        assert!(is_window_knob(Path::new("/sys/class/bdi/7:0/read_ahead_kb")));
    }

    #[test]
    fn a_damaged_journal_is_cleared_and_changes_nothing() {
        let state = tempfile::tempdir().expect("a folder");
        let journal = state.path().join("window-journal.json");
        for text in ["", "{", "{\"knob\":\"/etc/passwd\",\"kb\":\"0\"}"] {
            fs::write(&journal, text).expect("written");
            assert_eq!(Windows { journal: journal.clone() }.left_behind(), None);
            Windows::recover(state.path());
            assert!(!journal.exists());
        }
    }
}
