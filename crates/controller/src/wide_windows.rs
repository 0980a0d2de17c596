//! Whether the kernel may read ahead in wider windows on a fast device, where user space would come too late.
//!
//! ```text
//!   a file should --> counting --- nobody else reads for 5 ms ---> wide --- others wait too long ---> none for 10 s
//!   have one             ^  |                                                                             |
//!                        |  '-- somebody reads: look again after 50 ms                                    |
//!                        '--------------------------------------------------------------------------------'
//! ```
//!
//! A wider window makes its reader faster, and whoever reads beside it wait behind more. What is too long is the same as
//! for [depth](crate::depth).

use crate::Nanos;
use crate::depth::STEP_NS;

/// Nobody else reads if there was no foreground read for this long: tens of accesses of a fast device.
const ALONE_NS: Nanos = 5_000_000;

/// After others have waited too long, windows are not wide for this long. So others wait too long for a hundredth of the
/// time: a step of depth or two.
const NARROW_NS: Nanos = 10_000_000_000;

/// The state of one device.
#[derive(Debug)]
pub(crate) struct WideWindows {
    is_wide: bool,
    /// When to look next.
    look_at: Nanos,
    /// Foreground reads when it was looked last.
    reads: u64,
    /// Windows are narrow because others have waited too long.
    are_banned: bool,
}

impl WideWindows {
    /// Counting has just begun.
    pub(crate) fn new(now: Nanos) -> Self {
        let look_at = now.saturating_add(ALONE_NS);
        WideWindows { is_wide: false, look_at, reads: 0, are_banned: false }
    }

    /// Whether windows may be wide now, after so many foreground reads; `None` if they were not counted yet.
    pub(crate) fn look(&mut self, now: Nanos, reads: Option<u64>) -> bool {
        if now >= self.look_at {
            let is_alone = reads == Some(self.reads) && !self.are_banned;
            self.is_wide |= is_alone;
            let pause = if reads.is_some() { STEP_NS } else { ALONE_NS };
            self.look_at = now.saturating_add(pause);
            self.reads = reads.unwrap_or(0);
            self.are_banned = false;
        }
        self.is_wide
    }

    /// Others have waited too long.
    pub(crate) fn end(&mut self, now: Nanos) {
        let look_at = now.saturating_add(NARROW_NS);
        *self = WideWindows { is_wide: false, look_at, reads: 0, are_banned: true };
    }

    /// Whether others have waited too long a short time ago.
    pub(crate) fn are_banned(&self, now: Nanos) -> bool {
        self.are_banned && now < self.look_at
    }

    /// When to look next.
    pub(crate) fn next_look(&self) -> Nanos {
        self.look_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_become_wide_when_nobody_else_has_read_for_a_while() {
        let mut windows = WideWindows::new(0);
        assert!(!windows.look(ALONE_NS - 1, Some(0)), "too early");
        assert!(windows.look(ALONE_NS, Some(0)));
        assert!(
            windows.look(ALONE_NS + STEP_NS, Some(100)),
            "others read, but do not wait too long"
        );
    }

    #[test]
    fn nobody_is_alone_before_anything_was_counted() {
        let mut windows = WideWindows::new(0);
        assert!(!windows.look(ALONE_NS, None));
        assert!(windows.look(2 * ALONE_NS, Some(0)));
    }

    #[test]
    fn they_stay_narrow_while_somebody_else_reads() {
        let mut windows = WideWindows::new(0);
        let looks = |n: u64| ALONE_NS + n * STEP_NS;
        assert!((0..100).all(|n| !windows.look(looks(n), Some(n + 1))));
        assert!(windows.look(looks(100), Some(100)), "not since the last look");
    }

    #[test]
    fn once_others_have_waited_too_long_they_stay_narrow() {
        let mut windows = WideWindows::new(0);
        assert!(windows.look(ALONE_NS, Some(0)));
        windows.end(ALONE_NS);
        assert!(!windows.look(ALONE_NS + NARROW_NS - 1, Some(0)));
        assert!(!windows.look(ALONE_NS + NARROW_NS, Some(0)), "from now on it counts who reads");
        assert!(windows.look(ALONE_NS + NARROW_NS + STEP_NS, Some(0)));
    }
}
