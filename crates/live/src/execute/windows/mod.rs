//! Sets the kernel's window of single open files, on a stock kernel.
//!
//! ```text
//!   bdi read_ahead_kb  128 ----> 4096 ------------------> 128
//!                              |                       ^
//!                              +-- fadvise(NORMAL) ----+   on a duplicate of the reader's own
//!                                  copies the window       descriptor: the same open file
//! ```
//!
//! The kernel then reads ahead by itself in that window, charged to the reader's memory cgroup. Files that others open
//! in the microseconds in between inherit it. The device's number is [borrowed](linux::knob) meanwhile: no other thread
//! or process of bowwave sets it, and after a kill the next start restores it. An entry in the [ledger](Ledger) says
//! which open file was changed. It is written before the change and removed after the window was restored.
//!
//! ```text
//!   a thread of each lane         shared by all lanes, and by successive engines
//!   Windows --+-- Journal -----> Mutex<Ledger> <--> STATE/given-windows-PID.jsonl
//!             +-- Fetcher -----> `bowwave fetch`: duplicates the reader's descriptor
//!             '-- Setter ------> linux::knob, posix_fadvise
//! ```

pub mod fetching;
mod ledger;
mod setting;

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Instant;

use controller::ids::{DeviceNumber, FileRef, Target, Ticket};
use controller::{Completed, WindowOutcome, WindowSetting};
use linux::handles::closes_at_once;
use linux::knob::{Knob, KnobError};
use linux::{failpoint, sys};
use readahead::PAGE_BYTES;
use rustix::fs::{Advice, fadvise};

use crate::helper::Helper;
use crate::mounted::Volume;
use fetching::{Fetcher, is_gone};
use ledger::{EntryId, Holder, Ledger, WindowOverride};
use setting::{RandomBy, Setter};

/// Why windows that a killed run has changed may stay changed.
#[derive(Debug, thiserror::Error)]
pub enum RecoveryError {
    /// A device's.
    #[error(transparent)]
    Device(#[from] KnobError),
    /// Those of open files.
    #[error(
        "a killed bowwave may have left windows of open files changed, but {place} cannot be read: \
         {error}; make it readable and run `bowwave daemon --recover` as root"
    )]
    Ledger {
        /// The list of these open files, or its folder.
        place: PathBuf,
        /// Why.
        error: io::Error,
    },
}

/// One engine's handle of this process's ledger. All threads of the engine share the ledger, and so does the next
/// engine.
#[derive(Clone)]
pub(crate) struct Journal {
    ledger: Arc<Mutex<Ledger>>,
    generation: u32,
}

impl Journal {
    /// Opens the ledger of this process in `state`, for its first engine.
    pub(crate) fn open(state: &Path) -> Self {
        let ledger = Ledger::open(ledger::own_ledger(state));
        Journal { generation: ledger.generation(), ledger: Arc::new(Mutex::new(ledger)) }
    }

    /// Ends this engine's use: from now on its threads only restore windows. Returns the next engine's handle.
    pub(crate) fn hand_over(&self) -> Self {
        let mut ledger = self.lock();
        ledger.begin_generation();
        Journal { generation: ledger.generation(), ledger: Arc::clone(&self.ledger) }
    }

    /// Restores the device windows that killed runs left changed, and takes over their ledgers. Runs that are still
    /// alive keep theirs. Returns why some may stay changed.
    pub(crate) fn recover(&self, state: &Path) -> Vec<RecoveryError> {
        // Device windows first: restoring an open file's window may copy them.
        let failed = linux::knob::recover().failed;
        let mut failed: Vec<RecoveryError> = failed.into_iter().map(Into::into).collect();
        let mut unread = |place: &Path, error| {
            let place = place.to_owned();
            failed.push(RecoveryError::Ledger { place, error });
        };
        let mut ledger = self.lock();
        match ledger::all_ledgers(state) {
            Err(error) => unread(state, error),
            Ok(ledgers) => ledgers.iter().for_each(|path| {
                if let Err(error) = ledger.adopt(path) {
                    unread(path, error);
                }
            }),
        }
        failed
    }

