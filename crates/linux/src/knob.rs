//! Borrows the kernel's read-ahead window of a device, a number in sysfs, and restores it.
//!
//! ```text
//!   borrow --> journal {knob, kb}, locked --> {set}, set; {set}, set --> put back --> journal removed
//!                    |
//!                    '-- killed: the lock is free; the next recover() puts the number back
//! ```
//!
//! If the number is none of those set here, somebody else has set it since, so it stays.
//!
//! All journals are in one folder, whatever the state folder of a run, since all runs change the same numbers.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use readahead::PAGE_BYTES;
use serde::{Deserialize, Serialize};

use crate::{failpoint, lock, process};

/// Where journals are kept; empty again after a boot.
pub const JOURNALS: &str = "/run/bowwave/knobs";

/// The extension of the journal of somebody who borrows a number from a process that has started it, and that has
/// borrowed it as well: `bowwave demo` sets the window of a disk, and measures a daemon there, which sets that of files.
const WITHIN: &str = "within";

/// A `read_ahead_kb` file in sysfs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Knob(PathBuf);

/// Why a window cannot be borrowed, set or restored.
#[derive(Debug, thiserror::Error)]
pub enum KnobError {
    /// Another process has borrowed it.
    #[error("another bowwave (process {pid}) is measuring with {knob}; wait until it has ended")]
    Taken {
        /// The file.
        knob: PathBuf,
        /// That process's id, as noted in the journal.
        pid: String,
    },
    /// It cannot be read or written.
    #[error("cannot set the window {knob}: {error}")]
    Unusable {
        /// The file.
        knob: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// Somebody has set it since it was borrowed, so it stays as they set it.
    #[error("somebody has set {knob} meanwhile, so it stays as it is; try again")]
    SetByOthers {
        /// The file.
        knob: PathBuf,
    },
    /// The journal cannot be written, so nothing was changed.
    #[error("cannot keep a journal in {folder}, so no window is changed: {error}")]
    NoJournal {
        /// The folder.
        folder: PathBuf,
        /// Why.
        error: io::Error,
    },
}

impl Knob {
    /// The knob at `path`; `None` if `path` is not a window of the kernel's.
    pub fn at(path: &Path) -> Option<Knob> {
        let is_plain = !path.components().any(|part| part.as_os_str() == "..");
        let is_window = path.starts_with("/sys") && path.ends_with("read_ahead_kb") && is_plain;
        (is_window && path.is_file()).then(|| Knob(path.to_owned()))
    }

    /// Some knob of this machine, if there is one.
    pub fn any() -> Option<Knob> {
        let path = fs::read_dir("/sys/class/bdi").ok()?.next()?.ok()?.path();
        Knob::at(&path.join("read_ahead_kb"))
    }

    /// The path of its file.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The window in KiB.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn kb(&self) -> io::Result<u64> {
        fs::read_to_string(&self.0)?.trim().parse().map_err(io::Error::other)
    }

    /// Whether this process may change it.
    pub fn is_writable(&self) -> bool {
        File::options().write(true).open(&self.0).is_ok()
    }

    /// Sets the window for files opened from now on.
    ///
    /// # Errors
    /// [`KnobError::Unusable`], without root for example.
    pub fn set(&self, kb: u64) -> Result<(), KnobError> {
        let unusable = |error| KnobError::Unusable { knob: self.0.clone(), error };
        fs::write(&self.0, kb.to_string()).map_err(unusable)
    }

    /// Sets the window if it is still `expected` KiB. Returns whether it was. The kernel cannot do both at once: if
    /// somebody sets it between the two calls, their value is lost.
    fn replace(&self, expected: u64, kb: u64) -> io::Result<bool> {
        let (text, mut bytes) = (kb.to_string(), [0; 32]);
        let file = File::options().read(true).write(true).open(&self.0)?;
        let length = file.read_at(&mut bytes, 0)?;
        let now =
            String::from_utf8_lossy(&bytes[..length]).trim().parse().map_err(io::Error::other)?;
        let is_expected = is_same_window(expected, now);
        if is_expected {
            file.write_all_at(text.as_bytes(), 0)?;
        }
        Ok(is_expected)
    }

