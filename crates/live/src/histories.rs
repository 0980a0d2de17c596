//! How the files of each file system were read, kept in small files, so that bowwave begins with what it has learned.
//!
//! ```text
//!   mounted ------------> file --> Input::History --> controller
//!   every 5 minutes,                                      |
//!   unmounted, at the end: file <-- a thread <-- changed? <'
//! ```
//!
//! The files may be deleted at any time. A file is named after the disk, the partition and the type. If another file
//! system is made there, it begins with the history of the one before: that tells what to expect at first, and reads
//! soon tell more.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use controller::Completed;
use linux::identity::Identity;
use linux::mounts::{Disk, Mount, partition_under};
use linux::{state, whole};
use readahead::History;
use serde::{Deserialize, Serialize};

use crate::execute::Answers;
use crate::pool::{ONE, Pool, Worker};

/// The format that this bowwave writes.
const FORMAT: u32 = 1;

/// Keep at most this many files, of 2 KB each: those that were written last.
const MOST_FILES: usize = 256;

/// At the end, wait this long until they are written. The disk may not answer.
const WRITING_TIMEOUT: Duration = Duration::from_millis(300);

/// The contents of a file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Note {
    format: u32,
    history: History,
}

/// The file for the history of a file system; `None` for FUSE, where any user chooses what the source is called.
/// Touches nothing of the file system itself, as that may have to wait for it.
pub(crate) fn file_of(mount: &Mount, disk: Option<&Disk>, state: &Path) -> Option<PathBuf> {
    if mount.fs_type.starts_with("fuse") {
        return None;
    }
    let device = Identity::of(mount, disk).slug();
    let name = match (disk, partition_under(mount)) {
        (None, _) => device,
        (Some(_), None) => format!("{device}-{}", mount.fs_type),
        (Some(_), Some(partition)) => format!("{device}-{partition}-{}", mount.fs_type),
    };
    Some(state::histories(state).join(name))
}

/// The history in this file, if there is a valid one.
pub(crate) fn read(file: &Path) -> Option<Box<History>> {
    in_note(&fs::read(file).ok()?)
}

/// Parses a note; `None` if it is invalid.
fn in_note(text: &[u8]) -> Option<Box<History>> {
    let note: Note = serde_json::from_slice(text).ok()?;
    (note.format == FORMAT).then(|| Box::new(note.history))
}

#[cfg(any(test, fuzzing))]
pub(crate) fn read_any_note(bytes: &[u8]) {
    if let Some(history) = in_note(bytes) {
        let again = serde_json::to_vec(&Note { format: FORMAT, history: *history });
        assert_eq!(in_note(&again.expect("it is written")), Some(history));
    }
}

/// What a file contains.
#[derive(Clone, Copy)]
struct Known {
    history: History,
    /// No managed file system had this file at the last [`forget_gone`](Histories::forget_gone).
    is_gone: bool,
}

impl From<History> for Known {
    fn from(history: History) -> Self {
        Known { history, is_gone: false }
    }
}

/// Writes the histories of the managed file systems.
pub(crate) struct Histories {
    known: HashMap<PathBuf, Known>,
    writer: Pool<Writer>,
}

impl Histories {
    pub(crate) fn new(answers: Answers) -> Self {
        Histories {
            known: HashMap::new(),
            writer: Pool::new("bowwave-history", ONE, answers, || Writer),
        }
    }

    /// What the file contains: what this process has kept last, or else what it has `read` there.
    pub(crate) fn latest(
        &mut self,
        file: &Path,
        read: Option<Box<History>>,
    ) -> Option<Box<History>> {
        if let (false, Some(read)) = (self.known.contains_key(file), read) {
            self.known.insert(file.to_owned(), (*read).into());
        }
        self.known.get(file).map(|known| Box::new(known.history))
    }

    /// Has the history written if it differs from what the file contains.
    pub(crate) fn keep(&mut self, file: &Path, history: &History) {
        let history = history.rested();
        let known = self.known.get(file).map(|known| known.history).unwrap_or_default();
        if history != known {
            self.known.insert(file.to_owned(), history.into());
            self.writer.submit((file.to_owned(), Box::new(history)));
        }
    }

    /// Forgets the files that no managed file system has had since the call before. What was to be written into them is
    /// there by now, so that whoever reads them later misses nothing.
    pub(crate) fn forget_gone(&mut self, managed: &HashSet<&Path>) {
        self.known.retain(|file, known| {
            let was_gone = known.is_gone;
            known.is_gone = !managed.contains(file.as_path());
            !(was_gone && known.is_gone)
        });
    }

    /// Waits until all are written, but not for ever.
    pub(crate) fn wait(&self) {
        self.writer.wait(WRITING_TIMEOUT);
    }
}

/// The thread that writes.
struct Writer;

impl Worker for Writer {
    type Job = (PathBuf, Box<History>);

    fn refused(_: &Self::Job) -> Option<Completed> {
        None
    }

