//! The two methods that begin at the page at hand: at the start of a file, and where a chunk was
//! reclaimed before its reader came.

use readahead::Cause;

use super::Scene;
use super::bounds::{Size, ThrashEstimate};
use super::stream::Stream;
use crate::plan::Plan;

/// Initial: the device's minimum, or the request if larger, unless the device thrashes.
pub(super) fn initial(
    stream: &mut Stream,
    thrash: &ThrashEstimate,
    scene: &Scene,
    plan: &mut Plan,
) {
    let fewest = u64::from(scene.parameters.initial_pages);
    let pages = scene.request.max(fewest).min(thrash.pages());
    stream.set_chunk(Cause::Initial, 0, 0, Size::with_default_look_ahead(pages));
    stream.submit(scene, plan);
}

/// Thrashing recovery: the page was read ahead, and is gone. What survived of the chunk measures
/// the threshold, three quarters of which are safe; if even the old chunk is lost, what is left of
/// it is read again.
pub(super) fn recover(
    stream: &mut Stream,
    thrash: &mut ThrashEstimate,
    scene: &Scene,
    plan: &mut Plan,
) {
    let pages = match scene.offset.checked_sub(stream.ra_index) {
        None => stream.ra_index - scene.offset,
        Some(survived) => {
            thrash.update(survived);
            survived.saturating_mul(3) / 4
        }
    };
    let size = Size::with_default_look_ahead(pages.min(scene.bounds.most));
    stream.set_chunk(Cause::Thrashed, scene.offset, scene.offset, size);
    stream.submit(scene, plan);
}
