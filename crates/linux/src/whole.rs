//! Writes files so that a full disk or a crash leaves either the old file or the new one.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use crate::lock;

/// Creates `folder` and checks that files can be written there. Leaves nothing else behind, and no
/// folder if they cannot.
///
/// # Errors
/// If they cannot.
pub fn probe(folder: &Path) -> io::Result<()> {
    if folder.is_file() {
        return Err(io::Error::other("it is a file"));
    }
    if folder.is_symlink() && !folder.exists() {
        return Err(io::Error::other("it is a link to something that does not exist"));
    }
    let made = make_folders(folder)?;
    let tried = try_out(&folder.join(format!("probe-{}", std::process::id())));
    if tried.is_err() {
        // Not if somebody else has put a file there meanwhile.
        made.iter().try_for_each(fs::remove_dir).unwrap_or_default();
    }
    tried
}

/// Creates a folder and those above it. Returns those that did not exist, the innermost first.
fn make_folders(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let missing = folder.ancestors().filter(|place| !place.as_os_str().is_empty());
    let missing = missing.take_while(|place| !place.exists()).map(Path::to_owned).collect();
    // Whatever the umask is, others may not change them.
    DirBuilder::new().recursive(true).mode(0o755).create(folder)?;
    Ok(missing)
}

/// Creates a file of one byte and removes it.
fn try_out(path: &Path) -> io::Result<()> {
    let written = create_anew(path, PLAIN)?.write_all(b"x");
    written.and(fs::remove_file(path))
}

/// Checks that [`write`] could write `path` now, by creating and removing a draft. Does not touch
/// what is no regular file.
///
/// # Errors
/// If it could not.
pub fn check(path: &Path) -> io::Result<()> {
    if fs::metadata(path).is_ok_and(|about| !about.is_file()) {
        return Ok(());
    }
    let (_, draft) = draft_of(path)?;
    try_out(&draft)
}

/// Writes `text` to `path` and creates its folder. Writes a draft next to it first, gives it the
/// old file's owner and permissions, and renames it. What is no regular file (a pipe,
/// `/dev/stdout`) is written to directly.
///
/// # Errors
/// If writing fails; then `path` is unchanged and no draft is left.
pub fn write(path: &Path, text: impl AsRef<[u8]>) -> io::Result<()> {
    write_as(path, text, PLAIN)
}

/// Like [`write`]. A new file has these permissions, less the umask, and an old one keeps no others of [`PLAIN`]. If they
/// are fewer, an old file's owner does not get the new one.
///
/// # Errors
/// As [`write`].
pub fn write_as(path: &Path, text: impl AsRef<[u8]>, mode: u32) -> io::Result<()> {
    replace(path, text.as_ref(), mode, |_| Ok(()))
}

/// Like [`write`], but flushes the new file to the disk before it replaces the old one, so that a
/// crash of the machine leaves one of the two.
///
/// # Errors
/// As [`write`].
pub fn write_durably(path: &Path, text: impl AsRef<[u8]>) -> io::Result<()> {
    replace(path, text.as_ref(), PLAIN, File::sync_all)
}

/// Like [`write`], for whoever has [taken](lock::take) the old file. Also takes the new one, before it replaces
/// the old one, so that nobody can take either in between.
///
/// # Errors
/// As [`write`], or if `path` is no regular file.
pub fn write_locked(path: &Path, text: impl AsRef<[u8]>) -> io::Result<File> {
    let mut taken = None;
    replace(path, text.as_ref(), lock::MODE, |draft| {
        taken = Some(lock::take_new(draft)?);
        Ok(())
    })?;
    taken.ok_or_else(|| io::ErrorKind::InvalidInput.into())
}

