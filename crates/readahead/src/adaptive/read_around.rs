//! Whether the kernel's read-around of a mapped file pays.
//!
//! ```text
//!                          fault
//!   . . . . |<-- w/2 -->|----x----|<-- w/2 -->| . . . .
//!           |<-------- read: w pages -------->|
//! ```
//!
//! A fault that finds no page makes the kernel read a window of `w` pages around it. That costs
//! `(w - 1)/B`, and saves a stall `L` for each later fault that finds its page among them. While the
//! window is wide, faults that are spared are not seen; once it is narrowed to the page itself they
//! are, as misses near one another. So what is counted is regret: by how many seconds the other
//! window would have been better of late. Wide, a lone fault has cost its window for nothing; narrow,
//! a fault near another has cost a stall that a window would have saved. Four stalls of regret change
//! the window, and each narrowing that proved wrong makes the next take twice as many.
//!
//! One file may be mapped through several open files, and a body cannot narrow all of them. So each
//! fault is counted for the window that it came through, and only that one is changed.
//!
//! Faults that fall anywhere in the file come near one another, too: of `n` seen in `F` pages as many
//! are still to come under the scale-free prior, and `n w/F` of them find their page in this window, as
//! far as memory keeps what `n` of them have read.

use super::access_context::AccessContext;
use super::kernel_window::{KERNEL_WINDOW_PAGES, NARROW_PAGES};
use crate::access::OpenFileId;

/// Regret that changes the window, in stalls: more than what a few chance faults add up to.
const NARROW_MARGIN: f64 = 4.0;

/// The most that one lone fault weighs, in stalls: half of the margin, so that at least two are seen before a window is
/// narrowed.
const MOST_OF_ONE: f64 = 2.0;

/// Memory keeps this many times the budget, which is a quarter of it.
const BUDGETS_KEPT: u64 = 4;

/// The read-around of one file, as its mapping's faults judge it.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadAround {
    /// Seconds by which a narrow window would have been better than the wide one, of late.
    of_wide_s: f64,
    /// Seconds by which a wide window would have been better than the narrow one.
    of_narrow_s: f64,
    /// Stalls of regret that change the window.
    margin: f64,
    /// Faults so far.
    faults: u64,
    /// The open file that was last to be narrowed, and the pages of its window then.
    narrowed: Option<(OpenFileId, u32)>,
}

impl ReadAround {
    pub(super) fn new() -> Self {
        ReadAround {
            of_wide_s: 0.0,
            of_narrow_s: 0.0,
            margin: NARROW_MARGIN,
            faults: 0,
            narrowed: None,
        }
    }

    /// In a narrow window: the most pages that an earlier fault may be away for the wide window to have brought this
    /// page in. `None` if the window is wide.
    pub(super) fn reach(&self, context: &AccessContext) -> Option<u64> {
        is_narrow(context).then(|| u64::from(self.wide(context)) / 2)
    }

    /// A page fault found no page; `is_lone` if it belongs to no stream and lies near no other. Returns the window that
    /// the open file should get, in pages; `None` if it should stay as it is.
    pub(super) fn fault(&mut self, is_lone: bool, context: &AccessContext) -> Option<u32> {
        self.faults += 1;
        let is_narrow = is_narrow(context);
        let pages = self.wide(context);
        let stall_s = context.device.cost.latency_s;
        let cost_s = f64::from(pages - 1) * context.device.cost.page_s()
            - self.chance(pages, context) * stall_s;
        let regret_s = match (is_narrow, is_lone) {
            (false, true) => cost_s.min(MOST_OF_ONE * stall_s),
            // A stream goes on: half of the window has been used.
            (false, false) => cost_s - f64::from(pages / 2) * stall_s,
            (true, true) => -cost_s,
            (true, false) => stall_s,
        };
        let sum_s = if is_narrow { &mut self.of_narrow_s } else { &mut self.of_wide_s };
        *sum_s = (*sum_s + regret_s).max(0.0);
        if *sum_s < self.margin * stall_s {
            return None;
        }
        *sum_s = 0.0;
        if is_narrow {
            return Some(self.widen(context));
        }
        self.narrowed = Some((context.access.open_file, pages));
        Some(NARROW_PAGES)
    }

    /// A `read(2)` missed. If it came through an open file with a narrow window, that file is not only mapped, and the
    /// kernel's read-ahead is worth more than what a narrow window saves. Gives the window as [`Self::fault`] does.
    pub(super) fn read(&mut self, context: &AccessContext) -> Option<u32> {
        is_narrow(context).then(|| self.widen(context))
    }

    /// Gives the wide window. If we had narrowed it, that was wrong, and the next time takes more regret.
    fn widen(&mut self, context: &AccessContext) -> u32 {
        self.of_narrow_s = 0.0;
        if self.narrowed.is_some() {
            self.margin *= 2.0;
        }
        self.wide(context)
    }

    /// Pages of the wide window: what this open file has, or had before we narrowed it; else the kernel's default.
    fn wide(&self, context: &AccessContext) -> u32 {
        if !is_narrow(context) {
            return context.access.kernel_window;
        }
        let known = self.narrowed.filter(|(open_file, _)| *open_file == context.access.open_file);
        known.map_or(KERNEL_WINDOW_PAGES, |(_, pages)| pages)
    }

    /// Of the faults still to come, the share that finds its page in this window by chance.
    fn chance(&self, pages: u32, context: &AccessContext) -> f64 {
        let kept = context.allowance.budget.saturating_mul(BUDGETS_KEPT);
        let read = self.faults.saturating_mul(u64::from(pages)).min(kept);
        (read as f64 / context.access.file_pages as f64).min(1.0)
    }
}

/// Whether the access came through a window that was narrowed.
fn is_narrow(context: &AccessContext) -> bool {
    context.access.kernel_window <= NARROW_PAGES
}
