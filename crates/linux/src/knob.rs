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
    /// A killed bowwave has left it changed, and it cannot be put back now.
    #[error(
        "a killed bowwave has changed {knob}, and it cannot be put back to {kb} KiB: {error}; \
         write {kb} into it as root"
    )]
    Unrestored {
        /// The file.
        knob: PathBuf,
        /// Its former value in KiB.
        kb: u64,
        /// Why.
        error: io::Error,
    },
    /// Nobody can tell what a killed bowwave has left changed.
    #[error(
        "a killed bowwave may have left a window changed, but its journal {journal} cannot be \
         read: {error}; make it readable and run `bowwave daemon --recover` as root"
    )]
    UnreadJournal {
        /// The journal, which is named after the knob, or the folder of all.
        journal: PathBuf,
        /// Why.
        error: io::Error,
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
        self.write(kb).map_err(|error| KnobError::Unusable { knob: self.0.clone(), error })
    }

    fn write(&self, kb: u64) -> io::Result<()> {
        fs::write(&self.0, kb.to_string())
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
    /// `None` if there is no journal, or as [`parse`](Self::parse) says.
    fn read(journal: &Path) -> io::Result<Option<Noted>> {
        let mut bytes = Vec::new();
        match File::open(journal) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file?.take(1 << 20).read_to_end(&mut bytes)?,
        };
        Ok(Noted::parse(&String::from_utf8_lossy(&bytes)))
    }

    /// `None` if the first line is damaged. A line that is cut off was written just before a kill, so its number was
    /// never set.
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
    fn left(&self) -> Result<Option<(Knob, u64)>, KnobError> {
        let Some(knob) = self.knob() else { return Ok(None) };
        let kb = self.entry.kb;
        match knob.kb() {
            Ok(now) => {
                let is_set_here = self.set.iter().any(|kb| is_same_window(*kb, now));
                Ok(is_set_here.then_some((knob, kb)))
            }
            // The device is gone.
            Err(_) if !knob.0.exists() => Ok(None),
            Err(error) => Err(KnobError::Unrestored { knob: knob.0, kb, error }),
        }
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
            let holder = Noted::read(&path).ok().flatten().map(|noted| noted.entry.pid);
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
        put_back_within(&path)?;
        failpoint::reach("knob-locked");
        // A killed run may have left its own value. Restore the value from before.
        if let Some((_, kb)) = left_in(&path)?.filter(|(left, _)| *left == knob) {
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
        if let Err(error) = put_back_within(&self.path) {
            // Keep the journal.
            crate::stderr::note(error);
            return;
        }
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
    let mut free = journals(Path::new(JOURNALS)).unwrap_or_default();
    free.retain(|journal| !lock::is_taken(journal));
    // Of a knob that was borrowed twice, the first journal tells the former value.
    let second: Vec<PathBuf> = free.iter().filter_map(|journal| within(journal)).collect();
    free.retain(|journal| !second.contains(journal));
    free.iter().filter_map(|journal| left_in(journal).ok().flatten()).collect()
}

/// The knob that this journal says was left changed, with its former value in KiB.
fn left_in(journal: &Path) -> Result<Option<(Knob, u64)>, KnobError> {
    let unread = |error| KnobError::UnreadJournal { journal: journal.to_owned(), error };
    Noted::read(journal).map_err(unread)?.map_or(Ok(None), |noted| noted.left())
}

/// What [`recover`] has done.
#[derive(Debug, Default)]
pub struct Recovery {
    /// The knobs that were put back, each with its KiB.
    pub restored: Vec<(Knob, u64)>,
    /// Why others may stay changed.
    pub failed: Vec<KnobError>,
}

/// Restores the windows that killed runs have left changed. Those of living runs stay.
pub fn recover() -> Recovery {
    recover_in(Path::new(JOURNALS))
}

fn recover_in(folder: &Path) -> Recovery {
    let mut recovery = Recovery::default();
    let mut journals = journals(folder).unwrap_or_else(|error| {
        let journal = folder.to_owned();
        recovery.failed.push(KnobError::UnreadJournal { journal, error });
        Vec::new()
    });
    // What was borrowed last is put back first.
    journals.sort_by_key(|journal| journal.extension() != Some(OsStr::new(WITHIN)));
    for journal in journals {
        match put_back(&journal) {
            Ok(restored) => recovery.restored.extend(restored),
            Err(error) => recovery.failed.push(error),
        }
    }
    recovery
}

fn journals(folder: &Path) -> io::Result<Vec<PathBuf>> {
    match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        entries => entries?.map(|entry| Ok(entry?.path())).collect(),
    }
}

/// The journal of somebody who borrows the same knob within that of `journal`; `None` if that is such a journal itself.
fn within(journal: &Path) -> Option<PathBuf> {
    let is_within = journal.extension() == Some(OsStr::new(WITHIN));
    (!is_within).then(|| journal.with_extension(WITHIN))
}

/// Puts back what somebody has left who had borrowed the same knob within that of `journal`.
fn put_back_within(journal: &Path) -> Result<(), KnobError> {
    match within(journal).filter(|within| within.exists()) {
        Some(within) => put_back(&within).map(drop),
        None => Ok(()),
    }
}

