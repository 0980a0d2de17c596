//! Giving one open file a window of its own, on a stock kernel.
//!
//! ```text
//!   bdi read_ahead_kb  128 ----> 4096 ------------------> 128
//!                              |                       ^
//!                              +-- fadvise(NORMAL) ----+   on a duplicate of the reader's own
//!                                  copies the window       descriptor: the same open file
//! ```
//!
//! The kernel then reads ahead by itself in that window, in the reader's memory cgroup. For the microseconds in
//! between, files that others open inherit it. The device's number is [borrowed](linux::knob) for that long: nobody
//! else of ours sets it, and the next start restores it after a kill. What open files were given is in the
//! [ledger](Ledger) before it is set, and is removed from there after it was given back.

pub mod fetching;
mod ledger;
mod setting;

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Instant;

use controller::ids::{FileRef, Target};
use controller::{Completed, WindowOutcome, WindowSetting};
use linux::handles::closes_at_once;
use linux::{failpoint, sys};
use readahead::PAGE_BYTES;
use rustix::fs::{Advice, fadvise};

use super::lane::Change;
use crate::helper::Helper;
use crate::mounted::Volume;
use fetching::{Fetcher, is_gone};
use ledger::{Ledger, Number, WindowOverride};
use setting::Setting;

/// The ledger of this process, as one engine uses it. All threads of its devices share it, and so does the next engine.
#[derive(Clone)]
pub(crate) struct Journal {
    ledger: Arc<Mutex<Ledger>>,
    generation: u32,
}

impl Journal {
    /// The ledger of this process in `state`, for its first engine.
    pub(crate) fn open(state: &Path) -> Self {
        let ledger = Ledger::open(ledger::own_ledger(state));
        Journal { generation: ledger.generation(), ledger: Arc::new(Mutex::new(ledger)) }
    }

    /// The engine has ended: its threads change no window any more, and only give back what they have set. Returns the
    /// same ledger for the next engine.
    pub(crate) fn hand_over(&self) -> Self {
        let mut ledger = self.lock();
        ledger.begin_generation();
        Journal { generation: ledger.generation(), ledger: Arc::clone(&self.ledger) }
    }

    /// Puts back the device windows that killed runs have left, and takes over what those had given to open files; runs
    /// that are still at work keep theirs.
    pub(crate) fn recover(&self, state: &Path) {
        // The number first: what is given back copies it.
        linux::knob::recover();
        let mut ledger = self.lock();
        for path in ledger::left_behind(state) {
            ledger.adopt(&path);
        }
    }

    /// Entries that nobody is about to give back, as inputs: of earlier runs and engines, and of threads that have ended.
    /// Those are told next time if somebody else uses the ledger at the moment: its file may lie on a busy disk.
    pub(crate) fn left_behind(&self) -> Vec<Completed> {
        let left = match self.ledger.try_lock() {
            Ok(mut ledger) => ledger.take_left(),
            Err(TryLockError::Poisoned(ledger)) => ledger.into_inner().take_left(),
            Err(TryLockError::WouldBlock) => Vec::new(),
        };
        left.into_iter().map(|(entry, file)| Completed::LeftBehind { entry, file }).collect()
    }

    /// Gives back what earlier runs have left, as far as that can be done by then.
    pub(crate) fn give_back(&self, helper: Helper, until: Instant) {
        let mut windows = Windows::new(self.clone(), helper);
        for (entry, _) in self.lock().take_left() {
            windows.set.insert(Target::Recovered(entry), entry);
        }
        for entry in windows.set.values() {
            // Nobody else was told of it.
            let _ = self.lock().take_charge(*entry);
        }
        windows.give_back_all(until);
    }

    /// Open files whose window is not their own.
    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An open file that is read without look-ahead.
struct KeptOpen {
    given: WindowOverride,
    /// Other processes may have the same open file, and one of those may be the last: so it is reached, and is no
    /// other one.
    duplicate: OwnedFd,
}

/// An open file that is about to be changed, and is in the ledger.
struct Noted {
    file: OwnedFd,
    given: WindowOverride,
    /// It was not changed before.
    is_new: bool,
}

/// Sets the windows of open files on one device.
pub(super) struct Windows {
    journal: Journal,
    fetcher: Fetcher,
    setting: Setting,
    /// Its entries: what it has set and not given back.
    set: HashMap<Target, Number>,
    kept_open: HashMap<Target, KeptOpen>,
}

impl Windows {
    pub(super) fn new(journal: Journal, helper: Helper) -> Self {
        let (fetcher, setting) = (Fetcher::new(helper), Setting::default());
        Windows { journal, fetcher, setting, set: HashMap::new(), kept_open: HashMap::new() }
    }