/// Removes the drafts that killed processes left next to `path`.
pub fn forget_drafts(path: &Path) {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return };
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let draft = entry.file_name();
        if draft != name && final_name(&draft.to_string_lossy()) == name.to_string_lossy() {
            // Another process may have removed it.
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// The name of the file that a draft of this name is to replace. The name itself, if it is not that of a draft.
pub fn final_name(name: &str) -> &str {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    match name.rsplit_once(DRAFT) {
        Some((of, process)) if is_number(process) => of,
        _ => name,
    }
}

/// A draft's name is the file's name, this, and the process id.
const DRAFT: &str = ".new-";

fn replace(
    path: &Path,
    text: &[u8],
    mode: u32,
    settle: impl FnOnce(&File) -> io::Result<()>,
) -> io::Result<()> {
    let before = fs::metadata(path).ok();
    if before.as_ref().is_some_and(|about| !about.is_file()) {
        return fs::write(path, text);
    }
    let (path, draft) = draft_of(path)?;
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let most = before.as_ref().map_or(mode, |before| before.mode() & mode);
    let written = create_anew(&draft, most).and_then(|mut file| {
        if let Some(before) = before {
            if mode == PLAIN {
                // Only root may give files away. Other users who may write in the folder become the
                // owner.
                let _ = fchown(&file, Some(before.uid()), Some(before.gid()));
            }
            let kept = before.mode() & !(PLAIN & !mode);
            file.set_permissions(Permissions::from_mode(kept))?;
        }
        file.write_all(text)?;
        settle(&file)?;
        crate::failpoint::reach("draft-written");
        fs::rename(&draft, &path)
    });
    if written.is_err() {
        let _ = fs::remove_file(&draft);
    }
    written
}

/// The file to write for `path`, and its draft.
///
/// Follows a link and replaces its target, not the link. Replaces a dangling link, so that it
/// cannot choose where a file is created.
fn draft_of(path: &Path) -> io::Result<(PathBuf, PathBuf)> {
    if path.is_symlink() && path.exists() {
        // The kernel does not follow another user's link in a folder like /tmp. Opening it first
        // applies that rule here, too.
        File::options().write(true).open(path)?;
    }
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.into());
    let mut name = OsString::from(path.file_name().ok_or(io::ErrorKind::InvalidInput)?);
    name.push(format!("{DRAFT}{}", std::process::id()));
    let draft = path.with_file_name(name);
    Ok((path, draft))
}

/// Permissions of a new file that anybody may read, before the umask.
pub const PLAIN: u32 = 0o666;