    /// Reports the entries that no thread will restore: those of killed runs, earlier engines and ended threads. If
    /// another thread holds the ledger, whose file may lie on a busy disk, they are reported next time.
    pub(crate) fn orphans(&self) -> Vec<Completed> {
        let orphans = match self.ledger.try_lock() {
            Ok(mut ledger) => ledger.claim_orphans(Holder::Engine),
            Err(TryLockError::Poisoned(ledger)) => {
                ledger.into_inner().claim_orphans(Holder::Engine)
            }
            Err(TryLockError::WouldBlock) => Vec::new(),
        };
        orphans.into_iter().map(|(entry, file)| Completed::LeftBehind { entry, file }).collect()
    }

    /// Restores the windows of killed runs, as far as possible by `until`.
    pub(crate) fn restore_orphans(&self, helper: Helper, until: Instant) {
        let mut windows = Windows::new(self.clone(), helper);
        let orphans = self.lock().claim_orphans(Holder::Thread);
        let orphans =
            orphans.into_iter().map(|(id, _)| (Target::Recovered(id), Changed { id, pages: None }));
        windows.set.extend(orphans);
        windows.restore_all(until);
    }

    /// The number of open files whose window bowwave has set.
    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A change of an open file's window.
pub(super) struct WindowChange {
    pub(super) ticket: Ticket,
    pub(super) target: Target,
    pub(super) of: Option<FileRef>,
    /// The open file's own window, as far as the controller knows.
    pub(super) own_pages: u32,
    pub(super) setting: WindowSetting,
}

impl WindowChange {
    /// The answer if nobody makes it.
    pub(super) fn refused(&self) -> Completed {
        let (ticket, target, outcome) = (Some(self.ticket), self.target, WindowOutcome::Failed);
        Completed::WindowSet { ticket, target, outcome, during: (0, 0) }
    }
}

/// An open file whose look-ahead was switched off.
struct KeptOpen {
    entry: WindowOverride,
    /// Reaches the open file even when only another process, which inherited it, still has it.
    duplicate: OwnedFd,
}

/// An open file that is in the ledger and about to be changed.
struct Recorded {
    file: OwnedFd,
    entry: WindowOverride,
    /// The entry was added just now.
    is_new: bool,
}

/// A window that was set.
#[derive(Clone, Copy)]
struct Changed {
    /// The ledger's entry.
    id: EntryId,
    /// To how many pages, if this engine knows.
    pages: Option<u32>,
}

/// Sets and restores the windows of open files on one device.
pub(super) struct Windows {
    journal: Journal,
    fetcher: Fetcher,
    setter: Setter,
    /// The windows that it has set and not restored.
    set: HashMap<Target, Changed>,
    kept_open: HashMap<Target, KeptOpen>,
}

impl Windows {
    pub(super) fn new(journal: Journal, helper: Helper) -> Self {
        let (fetcher, setter) = (Fetcher::new(helper), Setter::default());
        Windows { journal, fetcher, setter, set: HashMap::new(), kept_open: HashMap::new() }
    }

    /// Carries out one change.
    pub(super) fn set(&mut self, change: &WindowChange, volume: &Volume) -> Completed {
        let WindowChange { ticket, target, setting, .. } = *change;
        let outcome = match setting {
            WindowSetting::Own => self.restore_requested(target),
            WindowSetting::Abandoned => self.forget(target),
            WindowSetting::NoLookAhead => self.stop_look_ahead(change, volume),
            WindowSetting::Bounded(pages) | WindowSetting::Larger(pages) => {
                self.resize(change, pages, volume)
            }
        };
        let outcome = outcome.unwrap_or_else(|error| match is_gone(&error) {
            // Closed before anything was changed.
            true if !self.set.contains_key(&target) => WindowOutcome::Own,
            _ => WindowOutcome::Failed,
        });
        let during = self.setter.last_change();
        Completed::WindowSet { ticket: Some(ticket), target, outcome, during }
    }

