//! Creates such a file: always a new file of our own, never through a link, and never over a file of another kind or
//! one that is being written.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Seek, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use crate::{Kind, fill};

/// Why a file cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    /// The file system refuses.
    #[error("cannot make the {kind} {}: {cause}", path.display())]
    Io {
        /// What it would hold.
        kind: &'static str,
        /// The file.
        path: PathBuf,
        /// The error.
        cause: io::Error,
    },
    /// Something exists that must not be replaced.
    #[error("{} {why}; name another file for the {kind}", path.display())]
    Taken {
        /// What it would hold.
        kind: &'static str,
        /// The file.
        path: PathBuf,
        /// Why it must not be replaced.
        why: String,
    },
}

/// A new, empty file.
#[derive(Debug)]
pub struct Place {
    /// Its path, as given.
    pub path: PathBuf,
    /// The file, open for writing.
    pub file: File,
}

impl Place {
    /// Creates the file, so that the user learns about a wrong path or a full disk at once.
    ///
    /// # Errors
    /// [`CreateError`]; then no file is left.
    pub fn take(path: &Path, kind: &Kind) -> Result<Self, CreateError> {
        let mut file = create(path, kind)?;
        if let Err(cause) = try_out(&mut file) {
            // Report the first error, not this one.
            let _ = fs::remove_file(path);
            return Err(CreateError::Io { kind: kind.name, path: path.into(), cause });
        }
        Ok(Place { path: path.into(), file })
    }
}

/// A new file beside its place, which an older one may still have. Removed when dropped.
#[derive(Debug)]
pub struct Draft {
    path: PathBuf,
    kind: &'static Kind,
    /// Its path for now; `None` once it is in its place.
    draft: Option<PathBuf>,
    /// The file, open for writing.
    pub file: File,
}

impl Draft {
    /// Creates the draft, so that the user learns about a wrong path or a full disk at once.
    ///
    /// # Errors
    /// [`CreateError`]; then no draft is left, and an older file is as it was.
    pub fn create(path: &Path, kind: &'static Kind) -> Result<Self, CreateError> {
        let io = |cause| CreateError::Io { kind: kind.name, path: path.into(), cause };
        check_free(path, kind)?;
        let name = path.file_name().ok_or_else(|| io(io::ErrorKind::IsADirectory.into()))?;
        remove_drafts_of_the_dead(path, name, kind);
        let draft = path.with_file_name(draft_name(name, std::process::id()));
        let file = anew(&draft).map_err(io)?;
        let mut draft = Draft { path: path.into(), kind, draft: Some(draft), file };
        try_out(&mut draft.file).map_err(io)?;
        Ok(draft)
    }

    /// Puts the file into its place, which an older file of this kind loses.
    ///
    /// # Errors
    /// [`CreateError`]; then an older file is as it was.
    pub fn put(&mut self) -> Result<(), CreateError> {
        let Some(draft) = self.draft.as_ref() else { return Ok(()) };
        check_free(&self.path, self.kind)?;
        let io = |cause| CreateError::Io { kind: self.kind.name, path: self.path.clone(), cause };
        fs::rename(draft, &self.path).map_err(io)?;
        self.draft = None;
        Ok(())
    }

    /// Whether the file still is in its place. Somebody may have removed or replaced it, or its folder.
    pub fn is_in_place(&self) -> bool {
        let number = |about: io::Result<fs::Metadata>| about.ok().map(|it| (it.dev(), it.ino()));
        let ours = number(self.file.metadata());
        self.draft.is_none() && ours.is_some() && ours == number(fs::symlink_metadata(&self.path))
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if let Some(draft) = &self.draft {
            // There is nobody to tell, and it is empty but for a header.
            let _ = fs::remove_file(draft);
        }
        unlock(&self.file);
    }
}

/// Gives up a lock, if there is one. To close the file is not enough: a child process that is just being started still
/// has it open for a moment.
fn unlock(file: &File) {
    let _ = flock(file, FlockOperation::Unlock);
}

fn draft_name(name: &OsStr, process: u32) -> OsString {
    let mut draft = name.to_owned();
    draft.push(format!(".{process}.new"));
    draft
}

