//! Which open files have a window that is not their device's, so that it can be taken back.
//!
//! An open file is remembered by its process, inode and descriptor, not by a descriptor of ours, which
//! would keep its file system from being unmounted. The list is also kept in a file, a line an entry, for
//! the next start after a kill. An entry is removed after its window was taken back, never before.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use controller::ids::Target;
use readahead::{DeviceNumber, FileKey, FileRef, PAGE_BYTES};
use serde::{Deserialize, Serialize};

use super::fetching::Fetched;

/// Those that were closed are looked for this often.
const LOOK_NS: u64 = 60_000_000_000;

/// What a ledger's name begins and ends with; between them is the process that keeps it.
const PREFIX: &str = "given-windows";
const SUFFIX: &str = ".jsonl";

/// The ledger that this process keeps in `state`.
pub(super) fn own_ledger(state: &Path) -> PathBuf {
    state.join(format!("{PREFIX}-{}{SUFFIX}", std::process::id()))
}

/// Ledgers in `state` whose process has ended without taking its windows back.
pub(super) fn left_behind(state: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(state).into_iter().flatten().flatten();
    let left = entries.filter(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        let keeper = name.strip_prefix(PREFIX).and_then(|rest| rest.strip_suffix(SUFFIX));
        keeper.is_some_and(|pid| !is_at_work(pid.trim_start_matches('-')))
    });
    left.map(|entry| entry.path()).collect()
}

/// Whether the process is one of ours: its number may have been given to another.
fn is_at_work(pid: &str) -> bool {
    let name = |pid: &str| fs::read_to_string(format!("/proc/{pid}/comm")).ok();
    pid.parse::<u32>().is_ok() && name(pid).is_some_and(|comm| Some(comm) == name("self"))
}

/// One open file with a window of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct WindowOverride {
    pub(super) tgid: u32,
    /// The descriptor it was given through; where an older list has none, any that does not lead there.
    #[serde(default)]
    pub(super) number: i32,
    /// When its process started, in ticks since boot: process ids are used again.
    pub(super) started: u64,
    major: u32,
    minor: u32,
    ino: u64,
    /// What its file system's window is set with, and what it was for this open file before, in KiB: a
    /// program that announced sequential reading has twice the device's.
    pub(super) knob: PathBuf,
    pub(super) kb_before: u64,
}

impl WindowOverride {
    /// To the open file of `of`, whose own window is `own_pages`.
    pub(super) fn to(of: FileRef, fetched: &Fetched, knob: &Path, own_pages: u32) -> Self {
        let FileKey { dev: DeviceNumber { major, minor }, ino } = of.file;
        let &Fetched { number, started, .. } = fetched;
        let (tgid, knob) = (of.tgid, knob.to_owned());
        let kb_before = u64::from(own_pages) * PAGE_BYTES / 1024;
        WindowOverride { tgid, number, started, major, minor, ino, knob, kb_before }
    }

    /// The window it had; of more than can be told, the most.
    pub(super) fn pages_before(&self) -> u32 {
        (self.kb_before / (PAGE_BYTES / 1024)).try_into().unwrap_or(u32::MAX)
    }

    pub(super) fn file(&self) -> FileKey {
        let dev = DeviceNumber { major: self.major, minor: self.minor };
        FileKey { dev, ino: self.ino }
    }

    /// Who reads it; its generation is not known.
    pub(super) fn of(&self) -> FileRef {
        FileRef { file: self.file(), generation: 0, tgid: self.tgid }
    }

    /// Whether no process has its process's number. That of one that hangs in `exec` is told at once, too; whether it
    /// is the same one is not.
    fn has_ended(&self) -> bool {
        matches!(fs::exists(format!("/proc/{}", self.tgid)), Ok(false))
    }
}

/// What a ledger has; a line that is damaged hides none of the others.
pub(super) fn entries(ledger: &[u8]) -> impl Iterator<Item = WindowOverride> {
    ledger.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok())
}

/// All of them, by the identity of the open file, in memory and on disk.
pub(super) struct Ledger {
    path: PathBuf,
    file: Option<File>,
    given: HashMap<Target, WindowOverride>,
    /// The file still has entries that were removed, which does no harm.
    is_stale: bool,
    looked_at: u64,
    recovered: u32,
}

