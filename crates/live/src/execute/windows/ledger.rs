//! Lists the open files whose window bowwave has set, so that it can restore them.
//!
//! An entry names an open file by process, inode and descriptor: a duplicate would keep its file system from being
//! unmounted. The list is also in a file, one JSON line per entry, for the next start after a kill. An entry is removed
//! only after its window was restored.
//!
//! A process keeps its file [locked](linux::lock), so that no other one takes it over while it lives. A file that is
//! free was left by a process that was killed, whoever has its number now.
//!
//! ```text
//!   record --> Thread --restored--> remove
//!                |  ^
//!   cannot, ends |  | claim
//!                v  |
//!              Nobody --reported as an orphan--> Engine
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use readahead::{DeviceNumber, FileKey, FileRef, PAGE_BYTES};
use serde::{Deserialize, Serialize};

use super::fetching::Fetched;
use super::setting::RandomBy;

/// How often to look for entries of ended processes.
const SCAN_INTERVAL_NS: u64 = 60_000_000_000;

/// A ledger's file is called `given-windows-PID.jsonl`.
const PREFIX: &str = "given-windows";
const SUFFIX: &str = ".jsonl";

/// The path of this process's ledger in `state`.
pub(super) fn own_ledger(state: &Path) -> PathBuf {
    state.join(format!("{PREFIX}-{}{SUFFIX}", std::process::id()))
}

/// The ledgers in `state`. Of one whose process was killed while it wrote it, only a draft may be there.
///
/// # Errors
/// If the folder cannot be read. Without a folder there are none.
pub(super) fn all_ledgers(state: &Path) -> io::Result<BTreeSet<PathBuf>> {
    let mut ledgers = BTreeSet::new();
    let files = match fs::read_dir(state) {
        Err(error) if is_no_folder(&error) => return Ok(ledgers),
        files => files?,
    };
    for file in files {
        let name = file?.file_name().to_string_lossy().into_owned();
        let name = linux::whole::final_name(&name);
        if name.starts_with(PREFIX) && name.ends_with(SUFFIX) {
            ledgers.insert(state.join(name));
        }
    }
    Ok(ledgers)
}

fn is_no_folder(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// An open file whose window bowwave has set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct WindowOverride {
    pub(super) tgid: u32,
    /// The reader's descriptor. Older ledgers have none; then any descriptor of the file serves.
    #[serde(default)]
    pub(super) number: i32,
    /// When the process started, in ticks since boot: process ids are used again.
    pub(super) started: u64,
    major: u32,
    minor: u32,
    ino: u64,
    /// The file that sets the window of its file system (`read_ahead_kb`).
    pub(super) knob: PathBuf,
    /// The open file's own window in KiB. It may be twice the device's, after sequential advice.
    pub(super) kb_before: u64,
    /// Whose random advice it may have: bowwave's, once its look-ahead was switched off. Older ledgers do not tell.
    #[serde(default)]
    pub(super) random_by: RandomBy,
}

impl WindowOverride {
    /// An entry for the open file of `of`, whose own window is `own_pages`.
    pub(super) fn of(
        of: FileRef,
        fetched: &Fetched,
        knob: &Path,
        own_pages: u32,
        random_by: RandomBy,
    ) -> Self {
        let FileKey { dev: DeviceNumber { major, minor }, ino } = of.file;
        let &Fetched { number, started, .. } = fetched;
        let (tgid, knob) = (of.tgid, knob.to_owned());
        let kb_before = u64::from(own_pages) * PAGE_BYTES / 1024;
        WindowOverride { tgid, number, started, major, minor, ino, knob, kb_before, random_by }
    }

    /// The open file's own window in pages, saturated.
    pub(super) fn pages_before(&self) -> u32 {
        (self.kb_before / (PAGE_BYTES / 1024)).try_into().unwrap_or(u32::MAX)
    }

    pub(super) fn file(&self) -> FileKey {
        let dev = DeviceNumber { major: self.major, minor: self.minor };
        FileKey { dev, ino: self.ino }
    }

    /// The file and its reader. The generation is not known.
    pub(super) fn file_ref(&self) -> FileRef {
        FileRef { file: self.file(), generation: 0, tgid: self.tgid }
    }

