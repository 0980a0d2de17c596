//! Page faults in mappings without advice. The kernel reads *around* the page until far more faults
//! have missed than found their page.
//!
//! ```text
//!             page - window/2        page         page + window/2
//!                   |------------------x---------------------|
//! ```
//!
//! A policy is told about faults that found their page only if it wants calls. Otherwise it
//! estimates their number from the distance that the reader has moved.

use readahead::Cause;
use readahead::{Hint, Page};

use crate::access::{Access, Trigger};
use crate::kernel::Chunk;
use crate::plan::Plan;
use crate::view::KernelView;

/// Excess of misses over hits from which a mapping counts as randomly read (`MMAP_LOTSAMISS`).
pub(crate) const FAULT_MISSES: u64 = 100;

/// Estimated number of faults since the one at `last` that found their page. If the reader moved by
/// at most `window` pages, it walked through them. From farther away, it found at least the page it
/// came from.
pub(crate) fn faults_served_since(last: Page, access: &Access, window: u64) -> u64 {
    let distance = access.previous.map_or(0, |previous| previous.abs_diff(last));
    if distance <= window { distance } else { 1 }
}

/// The counter of an open file since 2.6.23: misses minus hits, at least 0.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ExcessMisses {
    misses: u64,
    /// The page of the last reported fault.
    last: Page,
}

impl ExcessMisses {
    /// Counts a fault (1 for a miss, -1 for a hit) and the earlier faults that found their page.
    /// Returns the excess of misses, at most `most`.
    pub(crate) fn count(&mut self, access: &Access, change: i64, most: u64) -> u64 {
        let served = faults_served_since(self.last, access, u64::from(access.kernel_window));
        self.last = access.page;
        self.misses = self.misses.saturating_sub(served).saturating_add_signed(change).min(most);
        self.misses
    }
}

/// The counters of an open file up to 2.6.22: hits and misses separately, so many hits allow many
/// misses.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HitsAndMisses {
    hits: u64,
    misses: u64,
    last: Page,
}

impl HitsAndMisses {
    /// Counts a fault without advice. For an absent page, reads around it a window that half of the
    /// reclaimable memory can hold.
    pub(crate) fn on_fault(&mut self, access: &Access, cache: &dyn KernelView, plan: &mut Plan) {
        if access.hint == Hint::Random {
            return;
        }
        let window = u64::from(access.kernel_window);
        match access.trigger {
            Trigger::Call => {
                self.hits += u64::from(cache.is_cached(access.page));
                self.last = access.page;
            }
            Trigger::Mark => {}
            Trigger::Absent => {
                self.count_miss(access, window);
                if self.misses > self.hits.saturating_add(FAULT_MISSES) {
                    return;
                }
                let most = window.min(cache.ageing().inactive_and_free_pages / 2);
                let start = access.page.saturating_sub(most / 2);
                let around = Chunk::unmarked(start, most);
                around.submit(access, cache, Cause::Initial, plan);
            }
        }
    }

    fn count_miss(&mut self, access: &Access, window: u64) {
        let was_called = self.last == access.page;
        if !was_called {
            let served = faults_served_since(self.last, access, window);
            self.hits = self.hits.saturating_add(served);
        }
        self.last = access.page;
        self.misses = self.misses.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::miss;
    use readahead::CacheView;
    use readahead::Via;

    fn fault(page: Page, previous: Option<Page>, trigger: Trigger) -> Access {
        Access { trigger, via: Via::Mmap, ..miss(page, previous) }
    }

    /// Either all pages of a file are cached or none is.
    struct Cached(bool);

    impl CacheView for Cached {
        fn cached_in(&self, _start: Page, pages: u64) -> u64 {
            if self.0 { pages } else { 0 }
        }
    }

    impl KernelView for Cached {}

    #[test]
    fn served_faults_are_counted_from_where_the_reader_came() {
        let served = |previous| {
            let access = fault(200, previous, Trigger::Absent);
            faults_served_since(100, &access, 32)
        };
        assert_eq!(served(None), 0);
        assert_eq!(served(Some(100)), 0, "straight from the last fault");
        assert_eq!(served(Some(120)), 20, "walked on");
        assert_eq!(served(Some(90)), 10, "walked back");
        assert_eq!(served(Some(900)), 1, "jumped");
    }

    #[test]
    fn hits_that_are_told_of_buy_misses() {
        let mut faults = HitsAndMisses::default();
        let mut plan = Plan::new();
        for page in 0..10 {
            faults.on_fault(&fault(page, None, Trigger::Call), &Cached(true), &mut plan);
        }
        for i in 1..=200 {
            let page = 1_000 * i;
            let previous = Some(page - 1_000);
            faults.on_fault(&fault(page, previous, Trigger::Call), &Cached(false), &mut plan);
            faults.on_fault(&fault(page, previous, Trigger::Absent), &Cached(false), &mut plan);
        }
        assert_eq!(plan.ahead().actions().len(), 110);
    }
}