impl Ledger {
    /// With what an earlier run has left there.
    pub(super) fn open(path: PathBuf) -> Self {
        let given = HashMap::new();
        let mut ledger =
            Ledger { path, file: None, given, is_stale: false, looked_at: 0, recovered: 0 };
        ledger.read(&ledger.path.clone());
        ledger
    }

    /// Takes over what a ledger that was left behind has.
    pub(super) fn adopt(&mut self, other: &Path) {
        self.read(other);
        // It stays until all of it is written down here.
        if self.rewrite().is_ok() {
            let _ = fs::remove_file(other);
        }
    }

    fn read(&mut self, path: &Path) {
        // One that was being written when it was killed says nothing that this one does not.
        linux::whole::forget_drafts(path);
        for given in entries(&fs::read(path).unwrap_or_default()) {
            // Nothing is known of the old open files but that they differ.
            self.recovered += 1;
            self.given.insert(Target::Recovered(self.recovered), given);
        }
    }

    /// The identities of all.
    pub(super) fn all(&self) -> Vec<Target> {
        self.given.keys().copied().collect()
    }

    pub(super) fn get(&self, target: Target) -> Option<&WindowOverride> {
        self.given.get(&target)
    }

    /// Writes down that an open file is about to be given a window; gives what it had before any.
    pub(super) fn note(
        &mut self,
        target: Target,
        given: WindowOverride,
    ) -> io::Result<WindowOverride> {
        if let Some(known) = self.given.get(&target).filter(|known| known.is_to_same(&given)) {
            return Ok(known.clone());
        }
        let mut line = serde_json::to_string(&given)?;
        line.push('\n');
        if self.file.is_none() {
            if let Some(folder) = self.path.parent() {
                fs::create_dir_all(folder)?;
            }
            let mut options = File::options();
            // It tells what others read.
            options.create(true).append(true).mode(0o600);
            self.file = Some(options.open(&self.path)?);
        }
        if let Some(file) = &mut self.file {
            // Nothing of it is to stay that could not be written whole.
            file.write_all(line.as_bytes()).inspect_err(|_| drop(self.rewrite()))?;
        }
        self.given.insert(target, given.clone());
        Ok(given)
    }

    /// Strikes one off.
    pub(super) fn strike(&mut self, target: Target) {
        self.is_stale |= self.given.remove(&target).is_some();
    }

    /// Whether an earlier run has given the same open file a window, as far as can be told, and it still has it.
    pub(super) fn is_restore_pending(&self, given: &WindowOverride) -> bool {
        let left = self.given.iter().filter(|(target, _)| matches!(target, Target::Recovered(_)));
        left.into_iter().any(|(_, known)| known.is_to_same(given))
    }

    /// Once in a while, strikes those off whose process has ended, and writes down what was struck off; gives
    /// their names.
    pub(super) fn tidy(&mut self, now: u64) -> Vec<Target> {
        let mut gone = Vec::new();
        if now.saturating_sub(self.looked_at) >= LOOK_NS {
            self.looked_at = now;
            let ended = self.given.iter().filter(|(_, given)| given.has_ended());
            gone.extend(ended.map(|(target, _)| *target));
            gone.iter().for_each(|target| self.strike(*target));
        }
        self.write_down();
        gone
    }

    /// Writes the list without the removed entries. If that fails, only the next start after a kill notices.
    pub(super) fn write_down(&mut self) {
        if self.is_stale {
            let _ = self.rewrite();
        }
    }

    fn rewrite(&mut self) -> io::Result<()> {
        self.file = None;
        self.is_stale = false;
        if self.given.is_empty() {
            let _ = fs::remove_file(&self.path);
            return Ok(());
        }
        let lines = self.given.values().filter_map(|given| serde_json::to_string(given).ok());
        let text: String = lines.map(|line| line + "\n").collect();
        // In one step: a kill in the middle of writing would leave windows nobody knows of.
        linux::whole::write(&self.path, text)
    }
}

