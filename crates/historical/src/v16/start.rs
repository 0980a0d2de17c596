//! The two methods that start at the current page: at the start of a file, and where a chunk was
//! reclaimed before its reader came.

use readahead::Cause;

use super::AccessContext;
use super::bounds::{Size, ThrashEstimate};
use super::stream::ReadAheadState;
use crate::plan::Plan;

/// Initial: reads the device's minimum, or the request if that is larger, unless the device
/// thrashes.
pub(super) fn initial(
    stream: &mut ReadAheadState,
    thrash: &ThrashEstimate,
    context: &AccessContext,
    plan: &mut Plan,
) {
    let fewest = u64::from(context.parameters.initial_pages);
    let pages = context.request.max(fewest).min(thrash.pages());
    stream.set_chunk(Cause::Initial, 0, 0, Size::with_default_look_ahead(pages));
    stream.submit(context, plan);
}

/// Thrashing recovery: the page was read ahead and evicted. The surviving part of the chunk
/// measures the threshold; three quarters of that are safe. If even the old chunk is lost, the rest
/// of it is read again.
pub(super) fn recover(
    stream: &mut ReadAheadState,
    thrash: &mut ThrashEstimate,
    context: &AccessContext,
    plan: &mut Plan,
) {
    let pages = match context.offset.checked_sub(stream.ra_index) {
        None => stream.ra_index - context.offset,
        Some(survived) => {
            thrash.update(survived);
            survived.saturating_mul(3) / 4
        }
    };
    let size = Size::with_default_look_ahead(pages.min(context.bounds.most));
    stream.set_chunk(Cause::Thrashed, context.offset, context.offset, size);
    stream.submit(context, plan);
}
