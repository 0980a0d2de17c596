//! Finds the bowwave daemons that run on this machine.

use std::fs;
use std::path::Path;

use crate::process;
use crate::program::is_bowwave_of_root;

/// A running daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Daemon {
    /// Its process id.
    pub pid: u32,
    /// Its command line names no paths, so it manages every program, unless its configuration names some.
    pub manages_all: bool,
}

/// The daemons that run as root, except this process. Other users' processes do not count: anybody
/// can give a program that name.
///
/// Looks at every process, so its cost grows with their number; of most it only reads one link.
pub fn running() -> impl Iterator<Item = Daemon> {
    let own = std::process::id();
    process::all().filter(move |pid| *pid != own).filter_map(look_at)
}

/// Whether process `pid` is a daemon.
pub fn is_running(pid: u32) -> bool {
    look_at(pid).is_some()
}

fn look_at(pid: u32) -> Option<Daemon> {
    let process = Path::new("/proc").join(pid.to_string());
    if !is_bowwave_of_root(&process) {
        return None;
    }
    // Read this last: it may wait for a process that is mapping memory.
    let line = fs::read(process.join("cmdline")).ok()?;
    is_daemon(&line).then(|| Daemon { pid, manages_all: !has_paths(&line) })
}

/// The words of a command line in the format of `/proc/PID/cmdline`.
fn words(command_line: &[u8]) -> impl Iterator<Item = &[u8]> {
    command_line.split(|byte| *byte == 0)
}

fn is_daemon(command_line: &[u8]) -> bool {
    words(command_line).nth(1) == Some(b"daemon")
}

fn has_paths(command_line: &[u8]) -> bool {
    words(command_line).any(|word| word.starts_with(b"--path"))
}

#[cfg(any(test, fuzzing))]
pub(crate) fn read_any(command_line: &[u8]) {
    is_daemon(command_line);
    has_paths(command_line);
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
    fn another_program_with_that_name_is_no_daemon() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("daemon"), "echo ready\nread line").expect("written");
        let mut shell = Command::new("sh");
        shell.arg0("bowwave").arg("daemon").current_dir(folder.path());
        let mut shell =
            shell.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it runs");
        // Until it runs, its command line is empty.
        let mut ready = [0; 6];
        shell.stdout.take().expect("piped").read_exact(&mut ready).expect("it says so");
        let line = fs::read(format!("/proc/{}/cmdline", shell.id())).expect("it is there");
        let found = look_at(shell.id());
        drop(shell.stdin.take());
        shell.wait().expect("it ended");
        assert!(is_daemon(&line), "it looks like one");
        assert_eq!(found, None);
    }
}