impl WindowOverride {
    fn is_to_same(&self, other: &WindowOverride) -> bool {
        (self.tgid, self.started, self.file()) == (other.tgid, other.started, other.file())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(ino: u64) -> WindowOverride {
        let tgid = std::process::id();
        let started = linux::process::started(tgid).expect("this process runs");
        let knob = "/sys/class/bdi/7:1/read_ahead_kb".into();
        let (number, major, minor) = (3, 7, 1);
        WindowOverride { tgid, number, started, major, minor, ino, knob, kb_before: 128 }
    }

    fn target(number: u64) -> Target {
        Target::OpenFile(controller::ids::OpenFile(number))
    }

    /// What the ledger at `path` says.
    fn listed(path: &Path) -> Vec<WindowOverride> {
        Ledger::open(path.into()).given.into_values().collect()
    }

    #[test]
    fn a_damaged_line_hides_none_of_the_others() {
        let line = |ino| serde_json::to_vec(&given(ino)).expect("JSON");
        let ledger = [&line(1), &b"\n\xff{\n"[..], &line(2), b"\n", &line(3)[..20]].concat();
        let whole: Vec<u64> = entries(&ledger).map(|given| given.ino).collect();
        assert_eq!(whole, [1, 2]);
    }

    #[test]
    fn more_pages_than_can_be_told_are_the_most() {
        let given = WindowOverride { kb_before: u64::MAX, ..given(1) };
        assert_eq!(given.pages_before(), u32::MAX);
    }

    #[test]
    fn what_was_given_to_a_process_that_has_ended_is_forgotten() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut ledger = Ledger::open(folder.path().join("given"));
        let mut process = std::process::Command::new("true").spawn().expect("it runs");
        process.wait().expect("it ends");
        ledger.note(target(1), given(1)).expect("written");
        ledger.note(target(2), WindowOverride { tgid: process.id(), ..given(2) }).expect("written");
        assert_eq!(ledger.tidy(LOOK_NS), [target(2)]);
        assert_eq!(ledger.all(), [target(1)]);
    }

    #[test]
    fn a_ledger_is_never_half_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("given.jsonl");
        let mut ledger = Ledger::open(path.clone());
        ledger.note(target(10), given(1)).expect("written");
        ledger.note(target(11), given(2)).expect("written");
        let before = fs::read_to_string(&path).expect("it is there");
        let old = File::open(&path).expect("it is there");
        ledger.strike(target(10));
        ledger.tidy(0);
        assert_eq!(io::read_to_string(old).expect("read"), before, "it was replaced, not changed");
        assert_eq!(listed(&path), [given(2)]);
        ledger.strike(target(11));
        ledger.tidy(0);
        assert_eq!(fs::read_dir(folder.path()).expect("listed").count(), 0, "nothing is left over");
    }

    #[test]
    fn what_was_given_survives_a_kill_and_is_gone_once_taken_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("given");
        let mut ledger = Ledger::open(path.clone());
        for (number, ino) in [(10, 1), (11, 2), (12, 3)] {
            ledger.note(target(number), given(ino)).expect("written");
        }
        ledger.note(target(10), WindowOverride { kb_before: 16, ..given(1) }).expect("nothing new");
        ledger.strike(target(11));
        ledger.strike(target(12));
        ledger.tidy(0);
        drop(ledger);
        let mut next = Ledger::open(path.clone());
        assert_eq!(
            next.all().into_iter().map(|one| next.get(one).cloned()).collect::<Vec<_>>(),
            [Some(given(1))]
        );
        next.strike(next.all()[0]);
        next.write_down();
        assert!(!path.exists());
    }

    #[test]
    fn what_was_left_behind_is_taken_over_and_stays_where_it_cannot_be_written_down() {
        let folder = tempfile::tempdir().expect("a folder");
        let (left, path) = (folder.path().join("left"), folder.path().join("given"));
        Ledger::open(left.clone()).note(target(10), given(1)).expect("written");
        let mut nowhere = Ledger::open(Path::new("/proc/self").join("given"));
        nowhere.adopt(&left);
        assert_eq!((nowhere.all().len(), listed(&left)), (1, vec![given(1)]));
        let mut ledger = Ledger::open(path.clone());
        ledger.note(target(11), given(2)).expect("written");
        ledger.adopt(&left);
        assert_eq!((listed(&path).len(), left.exists()), (2, false));
        ledger.all().into_iter().for_each(|one| ledger.strike(one));
        ledger.write_down();
        assert!(!path.exists(), "none of both is kept by another name");
    }
}
