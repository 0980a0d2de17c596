//! Identifies processes by the program they run. A process chooses its own arguments, so these
//! prove nothing.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::LazyLock;

use rustix::fs::{AtFlags, CWD, StatxFlags, statx};

/// Whether `process`, a folder of `/proc`, runs bowwave as root.
///
/// Cheap: for most processes it only reads the name. Reading `/proc/PID/exe` waits while the process is in `exec`. A
/// user can make that last forever, with a close-on-exec descriptor on a FUSE server that does not answer. So it is
/// read only of root's processes.
pub fn is_bowwave_of_root(process: &Path) -> bool {
    has_name(process)
        && crate::table::read(process.join("status")).is_ok_and(|status| is_of_root(&status))
        && is_bowwave(&process.join("exe"))
}

const OWN: &str = "/proc/self/exe";

/// The name of this program. Processes with it count as bowwave, too, whatever it is: a test has another name.
static OWN_NAME: LazyLock<Option<OsString>> = LazyLock::new(|| name_of(Path::new(OWN)));

/// The kernel keeps the first bytes of a program's name, and a NUL: `TASK_COMM_LEN`.
pub const NAME_BYTES: usize = 16;

/// The names that bowwave may have, as the kernel keeps them, filled with zeros.
pub fn names() -> [[u8; NAME_BYTES]; 2] {
    let own = OWN_NAME.as_ref().map_or(&b"bowwave"[..], |name| name.as_bytes());
    [&b"bowwave"[..], own].map(kept)
}

/// A name as the kernel keeps it, filled with zeros.
pub fn kept(name: &[u8]) -> [u8; NAME_BYTES] {
    let mut kept = [0; NAME_BYTES];
    let length = name.len().min(NAME_BYTES - 1);
    kept[..length].copy_from_slice(&name[..length]);
    kept
}

/// Whether a process has this program's name, which any process may take.
fn has_name(process: &Path) -> bool {
    let comm = fs::read(process.join("comm"));
    comm.is_ok_and(|comm| names().contains(&kept(comm.trim_ascii_end())))
}

/// Whether the program is this one, or has its name and belongs to root or to this program's owner.
/// A file replaced since the program started still counts.
fn is_bowwave(exe: &Path) -> bool {
    // Do not look at files of other programs: they may be on a server that does not answer.
    let name = name_of(exe).filter(|name| name == "bowwave" || Some(name) == OWN_NAME.as_ref());
    // What the kernel knows of it: a server, which the superuser of a container may have, is not asked.
    let look_at = |exe: &Path| statx(CWD, exe, AtFlags::STATX_DONT_SYNC, StatxFlags::UID);
    let owner = |exe: &Path| look_at(exe).ok().map(|about| about.stx_uid);
    let owner_of_it = name.and_then(|_| owner(exe));
    owner_of_it.is_some_and(|user| user == 0 || Some(user) == owner(Path::new(OWN)))
}

/// A program's name, even if its file was replaced since it started.
fn name_of(exe: &Path) -> Option<OsString> {
    let link = fs::read_link(exe).ok()?;
    let name = link.file_name()?.as_bytes();
    Some(OsStr::from_bytes(name.strip_suffix(b" (deleted)").unwrap_or(name)).to_owned())
}

/// Whether both the real and the effective user in `/proc/PID/status`, the first two, are root.
fn is_of_root(status: &str) -> bool {
    crate::process::fields(status, "Uid:").is_some_and(|users| users.take(2).eq(["0", "0"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_is_recognised_even_after_its_file_was_replaced() {
        assert!(is_bowwave(Path::new(OWN)));
        assert!(!is_bowwave(Path::new("/proc/1/status")));
        assert!(!is_bowwave(Path::new("/proc/none/exe")));
        let folder = tempfile::tempdir().expect("a folder");
        let link = folder.path().join("exe");
        std::os::unix::fs::symlink("/usr/bin/bowwave (deleted)", &link).expect("linked");
        assert_eq!(name_of(&link), Some("bowwave".into()));
    }

    #[test]
    fn what_a_program_of_another_name_runs_is_not_asked() {
        let folder = tempfile::tempdir().expect("a folder");
        for (comm, is_named) in [("bowwave\n", true), ("bowwave2\n", false), ("", false)] {
            fs::write(folder.path().join("comm"), comm).expect("written");
            assert_eq!(has_name(folder.path()), is_named, "{comm:?}");
        }
        assert!(has_name(Path::new("/proc/self")), "its own name is longer than is kept");
        assert!(!has_name(Path::new("/proc/none")));
    }

    #[test]
    fn only_root_by_real_and_effective_user_counts() {
        assert!(is_of_root("Name:\tbowwave\nUid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\n"));
        assert!(!is_of_root("Uid:\t1000\t0\t0\t0\n"), "by its file's bit only");
        assert!(!is_of_root("Uid:\t0\t1000\t0\t0\n"));
        assert!(!is_of_root("Name:\tUid: 0 0\n") && !is_of_root(""));
    }
}