    /// The journal's file name: the path with dashes for slashes.
    fn journal(&self, folder: &Path) -> PathBuf {
        let name = self.0.display().to_string().trim_start_matches('/').replace('/', "-");
        folder.join(format!("{name}.json"))
    }
}

/// The journal's first line.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Entry {
    knob: PathBuf,
    /// Inode number of the knob. A later device of the same name gets another one.
    ino: u64,
    /// What the knob said.
    kb: u64,
    pid: u32,
}

/// Each further line: a number, written before the knob is set to it.
#[derive(Serialize, Deserialize)]
struct About {
    set: u64,
}

/// What a journal says.
struct Noted {
    entry: Entry,
    /// The numbers that the knob may have been set to.
    set: Vec<u64>,
}

impl Noted {
    /// `None` if the first line is damaged. A line that is cut off was written just before a kill, so its number was
    /// never set.
    fn read(journal: &Path) -> Option<Noted> {
        let mut text = String::new();
        File::open(journal).ok()?.take(1 << 20).read_to_string(&mut text).ok()?;
        Noted::parse(&text)
    }

    fn parse(text: &str) -> Option<Noted> {
        let mut lines = text.lines();
        let entry = serde_json::from_str(lines.next()?).ok()?;
        let set = lines.filter_map(|line| serde_json::from_str::<About>(line).ok());
        Some(Noted { entry, set: set.map(|about| about.set).collect() })
    }

    /// The knob, if it still belongs to the same device.
    fn knob(&self) -> Option<Knob> {
        let ino = fs::metadata(&self.entry.knob).ok()?.ino();
        Knob::at(&self.entry.knob).filter(|_| ino == self.entry.ino)
    }

    /// The knob and its former value in KiB, if it still has a value that was set here.
    fn left(&self) -> Option<(Knob, u64)> {
        let knob = self.knob()?;
        let now = knob.kb().ok()?;
        self.set.iter().any(|kb| is_same_window(*kb, now)).then_some((knob, self.entry.kb))
    }
}

/// The kernel keeps whole pages.
fn is_same_window(one_kb: u64, other_kb: u64) -> bool {
    const PAGE_KB: u64 = PAGE_BYTES / 1024;
    one_kb / PAGE_KB == other_kb / PAGE_KB
}

/// A borrowed knob, restored when dropped. If the process is killed, the next [`recover`] restores
/// it.
#[derive(Debug)]
pub struct Borrowed {
    knob: Knob,
    kb: u64,
    path: PathBuf,
    /// Locked while borrowed.
    journal: File,
    /// The last number to which the knob was set.
    set: Mutex<Option<u64>>,
}

impl Borrowed {
    /// Borrows the knob and writes its current value into the journal.
    ///
    /// # Errors
    /// See [`KnobError`].
    pub fn take(knob: Knob) -> Result<Borrowed, KnobError> {
        Borrowed::take_in(knob, Path::new(JOURNALS))
    }