/// Puts the knob of a journal back, unless a living run holds that. Returns the knob with its KiB if it was changed.
fn put_back(journal: &Path) -> Result<Option<(Knob, u64)>, KnobError> {
    let _lock = match lock::take(journal) {
        Ok(lock) => lock,
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
        Err(error) => {
            return Err(KnobError::UnreadJournal { journal: journal.to_owned(), error });
        }
    };
    if within(journal).is_some_and(|within| within.exists()) {
        // Whoever has borrowed it last puts it back first.
        return Ok(None);
    }
    let left = left_in(journal)?;
    if let Some((knob, kb)) = &left
        && let Err(error) = knob.write(*kb)
        && knob.0.exists()
    {
        return Err(KnobError::Unrestored { knob: knob.0.clone(), kb: *kb, error });
    }
    // Also remove a journal that is damaged, of a device that is gone, or with a number that somebody has set since.
    let _ = fs::remove_file(journal);
    Ok(left)
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
    use std::os::unix::fs::chown;
    use std::sync::MutexGuard;

    use super::*;
    use crate::acting_as::NOBODY;

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
            recovers(folder.path(), &[]);
            assert!(!journal.exists());
        }
    }

    /// Recovers in this folder, without a failure, and restores just these.
    fn recovers(folder: &Path, restored: &[(Knob, u64)]) {
        let recovery = recover_in(folder);
        assert_eq!(recovery.restored, restored);
        assert!(recovery.failed.is_empty(), "{:?}", recovery.failed);
    }

    /// Why knobs stay changed after a recovery in this folder.
    fn failures(folder: &Path) -> Vec<String> {
        recover_in(folder).failed.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_journal_that_cannot_be_read_is_told_and_hides_no_other() {
        let folder = tempfile::tempdir().expect("a folder");
        let [odd, damaged] = ["a.json", "b.json"].map(|name| folder.path().join(name));
        fs::create_dir(&odd).expect("made");
        fs::write(&damaged, "{").expect("written");
        let told = failures(folder.path());
        assert_eq!(told.len(), 1, "{told:?}");
        let words = [&*odd.to_string_lossy(), "Is a directory", "bowwave daemon --recover"];
        assert!(words.iter().all(|word| told[0].contains(word)), "{told:?}");
        assert!(odd.exists() && !damaged.exists());
        let told = failures(&damaged.join("none"));
        assert_eq!(told, [""; 0], "there are no journals before the first one");
        fs::write(&damaged, "no folder").expect("written");
        let told = failures(&damaged);
        assert!(told.len() == 1 && told[0].contains("b.json"), "{told:?}");
    }

    #[test]
    fn a_knob_that_cannot_be_put_back_is_told_and_its_journal_stays() {
        let Some((knob, _alone)) = some_knob().filter(|(knob, _)| knob.is_writable()) else {
            return;
        };
        if !rustix::process::geteuid().is_root() {
            return eprintln!("skipped: needs root");
        }
        let folder = tempfile::tempdir().expect("a folder");
        let now = knob.kb().expect("a number");
        let ino = fs::metadata(&knob.0).expect("there").ino();
        let entry = Entry { knob: knob.0.clone(), ino, kb: now, pid: 1 };
        let entry = serde_json::to_string(&entry).expect("JSON");
        let journal = knob.journal(folder.path());
        fs::write(&journal, format!("{entry}\n{{\"set\":{now}}}\n")).expect("written");
        for path in [folder.path(), &journal] {
            chown(path, Some(65534), None).expect("root may do that");
        }
        // Only root may write to sysfs.
        let told = NOBODY.act(|| failures(folder.path())).expect("root may do that");
        assert_eq!(told.len(), 1, "{told:?}");
        let path = knob.0.to_string_lossy();
        let words = [&*path, &format!("write {now} into it"), "Permission denied"];
        assert!(words.iter().all(|word| told[0].contains(word)), "{told:?}");
        assert!(journal.exists());
        recovers(folder.path(), &[(knob, now)]);
        assert!(!journal.exists());
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
        let left = |ino, set: &[u64]| noted(&knob, ino, 1, set).left().expect("it can be read");
        assert_eq!(left(ino, &[now + 64, now]), Some((knob.clone(), 1)));
        assert!(left(ino, &[now + 3 - now % 4]).is_some(), "a page");
        assert_eq!(left(ino, &[now + 64]), None, "somebody has set it since");
        assert_eq!(left(ino, &[]), None, "nothing was set");
        assert_eq!(left(ino + 1, &[now]), None, "another device");
    }

    #[test]
    fn the_first_borrowers_journal_waits_for_the_second_ones() {
        let folder = tempfile::tempdir().expect("a folder");
        let first = folder.path().join("x.json");
        let second = within(&first).expect("a journal of its own");
        assert_eq!(within(&second), None, "there is no third");
        fs::write(&first, "damaged").expect("written");
        let held = lock::take(&second).expect("it is free");
        assert_eq!(put_back(&first).expect("a living run holds the other"), None);
        assert!(first.exists());
        drop(held);
        recovers(folder.path(), &[]);
        assert_eq!(journals(folder.path()).expect("listed"), [] as [PathBuf; 0]);
        fs::write(&first, "damaged").expect("written");
        fs::create_dir(&second).expect("what cannot be read as a journal");
        assert_eq!(failures(folder.path()).len(), 1);
        assert!(first.exists(), "it tells the former value");
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
            assert_eq!(journals(folder.path()).expect("listed"), [] as [PathBuf; 0]);
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
        recovers(folder.path(), &[(knob.clone(), before + 64), (knob.clone(), before)]);
        assert_eq!(knob.kb().ok(), Some(before));
        assert_eq!(journals(folder.path()).expect("listed"), [] as [PathBuf; 0]);
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
        recovers(folder.path(), &[]);
        assert!(lock::is_taken(&journal));
        assert!(journal.exists(), "somebody measures with it");
        drop(held);
        recovers(folder.path(), &[]);
        assert!(!journal.exists());
    }
}
