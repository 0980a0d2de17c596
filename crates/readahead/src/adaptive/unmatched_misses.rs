//! The recent misses of a file that belong to no stream.
//!
//! Each new miss is compared with all of them: does it lie beside one, are there others at equal
//! distances? The answer is nearly always no, and a sieve gives it fast: it counts the edges in each block
//! of pages (blocks share a count by chance). The misses themselves are searched only if the sieve does
//! not rule them out.

use super::pace::Pace;
use super::stream::Stream;
use crate::access::{Nanos, Page};
use crate::table::SCATTER;

/// How many are remembered: each stream of a full set may have missed once before its second miss.
pub(super) const UNMATCHED_MISSES: usize = 64;

/// Log2 of the number of counts. The two edges of 64 misses leave seven counts in eight at zero.
const SIEVE_BITS: u32 = 10;

/// Log2 of the pages of a block: 256 KiB, so that what lies beside an unmatched miss is mostly in its block.
const BLOCK_BITS: u32 = 6;

/// If an access spans this many blocks or more, the misses themselves are searched: that is as fast.
const MOST_BLOCKS: u64 = 4;

#[derive(Clone, Copy, Debug)]
pub(super) struct UnmatchedMiss {
    pub(super) first: Page,
    pub(super) end: Page,
    /// When it was read.
    pub(super) at: Nanos,
    /// What all readers had passed by then, in pages.
    pub(super) passed: u64,
}

impl UnmatchedMiss {
    /// The `stream` that began with it, when all readers have passed `passed` pages.
    pub(super) fn followed_by(&self, stream: Stream, passed: u64) -> Stream {
        let pages = self.end - self.first;
        let own = stream.length().saturating_sub(pages);
        let pace = Pace::known(own, passed.saturating_sub(self.passed), passed);
        stream.waiting_since(self.at, pages).at_pace(pace)
    }
}

#[derive(Debug)]
pub(super) struct UnmatchedMisses {
    /// A ring; `noted % UNMATCHED_MISSES` is the next to be overwritten.
    ring: [UnmatchedMiss; UNMATCHED_MISSES],
    /// Misses noted so far.
    noted: u64,
    /// Firsts and ends of those in the ring, by block.
    edges: [u8; 1 << SIEVE_BITS],
}

impl UnmatchedMisses {
    pub(super) fn new() -> Self {
        let none = UnmatchedMiss { first: 0, end: 0, at: 0, passed: 0 };
        UnmatchedMisses { ring: [none; UNMATCHED_MISSES], noted: 0, edges: [0; 1 << SIEVE_BITS] }
    }

    pub(super) fn note(&mut self, unmatched_miss: UnmatchedMiss) {
        let slot = (self.noted % UNMATCHED_MISSES as u64) as usize;
        let forgotten = std::mem::replace(&mut self.ring[slot], unmatched_miss);
        if self.noted >= UNMATCHED_MISSES as u64 {
            self.edges[sieve(forgotten.first)] -= 1;
            self.edges[sieve(forgotten.end)] -= 1;
        }
        self.edges[sieve(unmatched_miss.first)] += 1;
        self.edges[sieve(unmatched_miss.end)] += 1;
        self.noted += 1;
    }

    /// The most recent ones first, `most` of them at most.
    pub(super) fn recent(&self, most: usize) -> impl Iterator<Item = &UnmatchedMiss> {
        let known = self.noted.min(UNMATCHED_MISSES.min(most) as u64);
        (1..known + 1)
            .map(|age| &self.ring[((self.noted - age) % UNMATCHED_MISSES as u64) as usize])
    }

    /// Whether one may begin or end near a page. If this is false, none does.
    pub(super) fn may_be_at(&self, page: Page) -> bool {
        self.edges[sieve(page)] > 0
    }

    /// Whether that is so for both pages. The counts are as good as random, so a branch after the first one would be
    /// mispredicted.
    pub(super) fn may_be_at_both(&self, one: Page, other: Page) -> bool {
        self.edges[sieve(one)].min(self.edges[sieve(other)]) > 0
    }

    /// Whether one may begin or end within `[first, end]`.
    pub(super) fn may_be_within(&self, first: Page, end: Page) -> bool {
        let (from, to) = (first >> BLOCK_BITS, end >> BLOCK_BITS);
        to - from >= MOST_BLOCKS || (from..=to).any(|block| self.edges[sieve_of(block)] > 0)
    }

    /// Whether one of the `most` most recent begins at a page.
    pub(super) fn hold(&self, first: Page, most: usize) -> bool {
        self.may_be_at(first)
            && self.recent(most).any(|unmatched_miss| unmatched_miss.first == first)
    }
}

fn sieve(page: Page) -> usize {
    sieve_of(page >> BLOCK_BITS)
}

fn sieve_of(block: u64) -> usize {
    (block.wrapping_mul(SCATTER) >> (u64::BITS - SIEVE_BITS)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unmatched_miss(first: Page) -> UnmatchedMiss {
        UnmatchedMiss { first, end: first + 16, at: 0, passed: 0 }
    }

    #[test]
    fn the_sieve_never_denies_a_miss_and_forgets_with_the_ring() {
        let mut unmatched_misses = UnmatchedMisses::new();
        let page = |n: u64| n * n * 977;
        for n in 0..1000 {
            unmatched_misses.note(unmatched_miss(page(n)));
            for known in n.saturating_sub(UNMATCHED_MISSES as u64 - 1)..=n {
                let first = page(known);
                assert!(
                    unmatched_misses.hold(first, UNMATCHED_MISSES)
                        && unmatched_misses.may_be_at(first + 16)
                );
                assert!(unmatched_misses.may_be_within(first + 16, first + 20));
            }
        }
        assert!(!unmatched_misses.hold(page(0), UNMATCHED_MISSES));
        assert_eq!(
            unmatched_misses.edges.iter().map(|count| usize::from(*count)).sum::<usize>(),
            128
        );
    }

    #[test]
    fn nearly_all_other_pages_are_denied_at_once() {
        let mut unmatched_misses = UnmatchedMisses::new();
        (0..UNMATCHED_MISSES as u64)
            .for_each(|n| unmatched_misses.note(unmatched_miss(n * 100_003)));
        let denied = (0..10_000).filter(|n| !unmatched_misses.may_be_at(n * 7_919)).count();
        assert!(denied > 8_000, "{denied}");
    }
}