    fn take_in(knob: Knob, folder: &Path) -> Result<Borrowed, KnobError> {
        let no_journal = |error| KnobError::NoJournal { folder: folder.to_owned(), error };
        DirBuilder::new().recursive(true).mode(0o755).create(folder).map_err(no_journal)?;
        let mut path = knob.journal(folder);
        let mut locked = lock::take(&path);
        let is_taken = |locked: &io::Result<File>| {
            locked.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
        };
        if is_taken(&locked) {
            let holder = Noted::read(&path).map(|noted| noted.entry.pid);
            if holder.is_some_and(process::is_ancestor) {
                path.set_extension(WITHIN);
                locked = lock::take(&path);
            }
            if is_taken(&locked) {
                let pid = holder.map_or("?".into(), |pid| pid.to_string());
                return Err(KnobError::Taken { knob: knob.0, pid });
            }
        }
        let mut journal = locked.map_err(no_journal)?;
        // A child of a killed run may have left its own value on top of that.
        put_back_within(&path);
        failpoint::reach("knob-locked");
        // A killed run may have left its own value. Restore the value from before.
        let left = Noted::read(&path).and_then(|noted| noted.left());
        if let Some((_, kb)) = left.filter(|(left, _)| *left == knob) {
            knob.set(kb)?;
        }
        let unusable = |error| KnobError::Unusable { knob: knob.0.clone(), error };
        let kb = knob.kb().map_err(unusable)?;
        let ino = fs::metadata(&knob.0).map_err(unusable)?.ino();
        let entry = Entry { knob: knob.0.clone(), ino, kb, pid: std::process::id() };
        journal
            .set_len(0)
            .and_then(|()| journal.rewind())
            .and_then(|()| write_line(&mut journal, &entry))
            .inspect_err(|_| {
                let _ = fs::remove_file(&path);
            })
            .map_err(no_journal)?;
        failpoint::reach("knob-journalled");
        Ok(Borrowed { knob, kb, path, journal, set: None.into() })
    }

    /// The window in KiB when it was borrowed.
    pub fn was_kb(&self) -> u64 {
        self.kb
    }

    /// Sets the window until this is dropped.
    ///
    /// # Errors
    /// [`KnobError::Unusable`], [`KnobError::NoJournal`] if the journal cannot be written, or
    /// [`KnobError::SetByOthers`]. Then nothing is set.
    pub fn set(&self, kb: u64) -> Result<(), KnobError> {
        let folder = self.path.parent().unwrap_or(Path::new("/")).to_owned();
        write_line(&mut &self.journal, &About { set: kb })
            .map_err(|error| KnobError::NoJournal { folder, error })?;
        failpoint::reach("knob-noted");
        let mut set = self.set.lock().unwrap_or_else(PoisonError::into_inner);
        let knob = self.knob.0.clone();
        match self.knob.replace(set.unwrap_or(self.kb), kb) {
            Ok(true) => *set = Some(kb),
            Ok(false) => return Err(KnobError::SetByOthers { knob }),
            Err(error) => return Err(KnobError::Unusable { knob, error }),
        }
        failpoint::reach("knob-set");
        Ok(())
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        // A child that was killed may have left its own value.
        put_back_within(&self.path);
        let set = *self.set.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(Err(error)) = set.map(|kb| self.knob.replace(kb, self.kb))
            && self.knob.0.exists()
        {
            // Keep the journal.
            crate::stderr::note(KnobError::Unusable { knob: self.knob.0.clone(), error });
            return;
        }
        failpoint::reach("knob-restored");
        let _ = fs::remove_file(&self.path);
        failpoint::reach("knob-struck");
    }
}

/// Writes one line in one call, so that a kill leaves all of it or nothing.
fn write_line(mut file: impl Write, line: &impl Serialize) -> io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    file.write_all(&text)
}

/// The knobs that killed runs left changed, each with its former value in KiB.
pub fn left() -> Vec<(Knob, u64)> {
    let free = journals(Path::new(JOURNALS)).filter(|journal| !lock::is_taken(journal));
    let mut free: Vec<PathBuf> = free.collect();
    // Of a knob that was borrowed twice, the first journal tells the former value.
    let second: Vec<PathBuf> = free.iter().filter_map(|journal| within(journal)).collect();
    free.retain(|journal| !second.contains(journal));
    free.iter().filter_map(|journal| Noted::read(journal)?.left()).collect()
}

fn journals(folder: &Path) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(folder).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()))
}

/// Restores the windows that killed runs have left changed. Returns each knob with its KiB.
pub fn recover() -> Vec<(Knob, u64)> {
    recover_in(Path::new(JOURNALS))
}

