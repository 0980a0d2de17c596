//! A page cache that contradicts itself: it answers every question definitely but arbitrarily, and the answers need not
//! agree.

use readahead::{CacheView, DeviceCost, Page, Past};

/// Answers drawn from `seed`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Liar {
    pub(crate) seed: u64,
    /// How often `cached_in` answers "all of them" or "none", in eighths.
    pub(crate) bluntness: u64,
    pub(crate) cost: DeviceCost,
    pub(crate) room_pages: u64,
    /// One absent page in this many counts as evicted, whether used or not.
    pub(crate) thrashing: u64,
}

impl Liar {
    pub(crate) fn draw(&self, question: u64, argument: u64) -> u64 {
        let mut bits = self.seed ^ question.rotate_left(32) ^ argument.wrapping_mul(0x9E37_79B9);
        for _ in 0..3 {
            bits ^= bits >> 31;
            bits = bits.wrapping_mul(0xBF58_476D_1CE4_E5B9);
        }
        bits ^ (bits >> 29)
    }
}

impl CacheView for Liar {
    fn cached_in(&self, start: Page, pages: u64) -> u64 {
        let draw = self.draw(start, pages);
        match (draw % 8 < self.bluntness, draw & 64 == 0) {
            (true, true) => pages,
            (true, false) => 0,
            (false, _) => (draw >> 7) % pages.saturating_add(1).max(1),
        }
    }

    fn past(&self) -> Past {
        let draw = self.draw(3, 3);
        if !draw.is_multiple_of(self.thrashing) {
            return Past::Unknown;
        }
        [Past::Evicted, Past::EvictedNext, Past::EvictedUnused][(draw >> 10) as usize % 3]
    }

    fn cost(&self) -> DeviceCost {
        self.cost
    }

    fn room_pages(&self) -> u64 {
        self.room_pages
    }
}
