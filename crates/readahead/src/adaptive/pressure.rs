//! Thrashing: how far ahead the readers of one group may be read for it to survive.
//!
//! ```text
//!   a page read ahead is evicted before its reader comes
//!        |
//!        +--> what bowwave may have ahead, of all streams, for a reader of this group is halved;
//!        +--> where the reader is slow, or next to nothing is left of that budget, windows of the
//!             kernel's own read-ahead are quartered, down to 16 KiB: of this open file now, of any
//!             other of the group at its next access
//!   for as long as nothing of the kind happens, both grow again
//! ```
//!
//! A group is readers that share memory. Any program can have its own pages evicted
//! (`MADV_PAGEOUT`), so thrashing takes nothing from other groups. Where memory is short for all,
//! each group finds pages of its own evicted.
//!
//! The kernel answers thrashing with a new small window and lets it grow to full size at once. With many slow streams
//! in little memory, it then thrashes again. A bound that outlasts the window breaks this circle. A small window costs
//! a slow reader nothing: one that was idle for so long that its file was forgotten. It would cost a fast reader that
//! thrashes a little, so the kernel's windows are bounded last there. Numbers were chosen in the simulator
//! (`bowwave reproduce slow-streams-2005 field`).

use super::number::real;
use crate::access::{GroupId, Nanos};
use crate::table::Table;

/// Groups whose pressure is remembered. A group that was forgotten begins without pressure.
const GROUPS: usize = 256;

/// The kernel's smallest window worth a request: 16 KiB.
const SMALLEST_KERNEL_WINDOW_PAGES: f64 = 4.0;

/// The least share of the budget that is left: less than any window.
const LEAST_SHARE: f64 = 1.0 / 1024.0;

/// What is allowed doubles in this time after slow readers thrashed. They take minutes to read what was read ahead for
/// them; a shorter time would try a larger window before the last one was judged.
const SLOW_DOUBLING_S: f64 = 1800.0;

/// The same after others thrashed. They come again within seconds, so that a bad trial is soon over.
const DOUBLING_S: f64 = 10.0;

/// The pressure of each group.
#[derive(Debug)]
pub(super) struct Pressures(Table<GroupId, Pressure>);

impl Pressures {
    /// No pressure so far.
    pub(super) fn new() -> Self {
        Pressures(Table::new(GROUPS))
    }

    pub(super) fn of(&self, group: GroupId) -> Pressure {
        self.0.get(&group).copied().unwrap_or_else(Pressure::none)
    }

    pub(super) fn of_mut(&mut self, group: GroupId, now: Nanos) -> &mut Pressure {
        self.0.get_or_insert_with(group, now, Pressure::none, drop)
    }
}

/// What pressure leaves.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pressure {
    /// Share of the budget for pages ahead.
    share: f64,
    /// Pages of the kernel's windows; no bound while infinite.
    kernel_pages: f64,
    /// Both double in this many seconds.
    doubling_s: f64,
    /// Up to when growth has been counted.
    grown_at: Nanos,
}

impl Pressure {
    /// No pressure so far.
    pub(super) fn none() -> Self {
        Pressure { share: 1.0, kernel_pages: f64::INFINITY, doubling_s: DOUBLING_S, grown_at: 0 }
    }

    /// A page that was read ahead was evicted unused. The kernel's window of the open file is `kernel_window` pages;
    /// `is_slow` tells that the reader was idle for so long that its file was forgotten.
    pub(super) fn thrashed(&mut self, kernel_window: u32, is_slow: bool, now: Nanos) {
        self.grown_at = now;
        if is_slow {
            self.doubling_s = SLOW_DOUBLING_S;
        }
        let ours_is_gone = self.share <= LEAST_SHARE;
        self.share = (self.share * 0.5).max(LEAST_SHARE);
        if !ours_is_gone && !is_slow {
            return;
        }
        let window = self.kernel_pages.min(f64::from(kernel_window));
        self.kernel_pages = (window / 4.0).max(SMALLEST_KERNEL_WINDOW_PAGES);
    }