fn recover_in(folder: &Path) -> Vec<(Knob, u64)> {
    let mut journals: Vec<_> = journals(folder).collect();
    // What was borrowed last is put back first.
    journals.sort_by_key(|journal| journal.extension() != Some(OsStr::new(WITHIN)));
    journals.iter().filter_map(|journal| put_back(journal)).collect()
}

/// The journal of somebody who borrows the same knob within that of `journal`; `None` if that is such a journal itself.
fn within(journal: &Path) -> Option<PathBuf> {
    let is_within = journal.extension() == Some(OsStr::new(WITHIN));
    (!is_within).then(|| journal.with_extension(WITHIN))
}

/// Puts back what somebody has left who had borrowed the same knob within that of `journal`.
fn put_back_within(journal: &Path) {
    if let Some(within) = within(journal).filter(|within| within.exists()) {
        put_back(&within);
    }
}

fn put_back(journal: &Path) -> Option<(Knob, u64)> {
    let _lock = lock::take(journal).ok()?;
    if within(journal).is_some_and(|within| lock::is_taken(&within)) {
        // Whoever has borrowed it last puts it back first.
        return None;
    }
    let left = Noted::read(journal).and_then(|noted| noted.left());
    if let Some((knob, kb)) = &left {
        knob.set(*kb).ok()?;
    }
    // Also remove a journal that is damaged, of a device that is gone, or with a number that somebody has set since.
    let _ = fs::remove_file(journal);
    left
}

