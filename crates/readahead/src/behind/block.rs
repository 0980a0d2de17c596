//! Decides from two bits per page which pages of a span may be dropped.
//!
//! For each page, the caller records whether this process brought it into the cache, and whether it
//! has been used since. A second use, by any process, clears the *brought* bit. So a page is kept
//! if it was cached before the stream came, if another process wants it too, or if nothing is known
//! about it.

use super::span::Span;
use crate::access::Page;

/// Pages per [`Block`], one bit each.
pub const BLOCK_PAGES: u64 = 64;

/// The recorded bits of 64 pages of a file; bit `n` is page `n`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// Brought into the cache by the owner, or for it.
    pub brought: u64,
    /// Used since then.
    pub used: u64,
    /// The owning process; 0 if the pages were read ahead and nobody has used them.
    pub owner: u32,
}

/// What to do with pages that were brought in and never used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unused {
    /// Keep them: their reader may still come.
    Stay,
    /// Drop them: their reader has ended.
    Go,
}

/// Which pages of a span may be dropped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Pages to drop, in order.
    pub go: Vec<Span>,
    /// Number of pages brought in and not used yet, which stay for now.
    pub waiting: u64,
}

/// Which pages of `span` the process `owner` may drop. `block_at` returns what is recorded about
/// each block.
pub fn may_go(
    span: Span,
    owner: u32,
    unused: Unused,
    mut block_at: impl FnMut(u64) -> Option<Block>,
) -> Verdict {
    let mut verdict = Verdict::default();
    for number in span.start / BLOCK_PAGES..span.end.div_ceil(BLOCK_PAGES) {
        let first = number * BLOCK_PAGES;
        let within = bits_within(first, span);
        let block = block_at(number).unwrap_or_default();
        let is_ours = block.owner == owner || (block.owner == 0 && unused == Unused::Go);
        let seen = if unused == Unused::Go { u64::MAX } else { block.used };
        let go = if is_ours { block.brought & seen & within } else { 0 };
        let is_unclaimed = block.owner == 0;
        let waiting = if is_ours || is_unclaimed { block.brought & !seen & within } else { 0 };
        verdict.waiting += u64::from(waiting.count_ones());
        for (start, end) in runs(go) {
            verdict.push(first + start, first + end);
        }
    }
    verdict
}

impl Verdict {
    fn push(&mut self, start: Page, end: Page) {
        match self.go.last_mut() {
            Some(last) if last.end == start => last.end = end,
            _ => self.go.push(Span { start, end }),
        }
    }
}

/// The bits of the block that starts at page `first` whose pages are in the span.
fn bits_within(first: Page, span: Span) -> u64 {
    let bit = |page: Page| page.clamp(first, first + BLOCK_PAGES) - first;
    let below = |bit: u64| u64::MAX.checked_shr(64 - bit as u32).unwrap_or(0);
    below(bit(span.end)) & !below(bit(span.start))
}

/// First bit, and bit after the last, of each run of ones.
fn runs(bits: u64) -> impl Iterator<Item = (u64, u64)> {
    let mut at = 0u32;
    std::iter::from_fn(move || {
        let rest = bits.checked_shr(at)?;
        if rest == 0 {
            return None;
        }
        let start = at + rest.trailing_zeros();
        let end = start + (bits >> start).trailing_ones();
        at = end;
        Some((u64::from(start), u64::from(end)))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const OWNER: u32 = 7;

    #[test]
    fn unknown_pages_are_kept() {
        let verdict = may_go(Span { start: 10, end: 200 }, OWNER, Unused::Go, |_| None);
        assert_eq!(verdict, Verdict::default());
    }

    #[test]
    fn whole_blocks_make_one_span() {
        let all = Block { brought: u64::MAX, used: u64::MAX, owner: OWNER };
        let verdict = may_go(Span { start: 1000, end: 1200 }, OWNER, Unused::Stay, |_| Some(all));
        assert_eq!(verdict.go, [Span { start: 1000, end: 1200 }]);
        assert_eq!(verdict.waiting, 0);
    }

    #[test]
    fn pages_read_ahead_wait_for_their_reader_until_it_has_ended() {
        let unread = Block { brought: 0b1111, used: 0b0011, owner: OWNER };
        let span = Span { start: 0, end: 4 };
        let verdict = |unused| may_go(span, OWNER, unused, |_| Some(unread));
        let used = Span { start: 0, end: 2 };
        assert_eq!(verdict(Unused::Stay), Verdict { go: vec![used], waiting: 2 });
        assert_eq!(verdict(Unused::Go), Verdict { go: vec![span], waiting: 0 });
    }

    proptest! {
        #[test]
        fn exactly_the_pages_brought_and_used_by_the_owner_may_go(
            blocks in prop::collection::vec(prop::option::of((any::<u64>(), any::<u64>(), 0..3u32)), 40),
            start in 0..2000u64, pages in 0..600u64,
        ) {
            let span = Span { start, end: start + pages };
            let known = |number: u64| {
                let (brought, used, owner) = (*blocks.get(number as usize)?)?;
                Some(Block { brought, used, owner })
            };
            let verdict = may_go(span, 2, Unused::Stay, known);
            let goes = |page: u64| verdict.go.iter().any(|s| (s.start..s.end).contains(&page));
            for page in 0..2700 {
                let may = known(page / BLOCK_PAGES).is_some_and(|block| {
                    block.owner == 2 && block.brought & block.used & 1 << (page % BLOCK_PAGES) != 0
                });
                prop_assert_eq!(goes(page), may && (span.start..span.end).contains(&page));
            }
            prop_assert!(verdict.go.windows(2).all(|pair| pair[0].end <= pair[1].start));
        }
    }
}
