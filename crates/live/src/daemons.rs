//! The daemons of bowwave that run on this machine, found in the table of processes.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Daemon {
    /// Its process id.
    pub pid: u32,
    /// Whether it was given no paths, and leads every program.
    pub leads_all: bool,
}

/// Those of root's, under whatever name this program was started; none of anybody else's, who could call
/// anything by that name.
pub fn running() -> impl Iterator<Item = Daemon> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter_map(look_at)
}

fn look_at(pid: u32) -> Option<Daemon> {
    let folder = Path::new("/proc").join(pid.to_string());
    let line = fs::read(folder.join("cmdline")).ok()?;
    let is_daemon = is_daemon(&line) && fs::metadata(&folder).is_ok_and(|of| of.uid() == 0);
    let is_ours = || is_named_so(&line) || is_this_program(&folder.join("exe"));
    (is_daemon && is_ours()).then(|| Daemon { pid, leads_all: !has_paths(&line) })
}

/// The words of a command line as `/proc/PID/cmdline` has it.
fn words(command_line: &[u8]) -> impl Iterator<Item = &[u8]> {
    command_line.split(|byte| *byte == 0)
}

fn is_daemon(command_line: &[u8]) -> bool {
    words(command_line).nth(1) == Some(b"daemon")
}

fn is_named_so(command_line: &[u8]) -> bool {
    let program = words(command_line).next().map(String::from_utf8_lossy);
    program.is_some_and(|program| Path::new(&*program).ends_with("bowwave"))
}

fn is_this_program(program: &Path) -> bool {
    let of = |path: &Path| fs::metadata(path).map(|file| (file.dev(), file.ino())).ok();
    let own = of(Path::new("/proc/self/exe"));
    own.is_some() && own == of(program)
}

fn has_paths(command_line: &[u8]) -> bool {
    words(command_line).any(|word| word.starts_with(b"--path"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daemon_is_known_by_its_command_line() {
        for line in [&b"/usr/local/bin/bowwave\0daemon\0--json\0"[..], b"bowwave\0daemon\0"] {
            assert!(is_daemon(line) && is_named_so(line));
        }
        assert!(!is_daemon(b"bowwave\0demo\0"));
        assert!(!is_named_so(b"/usr/bin/other\0daemon\0"));
        assert!(!is_daemon(b""));
        assert!(has_paths(b"bowwave\0daemon\0--path\0/srv\0"));
        assert!(!has_paths(b"bowwave\0daemon\0--json\0"));
    }

    #[test]
    fn this_program_is_known_under_any_name() {
        assert!(is_this_program(Path::new("/proc/self/exe")));
        assert!(!is_this_program(Path::new("/proc/1/status")));
    }
}
