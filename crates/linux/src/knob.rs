//! Borrows the kernel's read-ahead window of a device, a number in sysfs, and restores it.
//!
//! ```text
//!   borrow --> journal {knob, kb}, locked --> set, set, set --> put back --> journal removed
//!                    |
//!                    '-- killed: the lock is free; the next recover() puts the number back
//! ```

use std::fs::{self, File};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

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
    /// The journal cannot be written, so nothing was changed.
    #[error("cannot keep a journal in {folder}: {error}; name another folder with --state")]
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

    /// The journal's file name: the path with dashes for slashes.
    fn journal(&self, state: &Path) -> PathBuf {
        let name = self.0.display().to_string().trim_start_matches('/').replace('/', "-");
        journals(state).join(format!("{name}.json"))
    }
}

fn journals(state: &Path) -> PathBuf {
    state.join("knobs")
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Entry {
    knob: PathBuf,
    /// Inode number of the knob. A later device of the same name gets another one.
    ino: u64,
    kb: u64,
    pid: u32,
}

impl Entry {
    /// The knob, if it still belongs to the same device.
    fn knob(&self) -> Option<Knob> {
        let ino = fs::metadata(&self.knob).ok()?.ino();
        Knob::at(&self.knob).filter(|_| ino == self.ino)
    }
}

/// A borrowed knob, restored when dropped. If the process is killed, the next [`recover`] restores
/// it.
#[derive(Debug)]
pub struct Borrowed {
    knob: Knob,
    kb: u64,
    journal: PathBuf,
    /// Locked while borrowed.
    _lock: File,
}

impl Borrowed {
    /// Borrows the knob and writes its current value into the journal.
    ///
    /// # Errors
    /// See [`KnobError`].
    pub fn take(knob: Knob, state: &Path) -> Result<Borrowed, KnobError> {
        let folder = journals(state);
        let no_journal = |error| KnobError::NoJournal { folder: folder.clone(), error };
        fs::create_dir_all(&folder).map_err(no_journal)?;
        let journal = knob.journal(state);
        let mut file = match lock(&journal) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let pid = read_entry(&journal).map_or("?".into(), |entry| entry.pid.to_string());
                return Err(KnobError::Taken { knob: knob.0, pid });
            }
            Err(error) => return Err(no_journal(error)),
        };
        // A killed run may have left its own value. Restore the value from before.
        if let Some(entry) =
            read_entry(&journal).filter(|entry| entry.knob().as_ref() == Some(&knob))
        {
            knob.set(entry.kb)?;
        }
        let unusable = |error| KnobError::Unusable { knob: knob.0.clone(), error };
        let kb = knob.kb().map_err(unusable)?;
        let ino = fs::metadata(&knob.0).map_err(unusable)?.ino();
        let entry = Entry { knob: knob.0.clone(), ino, kb, pid: std::process::id() };
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| Ok(serde_json::to_writer(&file, &entry)?))
            .and_then(|()| file.flush())
            .inspect_err(|_| {
                let _ = fs::remove_file(&journal);
            })
            .map_err(no_journal)?;
        Ok(Borrowed { knob, kb, journal, _lock: file })
    }

    /// The window in KiB when it was borrowed.
    pub fn was_kb(&self) -> u64 {
        self.kb
    }

    /// Sets the window until this is dropped.
    ///
    /// # Errors
    /// [`KnobError::Unusable`].
    pub fn set(&self, kb: u64) -> Result<(), KnobError> {
        self.knob.set(kb)
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        match self.knob.set(self.kb) {
            Ok(()) => {
                let _ = fs::remove_file(&self.journal);
            }
            // Keep the journal, unless the device is gone.
            Err(error) if self.knob.0.exists() => {
                // Standard error may be closed.
                let _ = writeln!(io::stderr(), "bowwave: {error}");
            }
            Err(_) => {
                let _ = fs::remove_file(&self.journal);
            }
        }
    }
}

/// The knobs that killed runs left changed, each with its former value in KiB.
pub fn left(state: &Path) -> Vec<(Knob, u64)> {
    let Ok(entries) = fs::read_dir(journals(state)) else {
        return Vec::new();
    };
    let files = entries.filter_map(|entry| Some(entry.ok()?.path()));
    files.filter(|journal| !is_held(journal)).filter_map(|journal| noted(&journal)).collect()
}

/// Whether a running process holds the journal.
fn is_held(journal: &Path) -> bool {
    File::open(journal).is_ok_and(|file| !is_shared(&file))
}

/// Whether no process holds the journal exclusively. Readers only lock it for a moment.
fn is_shared(journal: &File) -> bool {
    flock(journal, FlockOperation::NonBlockingLockShared).is_ok()
}

