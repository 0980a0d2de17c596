//! The first adaptive read-ahead proposed to the kernel, in September 2005. It uses only the page
//! cache's contents.
//!
//! The inactive list is a pipe of constant length, so the cached part of a sequence shows how long
//! its pages survive. The next chunk, with everything cached before it, must be used before it has
//! passed through the pipe:
//!
//! ```text
//!    reclaimed  |<------ history: still cached ------>|<--- history * ratio/100 --->|
//!    . . . . . .[  chunk  ][          chunk          ][          next chunk         ]
//!                                                     ^ absent page
//! ```
//!
//! There are no marks and almost no state. The policy is called when a page is absent and its
//! reader waits. It checks these cases in order:
//!
//! | this page                                                   | what to read                  |
//! |-------------------------------------------------------------|-------------------------------|
//! | is the file's first                                         | the fewest pages              |
//! | follows a used page, or belongs to a very large request     | its history times the ratio   |
//! | begins a small request that ends before a page used once    | backward: 8 pages before, too |
//! | is none of these                                            | random: only the request      |
//!
//! The history counts pages in the same state as the page before (used once; active; active and
//! used again); for a very large request, cached pages in any state. A history that is too short
//! counts as the fewest pages if its pages were used once, since a sequence begins like that.
//! Otherwise it is chance.
//!
//! If a chunk contained cached pages, other readers are nearby. Everything cached from its start on
//! then stays for another round, so that it is reclaimed together. The ratio also selected
//! debugging features: if it is a multiple of 3, readers wait for the last page of a chunk.
//!
//! A call tells where a request begins. For a caller that does not report calls, a request begins
//! with its first absent page.

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

/// Pages read before a backward reader's first page.
const BACKWARD_PAGES: u64 = 8;

/// The policy, for the open files of any device.
#[derive(Debug)]
pub struct Adaptive2005 {
    ratio: u32,
    open_files: Table<OpenFileId, State>,
}

/// State of an open file: the current request and its faults.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    first: Page,
    last: Page,
    faults: HitsAndMisses,
}

impl Adaptive2005 {
    /// The ratio that was suggested.
    pub const DEFAULT_RATIO: u32 = 50;

    /// The smallest ratio that enabled this logic. Below it the kernel used its stock read-ahead.
    pub const SMALLEST_RATIO: u32 = 10;

    /// A policy that tracks at least `open_files` open files and reads `ratio` percent of a history
    /// (`vm.readahead_ratio`). With 0 it reads exactly the requests.
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

    /// What to read for an absent page.
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

/// An absent page with everything needed to judge it.
struct AccessContext<'a> {
    access: &'a Access,
    cache: &'a dyn KernelView,
    bounds: Bounds,
    page: Page,
    /// The part of the request inside the file: first page, and the page after the last.
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
