//! The adaptive read-ahead first proposed to the kernel, in September 2005: the page cache's
//! context alone.
//!
//! The inactive list is a pipe of constant length, so what is still cached of a sequence tells how
//! long its pages survive; the next chunk, with all that is cached before it, must be consumed
//! before it has travelled through:
//!
//! ```text
//!    reclaimed  |<------ history: still cached ------>|<--- history * ratio/100 --->|
//!    . . . . . .[  chunk  ][          chunk          ][          next chunk         ]
//!                                                     ^ absent page
//! ```
//!
//! There are no marks and hardly any state: the policy is asked when a page was absent, and its
//! reader waits. In this order:
//!
//! | the page at hand                                            | what is read                  |
//! |-------------------------------------------------------------|-------------------------------|
//! | is the file's first                                         | the fewest pages              |
//! | follows one that was used, or is of a very large request    | its history times the ratio   |
//! | begins a small request that ends before a page used once    | backward: 8 pages before, too |
//! | is none of these                                            | random: what was asked for    |
//!
//! The history counts the pages in the state of the page before (used once, on the active list, on
//! it and used again; for a very large request, in any). One that is too short is made the fewest
//! pages if its pages were used once, as a sequence begins like that; otherwise it is chance.
//!
//! When a chunk met pages that were cached already, other readers are near: all that is cached
//! from its start on is kept for another round, so that it is reclaimed together. The ratio also
//! chose how it was debugged: readers wait for the last page of a chunk if it is a multiple of 3.
//!
//! A request is known from its call; a body that does not tell of calls has a request begin with
//! its first absent page.

mod bounds;
mod history;

use bounds::Bounds;
use history::{Classes, history};
use readahead::Cause;
use readahead::Table;
use readahead::{Hint, Nanos, OpenFileId, Page, Via};

use crate::access::{Access, Trigger};
use crate::faults::HitsAndMisses;
use crate::kernel::Chunk;
use crate::plan::Plan;
use crate::policy::KernelPolicy;
use crate::view::KernelView;

/// Pages read before the first page of a backward reader.
const BACKWARD_PAGES: u64 = 8;

/// The policy, for the open files of any device.
#[derive(Debug)]
pub struct Adaptive2005 {
    ratio: u32,
    open_files: Table<OpenFileId, State>,
}

/// What is remembered of an open file: the request under way, and its faults.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    first: Page,
    last: Page,
    faults: HitsAndMisses,
}

impl Adaptive2005 {
    /// The ratio that was suggested.
    pub const DEFAULT_RATIO: u32 = 50;

    /// Smallest ratio that chose this logic; below it the kernel used its stock one.
    pub const SMALLEST_RATIO: u32 = 10;

    /// A policy that follows at least `open_files` open files and reads `ratio` percent of a
    /// history (`vm.readahead_ratio`); 0 reads requests as they are.
    pub fn new(open_files: usize, ratio: u32) -> Self {
        Adaptive2005 { ratio, open_files: Table::new(open_files) }
    }

    fn waits_for_all(&self) -> bool {
        self.ratio.is_multiple_of(3)
    }

    fn on_absent(&self, context: &AccessContext, plan: &mut Plan) {
        let (chunk, cause) = self.chunk(context);
        let access = context.access;
        let within = chunk.pages.min(access.file_pages.saturating_sub(chunk.start));
        if within == 0 {
            return;
        }
        let new = within.saturating_sub(context.cache.cached_in(chunk.start, within));
        chunk.submit(access, context.cache, cause, plan);
        let end = chunk.start + within;
        if new < chunk.pages && chunk.pages < context.bounds.most {
            let after = context.cache.run_after(end, access.file_pages - end);
            plan.rescue(chunk.start, within + after);
        }
        if self.waits_for_all() {
            plan.wait_for(end - 1);
        }
    }

    /// What is read for an absent page.
    fn chunk(&self, context: &AccessContext) -> (Chunk, Cause) {
        let Bounds { fewest, most } = context.bounds;
        let here = |pages| Chunk::unmarked(context.page, pages);
        let random = (here((context.last - context.page).min(most)), Cause::Random);
        if self.ratio == 0 {
            return random;
        }
        let Some(before) = context.page.checked_sub(1) else {
            return (here(fewest), Cause::Initial);
        };
        let request = context.last - context.first;
        let is_large = request > most;
        let class_before = Classes::of(before, context.cache);
        let class = if is_large { Classes::ANY } else { class_before };
        if class != Classes::ABSENT && class != Classes::FRESH {
            let pages = self.pages_by_history(class, context);
            return pages.map_or(random, |pages| (here(pages), Cause::Context));
        }
        let is_backward = class_before == Classes::ABSENT
            && context.page == context.first
            && request < fewest
            && context.last < context.access.file_pages
            && Classes::of(context.last, context.cache) == Classes::STALE;
        if is_backward {
            let start = context.page.saturating_sub(BACKWARD_PAGES);
            return (Chunk::unmarked(start, context.last - start), Cause::Backward);
        }
        random
    }

    fn pages_by_history(&self, class: Classes, context: &AccessContext) -> Option<u64> {
        let Bounds { fewest, most } = context.bounds;
        let ratio = u64::from(self.ratio);
        let seen = history(context.page, most * 100 / ratio, class, context.cache);
        let pages = seen.saturating_mul(ratio) / 100;
        if pages < fewest && class != Classes::STALE {
            return None;
        }
        Some(pages.clamp(fewest, most))
    }
}

/// One absent page with all that is needed to judge it.
struct AccessContext<'a> {
    access: &'a Access,
    cache: &'a dyn KernelView,
    bounds: Bounds,
    page: Page,
    /// The request: first page, and the page after the last, within the file.
    first: Page,
    last: Page,
}

impl KernelPolicy for Adaptive2005 {
    fn name(&self) -> &'static str {
        "adaptive-2005"
    }

    fn on_access(&mut self, access: &Access, cache: &dyn KernelView, plan: &mut Plan) {
        if access.page >= access.file_pages {
            return;
        }
        let state =
            self.open_files.get_or_insert_with(access.open_file, access.now, State::default, drop);
        if access.via == Via::Mmap && access.hint != Hint::Sequential {
            return state.faults.on_fault(access, cache, plan);
        }
        let last = match access.via {
            Via::Read => access.end(),
            Via::Mmap => access.page + 1,
        };
        let goes_on = access.trigger == Trigger::Absent
            && (state.first..state.last).contains(&access.page)
            && last == state.last;
        if !goes_on {
            (state.first, state.last) = (access.page, last);
        }
        if access.trigger == Trigger::Absent {
            let window = if access.hint == Hint::Random { 0 } else { access.kernel_window };
            let bounds = Bounds::new(window, &cache.ageing());
            let (page, first) = (access.page, state.first);
            self.on_absent(&AccessContext { access, cache, bounds, page, first, last }, plan);
        }
    }

    fn wants_calls(&self) -> bool {
        true
    }

    fn copy_state(&mut self, from: OpenFileId, to: OpenFileId, now: Nanos) {
        self.open_files.copy(&from, to, now, State::default);
    }

    fn forget_idle(&mut self, now: Nanos, idle: Nanos) {
        self.open_files.forget_before(now.saturating_sub(idle), drop);
    }
}
