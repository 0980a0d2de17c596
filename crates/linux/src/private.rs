//! Files that only this user can read or write, in a folder that only this user can change.
//!
//! Whoever may write to a folder, or to one above it, can replace a file or folder in it by a link, a FIFO or another
//! folder. So the folder is opened once and checked, and then its files are reached through the descriptor.

use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, openat, renameat, unlinkat};
use rustix::process::geteuid;

use crate::failpoint;

/// Why a private file or folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PrivateError {
    /// The file system refuses.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It is of another kind, belongs to another user, or others may write to it.
    #[error("others may have changed it")]
    Foreign,
    /// Others can change this folder, which the path leads through.
    #[error("others can change {0}")]
    ForeignWay(PathBuf),
}

impl From<rustix::io::Errno> for PrivateError {
    fn from(error: rustix::io::Errno) -> Self {
        PrivateError::Io(error.into())
    }
}

/// A folder that only this user can change. Names in it are plain file names without a `/`.
#[derive(Debug)]
pub struct Folder(File);

/// A draft's name is this and the id of the process that writes it.
const DRAFT: &str = ".draft-";

impl Folder {
    /// Opens the folder; `None` if there is none.
    ///
    /// # Errors
    /// See [`PrivateError`].
    pub fn open(path: &Path) -> Result<Option<Self>, PrivateError> {
        check_way_to(path)?;
        let Some(file) = look_up(CWD, path)? else { return Ok(None) };
        let about = file.metadata()?;
        if about.is_dir() && is_own(&about) {
            Ok(Some(Folder(file)))
        } else {
            Err(PrivateError::Foreign)
        }
    }

    /// Opens the folder. Makes it and those above it if there is none.
    ///
    /// # Errors
    /// See [`PrivateError`].
    pub fn make(path: &Path) -> Result<Self, PrivateError> {
        check_way_to(path)?;
        if let Some(above) = path.parent() {
            // Whatever the umask is, others may not change them.
            DirBuilder::new().recursive(true).mode(0o755).create(above)?;
        }
        match DirBuilder::new().mode(0o700).create(path) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error.into()),
            _ => {}
        }
        Folder::open(path)?.ok_or_else(|| io::Error::from(ErrorKind::NotFound).into())
    }

    /// Opens a regular file for reading; `None` if there is none.
    ///
    /// # Errors
    /// See [`PrivateError`].
    pub fn read(&self, name: &str) -> Result<Option<File>, PrivateError> {
        let Some(file) = look_up(&self.0, Path::new(name))? else { return Ok(None) };
        let about = file.metadata()?;
        if about.is_file() && is_own(&about) { Ok(Some(file)) } else { Err(PrivateError::Foreign) }
    }

    /// Puts a new file in the place of whatever has that name. After a crash of the machine, one of the two is there.
    ///
    /// # Errors
    /// If it cannot be written; then the old one stays.
    pub fn write(&self, name: &str, text: &[u8]) -> io::Result<()> {
        self.forget_drafts()?;
        let draft = format!("{DRAFT}{}", std::process::id());
        let written = self.create(&draft).and_then(|mut file| {
            file.write_all(text)?;
            file.sync_all()?;
            failpoint::reach("draft-written");
            Ok(renameat(&self.0, &draft, &self.0, name)?)
        });
        if written.is_err() {
            let _ = self.remove(&draft);
        }
        written
    }

    /// Removes what has that name. Returns whether there was anything.
    ///
    /// # Errors
    /// If it cannot be removed.
    pub fn remove(&self, name: &str) -> io::Result<bool> {
        match unlinkat(&self.0, name, AtFlags::empty()) {
            Err(rustix::io::Errno::NOENT) => Ok(false),
            Err(error) => Err(error.into()),
            Ok(()) => Ok(true),
        }
    }

    /// The names of all that is in it.
    ///
    /// # Errors
    /// If it cannot be listed.
    pub fn names(&self) -> io::Result<Vec<String>> {
        let entries = rustix::fs::Dir::read_from(&self.0)?.flatten();
        Ok(entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect())
    }

    fn create(&self, name: &str) -> io::Result<File> {
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(openat(&self.0, name, flags, Mode::RUSR | Mode::WUSR)?.into())
    }

    /// Removes drafts of processes that have ended, and of earlier ones with the id of this one.
    fn forget_drafts(&self) -> io::Result<()> {
        for name in self.names()? {
            let process = name.strip_prefix(DRAFT).and_then(|id| id.parse::<u32>().ok());
            let is_left = |id: u32| {
                id == std::process::id() || !Path::new("/proc").join(id.to_string()).exists()
            };
            if process.is_some_and(is_left) {
                // Another process may have removed it.
                let _ = self.remove(&name);
            }
        }
        Ok(())
    }
}