    /// Carries out one change. The open file's own window is `own_pages`, as far as the controller knows.
    pub(super) fn set(&mut self, change: &Change) -> Completed {
        let Change { ticket, target, of, own_pages, setting, ref volume } = *change;
        let outcome = match (setting, of) {
            (WindowSetting::Own, _) => self.give_back_one(target),
            (WindowSetting::Abandoned, _) => self.abandon(target),
            (WindowSetting::NoLookAhead, Some(of)) => {
                self.stop_look_ahead(target, of, own_pages, volume)
            }
            (WindowSetting::Bounded(pages) | WindowSetting::Larger(pages), Some(of)) => {
                self.resize(target, of, own_pages, pages, volume)
            }
            (_, None) => Err(io::ErrorKind::NotFound.into()),
        };
        let outcome = outcome.unwrap_or(WindowOutcome::Failed);
        let during = self.setting.moment();
        Completed::WindowSet { ticket: Some(ticket), target, outcome, during }
    }

    fn resize(
        &mut self,
        target: Target,
        of: FileRef,
        own_pages: u32,
        pages: u32,
        volume: &Volume,
    ) -> io::Result<WindowOutcome> {
        let noted = self.note_down(target, of, own_pages, volume)?;
        let kb = (u64::from(pages) * PAGE_BYTES / 1024).max(1);
        let result = self.setting.set(&noted.file, &volume.knob, kb);
        result.inspect_err(|_| self.take_back(target, &noted))?;
        Ok(WindowOutcome::Set { own_pages: noted.given.pages_before() })
    }

    fn stop_look_ahead(
        &mut self,
        target: Target,
        of: FileRef,
        own_pages: u32,
        volume: &Volume,
    ) -> io::Result<WindowOutcome> {
        let noted = self.note_down(target, of, own_pages, volume)?;
        let result = fadvise(&noted.file, 0, None, Advice::Random);
        result.inspect_err(|_| self.take_back(target, &noted))?;
        failpoint::reach("look-ahead-stopped");
        let Noted { file: duplicate, given, .. } = noted;
        let own_pages = given.pages_before();
        self.kept_open.insert(target, KeptOpen { given, duplicate });
        Ok(WindowOutcome::Set { own_pages })
    }

    /// The open file that is about to be changed, once that is in the ledger.
    fn note_down(
        &mut self,
        target: Target,
        of: FileRef,
        own_pages: u32,
        volume: &Volume,
    ) -> io::Result<Noted> {
        if !closes_at_once(&volume.mount.fs_type) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        self.is_at_work(&self.journal.lock())?;
        let fetched = self.fetcher.sole(of)?;
        let given = WindowOverride::to(of, &fetched, &volume.knob, own_pages);
        let mut ledger = self.journal.lock();
        self.is_at_work(&ledger)?;
        if ledger.is_restore_pending(&given, |number| self.set.values().any(|own| *own == number)) {
            // What it has now is not its own.
            return Err(io::Error::other("its window has not been given back yet"));
        }
        let known = self.set.get(&target).copied();
        let (number, given) = ledger.note(known, given)?;
        failpoint::reach("ledger-noted");
        self.set.insert(target, number);
        Ok(Noted { file: fetched.file, given, is_new: known != Some(number) })
    }

    /// The change has failed. The kernel sets an open file's window last of all, so it is as before; only what an earlier
    /// change has set is still to be given back.
    fn take_back(&mut self, target: Target, noted: &Noted) {
        if noted.is_new {
            self.set.remove(&target).into_iter().for_each(|it| self.journal.lock().strike(it));
        }
    }

