//! Which signals this process ignores.

use std::fs;

/// Whether this process was started with `signal` ignored, as `nohup` does with SIGHUP.
pub fn is_ignored(signal: i32) -> bool {
    is_ignored_in(&fs::read_to_string("/proc/self/status").unwrap_or_default(), signal)
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
