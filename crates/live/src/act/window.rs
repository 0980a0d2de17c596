//! Giving one open file a window of its own, on a stock kernel.
//!
//! ```text
//!   bdi read_ahead_kb  128 ----> 4096 ------------------> 128
//!                              |                       ^
//!                              +-- fadvise(NORMAL) ----+   on a duplicate of the reader's own
//!                                  copies the window       descriptor: the same open file
//! ```
//!
//! The kernel then reads ahead by itself, in the reader's memory cgroup; with a larger window than the
//! device's for a reader that is to be charged, with a smaller one under thrashing. For the microseconds
//! in between, files opened by others inherit that window. The old value is written to a journal first,
//! and put back from there at the next start if bowwave was killed in between.
//!
//! What open files were given is taken back when it has served, when bowwave ends, and at the next
//! start if it was killed ([`Given`]).

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use readahead::PAGE_BYTES;
use rustix::fs::{Advice, fadvise};
use serde::{Deserialize, Serialize};

use super::descriptors::Descriptors;
use super::given::{Given, Ledger};
use crate::observe::Event;
use crate::sys;

/// Bounds are set no more often than this: each takes up to a tenth of a millisecond, in which files
/// opened by others inherit it.
const PAUSE_NS: u64 = 5_000_000;

/// An open file that could not be given a window, or has not kept it, is left alone for so long.
const PATIENCE_NS: u64 = 10_000_000_000;

/// What has to be put back if bowwave ends in between.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Entry {
    knob: PathBuf,
    kb: String,
}

/// Sets windows of single open files.
pub(crate) struct Windows {
    journal: PathBuf,
    ledger: Ledger,
    descriptors: Descriptors,
    /// When an open file was last bounded, or that was tried, and to how many pages.
    bounded: HashMap<u64, (u64, u32)>,
    last_at: u64,
}

impl Windows {
    /// Puts back what an earlier run that was killed had left, then starts a new journal; the old one
    /// stays for a run that may.
    pub(crate) fn recover(state: &Path) -> Self {
        let mut windows = Windows::journalling_to(state);
        if let Some(entry) = windows.left_behind() {
            // A disk that is gone has no setting to put back.
            if fs::write(&entry.knob, &entry.kb).is_err() && entry.knob.exists() {
                return windows;
            }
        }
        let _ = fs::remove_file(&windows.journal);
        windows.take_back_all();
        windows
    }

    fn journalling_to(state: &Path) -> Self {
        Windows {
            journal: state.join("window-journal.json"),
            ledger: Ledger::open(state.join("given-windows.jsonl")),
            descriptors: Descriptors::default(),
            bounded: HashMap::new(),
            last_at: 0,
        }
    }

    fn left_behind(&self) -> Option<Entry> {
        let entry: Entry = serde_json::from_str(&fs::read_to_string(&self.journal).ok()?).ok()?;
        is_window_knob(&entry.knob).then_some(entry)
    }

    /// Gives the open file that `event` came through a window of `kb` KiB, until bowwave ends.
    ///
    /// # Errors
    /// If the reader has no such descriptor any more or several, or a file of `/sys` or the journal
    /// cannot be written; the setting is then as before.
    pub(crate) fn lend(&mut self, event: &Event, knob: &Path, kb: u64) -> io::Result<()> {
        self.give(event, knob, kb, false)
    }

    /// Has the kernel read no more than `pages` at a time for the open file that `event` came through,
    /// if its program has given no advice: setting a window would clear it. Tried seldom, and for one
    /// open file once in a while; gives whether it was done. What cannot be bounded reads as it did.
    pub(crate) fn bound(&mut self, event: &Event, knob: &Path, pages: u32) -> bool {
        let is_advised = event.advised_random || event.advised_sequential;
        let is_tried = self
            .bounded
            .get(&event.open_file)
            .is_some_and(|(at, to)| *to <= pages && event.now.saturating_sub(*at) < PATIENCE_NS);
        let is_soon = event.now.saturating_sub(self.last_at) < PAUSE_NS;
        if event.open_file == 0 || is_advised || is_tried || is_soon {
            return false;
        }
        self.last_at = event.now;
        let kb = (u64::from(pages) * PAGE_BYTES / 1024).max(1);
        self.bounded.insert(event.open_file, (event.now, pages));
        self.give(event, knob, kb, true).is_ok()
    }

    /// Once nothing is bounded any more, gives the open files that were their device's window again.
    pub(crate) fn ease(&mut self, now: u64, bound: Option<u32>) {
        self.bounded.retain(|_, (at, _)| now.saturating_sub(*at) < PATIENCE_NS);
        if bound.is_some() {
            self.ledger.forget_gone(now);
            return;
        }
        for given in self.ledger.take(|given| given.is_bound) {
            self.take_back(&given);
        }
    }

    /// The program has given advice of its own: its window is the program's affair from now on.
    pub(crate) fn leave_to_program(&mut self, event: &Event) {
        if event.advised_random || event.advised_sequential {
            // A window twice the device's may be one of ours, too, if it is no bound.
            self.ledger.strike(event.open_file, event.advised_random);
        }
    }

    fn give(&mut self, event: &Event, knob: &Path, kb: u64, is_bound: bool) -> io::Result<()> {
        let number = self.descriptors.sole(event.tgid, event.file, event.now)?;
        let file = sys::duplicate_from(event.tgid, number)?;
        self.ledger.note(event.open_file, Given::to(event, knob, is_bound)?)?;
        self.set(&file, knob, kb)
    }

    fn set(&self, file: &OwnedFd, knob: &Path, kb: u64) -> io::Result<()> {
        let before = fs::read_to_string(knob)?.trim().to_owned();
        if before == kb.to_string() {
            return Ok(fadvise(file, 0, None, Advice::Normal)?);
        }
        let entry = Entry { knob: knob.to_owned(), kb: before };
        if let Some(folder) = self.journal.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&self.journal, serde_json::to_string(&entry)?)?;
        let advised = fs::write(knob, kb.to_string())
            .and_then(|()| Ok(fadvise(file, 0, None, Advice::Normal)?));
        // Put back first; what went wrong is reported afterwards.
        let put_back = fs::write(knob, &entry.kb);
        if put_back.is_ok() {
            fs::remove_file(&self.journal)?;
        }
        advised.and(put_back)
    }

    /// The open file has the window again that it had before, unless its process has closed it.
    fn take_back(&mut self, given: &Given) {
        let number = given
            .is_there()
            .then(|| self.descriptors.sole(given.tgid, given.file(), given.at))
            .and_then(Result::ok);
        let file = number.and_then(|number| sys::duplicate_from(given.tgid, number).ok());
        if let Some(file) = file.filter(|_| is_window_knob(&given.knob)) {
            // A disk that is gone has no setting.
            let _ = self.set(&file, &given.knob, given.kb_before);
        }
    }

    fn take_back_all(&mut self) {
        for given in self.ledger.take(|_| true) {
            self.take_back(&given);
        }
    }
}

impl Drop for Windows {
    fn drop(&mut self) {
        self.take_back_all();
    }
}

/// A damaged journal must not make us write anywhere else.
fn is_window_knob(path: &Path) -> bool {
    let is_plain = !path.components().any(|part| part.as_os_str() == "..");
    path.starts_with("/sys/class/bdi") && path.ends_with("read_ahead_kb") && is_plain
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
            assert_eq!(Windows::journalling_to(state.path()).left_behind(), None);
            Windows::recover(state.path());
            assert!(!journal.exists());
        }
    }
}