/// Creates a file that did not exist: its name can be guessed, and somebody may have put a link
/// there. Removes a draft that an earlier process with this id left.
fn create_anew(path: &Path, mode: u32) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => File::options().write(true).create_new(true).mode(mode).open(path),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{chown, symlink};

    use super::*;

    fn names_in(folder: &Path) -> Vec<OsString> {
        let mut names: Vec<_> =
            fs::read_dir(folder).expect("there").flatten().map(|entry| entry.file_name()).collect();
        names.sort();
        names
    }

    #[test]
    fn what_is_private_replaces_a_file_that_others_may_read_as_a_private_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("page.html");
        fs::write(&path, "for all").expect("written");
        fs::set_permissions(&path, Permissions::from_mode(0o755)).expect("ours");
        // Only root can make it another user's.
        let _ = chown(&path, Some(65534), Some(65534));
        write_as(&path, "private", 0o600).expect("written");
        let about = fs::metadata(&path).expect("there");
        assert_eq!(about.mode() & 0o777, 0o711, "what is no permission to read or write stays");
        assert_eq!(about.uid(), rustix::process::geteuid().as_raw());
        write(&path, "for all").expect("written");
        assert_eq!(fs::metadata(&path).expect("there").mode() & 0o777, 0o711);
    }

    #[test]
    fn a_file_is_replaced_through_links_and_keeps_its_permissions() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("new/file.toml");
        write(&path, "one").expect("written");
        fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).expect("ours");
        let link = folder.path().join("link");
        symlink(&path, &link).expect("linked");
        write(&link, "two").expect("written again");
        assert_eq!(fs::read_to_string(&path).expect("there"), "two");
        assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
        assert!(link.is_symlink());
        assert_eq!(names_in(&folder.path().join("new")), ["file.toml"]);
    }

    #[test]
    fn no_link_in_a_drafts_or_probes_place_is_followed() {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, victim) = (folder.path().join("file"), folder.path().join("victim"));
        fs::write(&victim, "as it was").expect("written");
        let own = std::process::id();
        for name in [format!("file{DRAFT}{own}"), format!("probe-{own}")] {
            symlink(&victim, folder.path().join(name)).expect("planted");
        }
        write(&path, "text").expect("written");
        probe(folder.path()).expect("it can be written in");
        assert_eq!(fs::read_to_string(&victim).expect("there"), "as it was");
        assert_eq!(fs::read_to_string(&path).expect("there"), "text");
        assert_eq!(names_in(folder.path()), ["file", "victim"]);
    }

    #[test]
    fn a_link_that_leads_nowhere_is_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let (link, nowhere) = (folder.path().join("link"), folder.path().join("nowhere"));
        symlink(&nowhere, &link).expect("linked");
        write(&link, "text").expect("written");
        assert!(!link.is_symlink() && !nowhere.exists());
        assert_eq!(fs::read_to_string(&link).expect("there"), "text");
    }

    #[test]
    fn the_owner_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        fs::write(&path, "one").expect("written");
        // Only root may do this.
        if chown(&path, Some(1234), Some(1235)).is_err() {
            return;
        }
        fs::set_permissions(&path, PermissionsExt::from_mode(0o4640)).expect("root may");
        write(&path, "two").expect("written");
        let about = fs::metadata(&path).expect("there");
        assert_eq!((about.uid(), about.gid(), about.mode() & 0o7777), (1234, 1235, 0o4640));
    }

    #[test]
    fn another_users_link_in_a_shared_folder_is_not_followed() {
        let folder = tempfile::tempdir().expect("a folder");
        let (target, link) = (folder.path().join("target"), folder.path().join("link"));
        fs::write(&target, "as it was").expect("written");
        symlink(&target, &link).expect("linked");
        fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o1777)).expect("ours");
        let guard = fs::read_to_string("/proc/sys/fs/protected_symlinks").unwrap_or_default();
        // Only root may do this.
        if std::os::unix::fs::lchown(&link, Some(1234), None).is_err() || guard.trim() != "1" {
            return;
        }
        assert!(write(&link, "changed").is_err());
        assert_eq!(fs::read_to_string(&target).expect("there"), "as it was");
    }

    #[test]
    fn only_drafts_of_killed_processes_are_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file.toml");
        let others = ["file.toml", "file.toml.new-idea", "other.toml.new-17"];
        for name in others.into_iter().chain(["file.toml.new-17"]) {
            fs::write(folder.path().join(name), "").expect("written");
        }
        forget_drafts(&path);
        assert_eq!(names_in(folder.path()), others);
    }

    #[test]
    fn a_failed_write_leaves_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        // A file cannot replace a folder.
        let taken = folder.path().join("taken");
        fs::create_dir(&taken).expect("made");
        assert!(write(&taken, "x").is_err());
        assert!(write(&Path::new("/proc/self").join("file"), "x").is_err());
        assert_eq!(names_in(folder.path()), ["taken"]);
    }

    #[test]
    fn a_check_leaves_a_file_as_it_is_and_says_why_one_cannot_be_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        check(&path).expect("it can be made");
        assert_eq!(names_in(folder.path()), [""; 0]);
        fs::write(&path, "as it was").expect("written");
        check(&path).expect("it can be replaced");
        assert_eq!(fs::read_to_string(&path).expect("there"), "as it was");
        assert_eq!(names_in(folder.path()), ["file"]);
        check(Path::new("/dev/full")).expect("it may have room when the time comes");
        assert!(check(Path::new("/proc/self/file")).is_err());
        assert!(check(&path.join("below a file")).is_err());
    }

    #[test]
    fn a_device_or_pipe_is_written_to_directly() {
        write(Path::new("/dev/null"), "x").expect("written");
        assert!(!fs::metadata("/dev/null").expect("it is there").is_file());
        let full = write(Path::new("/dev/full"), "x").unwrap_err();
        assert_eq!(full.kind(), io::ErrorKind::StorageFull);
    }

    #[test]
    fn a_probe_leaves_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("file");
        fs::write(&file, "").expect("written");
        assert!(probe(&file).is_err(), "it is a file");
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(folder.path().join("gone"), &link).expect("made");
        let refused = probe(&link).unwrap_err().to_string();
        assert!(refused.contains("a link to something that does not exist"), "{refused}");
        probe(&folder.path().join("new")).expect("it is made");
        assert_eq!(names_in(&folder.path().join("new")), [""; 0]);
    }
}
