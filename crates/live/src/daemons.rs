//! The daemons of bowwave that run on this machine, found in the table of processes.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::LazyLock;

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Daemon {
    /// Its process id.
    pub pid: u32,
    /// Whether it was given no paths, and leads every program.
    pub leads_all: bool,
}

/// Those of root's, this process excepted; none of anybody else's, who could call anything by that name.
///
/// Cheap enough for once a second: of most processes a link is read, and nothing else.
pub fn running() -> impl Iterator<Item = Daemon> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let own = std::process::id();
    pids.filter(move |pid| *pid != own).filter_map(look_at)
}

/// Whether that process is one of them.
#[cfg(feature = "bpf")]
pub(crate) fn is_running(pid: u32) -> bool {
    look_at(pid).is_some()
}

fn look_at(pid: u32) -> Option<Daemon> {
    let folder = Path::new("/proc").join(pid.to_string());
    if !is_bowwave(&folder.join("exe")) {
        return None;
    }
    let status = fs::read_to_string(folder.join("status")).ok().filter(|it| is_of_root(it));
    // Last of all, as reading it may wait for a process that maps memory.
    let line = status.and_then(|_| fs::read(folder.join("cmdline")).ok())?;
    is_daemon(&line).then(|| Daemon { pid, leads_all: !has_paths(&line) })
}

/// Whether a process runs this program or, under its name, one that root has installed. What a process is
/// called by its arguments is its own choice.
fn is_bowwave(exe: &Path) -> bool {
    static OWN_NAME: LazyLock<Option<OsString>> = LazyLock::new(|| name_of(Path::new(OWN)));
    // The files of others are not looked at: they may lie on a server that does not answer.
    let name = name_of(exe).filter(|name| name == "bowwave" || Some(name) == OWN_NAME.as_ref());
    let Some(about) = name.and_then(|_| fs::metadata(exe).ok()) else { return false };
    let is_this = |own: fs::Metadata| (own.dev(), own.ino()) == (about.dev(), about.ino());
    about.uid() == 0 || fs::metadata(OWN).is_ok_and(is_this)
}

const OWN: &str = "/proc/self/exe";

/// A program's name, also if its file was replaced since it began.
fn name_of(exe: &Path) -> Option<OsString> {
    let link = fs::read_link(exe).ok()?;
    let name = link.file_name()?.as_bytes();
    Some(OsStr::from_bytes(name.strip_suffix(b" (deleted)").unwrap_or(name)).to_owned())
}

/// Whether a process is root's by its real and its effective user, as `/proc/PID/status` has them first.
fn is_of_root(status: &str) -> bool {
    let users = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    users.is_some_and(|users| users.split_ascii_whitespace().take(2).eq(["0", "0"]))
}

/// The words of a command line as `/proc/PID/cmdline` has it.
fn words(command_line: &[u8]) -> impl Iterator<Item = &[u8]> {
    command_line.split(|byte| *byte == 0)
}

fn is_daemon(command_line: &[u8]) -> bool {
    words(command_line).nth(1) == Some(b"daemon")
}

fn has_paths(command_line: &[u8]) -> bool {
    words(command_line).any(|word| word.starts_with(b"--path"))
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_daemon_is_known_by_its_command_line() {
        for line in [&b"/usr/local/bin/bowwave\0daemon\0--json\0"[..], b"bowwave\0daemon\0"] {
            assert!(is_daemon(line));
        }
        assert!(!is_daemon(b"bowwave\0demo\0"));
        assert!(!is_daemon(b""));
        assert!(has_paths(b"bowwave\0daemon\0--path\0/srv\0"));
        assert!(!has_paths(b"bowwave\0daemon\0--json\0"));
    }

    #[test]
    fn this_program_is_known_also_once_it_was_replaced() {
        assert!(is_bowwave(Path::new(OWN)));
        assert!(!is_bowwave(Path::new("/proc/1/status")));
        let folder = tempfile::tempdir().expect("a folder");
        let link = folder.path().join("exe");
        std::os::unix::fs::symlink("/usr/bin/bowwave (deleted)", &link).expect("linked");
        assert_eq!(name_of(&link), Some("bowwave".into()));
    }

    #[test]
    fn a_program_that_only_calls_itself_so_is_none() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("daemon"), "echo ready\nread line").expect("written");
        let mut shell = Command::new("sh");
        shell.arg0("bowwave").arg("daemon").current_dir(folder.path());
        let mut shell =
            shell.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it runs");
        // Before it has begun it has no arguments yet.
        let mut ready = [0; 6];
        shell.stdout.take().expect("piped").read_exact(&mut ready).expect("it says so");
        let line = fs::read(format!("/proc/{}/cmdline", shell.id())).expect("it is there");
        let found = look_at(shell.id());
        drop(shell.stdin.take());
        shell.wait().expect("it ended");
        assert!(is_daemon(&line), "it looks like one");
        assert_eq!(found, None);
    }

    #[test]
    fn root_is_it_by_its_real_and_its_effective_user() {
        assert!(is_of_root("Name:\tbowwave\nUid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\n"));
        assert!(!is_of_root("Uid:\t1000\t0\t0\t0\n"), "by its file's bit only");
        assert!(!is_of_root("Uid:\t0\t1000\t0\t0\n"));
        assert!(!is_of_root("Name:\tUid: 0 0\n"));
    }
}
