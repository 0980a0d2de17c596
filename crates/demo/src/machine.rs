//! The machine: what a run depends on.

use std::fs;
use std::path::Path;

/// Whether the shell would find a program of that name.
pub(crate) fn has_program(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(name).is_file())
}

/// A daemon of bowwave that is up already, by its process id: one that leads the whole machine, or
/// also one that was given paths.
pub fn running_daemon(with_paths_too: bool) -> Option<u32> {
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.into_iter().find(|pid| {
        fs::read(format!("/proc/{pid}/cmdline"))
            .is_ok_and(|line| is_daemon(&line) && (with_paths_too || !has_paths(&line)))
    })
}

/// Of a command line as `/proc/PID/cmdline` has it.
fn is_daemon(command_line: &[u8]) -> bool {
    let mut words = command_line.split(|byte| *byte == 0).map(String::from_utf8_lossy);
    let is_ours = words.next().is_some_and(|word| Path::new(&*word).ends_with("bowwave"));
    is_ours && words.next().is_some_and(|word| word == "daemon")
}

fn has_paths(command_line: &[u8]) -> bool {
    command_line.split(|byte| *byte == 0).any(|word| word.starts_with(b"--path"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_where_the_shell_finds_them() {
        assert!(has_program("sh"));
        assert!(!has_program("no-program-has-this-name"));
    }

    #[test]
    fn a_daemon_is_known_by_its_command_line() {
        assert!(is_daemon(b"/usr/local/bin/bowwave\0daemon\0--json\0"));
        assert!(is_daemon(b"bowwave\0daemon\0"));
        assert!(!is_daemon(b"bowwave\0demo\0"));
        assert!(!is_daemon(b"/usr/bin/other\0daemon\0"));
        assert!(!is_daemon(b""));
        assert!(has_paths(b"bowwave\0daemon\0--path\0/srv\0"));
        assert!(!has_paths(b"bowwave\0daemon\0--json\0"));
    }
}
