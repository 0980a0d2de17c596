//! The signals that ask a program to end, and those that this process ignores.

use std::fs;

/// The signals that ask a program to end.
pub const ENDING: [i32; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// Those of `signals` that this process was not started to ignore, as `nohup` does with SIGHUP.
pub fn not_ignored(signals: impl IntoIterator<Item = i32>) -> impl Iterator<Item = i32> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    signals.into_iter().filter(move |signal| !is_ignored_in(&status, *signal))
}

fn is_ignored_in(status: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0);
    mask & (1 << (signal - 1)) != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_a_mask_in_the_status() {
        let under_nohup = "Name:\tx\nSigIgn:\t0000000000001001\n";
        assert!(is_ignored_in(under_nohup, libc::SIGHUP));
        assert!(!is_ignored_in(under_nohup, libc::SIGTERM));
        assert!(!is_ignored_in("", libc::SIGHUP));
    }
}
