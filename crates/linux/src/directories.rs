//! Opens directories and the files in them for a process that may read them, and for no other.
//!
//! Only regular files of the same file system are opened for reading: a name's target is checked first (`O_PATH`).

use std::ffi::CStr;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use readahead::FileKey;
use rustix::fs::{Dir, FileType, Mode, OFlags, ResolveFlags, openat, openat2};

use crate::acting_as::Rights;
use crate::handles::{self, Kind, Reached};
use crate::mounts::Mount;
use crate::process::Process;
use crate::{sys, view};

const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::CLOEXEC);

const BENEATH: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_XDEV)
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_MAGICLINKS);

/// Reaches a directory by its inode (`O_PATH`), whatever its permissions.
///
/// # Errors
/// If there is no such directory, or the file system encodes handles otherwise.
pub fn open_known(key: FileKey, generation: u32, mount: &Mount) -> io::Result<OwnedFd> {
    check(handles::reach_by_inode(key, generation, mount)?, key, Kind::Directory)
}

/// The same directory, opened again with the rights of a process: to be listed.
///
/// # Errors
/// If the process may not.
pub fn open_as(directory: BorrowedFd<'_>, rights: &Rights) -> io::Result<OwnedFd> {
    rights.act(|| openat(directory, c".", DIRECTORY, Mode::empty()))??;
    Ok(openat(directory, c".", DIRECTORY | OFlags::NOATIME, Mode::empty())?)
}

/// A directory in a directory, with the rights of a process: to be listed.
///
/// # Errors
/// If the process may not, or the name leads to something else.
pub fn open_below(
    directory: BorrowedFd<'_>,
    name: &CStr,
    key: FileKey,
    rights: &Rights,
) -> io::Result<OwnedFd> {
    let found = rights.act(|| openat2(directory, name, DIRECTORY, Mode::empty(), BENEATH))??;
    let found = check(found, key, Kind::Directory)?;
    Ok(openat(found, c".", DIRECTORY | OFlags::NOATIME, Mode::empty())?)
}

/// The inode and generation of the parent directory, if it is on the same file system, and the process sees it and may
/// list it. `directory` was reached by way of `mount`.
pub fn above(
    directory: BorrowedFd<'_>,
    key: FileKey,
    mount: &Mount,
    process: &Process,
    rights: &Rights,
) -> Option<(FileKey, u32)> {
    let found = rights.act(|| openat(directory, c"..", DIRECTORY, Mode::empty())).ok()?.ok()?;
    let above = handles::key_of(&found, Kind::Directory).ok()?;
    if above.dev != key.dev || above.ino == key.ino {
        return None;
    }
    // Its rights alone do not tell: a superuser in a container sees only the volumes that the container was given.
    let path = fs::read_link(format!("/proc/self/fd/{}", found.as_raw_fd())).ok()?;
    let path = view::path_within(mount, &path)?;
    let is_seen = process.read(|number| view::includes(number, mount.dev, &path)).ok()?;
    is_seen.then(|| Some((above, sys::generation(&found).ok()?))).flatten()
}

/// A file in a directory, reached with the rights of a process that may read it.
///
/// # Errors
/// If the process may not, or the name leads to something else.
pub fn reach_file_in(
    directory: BorrowedFd<'_>,
    name: &CStr,
    key: FileKey,
    rights: &Rights,
) -> io::Result<Reached> {
    let path = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let reached = rights.act(|| -> io::Result<OwnedFd> {
        let reached = openat2(directory, name, path, Mode::empty(), BENEATH)?;
        sys::may_read(&reached)?;
        Ok(reached)
    })??;
    Reached::is(reached, key)
}

fn check(found: OwnedFd, key: FileKey, kind: Kind) -> io::Result<OwnedFd> {
    if handles::key_of(&found, kind)? == key {
        Ok(found)
    } else {
        Err(io::ErrorKind::NotFound.into())
    }
}