#[cfg(any(test, fuzzing))]
pub(crate) fn read_any(journal: &[u8]) {
    if let Some(noted) = Noted::parse(&String::from_utf8_lossy(journal)) {
        let knob = Knob::at(&noted.entry.knob);
        assert!(knob.is_none_or(|knob| knob.path().starts_with("/sys")), "nothing else is set");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::MutexGuard;

    use super::*;

    /// Some knob of this machine, for one test at a time.
    fn some_knob() -> Option<(Knob, MutexGuard<'static, ()>)> {
        static ALONE: Mutex<()> = Mutex::new(());
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        Some((Knob::any()?, alone))
    }

    #[test]
    fn only_windows_of_the_kernel_are_knobs() {
        for path in ["/etc/passwd", "/sys/class/bdi/../../../etc/read_ahead_kb", "/sys/none"] {
            assert_eq!(Knob::at(Path::new(path)), None, "{path}");
        }
    }

    #[test]
    fn a_damaged_journal_is_cleared_and_changes_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let journal = folder.path().join("x.json");
        for text in ["", "{", "{\"knob\":\"/etc/passwd\",\"ino\":1,\"kb\":0,\"pid\":1}"] {
            fs::write(&journal, text).expect("written");
            assert_eq!(recover_in(folder.path()), []);
            assert!(!journal.exists());
        }
    }

    /// The contents of a journal: the knob with the number `ino` was `kb`, and was set to `set`.
    fn noted(knob: &Knob, ino: u64, kb: u64, set: &[u64]) -> Noted {
        let entry = Entry { knob: knob.0.clone(), ino, kb, pid: 1 };
        let mut text = serde_json::to_string(&entry).expect("JSON");
        text.extend(set.iter().map(|kb| format!("\n{{\"set\":{kb}}}")));
        Noted::parse(&(text + "\n{\"set")).expect("it is whole, but for its last line")
    }

    #[test]
    fn another_device_of_that_name_and_what_somebody_has_set_since_are_left_alone() {
        let Some((knob, _alone)) = some_knob() else { return };
        let (ino, now) =
            (fs::metadata(&knob.0).expect("there").ino(), knob.kb().expect("a number"));
        assert_eq!(noted(&knob, ino, 1, &[now + 64, now]).left(), Some((knob.clone(), 1)));
        assert!(noted(&knob, ino, 1, &[now + 3 - now % 4]).left().is_some(), "a page");
        assert_eq!(noted(&knob, ino, 1, &[now + 64]).left(), None, "somebody has set it since");
        assert_eq!(noted(&knob, ino, 1, &[]).left(), None, "nothing was set");
        assert_eq!(noted(&knob, ino + 1, 1, &[now]).left(), None, "another device");
    }

    #[test]
    fn the_first_borrowers_journal_waits_for_the_second_ones() {
        let folder = tempfile::tempdir().expect("a folder");
        let first = folder.path().join("x.json");
        let second = within(&first).expect("a journal of its own");
        assert_eq!(within(&second), None, "there is no third");
        fs::write(&first, "damaged").expect("written");
        let held = lock::take(&second).expect("it is free");
        assert_eq!(put_back(&first), None);
        assert!(first.exists());
        drop(held);
        recover_in(folder.path());
        assert_eq!(journals(folder.path()).count(), 0);
    }

    #[test]
    fn a_borrowed_knob_is_set_and_put_back_unless_somebody_has_set_it_since() {
        let Some((knob, _alone)) = some_knob().filter(|(knob, _)| knob.is_writable()) else {
            return;
        };
        let folder = tempfile::tempdir().expect("a folder");
        let before = knob.kb().expect("a number");
        for others in [None, Some(before + 512)] {
            let borrowed = Borrowed::take_in(knob.clone(), folder.path()).expect("it is free");
            let again = Borrowed::take_in(knob.clone(), folder.path());
            assert!(matches!(again, Err(KnobError::Taken { .. })));
            borrowed.set(before + 64).expect("set");
            if let Some(kb) = others {
                knob.set(kb).expect("set");
                let again = borrowed.set(before + 128);
                assert!(matches!(again, Err(KnobError::SetByOthers { .. })));
            }
            drop(borrowed);
            assert_eq!(knob.kb().ok(), Some(others.unwrap_or(before)));
            assert_eq!(journals(folder.path()).count(), 0);
        }
        knob.set(before).expect("as it was");

        // A second borrower was killed: its parent goes on, or was killed as well.
        let ino = fs::metadata(&knob.0).expect("there").ino();
        let leave = |journal: &Path, kb: u64, set: u64| {
            let entry = Entry { knob: knob.0.clone(), ino, kb, pid: 1 };
            let entry = serde_json::to_string(&entry).expect("JSON");
            fs::write(journal, format!("{entry}\n{{\"set\":{set}}}\n")).expect("written");
            knob.set(set).expect("set");
        };
        let first = knob.journal(folder.path());
        let second = within(&first).expect("a journal of its own");
        let parent = Borrowed::take_in(knob.clone(), folder.path()).expect("it is free");
        parent.set(before + 64).expect("set");
        leave(&second, before + 64, before + 128);
        drop(parent);
        assert_eq!(knob.kb().ok(), Some(before));
        leave(&first, before, before + 64);
        leave(&second, before + 64, before + 128);
        recover_in(folder.path());
        assert_eq!(knob.kb().ok(), Some(before));
        assert_eq!(journals(folder.path()).count(), 0);
    }

    #[test]
    fn a_journal_is_nobodys_to_lock_but_roots() {
        let Some((knob, _alone)) = some_knob().filter(|(knob, _)| knob.is_writable()) else {
            return;
        };
        let folder = tempfile::tempdir().expect("a folder");
        let borrowed = Borrowed::take_in(knob, folder.path()).expect("it is free");
        let mode = fs::metadata(&borrowed.path).expect("it is there").mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_journal_in_use_is_left_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let journal = folder.path().join("x.json");
        let held = lock::take(&journal).expect("it is free");
        assert_eq!(recover_in(folder.path()), []);
        assert!(lock::is_taken(&journal));
        assert!(journal.exists(), "somebody measures with it");
        drop(held);
        recover_in(folder.path());
        assert!(!journal.exists());
    }
}