    /// # Errors
    /// If its engine has ended.
    fn is_at_work(&self, ledger: &Ledger) -> io::Result<()> {
        let is_last = ledger.generation() == self.journal.generation;
        is_last.then_some(()).ok_or_else(|| io::Error::other("no window is set any more"))
    }

    /// Gives back what was asked for by its name. If it cannot, somebody else may try again what an earlier run has left.
    fn give_back_one(&mut self, target: Target) -> io::Result<WindowOutcome> {
        let Target::Recovered(number) = target else { return self.give_back(target) };
        self.journal.lock().take_charge(number)?;
        self.set.insert(target, number);
        self.give_back(target).inspect_err(|_| {
            self.set.remove(&target);
            self.journal.lock().leave(number);
        })
    }

    /// Gives an open file its own window back; one that is closed needs none.
    fn give_back(&mut self, target: Target) -> io::Result<WindowOutcome> {
        let given =
            self.set.get(&target).and_then(|entry| self.journal.lock().get(*entry).cloned());
        let result = match (self.kept_open.get(&target), given) {
            // Its reader may have ended, and the ledger forgotten it.
            (Some(kept), _) => {
                self.setting.set(&kept.duplicate, &kept.given.knob, kept.given.kb_before)
            }
            (None, Some(given)) => self
                .fetcher
                .again(given.of(), given.number, given.started)
                .and_then(|it| self.setting.set(&it.file, &given.knob, given.kb_before)),
            (None, None) => Ok(()),
        };
        match result {
            Err(error) if !is_gone(&error) => Err(error),
            _ => self.abandon(target),
        }
    }

    /// Nothing is to be given back.
    fn abandon(&mut self, target: Target) -> io::Result<WindowOutcome> {
        if let Some(number) = self.set.remove(&target) {
            self.journal.lock().strike(number);
        }
        failpoint::reach("ledger-struck");
        self.kept_open.remove(&target);
        Ok(WindowOutcome::Own)
    }

    /// Whether its thread may end. The next thread would not know who keeps others from looking, so that a user could
    /// have one more process hang every second.
    pub(super) fn may_end(&self) -> bool {
        self.set.is_empty() && self.kept_open.is_empty() && self.fetcher.blames_nobody()
    }

    /// Whether [`look_after`](Self::look_after) should be called soon.
    pub(super) fn keeps_any_open(&self) -> bool {
        !self.kept_open.is_empty()
    }

    /// Lets go of open files that their readers have closed, so that nobody waits for a lock or an unmount, and of
    /// those whose process has ended.
    pub(super) fn look_after(&mut self) -> Vec<Completed> {
        self.fetcher.look_at_aside();
        let mut over = Vec::new();
        for (target, KeptOpen { given, duplicate }) in &self.kept_open {
            // Where nobody can tell, too: whoever keeps others from looking gets nothing.
            if !self.fetcher.is_open(given.tgid, given.number, duplicate).unwrap_or(false) {
                over.push(*target);
            }
        }
        let mut ledger = self.journal.lock();
        ledger.tidy(sys::monotonic_ns());
        let has_ended = |number: Number| ledger.get(number).is_none();
        over.extend(self.set.iter().filter(|(_, number)| has_ended(**number)).map(|(it, _)| *it));
        drop(ledger);
        let mut answers = Vec::new();
        for target in over {
            if let Ok(outcome) = self.give_back(target) {
                let during = self.setting.moment();
                answers.push(Completed::WindowSet { ticket: None, target, outcome, during });
            }
        }
        answers
    }