    /// Whether no process has this number any more. Unlike reading when the process started, this does not wait for a
    /// process that hangs in `exec`.
    fn has_ended(&self) -> bool {
        matches!(fs::exists(format!("/proc/{}", self.tgid)), Ok(false))
    }

    /// Whether both name the same open file, as far as can be told.
    fn is_same_file(&self, other: &WindowOverride) -> bool {
        (self.tgid, self.started, self.file()) == (other.tgid, other.started, other.file())
    }
}

/// Parses a ledger file, skipping damaged lines.
pub(super) fn entries(ledger: &[u8]) -> impl Iterator<Item = WindowOverride> {
    ledger.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok())
}

/// The number of an entry, unique within a process.
pub(super) type EntryId = u32;

/// Who has to restore a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holder {
    /// The thread that recorded or claimed the entry.
    Thread,
    /// Nobody: its thread or process has ended.
    Nobody,
    /// The engine, which was told of the orphan.
    Engine,
}

struct Entry {
    window: WindowOverride,
    holder: Holder,
}

/// All entries of a process, in memory and on disk. The engines of a process hand it on, while threads of an earlier
/// one may still restore their windows.
pub(super) struct Ledger {
    path: PathBuf,
    /// Locked, from the first entry on.
    file: Option<File>,
    entries: BTreeMap<EntryId, Entry>,
    last_id: EntryId,
    /// Counts engines.
    generation: u32,
    /// The file still has removed entries, which does no harm.
    is_stale: bool,
    scanned_at: u64,
}

impl Ledger {
    /// Opens a ledger, with the entries that an earlier process with this id has left in its file.
    pub(super) fn open(path: PathBuf) -> Self {
        let mut ledger = Ledger {
            path,
            file: None,
            entries: BTreeMap::new(),
            last_id: 0,
            generation: 0,
            is_stale: false,
            scanned_at: 0,
        };
        // Another process that takes it over restores those entries.
        if ledger.path.exists() && ledger.locked_file().is_ok() {
            let text = fs::read(&ledger.path).unwrap_or_default();
            ledger.take_over(&ledger.path.clone(), &text);
        }
        ledger
    }

