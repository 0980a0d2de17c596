//! The adaptive read-ahead proposed to the kernel in 2006 (its sixteenth version).
//!
//! Each open file has the chunk that its reader is using and the chunk submitted before it:
//!
//! ```text
//!   |------ old chunk ------|----------- new chunk -----------|
//!             #             |              #                  |
//!          la_index      ra_index    lookahead_index    readahead_index
//!             |<------ interval ---------->|<--- la_size ---->|
//! ```
//!
//! `la_index` is where the reader was when the new chunk was submitted. `lookahead_index` carries
//! the mark that requests the next one. For an absent or marked page, the policy tries its methods
//! in this order:
//!
//! | method    | when                                                  | how much          | module     |
//! |-----------|-------------------------------------------------------|-------------------|------------|
//! | initial   | the file's first page                                 | a fixed minimum   | `start`    |
//! | state     | at `lookahead_index`, in sequence                     | thrash threshold  | `state`    |
//! | thrashing | absent, in sequence, inside the chunks                | what survived     | `start`    |
//! | backward  | absent, just before the previous page                 | twice the last    | `backward` |
//! | context   | marked, or absent next to cached pages                | cached history    | `context`  |
//! | random    | absent, and none of these                             | the request       |            |
//!
//! The *thrash threshold* is how far a stream can be ahead of its reader before its pages are
//! reclaimed unused. The page cache's ageing clock measures it: while the reader used `interval`
//! pages, reclaim examined `g` of the `G` pages on the list that a new page passes through. So a
//! page survives `interval * G / g` pages of this stream. The policy uses half of that
//! (`readahead_ratio`). Without state, a stream's history replaces the threshold: pages that it has
//! read and that are still cached have survived that long.

mod backward;
mod bounds;
mod context;
mod history;
mod mapping;
mod nfsd;
mod parameters;
mod start;
mod state;
mod stream;

use bounds::{Bounds, ThrashEstimate};
use readahead::Cause;
use readahead::Table;
use readahead::{Hint, Nanos, OpenFileId, Page, Via};
use stream::ReadAheadState;

use crate::access::{Access, Trigger};
use crate::kernel::Chunk;
use crate::plan::Plan;
use crate::policy::KernelPolicy;
use crate::view::{Ageing, KernelView};

pub use parameters::V16Parameters;

/// The policy, for the open files of one device.
#[derive(Debug)]
pub struct AdaptiveV16 {
    parameters: V16Parameters,
    open_files: Table<OpenFileId, ReadAheadState>,
    thrash: ThrashEstimate,
}

impl AdaptiveV16 {
    /// A policy that tracks at least `open_files` open files.
    pub fn new(open_files: usize, parameters: V16Parameters) -> Self {
        AdaptiveV16 {
            parameters,
            open_files: Table::new(open_files),
            thrash: ThrashEstimate::new(parameters.max_pages),
        }
    }
}

impl KernelPolicy for AdaptiveV16 {
    fn name(&self) -> &'static str {
        "adaptive-v16"
    }

    fn on_access(&mut self, access: &Access, cache: &dyn KernelView, plan: &mut Plan) {
        let marked = access.trigger == Trigger::Mark;
        let congested = cache.room_pages() == 0;
        let is_mere_call = access.trigger == Trigger::Call;
        if access.page >= access.file_pages || (marked && congested) || is_mere_call {
            return;
        }
        let stream = self.open_files.get_or_insert_with(
            access.open_file,
            access.now,
            ReadAheadState::default,
            drop,
        );
        let context = AccessContext::new(access, cache, &self.parameters);
        if access.via == Via::Mmap && access.hint != Hint::Sequential {
            return mapping::read_around(stream, &context, plan);
        }
        dispatch(stream, &mut self.thrash, &context, plan);
    }

    fn copy_state(&mut self, from: OpenFileId, to: OpenFileId, now: Nanos) {
        self.open_files.copy(&from, to, now, ReadAheadState::default);
    }

    fn forget_idle(&mut self, now: Nanos, idle: Nanos) {
        self.open_files.forget_before(now.saturating_sub(idle), drop);
    }
}

/// An access with everything needed to judge it.
#[derive(Clone, Copy)]
struct AccessContext<'a> {
    access: &'a Access,
    cache: &'a dyn KernelView,
    parameters: &'a V16Parameters,
    bounds: Bounds,
    ageing: Ageing,
    offset: Page,
    /// Remaining pages of the request; 1 for a fault.
    request: u64,
    previous: Option<Page>,
    marked: bool,
}

impl<'a> AccessContext<'a> {
    fn new(access: &'a Access, cache: &'a dyn KernelView, parameters: &'a V16Parameters) -> Self {
        let ageing = cache.ageing();
        AccessContext {
            access,
            cache,
            parameters,
            bounds: Bounds::new(parameters, &ageing),
            ageing,
            offset: access.page,
            request: match access.via {
                Via::Read => u64::from(access.request.max(1)),
                Via::Mmap => 1,
            },
            previous: access.previous,
            marked: access.trigger == Trigger::Mark,
        }
    }

    /// Whether the reader came here from the page before.
    fn in_sequence(&self) -> bool {
        self.previous.is_some_and(|previous| previous.checked_add(1) == Some(self.offset))
    }

    /// `readahead_hit_rate` as a factor.
    fn hit_rate(&self) -> u64 {
        u64::from(self.parameters.readahead_hit_rate)
    }
}

/// Whether a method has decided, even to read nothing. Otherwise the next one is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Decided,
    NotApplicable,
}

/// Tries the methods in order.
fn dispatch(
    stream: &mut ReadAheadState,
    thrash: &mut ThrashEstimate,
    context: &AccessContext,
    plan: &mut Plan,
) {
    let absent = !context.marked;
    if context.marked && context.parameters.laptop && stream.defer_mark(context, plan) {
        return;
    }
    if context.bounds.most == 0 || context.parameters.readahead_ratio == 0 {
        if absent {
            read_as_is(context, context.request, plan);
        }
        return;
    }
    if context.access.hint == Hint::Random {
        // With this advice, an open file has no window.
        if absent {
            read_as_is(context, context.request.min(context.bounds.most), plan);
        }
        return;
    }
    if absent && context.parameters.nfsd {
        return nfsd::delayed(stream, context, plan);
    }
    if context.offset == 0 {
        return start::initial(stream, thrash, context, plan);
    }
    if context.in_sequence() && context.offset == stream.lookahead_index {
        return state::proceed(stream, thrash, context, plan);
    }
    if absent && context.in_sequence() && stream.covers(context.offset) {
        return start::recover(stream, thrash, context, plan);
    }
    if absent && backward::proceed(stream, context, plan) == Verdict::Decided {
        return;
    }
    if context::proceed(stream, context, plan) == Verdict::NotApplicable && absent {
        read_as_is(context, context.request.min(context.bounds.most), plan);
    }
}

/// Reads exactly the request and keeps the state.
fn read_as_is(context: &AccessContext, pages: u64, plan: &mut Plan) {
    Chunk::unmarked(context.offset, pages).submit(
        context.access,
        context.cache,
        Cause::Random,
        plan,
    );
}