    /// Sets the open file's window to `pages`.
    fn resize(
        &mut self,
        change: &WindowChange,
        pages: u32,
        volume: &Volume,
    ) -> io::Result<WindowOutcome> {
        let recorded = self.record(change, volume)?;
        let kb = (u64::from(pages) * PAGE_BYTES / 1024).max(1);
        let random_by = recorded.entry.random_by;
        let result = self.setter.set(&recorded.file, &volume.knob, kb, random_by);
        result.inspect_err(|_| self.undo_record(change.target, &recorded))?;
        self.set.get_mut(&change.target).into_iter().for_each(|it| it.pages = Some(pages));
        Ok(WindowOutcome::Set { own_pages: recorded.entry.pages_before() })
    }

    fn stop_look_ahead(
        &mut self,
        change: &WindowChange,
        volume: &Volume,
    ) -> io::Result<WindowOutcome> {
        let recorded = self.record(change, volume)?;
        let result = fadvise(&recorded.file, 0, None, Advice::Random);
        result.inspect_err(|_| self.undo_record(change.target, &recorded))?;
        failpoint::reach("look-ahead-stopped");
        let Recorded { file: duplicate, entry, .. } = recorded;
        let own_pages = entry.pages_before();
        self.kept_open.insert(change.target, KeptOpen { entry, duplicate });
        Ok(WindowOutcome::Set { own_pages })
    }

    /// Whose random advice the open file may have once this change is made.
    fn random_by(&self, change: &WindowChange) -> RandomBy {
        let is_copied = self.kept_open.contains_key(&change.target);
        let is_ours = is_copied || change.setting == WindowSetting::NoLookAhead;
        if is_ours { RandomBy::Bowwave } else { RandomBy::Program }
    }

    /// Duplicates the open file and writes it into the ledger, before it is changed.
    fn record(&mut self, change: &WindowChange, volume: &Volume) -> io::Result<Recorded> {
        let random_by = self.random_by(change);
        let WindowChange { target, of, own_pages, .. } = *change;
        let of = of.ok_or(io::ErrorKind::NotFound)?;
        if !closes_at_once(&volume.mount.fs_type) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        self.check_engine_runs(&self.journal.lock())?;
        let fetched = self.fetcher.sole(of)?;
        let entry = WindowOverride::of(of, &fetched, &volume.knob, own_pages, random_by);
        let mut ledger = self.journal.lock();
        self.check_engine_runs(&ledger)?;
        if ledger.is_restore_pending(&entry, |id| self.set.values().any(|own| own.id == id)) {
            // The window that it has now is not its own.
            return Err(io::Error::other("its window has not been restored yet"));
        }
        let known = self.set.get(&target).copied();
        let (id, entry) = ledger.record(known.map(|it| it.id), entry)?;
        failpoint::reach("ledger-noted");
        let same = known.filter(|known| known.id == id);
        self.set.insert(target, same.unwrap_or(Changed { id, pages: None }));
        Ok(Recorded { file: fetched.file, entry, is_new: same.is_none() })
    }

    /// Removes a new entry after its change has failed. The kernel sets the open file's window last, so it is as
    /// before; but an earlier change of this file must still be undone.
    fn undo_record(&mut self, target: Target, recorded: &Recorded) {
        if recorded.is_new {
            self.set.remove(&target).into_iter().for_each(|it| self.journal.lock().remove(it.id));
        }
    }

    /// # Errors
    /// If the engine of this thread has ended.
    fn check_engine_runs(&self, ledger: &Ledger) -> io::Result<()> {
        let is_last = ledger.generation() == self.journal.generation;
        is_last.then_some(()).ok_or_else(|| io::Error::other("the engine has ended"))
    }

