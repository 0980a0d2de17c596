//! Estimates from a few samples how many pages before a page are cached in a given state.
//!
//! ```text
//!    farthest                                             page
//!       |- - - - - o - - - - - x - - - o - - - o - - - o - -|
//!                              ^ not in that state: divide the remaining distance by four again
//! ```

use readahead::Page;

use crate::view::{KernelView, PageState};

/// Consecutive samples that prove a history.
const ENOUGH_SAMPLES: u64 = 3;

/// Samples divide a history into this many parts.
const PARTS: u64 = 4;

/// A set of page states, one bit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Classes(u8);

impl Classes {
    pub(super) const ABSENT: Classes = Classes(0);
    pub(super) const FRESH: Classes = Classes(1);
    /// Used once, like the pages behind a reader.
    pub(super) const STALE: Classes = Classes(2);
    /// Cached in any state.
    pub(super) const ANY: Classes = Classes(0xF);

    pub(super) fn of(page: Page, cache: &dyn KernelView) -> Self {
        match cache.state(page) {
            PageState::Absent => Self::ABSENT,
            PageState::Fresh => Self::FRESH,
            PageState::Referenced => Self::STALE,
            PageState::Active => Classes(4),
            PageState::ActiveReferenced => Classes(8),
        }
    }

    fn overlaps(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// Number of pages before `page`, at most `farthest`, in one of `classes`. Returns 0 if the last
/// three samples are not.
pub(super) fn history(page: Page, farthest: u64, classes: Classes, cache: &dyn KernelView) -> u64 {
    let mut at = page.saturating_sub(farthest);
    let mut step = (page - at).div_ceil(PARTS);
    let mut samples = 0;
    while at < page {
        if Classes::of(at, cache).overlaps(classes) {
            samples += 1;
            if samples == ENOUGH_SAMPLES {
                return PARTS * step;
            }
        } else {
            samples = 0;
            step = (page - at).div_ceil(PARTS);
        }
        at += step;
    }
    0
}

#[cfg(test)]
mod tests {
    use readahead::CacheView;

    use super::*;

    /// Pages from this one on have been used once.
    struct UsedFrom(Page);

    impl CacheView for UsedFrom {
        fn cached_in(&self, start: Page, pages: u64) -> u64 {
            (start + pages).saturating_sub(self.0.max(start))
        }
    }

    impl KernelView for UsedFrom {}

    fn used(from: Page) -> u64 {
        history(128, 253, Classes::STALE, &UsedFrom(from))
    }

    #[test]
    fn a_history_is_found_to_a_quarter() {
        assert_eq!(used(0), 128, "as far as the file goes");
        assert_eq!(used(1), 128, "the next three samples hit: counted generously");
        assert_eq!(used(100), 32);
        assert_eq!(used(127), 0, "three samples do not fit");
    }

    #[test]
    fn other_states_do_not_count() {
        assert_eq!(history(128, 253, Classes::FRESH, &UsedFrom(0)), 0);
        assert_eq!(history(128, 253, Classes::ANY, &UsedFrom(0)), 128);
    }
}