/// Calls `each` with name, inode number and kind of the entries, except `.` and `..`, until it returns `false`.
///
/// # Errors
/// Whatever `getdents64(2)` reports.
pub fn for_each_entry(
    directory: OwnedFd,
    mut each: impl FnMut(&CStr, u64, FileType) -> bool,
) -> io::Result<()> {
    for entry in Dir::new(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        let is_own = name == c"." || name == c"..";
        if !is_own && !each(name, entry.ino(), entry.file_type()) {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::fd::AsFd;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    use std::path::Path;
    use std::process::{Command, Stdio};

    use readahead::DeviceNumber;
    use rustix::fs::{mkfifoat, open};

    use super::*;
    use crate::acting_as::NOBODY;

    fn key(path: &Path) -> FileKey {
        let about = fs::symlink_metadata(path).expect("it is there");
        FileKey { dev: DeviceNumber::from_stat(about.dev()), ino: about.ino() }
    }

    fn own() -> Process {
        Process::open(std::process::id()).expect("we are alive")
    }

    fn root() -> Option<Rights> {
        let is_root = rustix::process::geteuid().is_root();
        is_root.then(|| Rights::of(&own()).expect("we are alive"))
    }

    /// A folder of mode 0755 with a file, a folder, a FIFO and links to file and folder.
    fn tree() -> (tempfile::TempDir, OwnedFd) {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name| folder.path().join(name);
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("it is ours");
        fs::write(at("file"), "words").expect("it can be written");
        fs::create_dir(at("folder")).expect("it can be made");
        symlink(at("file"), at("link")).expect("it can be made");
        let opened = open(folder.path(), DIRECTORY, Mode::empty()).expect("it is ours");
        mkfifoat(&opened, c"fifo", Mode::from_raw_mode(0o644)).expect("it can be made");
        (folder, opened)
    }

    #[test]
    fn a_regular_file_is_opened_and_nothing_else() {
        let Some(rights) = root() else { return eprintln!("skipped: needs root") };
        let (folder, opened) = tree();
        let open = |name: &CStr| {
            let key = key(&folder.path().join(name.to_str().expect("plain")));
            reach_file_in(opened.as_fd(), name, key, &rights)?.open()
        };
        let file = open(c"file").expect("a file");
        let found = handles::key_of(&file, Kind::File).expect("it is one");
        assert_eq!(found, key(&folder.path().join("file")));
        for other in [c"folder", c"fifo", c"link"] {
            assert!(open(other).is_err(), "{other:?}");
        }
        let wrong = key(&folder.path().join("folder"));
        assert!(reach_file_in(opened.as_fd(), c"file", wrong, &rights).is_err(), "replaced");
        let out =
            reach_file_in(opened.as_fd(), c"../file", key(&folder.path().join("file")), &rights);
        assert!(out.is_err(), "no way leads out");
    }

    #[test]
    fn a_process_is_served_only_where_it_may_look_itself() {
        if root().is_none() {
            return eprintln!("skipped: needs root");
        }
        let (folder, opened) = tree();
        let path = |name: &str| folder.path().join(name);
        let mode = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
        };
        let file = || reach_file_in(opened.as_fd(), c"file", key(&path("file")), &NOBODY);
        let below = || open_below(opened.as_fd(), c"folder", key(&path("folder")), &NOBODY);
        assert!(file().is_ok() && below().is_ok() && open_as(opened.as_fd(), &NOBODY).is_ok());
        mode(&path("file"), 0o600);
        mode(&path("folder"), 0o700);
        assert!(file().is_err(), "it may not be read");
        assert!(below().is_err(), "it may not be listed");
        mode(&path("file"), 0o644);
        mode(folder.path(), 0o700);
        assert!(file().is_err(), "it may not be reached");
        assert!(open_as(opened.as_fd(), &NOBODY).is_err());
    }

    /// In its own mount namespace, takes that volume for its root, says so and waits.
    const CONTAINER: &str = "
import os, subprocess, sys
volume = sys.argv[1]
subprocess.check_call(['mount', '--bind', volume, volume])
os.chroot(volume)
os.chdir('/')
print(flush=True)
sys.stdin.readline()";

    /// Takes that folder for its root, in the mount namespace of all.
    const CHROOT: &str = "
import os, sys
os.chroot(sys.argv[1])
print(flush=True)
sys.stdin.readline()";

    #[test]
    fn no_way_leads_up_out_of_the_volume_of_a_container_or_out_of_a_changed_root() {
        let Some(root) = root() else { return eprintln!("skipped: needs root") };
        // A disk: files in memory have no generation.
        let folder = tempfile::tempdir_in("/var/tmp").expect("a folder");
        let volume = folder.path().join("volumes/one");
        let below = volume.join("below");
        fs::create_dir_all(&below).expect("it can be made");
        let mount = crate::mounts::of_number(key(&below).dev).expect("a table");
        let Some(mount) = mount else { return eprintln!("skipped: no disk") };
        let up = |from: &Path, process: &Process| {
            let opened = open(from, DIRECTORY, Mode::empty()).expect("it is ours");
            let found = above(opened.as_fd(), key(from), &mount, process, &root);
            found.map(|(key, _)| key)
        };
        let all = |process: &Process| [&below, &volume].map(|from| up(from, process));
        let whole = [&below, &volume].map(|from| Some(key(from.parent().expect("it has one"))));
        if all(&own())[0].is_none() {
            return eprintln!("skipped: no generations");
        }
        assert_eq!(all(&own()), whole, "who sees all is led up");
        for (words, expected) in [
            (vec!["unshare", "--mount", "python3", "-c", CONTAINER], [whole[0], None]),
            (vec!["python3", "-c", CHROOT], [None, None]),
        ] {
            let mut command = Command::new(words[0]);
            command.args(&words[1..]).arg(&volume).stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut inside = command.spawn().expect("it runs");
            inside.stdout.take().expect("piped").read_exact(&mut [0]).expect("it is inside");
            let found = all(&Process::open(inside.id()).expect("it waits"));
            drop(inside.stdin.take());
            inside.wait().expect("it ends");
            assert_eq!(found, expected, "{}", words[0]);
        }
    }

    #[test]
    fn entries_are_told_without_the_directory_itself() {
        let (_folder, opened) = tree();
        let mut names = Vec::new();
        let listed = for_each_entry(opened, |name, _, kind| {
            names.push((name.to_owned(), kind));
            true
        });
        listed.expect("it can be listed");
        assert_eq!(names.len(), 4);
        assert!(names.contains(&(c"fifo".to_owned(), FileType::Fifo)));
    }
}
