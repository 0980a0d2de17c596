//! The recent misses of a file that belong to no stream.
//!
//! Each new one is compared with all of them: does it lie beside one, are there others at equal distances?
//! Nearly always the answer is no, and a sieve tells so: a count of edges for each block of pages, where
//! blocks share a count by chance. Only where it does not are the misses themselves looked at.

use super::pace::Pace;
use super::stream::Stream;
use crate::access::{Nanos, Page};

/// Orphans remembered: each stream of a full set may have missed once before its second miss.
pub(super) const ORPHANS: usize = 64;

/// Log2 of the counts: one in eight is not zero then.
const SIEVE_BITS: u32 = 10;

/// Log2 of the pages of a block: 256 KiB, so that what lies beside an orphan is mostly in its block.
const BLOCK_BITS: u32 = 6;

/// Where more blocks than that would have to be looked up, the orphans themselves are.
const MOST_BLOCKS: u64 = 4;

/// An odd number near `2^64` over the golden ratio, whose multiples scatter.
const SCATTER: u64 = 0x9e37_79b9_7f4a_7c15;

#[derive(Clone, Copy, Debug)]
pub(super) struct Orphan {
    pub(super) first: Page,
    pub(super) end: Page,
    /// When it was read.
    pub(super) at: Nanos,
    /// What all readers had passed by then, in pages.
    pub(super) passed: u64,
}

impl Orphan {
    /// A stream that began with it, when all readers have passed so many pages.
    pub(super) fn followed_by(&self, stream: Stream, passed: u64) -> Stream {
        let pages = self.end - self.first;
        let own = stream.length().saturating_sub(pages);
        let pace = Pace::known(own, passed.saturating_sub(self.passed), passed);
        stream.waiting_since(self.at, pages).at_pace(pace)
    }
}

#[derive(Debug)]
pub(super) struct Orphans {
    /// A ring; `noted % ORPHANS` is the next to be overwritten.
    ring: [Orphan; ORPHANS],
    /// Orphans noted so far.
    noted: u64,
    /// Firsts and ends of those in the ring, by block.
    edges: [u8; 1 << SIEVE_BITS],
}

impl Orphans {
    pub(super) fn new() -> Self {
        let none = Orphan { first: 0, end: 0, at: 0, passed: 0 };
        Orphans { ring: [none; ORPHANS], noted: 0, edges: [0; 1 << SIEVE_BITS] }
    }

    pub(super) fn note(&mut self, orphan: Orphan) {
        let slot = (self.noted % ORPHANS as u64) as usize;
        let forgotten = std::mem::replace(&mut self.ring[slot], orphan);
        if self.noted >= ORPHANS as u64 {
            self.edges[sieve(forgotten.first)] -= 1;
            self.edges[sieve(forgotten.end)] -= 1;
        }
        self.edges[sieve(orphan.first)] += 1;
        self.edges[sieve(orphan.end)] += 1;
        self.noted += 1;
    }

    /// The most recent ones first, `most` of them at most.
    pub(super) fn recent(&self, most: usize) -> impl Iterator<Item = &Orphan> {
        let known = self.noted.min(ORPHANS.min(most) as u64);
        (1..known + 1).map(|age| &self.ring[((self.noted - age) % ORPHANS as u64) as usize])
    }

    /// Whether one begins or ends near a page, as far as can be told at once: not if this is false.
    pub(super) fn may_be_at(&self, page: Page) -> bool {
        self.edges[sieve(page)] > 0
    }

    /// The same for both of two pages. Each is as good as random, so that a processor had better not
    /// guess what becomes of the first.
    pub(super) fn may_be_at_both(&self, one: Page, other: Page) -> bool {
        self.edges[sieve(one)].min(self.edges[sieve(other)]) > 0
    }

    /// The same for all pages of `[first, end]`.
    pub(super) fn may_be_within(&self, first: Page, end: Page) -> bool {
        let (from, to) = (first >> BLOCK_BITS, end >> BLOCK_BITS);
        to - from >= MOST_BLOCKS || (from..=to).any(|block| self.edges[sieve_of(block)] > 0)
    }

    /// Whether one of the `most` most recent begins at a page.
    pub(super) fn hold(&self, first: Page, most: usize) -> bool {
        self.may_be_at(first) && self.recent(most).any(|orphan| orphan.first == first)
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

    fn orphan(first: Page) -> Orphan {
        Orphan { first, end: first + 16, at: 0, passed: 0 }
    }

    #[test]
    fn the_sieve_never_denies_an_orphan_and_forgets_with_the_ring() {
        let mut orphans = Orphans::new();
        let page = |n: u64| n * n * 977;
        for n in 0..1000 {
            orphans.note(orphan(page(n)));
            for known in n.saturating_sub(ORPHANS as u64 - 1)..=n {
                let first = page(known);
                assert!(orphans.hold(first, ORPHANS) && orphans.may_be_at(first + 16));
                assert!(orphans.may_be_within(first + 16, first + 20));
            }
        }
        assert!(!orphans.hold(page(0), ORPHANS));
        assert_eq!(orphans.edges.iter().map(|count| usize::from(*count)).sum::<usize>(), 128);
    }

    #[test]
    fn nearly_all_other_pages_are_denied_at_once() {
        let mut orphans = Orphans::new();
        (0..ORPHANS as u64).for_each(|n| orphans.note(orphan(n * 100_003)));
        let denied = (0..10_000).filter(|n| !orphans.may_be_at(n * 7_919)).count();
        assert!(denied > 8_000, "{denied}");
    }
}
