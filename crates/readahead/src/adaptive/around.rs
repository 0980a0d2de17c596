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
//! Faults that fall anywhere in the file come near one another, too: of `n` seen in `F` pages as many
//! are still to come under the scale-free prior, and `n w/F` of them find their page in this window.

use super::Scene;

/// The narrowest window: the page itself. With none at all (`ra_pages` 0), the kernel reads page by
/// page even what a program asks for at once.
pub(super) const NARROW_PAGES: u32 = 1;

/// Regret that changes the window, in stalls: more than chance brings together.
const PATIENCE: f64 = 4.0;

/// No lone fault weighs more, in stalls: two at least are seen before a window is narrowed.
const MOST_OF_ONE: f64 = 2.0;

/// The read-around of one file, as its mapping's faults judge it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Around {
    /// Seconds by which the other window would have been better, of late.
    regret_s: f64,
    /// Stalls of regret that change the window.
    patience: f64,
    /// Pages of the window before it was narrowed; 0 while it is not.
    wide: u32,
}

impl Around {
    pub(super) fn new() -> Self {
        Around { regret_s: 0.0, patience: PATIENCE, wide: 0 }
    }

    /// How far from an earlier fault another would have found its page in the wide window, in pages;
    /// `None` while the window is wide.
    pub(super) fn reach(&self) -> Option<u64> {
        (self.wide > 0).then_some(u64::from(self.wide) / 2)
    }

    /// A page fault found no page; `is_lone` if it belongs to no stream and lies near no other, of
    /// which there were `faults`. Gives the pages that the kernel's window shall have, where that is
    /// not what it has.
    pub(super) fn fault(&mut self, is_lone: bool, faults: u64, scene: &Scene) -> Option<u32> {
        let now = scene.access.kernel_window;
        let pages = if self.wide > 0 { self.wide } else { now };
        if pages <= NARROW_PAGES {
            return None;
        }
        let stall_s = scene.cost.latency_s;
        let chance = (faults * u64::from(pages)) as f64 / scene.access.file_pages as f64;
        let cost_s = f64::from(pages - 1) * scene.cost.page_s() - chance.min(1.0) * stall_s;
        let is_narrow = self.wide > 0;
        let regret_s = match (is_narrow, is_lone) {
            (false, true) => cost_s.min(MOST_OF_ONE * stall_s),
            // A stream goes on: half of the window has been used.
            (false, false) => cost_s - f64::from(pages / 2) * stall_s,
            (true, true) => -cost_s,
            (true, false) => stall_s,
        };
        self.regret_s = (self.regret_s + regret_s).max(0.0);
        if self.regret_s < self.patience * stall_s {
            return (is_narrow && now > NARROW_PAGES).then_some(NARROW_PAGES);
        }
        if is_narrow {
            return Some(self.widen());
        }
        self.regret_s = 0.0;
        self.wide = now;
        Some(NARROW_PAGES)
    }

    /// A `read(2)` missed. Where it came through the open file whose window was narrowed, that is no
    /// longer only mapped, and the kernel's read-ahead is worth more than what a narrow one saves.
    pub(super) fn read(&mut self, scene: &Scene) -> Option<u32> {
        let is_narrow = self.wide > 0 && scene.access.kernel_window <= NARROW_PAGES;
        is_narrow.then(|| self.widen())
    }

    /// Narrowing has proved wrong.
    fn widen(&mut self) -> u32 {
        self.regret_s = 0.0;
        self.patience *= 2.0;
        std::mem::take(&mut self.wide)
    }
}