    /// Restores a window for the controller. If this fails for an orphan, another thread may try again.
    fn restore_requested(&mut self, target: Target) -> io::Result<WindowOutcome> {
        let Target::Recovered(id) = target else { return self.restore(target) };
        self.journal.lock().claim(id)?;
        self.set.insert(target, Changed { id, pages: None });
        self.restore(target).inspect_err(|_| {
            self.set.remove(&target);
            self.journal.lock().unclaim(id);
        })
    }

    /// Restores an open file's own window, unless it is closed.
    fn restore(&mut self, target: Target) -> io::Result<WindowOutcome> {
        let changed = self.set.get(&target).copied();
        let entry = changed.and_then(|it| self.journal.lock().get(it.id).cloned());
        let result = match (self.kept_open.get(&target), entry) {
            // Its reader may have ended, and the ledger forgotten it.
            (Some(KeptOpen { entry, duplicate }), _) => {
                self.setter.set(duplicate, &entry.knob, entry.kb_before, RandomBy::Bowwave)
            }
            (None, Some(entry)) => self
                .fetcher
                .again(entry.file_ref(), entry.number, entry.started)
                .and_then(|it| match changed.and_then(|changed| changed.pages) {
                    Some(pages) if is_advised_since(&it.file, pages, &entry.knob) => Ok(()),
                    _ => self.setter.set(&it.file, &entry.knob, entry.kb_before, entry.random_by),
                }),
            (None, None) => Ok(()),
        };
        match result {
            Err(error) if !is_gone(&error) => Err(error),
            _ => self.forget(target),
        }
    }

    /// Removes a target whose window needs no restoring.
    fn forget(&mut self, target: Target) -> io::Result<WindowOutcome> {
        if let Some(changed) = self.set.remove(&target) {
            self.journal.lock().remove(changed.id);
        }
        failpoint::reach("ledger-struck");
        self.kept_open.remove(&target);
        Ok(WindowOutcome::Own)
    }

    /// Whether its thread may end: not while the fetcher avoids somebody. The next thread would not know whom, so a
    /// user could make one more process hang every second.
    pub(super) fn may_end(&self) -> bool {
        self.set.is_empty() && self.kept_open.is_empty() && self.fetcher.avoids_nobody()
    }

    /// Whether [`restore_closed`](Self::restore_closed) should be called soon.
    pub(super) fn keeps_any_open(&self) -> bool {
        !self.kept_open.is_empty()
    }

    /// Restores and closes the duplicates whose readers have closed their descriptors, so that they hold up no lock and
    /// no unmount. Forgets the windows of ended processes.
    pub(super) fn restore_closed(&mut self) -> Vec<Completed> {
        self.fetcher.check_aside();
        let mut closed = Vec::new();
        for (target, KeptOpen { entry, duplicate }) in &self.kept_open {
            // If the reader's process does not let us look, restore its window, too.
            if !self.fetcher.is_open(entry.tgid, entry.number, duplicate).unwrap_or(false) {
                closed.push(*target);
            }
        }
        let mut ledger = self.journal.lock();
        ledger.tidy(sys::monotonic_ns());
        let has_ended = |id: EntryId| ledger.get(id).is_none();
        closed.extend(self.set.iter().filter(|(_, it)| has_ended(it.id)).map(|(it, _)| *it));
        drop(ledger);
        let mut answers = Vec::new();
        for target in closed {
            if let Ok(outcome) = self.restore(target) {
                let during = self.setter.last_change();
                answers.push(Completed::WindowSet { ticket: None, target, outcome, during });
            }
        }
        answers
    }

