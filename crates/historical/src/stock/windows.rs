//! State of one open file: its two windows, and how they are submitted and moved.

use readahead::Cause;
use readahead::Page;

use super::{StockRelease, size};
use crate::access::Access;
use crate::faults::HitsAndMisses;
use crate::kernel::Chunk;
use crate::plan::Plan;
use crate::view::KernelView;

/// If this many requested pages in a row were cached, the file counts as cached
/// (`VM_MAX_CACHE_HIT`).
const MOST_CACHE_HITS: u64 = 256;

/// Result of submitting a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Submitted {
    Done,
    /// The device's queue is full, or the file is cached.
    Failed,
}

/// A request with everything needed to judge it.
#[derive(Clone, Copy)]
pub(super) struct AccessContext<'a> {
    pub(super) access: &'a Access,
    pub(super) cache: &'a dyn KernelView,
    pub(super) release: StockRelease,
    /// Largest window in pages.
    pub(super) most: u64,
}

/// Positions as in the [diagram](super).
#[derive(Clone, Copy, Debug)]
pub(super) struct Windows {
    start: Page,
    pages: u64,
    /// 0 for no ahead window.
    ahead_start: Page,
    ahead_pages: u64,
    /// Last page that the reader is assumed to have read; initially the one before the file.
    seen: Page,
    /// Cached pages requested since the last absent one.
    cache_hits: u64,
    /// A page was evicted after it had been read ahead.
    missed: bool,
    /// Read-ahead is off because the file seems to be cached.
    in_cache: bool,
    pub(super) faults: HitsAndMisses,
}

impl Default for Windows {
    fn default() -> Self {
        Windows {
            start: 0,
            pages: 0,
            ahead_start: 0,
            ahead_pages: 0,
            seen: Page::MAX,
            cache_hits: 0,
            missed: false,
            in_cache: false,
            faults: HitsAndMisses::default(),
        }
    }
}

impl Windows {
    /// The page at which the policy must be called next.
    pub(super) fn next(&self) -> Page {
        self.seen.wrapping_add(1)
    }

    /// A page was absent at its turn: read-ahead was evicted, or there was none.
    pub(super) fn on_miss(&mut self) {
        self.missed = true;
        self.in_cache = false;
        self.cache_hits = 0;
    }

    /// Handles a request of `request` pages from `page` on.
    pub(super) fn on_request(
        &mut self,
        mut page: Page,
        mut request: u64,
        context: &AccessContext,
        plan: &mut Plan,
    ) {
        if page == self.seen {
            request -= 1;
            page += u64::from(request > 0);
        }
        let is_sequential = page == self.next();
        let pages = request.min(context.most);
        self.seen = page;
        if pages == 0 || self.in_cache {
            return;
        }
        self.seen = page.saturating_add(pages - 1);
        if !is_sequential {
            self.turn_off();
            self.submit(Chunk::unmarked(page, pages), Cause::Random, context, plan);
        } else if self.pages == 0 {
            self.begin(page, pages, request, context, plan);
        } else {
            self.proceed(context, plan);
        }
    }

    /// Submits the first window; for a request as large as a window, also the second.
    fn begin(
        &mut self,
        page: Page,
        pages: u64,
        request: u64,
        context: &AccessContext,
        plan: &mut Plan,
    ) {
        self.start = page;
        self.pages = size::initial(context.release, pages, context.most);
        let window = Chunk::unmarked(self.start, self.pages);
        let submitted = self.submit(window, Cause::Initial, context, plan);
        if submitted == Submitted::Done && request >= context.most {
            self.place_ahead(context);
            self.submit_ahead(context, plan);
        }
    }

    /// Moves into the ahead window when the reader has reached it, and submits the next.
    fn proceed(&mut self, context: &AccessContext, plan: &mut Plan) {
        let has_ahead = self.ahead_start != 0 || self.make_ahead(context, plan) == Submitted::Done;
        if has_ahead {
            if self.seen < self.ahead_start {
                return;
            }
            self.start = self.ahead_start;
            self.pages = self.ahead_pages;
            self.make_ahead(context, plan);
        }
        if context.release == StockRelease::Linux2_6_17 {
            let end = self.ahead_start.saturating_add(self.ahead_pages);
            self.seen = self.seen.min(end.wrapping_sub(1));
        }
    }

    /// Submits the ahead window, unless the device is busy and the reader does not need it yet.
    /// Drops it if that fails. 2.6.17 remembers where it would have ended, so that `seen` stays
    /// before that.
    fn make_ahead(&mut self, context: &AccessContext, plan: &mut Plan) -> Submitted {
        self.place_ahead(context);
        let may_block = self.seen >= self.ahead_start;
        let is_congested = context.cache.room_pages() == 0;
        let submitted = if is_congested && !may_block {
            Submitted::Failed
        } else {
            self.submit_ahead(context, plan)
        };
        if submitted == Submitted::Failed {
            self.ahead_pages = match context.release {
                StockRelease::Linux2_6_13 => 0,
                StockRelease::Linux2_6_17 => self.ahead_pages.saturating_add(self.ahead_start),
            };
            self.ahead_start = 0;
        }
        submitted
    }

    /// Places the ahead window behind the current one, larger than it or, after a miss, smaller.
    fn place_ahead(&mut self, context: &AccessContext) {
        self.ahead_pages = if self.missed {
            self.missed = false;
            size::shrunk(self.pages, context.most)
        } else {
            size::grown(self.pages, context.most)
        };
        self.ahead_start = self.start.saturating_add(self.pages);
    }

    fn submit_ahead(&mut self, context: &AccessContext, plan: &mut Plan) -> Submitted {
        let ahead = Chunk::unmarked(self.ahead_start, self.ahead_pages);
        self.submit(ahead, Cause::Sequential, context, plan)
    }

    /// Submits a window. Counts it as cached if none of its pages was new.
    fn submit(
        &mut self,
        chunk: Chunk,
        cause: Cause,
        context: &AccessContext,
        plan: &mut Plan,
    ) -> Submitted {
        let within = chunk.pages.min(context.access.file_pages.saturating_sub(chunk.start));
        let is_cached = within == 0 || context.cache.cached_in(chunk.start, within) >= within;
        chunk.submit(context.access, context.cache, cause, plan);
        if !is_cached {
            self.cache_hits = 0;
            return Submitted::Done;
        }
        self.cache_hits = self.cache_hits.saturating_add(chunk.pages);
        if self.cache_hits < MOST_CACHE_HITS {
            return Submitted::Done;
        }
        self.turn_off();
        self.in_cache = true;
        Submitted::Failed
    }

    /// Drops both windows.
    fn turn_off(&mut self) {
        self.start = 0;
        self.pages = 0;
        self.ahead_start = 0;
        self.ahead_pages = 0;
        self.missed = false;
        self.in_cache = false;
    }
}