    /// Time passes: what is allowed grows. A bound of windows ends when it reaches `widest_window` pages.
    pub(super) fn ease(&mut self, now: Nanos, widest_window: u32) {
        if self.share >= 1.0 && self.kernel_pages.is_infinite() {
            self.doubling_s = DOUBLING_S;
            return;
        }
        let elapsed_s = now.saturating_sub(self.grown_at) as f64 * 1e-9;
        self.grown_at = self.grown_at.max(now);
        let factor = (elapsed_s / self.doubling_s).exp2();
        self.share = (self.share * factor).min(1.0);
        self.kernel_pages *= factor;
        if self.kernel_pages >= f64::from(widest_window) {
            self.kernel_pages = f64::INFINITY;
        }
    }

    /// The budget under pressure.
    pub(super) fn budget(&self, pages: u64) -> u64 {
        (real(pages) * self.share) as i64 as u64
    }

    /// The window that an open file with a window of `now` pages should get, in pages; `None` if it may stay.
    pub(super) fn kernel_window(&self, now: u32) -> Option<u32> {
        (f64::from(now) > self.kernel_pages).then_some(self.kernel_pages as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Nanos = 1_000_000_000;

    #[test]
    fn without_thrashing_nothing_is_bounded() {
        let mut pressure = Pressure::none();
        pressure.ease(100 * SECOND, 32);
        assert_eq!((pressure.budget(1000), pressure.kernel_window(4096)), (1000, None));
    }

    #[test]
    fn what_is_ours_goes_first_and_the_kernels_windows_go_down_to_sixteen_kib() {
        let mut pressure = Pressure::none();
        pressure.thrashed(32, false, SECOND);
        assert_eq!((pressure.budget(1000), pressure.kernel_window(32)), (500, None));
        for _ in 0..10 {
            pressure.thrashed(32, false, SECOND);
        }
        assert!(pressure.budget(1_000_000) < 1_000);
        assert_eq!((pressure.kernel_window(32), pressure.kernel_window(8)), (Some(8), None));
        pressure.thrashed(32, false, SECOND);
        pressure.thrashed(32, false, SECOND);
        assert_eq!(pressure.kernel_window(32), Some(4));
    }

    #[test]
    fn a_slow_readers_windows_go_at_once() {
        let mut pressure = Pressure::none();
        pressure.thrashed(32, true, SECOND);
        assert_eq!((pressure.budget(1000), pressure.kernel_window(32)), (500, Some(8)));
    }

    #[test]
    fn a_group_that_thrashes_takes_nothing_from_another() {
        let mut pressures = Pressures::new();
        for _ in 0..20 {
            pressures.of_mut(GroupId(1), SECOND).thrashed(32, true, SECOND);
        }
        assert_eq!(pressures.of(GroupId(1)).kernel_window(32), Some(4));
        let other = pressures.of(GroupId(2));
        assert_eq!((other.budget(1000), other.kernel_window(4096)), (1000, None));
    }

    #[test]
    fn what_was_taken_comes_back_with_time() {
        let mut pressure = Pressure::none();
        pressure.thrashed(32, true, SECOND);
        pressure.ease(11 * SECOND, 32);
        assert!(pressure.budget(1000) < 510 && pressure.kernel_window(32) == Some(8));
        pressure.ease(7201 * SECOND, 32);
        assert_eq!((pressure.budget(1000), pressure.kernel_window(4096)), (1000, None));
    }

    #[test]
    fn after_readers_that_come_again_at_once_it_comes_back_within_seconds() {
        let mut pressure = Pressure::none();
        pressure.thrashed(32, false, SECOND);
        pressure.ease(11 * SECOND, 32);
        assert_eq!((pressure.budget(1000), pressure.kernel_window(4096)), (1000, None));
    }
}