    /// Restores the windows of files on a file system. Those that this does not reach stay until bowwave ends.
    pub(super) fn restore_of(&mut self, dev: DeviceNumber) {
        let ledger = self.journal.lock();
        let is_there = |id: EntryId| ledger.get(id).is_some_and(|it| it.file_ref().file.dev == dev);
        let there: Vec<Target> =
            self.set.iter().filter(|(_, it)| is_there(it.id)).map(|(target, _)| *target).collect();
        drop(ledger);
        for target in there {
            let _ = self.restore(target);
        }
    }

    /// Restores all windows that it has set, until `until`: first those whose processes answer at once, then the
    /// others. The rest stays in the ledger.
    pub(super) fn restore_all(&mut self, until: Instant) {
        self.fetcher.use_short_timeout();
        loop {
            for target in self.set.keys().copied().collect::<Vec<_>>() {
                if Instant::now() >= until {
                    break;
                }
                if !self.fetcher.is_ready() {
                    // Starting a process takes long, and bowwave may be killed meanwhile.
                    self.journal.lock().write_down();
                }
                let _ = self.restore(target);
            }
            self.journal.lock().write_down();
            if self.set.is_empty() || !self.fetcher.await_answer(until) {
                break;
            }
            self.fetcher.use_normal_timeout();
        }
        self.fetcher.use_normal_timeout();
    }
}

/// Whether a program has given advice since bowwave set its open file's window to `pages`: then that is its own again,
/// the device's or twice that. After an error of the device, the kernel makes it smaller.
fn is_advised_since(file: &OwnedFd, pages: u32, knob: &Path) -> bool {
    let device_kb = Knob::at(knob).and_then(|knob| knob.kb().ok());
    ebpf::open_file::look_at(file).zip(device_kb).is_some_and(|(now, device_kb)| {
        let kb = u64::from(now.window_pages) * PAGE_BYTES / 1024;
        now.window_pages != pages && (kb == device_kb || kb == 2 * device_kb)
    })
}

impl Drop for Windows {
    fn drop(&mut self) {
        self.set.values().for_each(|it| self.journal.lock().unclaim(it.id));
    }
}

#[cfg(any(test, fuzzing))]
pub(crate) fn read_any_ledger(bytes: &[u8]) {
    for entry in ledger::entries(bytes) {
        let _ = (entry.file(), entry.pages_before());
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;
    use std::path::PathBuf;
    use std::process::{Child, Command};
    use std::time::Duration;

    use controller::ids::{BackingId, FileKey};
    use linux::mounts::Mount;

    use super::*;
    use crate::pieces::PieceLimit;

    /// A sleeping process of that user; `None`, with a message, if it cannot be started.
    fn process_of(user: u32) -> Option<Child> {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: only root can start programs of other users");
            return None;
        }
        let mut command = Command::new("setpriv");
        command.arg(format!("--reuid={user}")).args(["--clear-groups", "sleep", "1000"]);
        let skip = |why: &dyn std::fmt::Display| eprintln!("skipped: setpriv: {why}");
        let mut sleeper = command.spawn().inspect_err(|error| skip(error)).ok()?;
        let folder = format!("/proc/{}", sleeper.id());
        while std::fs::metadata(&folder).map(|about| about.uid()).ok() != Some(user) {
            if !matches!(sleeper.try_wait(), Ok(None)) {
                skip(&"it has ended");
                return None;
            }
            std::thread::yield_now();
        }
        Some(sleeper)
    }

    /// A helper that hangs when asked about these processes, and answers about all others that they are gone.
    fn hanging_for(processes: &[u32]) -> Helper {
        let hung =
            processes.iter().map(|tgid| format!("*'\"tgid\":{tgid},'*|*'\"tgid\":{tgid}}}'*"));
        let hung = hung.collect::<Vec<_>>().join("|");
        let script = format!(
            "printf '\"Ready\"' >&0; while asked=$(dd bs=4096 count=1 status=none); do \
             case \"$asked\" in '') exit;; {hung}) exec sleep 1000;; *) printf '\"Gone\"' >&0;; esac; done"
        );
        Helper { program: "sh".into(), arguments: ["-c", &script, "sh"].map(Into::into).into() }
    }

    /// A helper that sends its standard error along, whatever it is asked for.
    fn finding_standard_error() -> Helper {
        let script = "import socket\n\
                      asked = socket.socket(fileno=0)\n\
                      asked.send(b'\"Ready\"')\n\
                      found = b'{\"Descriptor\":{\"number\":3,\"started\":1}}'\n\
                      while asked.recv(4096): socket.send_fds(asked, [found], [2])";
        let arguments = ["-c", script].map(Into::into).into();
        Helper { program: "python3".into(), arguments }
    }

    #[test]
    fn a_change_that_fails_leaves_an_entry_only_where_one_was_before() {
        let (folder, file) = (tempfile::tempdir().expect("a folder"), tempfile::tempfile());
        let about = file.as_ref().expect("a file").metadata().expect("metadata");
        let dev = DeviceNumber::from_stat(about.dev());
        let key = FileKey { dev, ino: about.ino() };
        let of = FileRef { file: key, generation: 0, tgid: std::process::id() };
        let [mount_point, knob] = ["/", "/no/such/knob"].map(PathBuf::from);
        let (root, source) = ("/".into(), String::new());
        let mount = Mount { dev, root, mount_point, fs_type: "ext4".into(), source };
        let piece_limit = PieceLimit::of(None, knob.clone());
        let (disk, history_file, backing) = (None, None, BackingId(1));
        let volume = Volume { mount, disk, knob, piece_limit, backing, history_file };
        let mut windows = Windows::new(Journal::open(folder.path()), finding_standard_error());
        let target = Target::Recovered(1);
        let setting = WindowSetting::Larger(64);
        let change =
            WindowChange { ticket: Ticket(1), target, of: Some(of), own_pages: 32, setting };
        let resize = |windows: &mut Windows| windows.resize(&change, 64, &volume);
        resize(&mut windows).expect_err("there is no such knob");
        assert_eq!((windows.journal.len(), windows.set.len()), (0, 0));
        windows.record(&change, &volume).expect("written");
        resize(&mut windows).expect_err("there is no such knob");
        assert_eq!((windows.journal.len(), windows.set.len()), (1, 1));
        let mut outcome_for_closed = |target| {
            let closed =
                WindowChange { of: None, target, ticket: Ticket(1), own_pages: 32, setting };
            match windows.set(&closed, &volume) {
                Completed::WindowSet { outcome, .. } => outcome,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(outcome_for_closed(target), WindowOutcome::Failed, "it is to be restored");
        let unchanged = Target::Recovered(2);
        assert_eq!(outcome_for_closed(unchanged), WindowOutcome::Own, "nothing was changed");
    }

    #[test]
    fn windows_on_an_unmounted_file_system_are_restored_and_no_others() {
        let (state, own) = (tempfile::tempdir().expect("a folder"), std::process::id());
        let left = [1, 2].map(|minor| {
            format!(
                "{{\"tgid\":{own},\"number\":3,\"started\":1,\"major\":7,\"minor\":{minor},\
                 \"ino\":9,\"knob\":\"/none\",\"kb_before\":128}}\n"
            )
        });
        std::fs::write(ledger::own_ledger(state.path()), left.concat()).expect("written");
        let journal = Journal::open(state.path());
        let mut windows = Windows::new(journal.clone(), hanging_for(&[0]));
        let orphans = journal.lock().claim_orphans(Holder::Thread);
        let changed = |(id, file): &(EntryId, FileKey)| {
            (Target::Recovered(*id), (Changed { id: *id, pages: None }, file.dev.minor))
        };
        let minors: HashMap<Target, (Changed, u32)> = orphans.iter().map(changed).collect();
        windows.set.extend(minors.iter().map(|(target, (changed, _))| (*target, *changed)));
        windows.restore_of(DeviceNumber { major: 7, minor: 1 });
        let left: Vec<u32> = windows.set.keys().map(|target| minors[target].1).collect();
        assert_eq!(left, [2]);
    }

    #[test]
    fn a_ledger_that_cannot_be_read_is_told_stays_and_hides_no_other() {
        let state = tempfile::tempdir().expect("a folder");
        let names = ["given-windows-1.jsonl", "given-windows-2.jsonl"];
        let [odd, good] = names.map(|name| state.path().join(name));
        std::fs::create_dir(&odd).expect("what is no ledger");
        let entry = "{\"tgid\":1,\"started\":1,\"major\":7,\"minor\":1,\"ino\":1,\
                     \"knob\":\"/none\",\"kb_before\":128}\n";
        std::fs::write(&good, entry).expect("written");
        let journal = Journal::open(state.path());
        let failed = journal.recover(state.path());
        // Of a device, which other tests may have.
        let failed = failed.iter().filter(|error| matches!(error, RecoveryError::Ledger { .. }));
        let told: Vec<String> = failed.map(ToString::to_string).collect();
        assert_eq!((told.len(), journal.len()), (1, 1), "{told:?}");
        let words = [&*odd.to_string_lossy(), "Is a directory", "bowwave daemon --recover"];
        assert!(words.iter().all(|word| told[0].contains(word)), "{told:?}");
        assert!(odd.exists() && !good.exists());
        let failed = journal.recover(&state.path().join("none"));
        let is_ledger = |error: &RecoveryError| matches!(error, RecoveryError::Ledger { .. });
        assert!(!failed.iter().any(is_ledger), "{failed:?}");
    }

    #[test]
    fn a_thread_does_not_end_while_a_process_hangs() {
        let (folder, own) = (tempfile::tempdir().expect("a folder"), std::process::id());
        let mut windows = Windows::new(Journal::open(folder.path()), hanging_for(&[own]));
        assert!(windows.may_end());
        let file = FileKey { dev: DeviceNumber { major: 7, minor: 1 }, ino: 1 };
        let of = FileRef { file, generation: 0, tgid: own };
        assert!(windows.fetcher.sole(of).is_err(), "nobody answers");
        windows.restore_closed();
        assert!(!windows.may_end());
    }

    #[test]
    fn processes_that_hang_do_not_keep_other_windows_from_being_restored() {
        let users = 61001..=61004;
        let Some(mut all) = users.map(process_of).collect::<Option<Vec<_>>>() else { return };
        let numbers: Vec<u32> = all.iter().map(Child::id).collect();
        let (hung, victim) = (&numbers[..3], numbers[3]);
        let state = tempfile::tempdir().expect("a folder");
        let left: String = numbers
            .iter()
            .map(|tgid| {
                format!(
                    "{{\"tgid\":{tgid},\"number\":3,\"started\":1,\"major\":7,\"minor\":1,\
                     \"ino\":{tgid},\"knob\":\"/none\",\"kb_before\":128}}\n"
                )
            })
            .collect();
        std::fs::write(ledger::own_ledger(state.path()), left).expect("written");
        let journal = Journal::open(state.path());
        // Longer than any machine is busy.
        let until = Instant::now() + Duration::from_secs(300);
        journal.restore_orphans(hanging_for(hung), until);
        assert!(Instant::now() < until, "it waited for those that hang");
        let entries = journal.orphans();
        for process in &mut all {
            process.kill().expect("it sleeps");
            process.wait().expect("it ends");
        }
        let files: Vec<u64> = entries
            .iter()
            .map(|left| match left {
                Completed::LeftBehind { file, .. } => file.ino,
                other => panic!("{other:?}"),
            })
            .collect();
        let expected: Vec<u64> = hung.iter().map(|tgid| u64::from(*tgid)).collect();
        assert_eq!(files, expected, "{victim}'s is restored, the others are reported");
    }
}