/// How often [`lock`] yields to readers of a journal before it gives up.
const MOST_LOOKS: u32 = 1000;

/// The knob and its former value, if the device still exists.
fn noted(journal: &Path) -> Option<(Knob, u64)> {
    let entry = read_entry(journal)?;
    Some((entry.knob()?, entry.kb))
}

/// Restores the knobs that killed runs left changed. Returns each with the KiB it has again.
pub fn recover(state: &Path) -> Vec<(Knob, u64)> {
    let Ok(entries) = fs::read_dir(journals(state)) else {
        return Vec::new();
    };
    let files = entries.filter_map(|entry| Some(entry.ok()?.path()));
    files.filter_map(|journal| put_back(&journal)).collect()
}

fn put_back(journal: &Path) -> Option<(Knob, u64)> {
    let _lock = lock(journal).ok()?;
    let Some((knob, kb)) = noted(journal) else {
        // The journal is damaged, or the device is gone or replaced by another.
        let _ = fs::remove_file(journal);
        return None;
    };
    knob.set(kb).ok()?;
    let _ = fs::remove_file(journal);
    Some((knob, kb))
}

/// Locks the journal and makes sure that it still has its name.
fn lock(journal: &Path) -> io::Result<File> {
    let mut looks = 0;
    loop {
        let mut options = File::options();
        let file = options.read(true).write(true).create(true).truncate(false).open(journal)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) if looks < MOST_LOOKS && is_shared(&file) => {
                looks += 1;
                std::thread::yield_now();
                continue;
            }
            Err(Errno::WOULDBLOCK) => return Err(io::ErrorKind::WouldBlock.into()),
            Err(error) => return Err(error.into()),
        }
        // Its last holder may have removed it before this process got the lock.
        if fs::metadata(journal)
            .is_ok_and(|now| file.metadata().is_ok_and(|f| f.ino() == now.ino()))
        {
            return Ok(file);
        }
    }
}

fn read_entry(journal: &Path) -> Option<Entry> {
    let mut text = String::new();
    File::open(journal).ok()?.take(1 << 16).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

#[cfg(any(test, fuzzing))]
pub(crate) fn read_any(journal: &[u8]) {
    if let Ok(Entry { knob, .. }) = serde_json::from_slice(journal) {
        let knob = Knob::at(&knob);
        assert!(knob.is_none_or(|knob| knob.path().starts_with("/sys")), "nothing else is set");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_windows_of_the_kernel_are_knobs() {
        for path in ["/etc/passwd", "/sys/class/bdi/../../../etc/read_ahead_kb", "/sys/none"] {
            assert_eq!(Knob::at(Path::new(path)), None, "{path}");
        }
    }

    #[test]
    fn a_damaged_journal_is_cleared_and_changes_nothing() {
        let state = tempfile::tempdir().expect("a folder");
        fs::create_dir_all(journals(state.path())).expect("made");
        let journal = journals(state.path()).join("x.json");
        for text in ["", "{", "{\"knob\":\"/etc/passwd\",\"ino\":1,\"kb\":0,\"pid\":1}"] {
            fs::write(&journal, text).expect("written");
            assert_eq!(recover(state.path()), []);
            assert!(!journal.exists());
        }
    }

    #[test]
    fn another_device_of_that_name_is_left_alone() {
        let state = tempfile::tempdir().expect("a folder");
        fs::create_dir_all(journals(state.path())).expect("made");
        let Some(Knob(knob)) = Knob::any() else { return };
        let ino = fs::metadata(&knob).expect("it is there").ino();
        let entry = |ino| Entry { knob: knob.clone(), ino, kb: 1, pid: 1 };
        assert!(entry(ino).knob().is_some());
        assert_eq!(entry(ino + 1).knob(), None);
        let journal = journals(state.path()).join("x.json");
        fs::write(&journal, serde_json::to_string(&entry(ino + 1)).expect("JSON"))
            .expect("written");
        assert_eq!(recover(state.path()), []);
        assert!(!journal.exists());
    }

    #[test]
    fn what_is_at_work_is_left_alone() {
        let state = tempfile::tempdir().expect("a folder");
        fs::create_dir_all(journals(state.path())).expect("made");
        let journal = journals(state.path()).join("x.json");
        let held = lock(&journal).expect("it is free");
        assert_eq!(recover(state.path()), []);
        assert!(is_held(&journal));
        assert!(journal.exists(), "somebody measures with it");
        drop(held);
        recover(state.path());
        assert!(!journal.exists());
    }
}
