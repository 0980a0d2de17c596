//! The NFS server's delayed decision.
//!
//! A client's requests reach the server's threads out of order, and all threads would decide before
//! any of them has read a page. So a request is first read as it is, and then judged by the pages
//! around it:
//!
//! ```text
//!   [ cached ] offset [ just read ) end: absent -> context based, as if the reader were here
//! ```

use readahead::Page;
use readahead::{CacheView, DeviceCost};

use super::stream::ReadAheadState;
use super::{AccessContext, context, read_as_is};
use crate::plan::Plan;
use crate::view::{Ageing, KernelView, PageState};

/// Reads an absent page's request, and continues at its end if it lies within a sequence.
pub(super) fn delayed(stream: &mut ReadAheadState, context: &AccessContext, plan: &mut Plan) {
    let pages = context.request.min(context.bounds.most);
    read_as_is(context, pages, plan);
    let (Some(before), Some(tail)) =
        (context.offset.checked_sub(1), context.offset.checked_add(pages))
    else {
        return;
    };
    if !context.cache.is_cached(before) || context.cache.is_cached(tail) {
        return;
    }
    let cache = AfterRead { before: context.cache, start: context.offset, end: tail };
    let at_tail =
        AccessContext { cache: &cache, offset: tail, previous: Some(tail - 1), ..*context };
    context::proceed(stream, &at_tail, plan);
}

/// The page cache as it will be after `[start, end)` has been read.
struct AfterRead<'a> {
    before: &'a dyn KernelView,
    start: Page,
    end: Page,
}

impl CacheView for AfterRead<'_> {
    fn cached_in(&self, start: Page, pages: u64) -> u64 {
        let end = start.saturating_add(pages);
        let from = self.start.clamp(start, end);
        let to = self.end.clamp(from, end);
        let outside = |start: Page, end: Page| match end - start {
            0 => 0,
            pages => self.before.cached_in(start, pages),
        };
        outside(start, from) + (to - from) + outside(to, end)
    }

    fn cost(&self) -> DeviceCost {
        self.before.cost()
    }

    fn room_pages(&self) -> u64 {
        self.before.room_pages()
    }
}

impl KernelView for AfterRead<'_> {
    fn state(&self, page: Page) -> PageState {
        if !(self.start..self.end).contains(&page) {
            return self.before.state(page);
        }
        match self.before.state(page) {
            PageState::Absent => PageState::Fresh,
            cached => cached,
        }
    }

    fn ageing(&self) -> Ageing {
        self.before.ageing()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every even page is cached.
    struct Even;

    impl CacheView for Even {
        fn cached_in(&self, start: Page, pages: u64) -> u64 {
            (start..start + pages).filter(|page| page % 2 == 0).count() as u64
        }
    }

    impl KernelView for Even {}

    #[test]
    fn what_was_just_read_counts_as_cached() {
        let view = AfterRead { before: &Even, start: 10, end: 20 };
        for start in 0..30 {
            for pages in 0..30 {
                let range = start..start + pages;
                let cached = range.filter(|page| page % 2 == 0 || (10..20).contains(page));
                assert_eq!(
                    view.cached_in(start, pages),
                    cached.count() as u64,
                    "{pages} pages from {start}"
                );
            }
        }
        assert_eq!(view.state(11), PageState::Fresh);
        assert_eq!(view.state(12), PageState::Referenced);
        assert_eq!(view.state(21), PageState::Absent);
    }
}
