//! The state based method: the fast path of a sequence that continues.
//!
//! ```text
//!   |------ old chunk ------|----------- new chunk -----------|::::::::: next chunk :::::::::|
//!             #             |              #                  |
//!          la_index      ra_index        reader       readahead_index
//!             |<--- interval, g scanned -->|<-- still ahead -->|
//!                                          |<-- remaining: interval * (G - g) / g --> reclaimed
//! ```

use readahead::Cause;

use super::AccessContext;
use super::bounds::{Size, ThrashEstimate};
use super::stream::{ReadAheadState, rescue};
use crate::plan::Plan;

/// What the last interval shows about how long pages survive, in pages of this stream.
struct Survival {
    /// Pages that can safely be ahead of the reader.
    threshold: u64,
    /// Pages that the reader will use before the current chunk is reclaimed.
    remaining: u64,
}

impl Survival {
    fn measure(stream: &ReadAheadState, context: &AccessContext) -> Self {
        let interval = stream.interval();
        let list = context.ageing.inactive_and_free_pages;
        let scanned = context.ageing.scanned_pages.saturating_sub(stream.age) | 1;
        let ratio = u64::from(context.parameters.readahead_ratio);
        // Of interval * G / g, about ratio percent: 5 / 512 is nearly 1 / 100.
        let threshold = interval.saturating_mul(list / 512).saturating_mul(ratio * 5) / scanned;
        let remaining = interval.saturating_mul(list.saturating_sub(scanned)) / scanned;
        Survival { threshold, remaining }
    }
}

/// The reader has reached `lookahead_index`: submits the next chunk, or saves the current one.
pub(super) fn proceed(
    stream: &mut ReadAheadState,
    thrash: &mut ThrashEstimate,
    context: &AccessContext,
    plan: &mut Plan,
) {
    let ahead = stream.readahead_index.saturating_sub(context.offset);
    let old = stream.ra_size();
    let survival = Survival::measure(stream, context);
    if context.marked && survival.remaining <= ahead {
        return rescue(context, ahead, plan);
    }
    let Some(size) = Size::beyond(survival.threshold, ahead) else {
        return;
    };
    let size = size.limit(growth_limit(context, old), ahead);
    let steady = old.saturating_mul(9) / 8 >= size.ra;
    if context.marked && steady {
        thrash.update(size.ra);
    }
    stream.set_chunk(Cause::Sequential, context.offset, stream.readahead_index, size);
    stream.submit(context, plan);
}

/// A chunk is at most about twice the old one.
fn growth_limit(context: &AccessContext, old: u64) -> u64 {
    let most = context.bounds.most;
    let times = 2 + u64::from(context.parameters.readahead_ratio) / 64;
    old.saturating_mul(times).saturating_add(context.request + most / 16).min(most)
}