/// Removes what killed processes have left of that file, before they could put it into its place.
fn remove_drafts_of_the_dead(path: &Path, name: &OsStr, kind: &Kind) {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    // They do no harm but to take room: a folder that cannot be listed is no reason to stop.
    let Ok(entries) = fs::read_dir(folder.unwrap_or(Path::new("."))) else { return };
    for entry in entries.flatten() {
        let draft = entry.path();
        // A process locks its draft only after it has made it, so its number counts, too.
        let is_left = drafter(&entry.file_name(), name).is_some_and(has_ended)
            && matches!(why_kept(&draft, kind), Ok(None));
        if is_left {
            let _ = fs::remove_file(draft);
        }
    }
}

/// The process that has made this draft of a file of that name; `None` if it is no draft of it.
fn drafter(draft: &OsStr, name: &OsStr) -> Option<u32> {
    let rest = draft.as_bytes().strip_prefix(name.as_bytes())?;
    let number = rest.strip_prefix(b".")?.strip_suffix(b".new")?;
    let process = std::str::from_utf8(number).ok()?.parse().ok()?;
    // Only as it is written here: not `+7` or `007`.
    (draft_name(name, process) == draft).then_some(process)
}

/// Whether the process that made a draft has ended. A draft with our own number is left over, too: we have made none
/// yet.
fn has_ended(process: u32) -> bool {
    let number = i32::try_from(process).ok().and_then(Pid::from_raw);
    process == std::process::id()
        || number.is_some_and(|it| test_kill_process(it) == Err(Errno::SRCH))
}

/// More than a header takes.
const TRIAL_BYTES: usize = 4096;

/// Checks that the disk has room, and empties the file again.
fn try_out(file: &mut File) -> io::Result<()> {
    file.write_all(&[0; TRIAL_BYTES])?;
    file.set_len(0)?;
    file.rewind()
}

/// Creates a file that only its owner may read, since it shows who read what. Removes an older file of that name
/// instead of writing to it, since somebody may have it open.
fn create(path: &Path, kind: &Kind) -> Result<File, CreateError> {
    let io = |cause| CreateError::Io { kind: kind.name, path: path.into(), cause };
    match anew(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            check_free(path, kind)?;
            fs::remove_file(path).map_err(io)?;
            anew(path).map_err(io)
        }
        outcome => outcome.map_err(io),
    }
}

/// Creates the file only if the name is free. Even a dangling link fails. It is locked for as long as it is open.
fn anew(path: &Path) -> io::Result<File> {
    let file = File::options().write(true).create_new(true).mode(0o600).open(path)?;
    // Some network file systems know no locks.
    let _ = flock(&file, FlockOperation::NonBlockingLockExclusive);
    Ok(file)
}