    /// Gives back everything that it has set, until that time: first what can be reached at once, then what can be
    /// reached later. What is left stays in the ledger.
    pub(super) fn give_back_all(&mut self, until: Instant) {
        self.fetcher.hurry();
        loop {
            for target in self.set.keys().copied().collect::<Vec<_>>() {
                if Instant::now() >= until {
                    break;
                }
                if !self.fetcher.is_ready() {
                    // Bowwave may be killed while a process is started.
                    self.journal.lock().write_down();
                }
                let _ = self.give_back(target);
            }
            self.journal.lock().write_down();
            if self.set.is_empty() || !self.fetcher.await_answer(until) {
                break;
            }
            self.fetcher.take_time();
        }
        self.fetcher.take_time();
    }
}

impl Drop for Windows {
    fn drop(&mut self) {
        self.set.values().for_each(|number| self.journal.lock().leave(*number));
    }
}

#[cfg(any(test, fuzzing))]
pub(crate) fn read_any_ledger(bytes: &[u8]) {
    for given in ledger::entries(bytes) {
        let _ = (given.file(), given.pages_before());
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
    use readahead::DeviceNumber;

    use super::*;

    /// A process of that user's; `None` where none can be started.
    fn process_of(user: u32) -> Option<Child> {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: only root can start programs of other users");
            return None;
        }
        let mut command = Command::new("setpriv");
        command.arg(format!("--reuid={user}")).args(["--clear-groups", "sleep", "1000"]);
        let mut sleeper = command.spawn().ok()?;
        while linux::process::user(sleeper.id()) != Some(user) {
            if !matches!(sleeper.try_wait(), Ok(None)) {
                eprintln!("skipped: {command:?} does not work here");
                return None;
            }
            std::thread::yield_now();
        }
        Some(sleeper)
    }

    /// A helper that never answers about these processes, and says of all others that they are gone.
    fn hanging_for(processes: &[u32]) -> Helper {
        let hung =
            processes.iter().map(|tgid| format!("*'\"tgid\":{tgid},'*|*'\"tgid\":{tgid}}}'*"));
        let hung = hung.collect::<Vec<_>>().join("|");
        let script = format!(
            "printf '\"Ready\"' >&0; while asked=$(dd bs=4096 count=1 status=none); do \
             case \"$asked\" in '') exit;; {hung}) exec sleep 1000;; *) printf '\"Gone\"' >&0;; esac; done"
        );
        Helper::Process {
            program: "sh".into(),
            arguments: ["-c", &script, "sh"].map(Into::into).into(),
        }
    }

    #[test]
    fn a_change_that_fails_leaves_an_entry_only_where_one_was_before() {
        let (folder, file) = (tempfile::tempdir().expect("a folder"), tempfile::tempfile());
        let about = file.as_ref().expect("a file").metadata().expect("metadata");
        let (dev, tgid) = (about.dev(), std::process::id());
        let dev = DeviceNumber { major: libc::major(dev), minor: libc::minor(dev) };
        let key = FileKey { dev, ino: about.ino() };
        let of = FileRef { file: key, generation: 0, tgid };
        let [mount_point, knob] = ["/", "/no/such/knob"].map(PathBuf::from);
        let mount = Mount { dev, mount_point, fs_type: "ext4".into(), source: String::new() };
        let volume = Volume { mount, knob, piece_pages: 32, backing: BackingId(1) };
        let mut windows = Windows::new(Journal::open(folder.path()), Helper::Thread);
        let target = Target::Recovered(1);
        let resize = |windows: &mut Windows| windows.resize(target, of, 32, 64, &volume);
        resize(&mut windows).expect_err("there is no such knob");
        assert_eq!((windows.journal.len(), windows.set.len()), (0, 0));
        windows.note_down(target, of, 32, &volume).expect("written");
        resize(&mut windows).expect_err("there is no such knob");
        assert_eq!((windows.journal.len(), windows.set.len()), (1, 1));
    }

    #[test]
    fn a_thread_stays_as_long_as_a_process_hangs() {
        let (folder, own) = (tempfile::tempdir().expect("a folder"), std::process::id());
        let mut windows = Windows::new(Journal::open(folder.path()), hanging_for(&[own]));
        assert!(windows.may_end());
        let file = FileKey { dev: DeviceNumber { major: 7, minor: 1 }, ino: 1 };
        let of = FileRef { file, generation: 0, tgid: own };
        assert!(windows.fetcher.sole(of).is_err(), "nobody answers");
        windows.look_after();
        assert!(!windows.may_end());
    }

    #[test]
    fn what_can_be_given_back_is_whoever_else_hangs() {
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
        // Longer than any machine is busy, so that whoever answers late is waited for.
        let until = Instant::now() + Duration::from_secs(300);
        journal.give_back(hanging_for(hung), until);
        assert!(Instant::now() < until, "it waited for those that hang");
        let entries = journal.left_behind();
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
        assert_eq!(files, expected, "{victim}'s was given back, and whose could not be is told of");
    }
}