/// Checks that nobody but this user and root can change the folder, if there is one, or lead the path elsewhere.
///
/// # Errors
/// See [`PrivateError`].
pub(crate) fn check(path: &Path) -> Result<(), PrivateError> {
    check_folders(&std::path::absolute(path)?, MOST_LINKS)?;
    match fs::metadata(path) {
        // A sticky one that all may write to.
        Ok(about) if about.is_dir() && about.mode() & 0o022 != 0 => Err(PrivateError::Foreign),
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

/// As many links as the kernel follows in a path.
const MOST_LINKS: u32 = 40;

/// Checks that nobody else can lead the path elsewhere: by a link to a folder of root's, for example.
///
/// # Errors
/// [`PrivateError::ForeignWay`] if somebody can.
fn check_way_to(path: &Path) -> Result<(), PrivateError> {
    let path = std::path::absolute(path)?;
    path.parent().map_or(Ok(()), |folder| check_folders(folder, MOST_LINKS))
}

/// Checks these folders, from the root down: nobody can replace what was looked at before. Follows each link by itself,
/// as the next link may lie in a folder of somebody else's.
fn check_folders(path: &Path, most_links: u32) -> Result<(), PrivateError> {
    let mut folders: Vec<&Path> = path.ancestors().collect();
    folders.reverse();
    for folder in folders {
        let about = match fs::symlink_metadata(folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            about => about?,
        };
        // In a folder like /tmp, nobody can replace what is another's.
        let is_sticky = about.mode() & 0o1000 != 0;
        let is_fixed = about.is_symlink() || is_sticky || about.mode() & 0o022 == 0;
        if !is_fixed || ![0, geteuid().as_raw()].contains(&about.uid()) {
            return Err(PrivateError::ForeignWay(folder.into()));
        }
        if about.is_symlink() {
            let most_links = most_links.checked_sub(1).ok_or(rustix::io::Errno::LOOP)?;
            let place = folder.parent().unwrap_or(folder);
            check_folders(&place.join(fs::read_link(folder)?), most_links)?;
        }
    }
    Ok(())
}

/// Opens what is there. Does not follow a link as the last part of the path, and does not wait for a FIFO.
fn look_up(folder: impl AsFd, path: &Path) -> Result<Option<File>, PrivateError> {
    use rustix::io::Errno;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    match openat(folder, path, flags | OFlags::NOCTTY, Mode::empty()) {
        Ok(file) => Ok(Some(file.into())),
        Err(Errno::NOENT) => Ok(None),
        // A link; a socket.
        Err(Errno::LOOP | Errno::NXIO) => Err(PrivateError::Foreign),
        Err(error) => Err(error.into()),
    }
}

fn is_own(about: &fs::Metadata) -> bool {
    about.uid() == geteuid().as_raw() && about.mode() & 0o022 == 0
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    use rustix::fs::{FileType, mknodat};

    use super::*;

    const STRANGER: u32 = 1234;

    fn names_in(folder: &Folder) -> Vec<String> {
        let mut names = folder.names().expect("listed");
        names.retain(|name| name != "." && name != "..");
        names.sort();
        names
    }

    fn text(folder: &Folder, name: &str) -> String {
        let mut text = String::new();
        let file = folder.read(name).expect("it is ours").expect("it is there");
        { file }.read_to_string(&mut text).expect("read");
        text
    }

    fn is_foreign<T>(found: Result<T, PrivateError>) -> bool {
        matches!(found, Err(PrivateError::Foreign))
    }

    #[test]
    fn a_folder_to_which_others_can_lead_elsewhere_is_not_used() {
        let root = tempfile::tempdir().expect("a folder");
        let place = |name: &str| root.path().join(name);
        let (theirs, ours) = (place("theirs"), place("ours"));
        for folder in [&theirs, &ours, &ours.join("lists")] {
            DirBuilder::new().mode(0o755).create(folder).expect("made");
        }
        symlink(&ours, theirs.join("way")).expect("linked");
        symlink(&theirs, place("link")).expect("linked");
        symlink("theirs/way", place("two")).expect("linked");
        let is_usable = |path: &Path| match Folder::open(path) {
            Ok(folder) => folder.is_some(),
            Err(PrivateError::ForeignWay(_)) => false,
            Err(error) => panic!("{error}"),
        };
        assert!(is_usable(&theirs.join("way/lists")), "all of it is ours");
        assert!(is_usable(&place("two/lists")), "all of it is ours");
        for mode in [0o777, 0o775] {
            fs::set_permissions(&theirs, PermissionsExt::from_mode(mode)).expect("ours");
            assert!(!is_usable(&theirs.join("way/lists")));
            assert!(!is_usable(&place("link").join("way/lists")), "by a link of ours");
            assert!(!is_usable(&place("two/lists")), "by a link of ours to theirs");
            let made = Folder::make(&theirs.join("way/new/lists"));
            assert!(matches!(made, Err(PrivateError::ForeignWay(_))));
            assert!(!ours.join("new").exists(), "nothing was made");
        }
        fs::set_permissions(&theirs, PermissionsExt::from_mode(0o1777)).expect("ours");
        assert!(is_usable(&theirs.join("way/lists")), "as below /tmp");
        if chown(&theirs, Some(STRANGER), None).is_ok() {
            fs::set_permissions(&theirs, PermissionsExt::from_mode(0o755)).expect("ours");
            assert!(!is_usable(&theirs.join("way/lists")), "its owner can");
        }
    }

    #[test]
    fn a_file_is_replaced_by_a_new_one_whatever_has_its_name() {
        let root = tempfile::tempdir().expect("a folder");
        let place = |name: &str| root.path().join(name);
        let victim = tempfile::NamedTempFile::new().expect("a file");
        fs::write(&victim, "as it was").expect("written");
        symlink(victim.path(), place("link")).expect("linked");
        mknodat(CWD, place("fifo"), FileType::Fifo, Mode::RWXU, 0).expect("a FIFO");
        fs::write(place("given"), "theirs").expect("written");
        fs::set_permissions(place("given"), PermissionsExt::from_mode(0o666)).expect("ours");
        // Only root can give files away.
        let _ = chown(place("given"), Some(STRANGER), Some(STRANGER));
        let folder = Folder::make(root.path()).expect("ours");
        for name in ["link", "fifo", "given"] {
            assert!(is_foreign(folder.read(name)), "{name}");
            folder.write(name, name.as_bytes()).expect("written");
            assert_eq!(text(&folder, name), name);
            let about = fs::symlink_metadata(place(name)).expect("there");
            assert!(about.is_file() && about.uid() == geteuid().as_raw(), "{name}");
            assert_eq!(about.mode() & 0o777, 0o600, "{name}");
        }
        assert_eq!(fs::read_to_string(victim.path()).expect("there"), "as it was");
        assert_eq!(names_in(&folder), ["fifo", "given", "link"]);
    }

    #[test]
    fn a_folder_that_others_may_change_is_refused() {
        let root = tempfile::tempdir().expect("a folder");
        let own = root.path().join("above/own");
        Folder::make(&own).expect("made");
        assert_eq!(fs::metadata(&own).expect("there").mode() & 0o777, 0o700);
        symlink(&own, root.path().join("link")).expect("linked");
        fs::write(root.path().join("file"), "").expect("written");
        for name in ["link", "file"] {
            assert!(is_foreign(Folder::open(&root.path().join(name))), "{name}");
            assert!(is_foreign(Folder::make(&root.path().join(name))), "{name}");
        }
        for mode in [0o770, 0o702, 0o1777] {
            fs::set_permissions(&own, PermissionsExt::from_mode(mode)).expect("ours");
            assert!(is_foreign(Folder::make(&own)), "{mode:o}");
        }
        fs::set_permissions(&own, PermissionsExt::from_mode(0o755)).expect("ours");
        Folder::make(&own).expect("others can only look");
        // Only root can give folders away.
        if chown(&own, Some(STRANGER), None).is_ok() {
            assert!(is_foreign(Folder::make(&own)));
        }
        assert!(Folder::open(&root.path().join("none")).expect("nothing is there").is_none());
    }

    #[test]
    fn the_drafts_of_processes_that_have_ended_are_removed() {
        let root = tempfile::tempdir().expect("a folder");
        let folder = Folder::make(root.path()).expect("ours");
        let own = std::process::id();
        // No process has a number this large.
        for name in [".draft-1", ".draft-4294967295", &format!(".draft-{own}"), "x.draft-9"] {
            fs::write(root.path().join(name), "").expect("written");
        }
        folder.write("x", b"text").expect("written");
        assert_eq!(names_in(&folder), [".draft-1", "x", "x.draft-9"]);
    }

    #[test]
    fn a_failed_write_leaves_nothing() {
        let root = tempfile::tempdir().expect("a folder");
        let folder = Folder::make(root.path()).expect("ours");
        // A file cannot replace a folder.
        fs::create_dir(root.path().join("taken")).expect("made");
        assert!(folder.write("taken", b"x").is_err());
        assert_eq!(names_in(&folder), ["taken"]);
        assert!(!folder.remove("none").expect("nothing is there"));
    }
}