    /// Takes over the entries of another ledger, unless its process lives. Removes its file once they are written here.
    ///
    /// # Errors
    /// If it cannot be read. Then it stays.
    pub(super) fn adopt(&mut self, other: &Path) -> io::Result<()> {
        if other == self.path {
            return Ok(());
        }
        let _lock = match linux::lock::take(other) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            lock => lock?,
        };
        self.take_over(other, &fs::read(other)?);
        if self.rewrite().is_ok() {
            let _ = fs::remove_file(other);
        }
        Ok(())
    }

    /// The file of this process.
    ///
    /// # Errors
    /// If it cannot be created, or another process is taking over what was left in it.
    fn locked_file(&mut self) -> io::Result<&File> {
        let file = match self.file.take() {
            Some(file) => file,
            None => {
                if let Some(folder) = self.path.parent() {
                    fs::create_dir_all(folder)?;
                }
                linux::lock::take(&self.path)?
            }
        };
        Ok(self.file.insert(file))
    }

    fn take_over(&mut self, path: &Path, text: &[u8]) {
        // A draft that a killed run left has no entry that is not in the file as well.
        linux::whole::forget_drafts(path);
        for window in entries(text) {
            self.insert(window, Holder::Nobody);
        }
    }

    fn insert(&mut self, window: WindowOverride, holder: Holder) -> EntryId {
        self.last_id += 1;
        self.entries.insert(self.last_id, Entry { window, holder });
        self.last_id
    }

    /// The number of the current engine.
    pub(super) fn generation(&self) -> u32 {
        self.generation
    }

    /// Ends an engine; the next one will be told of its orphans again.
    pub(super) fn begin_generation(&mut self) {
        self.generation += 1;
        for entry in self.entries.values_mut().filter(|entry| entry.holder == Holder::Engine) {
            entry.holder = Holder::Nobody;
        }
    }

    /// The number of open files whose window bowwave has set.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn get(&self, id: EntryId) -> Option<&WindowOverride> {
        Some(&self.entries.get(&id)?.window)
    }

    /// Gives all entries that nobody holds to `holder`, and returns them.
    pub(super) fn claim_orphans(&mut self, holder: Holder) -> Vec<(EntryId, FileKey)> {
        let orphans = self.entries.iter_mut().filter(|(_, entry)| entry.holder == Holder::Nobody);
        let claimed = orphans.map(|(id, entry)| {
            entry.holder = holder;
            (*id, entry.window.file())
        });
        claimed.collect()
    }

    /// Makes the calling thread the holder of an entry, if it is still there.
    ///
    /// # Errors
    /// If another thread holds it.
    pub(super) fn claim(&mut self, id: EntryId) -> io::Result<()> {
        if let Some(entry) = self.entries.get_mut(&id) {
            if entry.holder == Holder::Thread {
                return Err(io::Error::other("another thread is about to restore it"));
            }
            entry.holder = Holder::Thread;
        }
        Ok(())
    }

    /// The holding thread could not restore the window, and does not try again.
    pub(super) fn unclaim(&mut self, id: EntryId) {
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.holder = Holder::Nobody;
        }
    }

    /// Writes down that an open file's window is about to be set, held by the calling thread. Returns the entry, which
    /// has the window from before any change: entry `known` if it names the same open file, otherwise a new one in
    /// place of `known`.
    pub(super) fn record(
        &mut self,
        known: Option<EntryId>,
        window: WindowOverride,
    ) -> io::Result<(EntryId, WindowOverride)> {
        if let Some((id, known)) = known.and_then(|id| Some((id, self.get(id)?)))
            && known.is_same_file(&window)
        {
            let mut known = known.clone();
            if (known.random_by, window.random_by) == (RandomBy::Program, RandomBy::Bowwave) {
                known.random_by = RandomBy::Bowwave;
                // A start that reads both lines undoes either.
                self.append(&known)?;
                self.entries.get_mut(&id).into_iter().for_each(|it| it.window = known.clone());
            }
            return Ok((id, known));
        }
        self.append(&window)?;
        known.into_iter().for_each(|known| self.remove(known));
        Ok((self.insert(window.clone(), Holder::Thread), window))
    }

    /// Adds a line to the file.
    fn append(&mut self, window: &WindowOverride) -> io::Result<()> {
        let mut line = serde_json::to_string(window)?;
        line.push('\n');
        let file = self.locked_file()?;
        let bytes_before = file.metadata()?.len();
        // If the disk is full, do not leave half a line, to which the next one would be joined.
        file.write_all_at(line.as_bytes(), bytes_before)
            .inspect_err(|_| drop(file.set_len(bytes_before)))
    }

    pub(super) fn remove(&mut self, id: EntryId) {
        self.is_stale |= self.entries.remove(&id).is_some();
    }

    /// Whether an earlier engine or run has set the window of this open file and not restored it yet: an entry that is
    /// not one of `ours` names it.
    pub(super) fn is_restore_pending(
        &self,
        window: &WindowOverride,
        ours: impl Fn(EntryId) -> bool,
    ) -> bool {
        let mut entries = self.entries.iter();
        entries.any(|(id, entry)| entry.window.is_same_file(window) && !ours(*id))
    }

    /// Removes the entries of ended processes, once in a while, and brings the file up to date.
    pub(super) fn tidy(&mut self, now: u64) {
        if now.saturating_sub(self.scanned_at) >= SCAN_INTERVAL_NS {
            self.scanned_at = now;
            let before = self.entries.len();
            self.entries.retain(|_, entry| !entry.window.has_ended());
            self.is_stale |= self.entries.len() < before;
        }
        self.write_down();
    }

    /// Brings the file up to date. If this fails, the next start after a kill restores some windows once more.
    pub(super) fn write_down(&mut self) {
        if self.is_stale {
            let _ = self.rewrite();
        }
    }

    fn rewrite(&mut self) -> io::Result<()> {
        if self.entries.is_empty() {
            // Without the lock, a file of that name is not this process's.
            if self.file.is_some() {
                match fs::remove_file(&self.path) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                    _ => self.file = None,
                }
            }
            self.is_stale = false;
            return Ok(());
        }
        let windows = self.entries.values().map(|entry| &entry.window);
        let lines = windows.filter_map(|window| serde_json::to_string(window).ok());
        let text: String = lines.map(|line| line + "\n").collect();
        self.locked_file()?;
        // Replace the file in one step, so that a kill leaves either the old list or the new one.
        self.file = Some(linux::whole::write_locked(&self.path, text)?);
        self.is_stale = false;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    fn given(ino: u64) -> WindowOverride {
        let tgid = std::process::id();
        let started = linux::process::started(tgid).expect("this process runs");
        let knob = "/sys/class/bdi/7:1/read_ahead_kb".into();
        let (number, major, minor) = (3, 7, 1);
        let (kb_before, random_by) = (128, RandomBy::Program);
        WindowOverride { tgid, number, started, major, minor, ino, knob, kb_before, random_by }
    }

    /// The entries in the file at `path`.
    fn listed(path: &Path) -> Vec<WindowOverride> {
        entries(&fs::read(path).unwrap_or_default()).collect()
    }

    fn adopt_all(ledger: &mut Ledger, state: &Path) {
        for path in all_ledgers(state).expect("listed") {
            ledger.adopt(&path).expect("read");
        }
    }

    #[test]
    fn a_damaged_line_hides_none_of_the_others() {
        let line = |ino| serde_json::to_vec(&given(ino)).expect("JSON");
        let ledger = [&line(1), &b"\n\xff{\n"[..], &line(2), b"\n", &line(3)[..20]].concat();
        let whole: Vec<u64> = entries(&ledger).map(|given| given.ino).collect();
        assert_eq!(whole, [1, 2]);
    }

    #[test]
    fn a_ledger_of_which_a_killed_run_left_only_a_draft_is_taken_over_and_nothing_stays() {
        let state = tempfile::tempdir().expect("a folder");
        let names = ["given-windows-0.jsonl.new-0", "given-windows-0.jsonl.new", "other.new-0"];
        for name in names {
            fs::write(state.path().join(name), "{").expect("written");
        }
        let ledgers = all_ledgers(state.path()).expect("listed");
        assert_eq!(ledgers, BTreeSet::from([state.path().join("given-windows-0.jsonl")]));
        let mut ledger = Ledger::open(own_ledger(state.path()));
        adopt_all(&mut ledger, state.path());
        let is_there = names.map(|name| state.path().join(name).exists());
        assert_eq!(is_there, [false, true, true]);
    }

    #[test]
    fn a_ledger_is_left_alone_while_its_process_lives_whatever_has_its_number() {
        let state = tempfile::tempdir().expect("a folder");
        // No bowwave.
        let path = state.path().join("given-windows-1.jsonl");
        let mut living = Ledger::open(path.clone());
        let (first, _) = living.record(None, given(1)).expect("written");
        let mut ledger = Ledger::open(own_ledger(state.path()));
        let mut recover = || {
            adopt_all(&mut ledger, state.path());
            ledger.len()
        };
        assert_eq!((recover(), listed(&path)), (0, vec![given(1)]));
        living.record(None, given(2)).expect("written");
        living.remove(first);
        living.write_down();
        assert_eq!((recover(), listed(&path)), (0, vec![given(2)]), "its file is another one now");
        living.record(None, given(3)).expect("written");
        assert_eq!((recover(), listed(&path)), (0, vec![given(2), given(3)]));
        let mode = fs::metadata(&path).expect("it is there").mode();
        assert_eq!(mode & 0o777, 0o600, "only root can lock it, and see what others read");
        drop(living);
        assert_eq!((recover(), path.exists()), (2, false));
    }

    #[test]
    fn a_ledger_that_an_older_version_has_left_is_taken_over_whatever_has_its_number() {
        let state = tempfile::tempdir().expect("a folder");
        // A process of this program's name.
        let own = own_ledger(state.path());
        let names = [own.clone(), state.path().join("given-windows.jsonl")];
        for (path, ino) in names.iter().zip(1..) {
            let line = serde_json::to_string(&given(ino)).expect("JSON");
            fs::write(path, line + "\n").expect("written");
        }
        let path = state.path().join("given-windows-1.jsonl");
        let mut ledger = Ledger::open(path.clone());
        adopt_all(&mut ledger, state.path());
        assert_eq!(listed(&path), [given(1), given(2)]);
        assert_eq!(all_ledgers(state.path()).expect("listed"), BTreeSet::from([path]));
    }

    #[test]
    fn a_process_that_was_given_the_number_of_a_killed_one_continues_its_ledger() {
        let state = tempfile::tempdir().expect("a folder");
        let path = own_ledger(state.path());
        Ledger::open(path.clone()).record(None, given(1)).expect("written");
        let mut ledger = Ledger::open(path.clone());
        ledger.adopt(&path).expect("it is its own");
        ledger.record(None, given(2)).expect("written");
        assert_eq!((ledger.len(), listed(&path)), (2, vec![given(1), given(2)]));
    }

    #[test]
    fn a_window_too_large_for_u32_is_saturated() {
        let given = WindowOverride { kb_before: u64::MAX, ..given(1) };
        assert_eq!(given.pages_before(), u32::MAX);
    }

    #[test]
    fn entries_of_ended_processes_are_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut ledger = Ledger::open(folder.path().join("given"));
        let mut process = std::process::Command::new("true").spawn().expect("it runs");
        process.wait().expect("it ends");
        ledger.record(None, given(1)).expect("written");
        ledger.record(None, WindowOverride { tgid: process.id(), ..given(2) }).expect("written");
        ledger.tidy(SCAN_INTERVAL_NS);
        assert_eq!((ledger.len(), ledger.get(1)), (1, Some(&given(1))));
    }

    #[test]
    fn a_ledger_is_never_half_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("given.jsonl");
        let mut ledger = Ledger::open(path.clone());
        let (first, _) = ledger.record(None, given(1)).expect("written");
        let (second, _) = ledger.record(None, given(2)).expect("written");
        let before = fs::read_to_string(&path).expect("it is there");
        let old = File::open(&path).expect("it is there");
        ledger.remove(first);
        ledger.tidy(0);
        assert_eq!(io::read_to_string(old).expect("read"), before, "it was replaced, not changed");
        assert_eq!(listed(&path), [given(2)]);
        ledger.remove(second);
        ledger.tidy(0);
        assert_eq!(fs::read_dir(folder.path()).expect("listed").count(), 0, "nothing is left over");
    }

    #[test]
    fn that_an_entrys_random_advice_is_bowwaves_survives_a_kill() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("given");
        let mut ledger = Ledger::open(path.clone());
        let (id, entry) = ledger.record(None, given(1)).expect("written");
        assert_eq!(entry.random_by, RandomBy::Program);
        let copied = WindowOverride { random_by: RandomBy::Bowwave, kb_before: 16, ..given(1) };
        let (same, entry) = ledger.record(Some(id), copied).expect("written");
        assert_eq!((same, entry.random_by, entry.kb_before), (id, RandomBy::Bowwave, 128));
        let (_, again) = ledger.record(Some(id), given(1)).expect("nothing new");
        assert_eq!(again, entry);
        drop(ledger);
        assert!(listed(&path).contains(&entry));
    }

    #[test]
    fn an_entry_survives_a_kill_and_is_gone_once_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("given");
        let mut ledger = Ledger::open(path.clone());
        let numbers = [1, 2, 3].map(|ino| ledger.record(None, given(ino)).expect("written").0);
        let narrower = WindowOverride { kb_before: 16, ..given(1) };
        let known = ledger.record(Some(numbers[0]), narrower).expect("nothing new");
        assert_eq!(known, (numbers[0], given(1)));
        ledger.remove(numbers[1]);
        ledger.remove(numbers[2]);
        ledger.tidy(0);
        drop(ledger);
        assert_eq!(listed(&path), [given(1)]);
        let mut next = Ledger::open(path.clone());
        let left = next.claim_orphans(Holder::Engine);
        assert_eq!(left.iter().map(|(_, file)| *file).collect::<Vec<_>>(), [given(1).file()]);
        next.remove(left[0].0);
        next.write_down();
        assert!(!path.exists());
    }

    #[test]
    fn what_could_not_be_brought_up_to_date_is_tried_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let (inner, path) = (folder.path().join("inner"), folder.path().join("inner/given"));
        let mut ledger = Ledger::open(path.clone());
        let (first, _) = ledger.record(None, given(1)).expect("written");
        ledger.record(None, given(2)).expect("written");
        ledger.remove(first);
        let away = folder.path().join("away");
        fs::rename(&inner, &away).expect("ours");
        fs::write(&inner, "no folder").expect("ours");
        ledger.write_down();
        fs::remove_file(&inner).expect("ours");
        fs::rename(&away, &inner).expect("ours");
        assert_eq!(listed(&path), [given(1), given(2)]);
        ledger.write_down();
        assert_eq!(listed(&path), [given(2)]);
    }

    #[test]
    fn an_empty_list_that_could_not_be_removed_is_removed_later() {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, away) = (folder.path().join("given"), folder.path().join("away"));
        let mut ledger = Ledger::open(path.clone());
        let (id, _) = ledger.record(None, given(1)).expect("written");
        ledger.remove(id);
        fs::rename(&path, &away).expect("ours");
        fs::create_dir(&path).expect("what cannot be removed as a file");
        ledger.write_down();
        fs::remove_dir(&path).expect("ours");
        fs::rename(&away, &path).expect("ours");
        ledger.write_down();
        assert!(!path.exists(), "a kill would leave an entry that was restored");
    }

    #[test]
    fn an_orphaned_ledger_is_adopted_and_stays_if_it_cannot_be_written_here() {
        let folder = tempfile::tempdir().expect("a folder");
        let (left, path) = (folder.path().join("left"), folder.path().join("given"));
        Ledger::open(left.clone()).record(None, given(1)).expect("written");
        let mut nowhere = Ledger::open(Path::new("/proc/self").join("given"));
        nowhere.adopt(&left).expect("read");
        assert_eq!((nowhere.len(), listed(&left)), (1, vec![given(1)]));
        let mut ledger = Ledger::open(path.clone());
        ledger.record(None, given(2)).expect("written");
        ledger.adopt(&left).expect("read");
        assert_eq!((listed(&path).len(), left.exists()), (2, false));
        (1..=2).for_each(|number| ledger.remove(number));
        ledger.write_down();
        assert!(!path.exists(), "none of both is kept by another name");
    }

    #[test]
    fn a_late_thread_of_an_earlier_engine_removes_only_its_own_entry() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("given");
        let mut ledger = Ledger::open(path.clone());
        let (old, _) = ledger.record(None, given(1)).expect("written");
        ledger.begin_generation();
        assert_eq!(ledger.claim_orphans(Holder::Engine), [], "its thread still holds it");
        // The kernel may have given the old open file's address to this one.
        let (new, _) = ledger.record(None, given(2)).expect("written");
        ledger.remove(old);
        ledger.write_down();
        assert_eq!((ledger.get(new), listed(&path)), (Some(&given(2)), vec![given(2)]));
    }

    #[test]
    fn an_entry_has_one_holder_and_is_reported_once_to_each_engine_if_it_has_none() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut ledger = Ledger::open(folder.path().join("given"));
        let (id, _) = ledger.record(None, given(1)).expect("written");
        assert!(ledger.claim(id).is_err(), "its thread has it");
        assert!(
            ledger.is_restore_pending(&given(1), |_| false)
                && !ledger.is_restore_pending(&given(1), |_| true)
        );
        ledger.unclaim(id);
        let orphans = vec![(id, given(1).file())];
        let engine = Holder::Engine;
        assert_eq!(ledger.claim_orphans(engine), orphans);
        assert_eq!(ledger.claim_orphans(engine), [], "it has been reported");
        ledger.begin_generation();
        assert_eq!(ledger.claim_orphans(engine), orphans, "the next engine is told, too");
        ledger.claim(id).expect("nobody else has it");
        ledger.remove(id);
        ledger.claim(id).expect("there is nothing to do");
    }
}