/// Fails if something exists that must not be replaced.
fn check_free(path: &Path, kind: &Kind) -> Result<(), CreateError> {
    match why_kept(path, kind) {
        Ok(None) => Ok(()),
        Ok(Some(why)) => Err(CreateError::Taken { kind: kind.name, path: path.into(), why }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(cause) => Err(CreateError::Io { kind: kind.name, path: path.into(), cause }),
    }
}

/// Why the existing file must not be replaced; `None` if it may be.
fn why_kept(path: &Path, kind: &Kind) -> io::Result<Option<String>> {
    let about = fs::symlink_metadata(path)?;
    if about.is_symlink() {
        return Ok(Some("is a symbolic link".into()));
    }
    if !about.is_file() {
        return Ok(Some("is not a regular file".into()));
    }
    if about.uid() != rustix::process::geteuid().as_raw() {
        return Ok(Some("belongs to another user".into()));
    }
    // If it has been replaced meanwhile, follow no link and wait for no pipe.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    let mut file = File::options().read(true).custom_flags(flags).open(path)?;
    if flock(&file, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK) {
        return Ok(Some("is being written by another bowwave".into()));
    }
    unlock(&file);
    let mut start = [0; 8];
    if fill(&mut file, &mut start)? == 0 {
        return Ok(None);
    }
    Ok((!kind.begins(&start)).then(|| format!("is no {}, and is not overwritten", kind.name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: Kind = Kind { name: "trace", magic: *b"\x8bbowtest", format: 1 };

    /// A folder with an older file of our kind, and the file.
    fn older() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("f");
        fs::write(&path, [&KIND.magic[..], b"older"].concat()).expect("ours");
        (folder, path)
    }

    fn names(folder: &Path) -> usize {
        fs::read_dir(folder).expect("a folder").count()
    }

    #[test]
    fn an_older_file_stays_until_the_draft_is_put_in_its_place() {
        let (folder, path) = older();
        drop(Draft::create(&path, &KIND).expect("there is room"));
        assert!(fs::read(&path).expect("there").ends_with(b"older") && names(folder.path()) == 1);
        let mut draft = Draft::create(&path, &KIND).expect("there is room");
        draft.file.write_all(b"newer").expect("there is room");
        assert!(!draft.is_in_place());
        draft.put().expect("it may be replaced");
        assert!(draft.is_in_place());
        assert_eq!((fs::read(&path).expect("there"), names(folder.path())), (b"newer".into(), 1));
    }

    #[test]
    fn drafts_of_killed_processes_are_removed_and_nothing_else() {
        let (folder, path) = older();
        let mut child = std::process::Command::new("true").spawn().expect("it starts");
        let dead = child.id();
        assert!(child.wait().expect("it ends").success());
        let make = |name: String, text: &[u8]| {
            let made = folder.path().join(name);
            fs::write(&made, text).expect("room");
            made
        };
        let left = make(format!("f.{dead}.new"), &KIND.magic);
        let empty = make(format!("f.{}.new", std::process::id()), b"");
        let kept = [
            // Its process lives; its number is not written as we write it (twice); it is another file's; it has none.
            make("f.1.new".into(), &KIND.magic),
            make(format!("f.0{dead}.new"), b"mine"),
            make(format!("f.+{dead}.new"), &KIND.magic),
            make(format!("g.{dead}.new"), &KIND.magic),
            make("f.new".into(), &KIND.magic),
        ];
        drop(Draft::create(&path, &KIND).expect("there is room"));
        assert!(!left.exists() && !empty.exists());
        assert!(path.exists() && kept.iter().all(|name| name.exists()));
        let foreign = make(format!("f.{dead}.new"), b"mine");
        drop(Draft::create(&path, &KIND).expect("there is room"));
        assert!(foreign.exists());
    }

    #[test]
    fn a_file_that_is_removed_or_replaced_is_missed() {
        let (folder, path) = older();
        let mut draft = Draft::create(&path, &KIND).expect("there is room");
        draft.put().expect("it may be replaced");
        fs::remove_file(&path).expect("ours");
        assert!(!draft.is_in_place());
        fs::write(&path, "another").expect("ours");
        assert!(!draft.is_in_place());
        fs::remove_dir_all(folder.path()).expect("ours");
        assert!(!draft.is_in_place());
    }

    #[test]
    fn what_another_process_writes_is_kept_until_it_ends() {
        let (_folder, path) = older();
        let mut draft = Draft::create(&path, &KIND).expect("there is room");
        draft.put().expect("it may be replaced");
        let refused = |outcome: Result<(), CreateError>| outcome.expect_err("taken").to_string();
        let by_draft = refused(Draft::create(&path, &KIND).map(drop));
        let by_place = refused(Place::take(&path, &KIND).map(drop));
        assert!(by_draft.contains("is being written") && by_draft == by_place, "{by_draft}");
        drop(draft);
        Place::take(&path, &KIND).expect("nobody writes");
    }

    #[test]
    fn a_child_that_is_being_started_keeps_no_lock() {
        let (_folder, path) = older();
        let mut draft = Draft::create(&path, &KIND).expect("there is room");
        draft.put().expect("it may be replaced");
        // Until it runs another program, a child shares all open files.
        let _of_a_child = draft.file.try_clone().expect("a descriptor");
        drop(draft);
        Place::take(&path, &KIND).expect("nobody writes");
    }

    #[test]
    fn files_of_other_kinds_are_kept() {
        let (_folder, path) = older();
        let mut draft = Draft::create(&path, &KIND).expect("there is room");
        fs::write(&path, "#!/bin/sh").expect("ours");
        assert!(draft.put().is_err_and(|error| error.to_string().contains("is no trace")));
        assert!(Draft::create(&path, &KIND).is_err() && Place::take(&path, &KIND).is_err());
    }
}