    fn run(&mut self, (file, history): Self::Job) -> Option<Completed> {
        // Without the file, the next start begins with less.
        let _ = write(&file, *history);
        None
    }
}

fn write(file: &Path, history: History) -> io::Result<()> {
    whole::write(file, serde_json::to_vec(&Note { format: FORMAT, history })?)?;
    file.parent().map_or(Ok(()), |folder| limit(folder, MOST_FILES))
}

/// Removes the files that were written first, except `most`.
fn limit(folder: &Path, most: usize) -> io::Result<()> {
    let entries = fs::read_dir(folder)?.flatten();
    let dated = |entry: fs::DirEntry| {
        let about = entry.metadata().ok().filter(fs::Metadata::is_file)?;
        Some((about.modified().ok()?, entry.path()))
    };
    let mut files: Vec<(SystemTime, PathBuf)> = entries.filter_map(dated).collect();
    files.sort();
    let surplus = files.len().saturating_sub(most);
    files[..surplus].iter().try_for_each(|(_, file)| fs::remove_file(file))
}

#[cfg(test)]
mod tests {
    use controller::ids::DeviceNumber;

    use super::*;

    /// A history that is not empty.
    fn history() -> History {
        let text = r#"{"completion_rate":{"begun":2.0,"ended":1.0},
            "starts":{"misses":3.0,"forward":1.0,"backward":0.0},"curve":[[7,1.0,2.0,9]]}"#;
        serde_json::from_str(text).expect("a history")
    }

    fn histories() -> Histories {
        Histories::new(Answers::new().expect("a descriptor"))
    }

    #[test]
    fn what_was_kept_is_read_at_the_next_start() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("new/volumes/sda-ext4-1");
        assert_eq!(read(&file), None);
        let mut histories = histories();
        histories.keep(&file, &history());
        histories.wait();
        assert_eq!(read(&file).as_deref(), Some(&history()));
        fs::write(&file, "{\"format\":2}").expect("written");
        assert_eq!(read(&file), None, "a format of tomorrow");
    }

    #[test]
    fn what_has_not_changed_is_not_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let (empty, read) = (folder.path().join("empty"), folder.path().join("read"));
        let mut histories = histories();
        assert_eq!(histories.latest(&read, Some(Box::new(history()))), Some(Box::new(history())));
        histories.keep(&read, &history());
        histories.keep(&empty, &History::default());
        histories.wait();
        assert!(!empty.exists() && !read.exists());
        histories.keep(&read, &History::default());
        histories.wait();
        assert!(read.exists());
        let latest = histories.latest(&read, Some(Box::new(history())));
        assert_eq!(latest, Some(Box::default()), "it was read before it was written");
    }

    #[test]
    fn a_file_of_a_volume_that_stays_away_is_forgotten() {
        let folder = tempfile::tempdir().expect("a folder");
        let [here, away] = ["here", "away"].map(|name| folder.path().join(name));
        let mut histories = histories();
        histories.keep(&here, &history());
        histories.keep(&away, &history());
        let both = HashSet::from([here.as_path(), away.as_path()]);
        let one = HashSet::from([here.as_path()]);
        histories.forget_gone(&both);
        for managed in [&one, &both, &one] {
            histories.forget_gone(managed);
            assert!(histories.latest(&away, None).is_some(), "it may not be written yet");
        }
        histories.forget_gone(&one);
        assert_eq!(histories.latest(&away, None), None);
        assert_eq!(histories.latest(&here, None).as_deref(), Some(&history()));
        histories.wait();
        let read = read(&away);
        assert_eq!(read.as_deref(), Some(&history()));
        assert_eq!(histories.latest(&away, read).as_deref(), Some(&history()), "it is back");
    }

    #[test]
    fn a_file_is_named_after_what_nobody_but_root_chooses() {
        let mount = |fs_type: &str, source: &str| Mount {
            dev: DeviceNumber { major: 0, minor: 99 },
            root: "/".into(),
            mount_point: "/no/such".into(),
            fs_type: fs_type.into(),
            source: source.into(),
        };
        let name = |mount: &Mount| {
            let file = file_of(mount, None, Path::new("/state"))?;
            assert_eq!(file.parent(), Some(Path::new("/state/volumes")));
            file.file_name().map(|name| name.to_string_lossy().into_owned())
        };
        assert_eq!(name(&mount("fuse.x/../../../etc", "/dev/sda")), None);
        assert!(name(&mount("nfs4", "server:/../a")) != name(&mount("nfs4", "server:/a")));
        assert!(name(&mount("nfs4", "server:/../a")).is_some_and(|name| !name.contains('.')));
    }

    #[test]
    fn the_oldest_files_are_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let old = SystemTime::UNIX_EPOCH;
        for (number, name) in ["c", "a", "b"].into_iter().enumerate() {
            let file = fs::File::create(folder.path().join(name)).expect("created");
            file.set_modified(old + Duration::from_secs(number as u64)).expect("changed");
        }
        limit(folder.path(), 2).expect("removed");
        assert!(!folder.path().join("c").exists());
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 2);
    }
}
