//! The backward method, for a reader that moves towards the start of the file.
//!
//! ```text
//!        |<--------- q ---------->|
//!   -----[ next chunk    offset   )[ last chunk ... previous ... )-----
//!                                  ^ la_index
//! ```

use readahead::Cause;

use super::bounds::Size;
use super::stream::ReadAheadState;
use super::{AccessContext, Verdict};
use crate::plan::Plan;

/// Submits the chunk before the previous page, or before the last chunk of the same run, if the
/// page is close enough to it.
pub(super) fn proceed(
    stream: &mut ReadAheadState,
    context: &AccessContext,
    plan: &mut Plan,
) -> Verdict {
    let Some(previous) = context.previous.filter(|previous| context.offset < *previous) else {
        return Verdict::NotApplicable;
    };
    let reach = context.request + context.hit_rate();
    if context.offset.saturating_add(2 * reach) <= previous {
        return Verdict::NotApplicable;
    }
    let goes_on = stream.class == Cause::Backward && stream.covers(previous);
    let (end, pages) = if goes_on {
        let pages = reach.saturating_add(stream.ra_size().saturating_mul(2));
        (stream.la_index, pages)
    } else {
        (previous, 2 * reach)
    };
    let pages = pages.min(context.bounds.most).min(end);
    let start = end - pages;
    if context.offset < start {
        return Verdict::NotApplicable;
    }
    let size = Size { ra: pages, la: 0 };
    stream.set_chunk(Cause::Backward, start, start, size);
    stream.submit(context, plan);
    Verdict::Decided
}
