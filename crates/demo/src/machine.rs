//! The machine: what a table's heading names, and what a run depends on.

use std::fs;
use std::path::Path;

/// Release of the running kernel.
pub(crate) fn kernel() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}

/// Today, as YYYY-MM-DD (UTC).
pub(crate) fn date() -> String {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime).tv_sec;
    civil(now.div_euclid(86_400))
}

/// Days since 1970-01-01 as a date (Howard Hinnant's algorithm).
fn civil(days: i64) -> String {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

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
    fn dates_are_right_across_leap_days() {
        assert_eq!(civil(0), "1970-01-01");
        assert_eq!(civil(19_782), "2024-02-29");
        assert_eq!(civil(20_778), "2026-11-21");
    }

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
