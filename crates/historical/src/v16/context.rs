//! The context based method: the page cache itself shows a sequence.
//!
//! ```text
//!    . . . [ history: cached pages ] offset [ look-ahead: cached ] start [ new chunk ) . . .
//! ```
//!
//! It serves streams whose state is lost or shared: several readers of one open file, threads of an
//! NFS server, a resumed sequence. The length of the history shows how long pages survive.

use readahead::Cause;
use readahead::Page;

use super::bounds::Size;
use super::history::history;
use super::stream::{ReadAheadState, rescue};
use super::{AccessContext, Verdict};
use crate::plan::Plan;

/// Where a chunk could begin.
struct Opening {
    /// The page whose history counts, which is where the reader is assumed to be.
    offset: Page,
    start: Page,
    /// Least pages of the chunk.
    fewest: u64,
    class: Cause,
}

impl Opening {
    /// A new sequence after a seek, or one that resumes after a cached part.
    fn here(offset: Page, fewest: u64) -> Self {
        Opening { offset, start: offset, fewest, class: Cause::Context }
    }

    /// Number of cached pages between the reader and the chunk.
    fn ahead(&self) -> u64 {
        self.start - self.offset
    }
}

/// Submits a chunk where the page cache suggests one.
pub(super) fn proceed(
    stream: &mut ReadAheadState,
    context: &AccessContext,
    plan: &mut Plan,
) -> Verdict {
    let opening = if context.marked {
        let Some(opening) = after_look_ahead(context) else {
            return Verdict::Decided;
        };
        Some(opening)
    } else {
        at_absent_page(context)
    };
    opening.map_or(Verdict::NotApplicable, |opening| submit(stream, context, opening, plan))
}

/// The absent page that ends the look-ahead of a marked page; `None` if enough is cached ahead.
fn after_look_ahead(context: &AccessContext) -> Option<Opening> {
    let enough = context.bounds.most + context.bounds.fewest;
    let ahead = context.cache.run_after(context.offset, enough);
    if ahead >= enough {
        return None;
    }
    Some(Opening {
        start: context.offset.checked_add(ahead)?,
        ..Opening::here(context.offset, context.bounds.fewest)
    })
}

/// How an absent page relates to the pages cached before it; `None` if it does not.
fn at_absent_page(context: &AccessContext) -> Option<Opening> {
    let fewest = context.bounds.fewest;
    let before = context.offset.checked_sub(1)?;
    if context.in_sequence() {
        return Some(Opening::here(context.offset, fewest));
    }
    if context.hit_rate() >= 1 && context.cache.is_cached(before) {
        let slow_start = 2 * context.hit_rate();
        return Some(Opening::here(context.offset, fewest.min(slow_start)));
    }
    if context.hit_rate() > 1 {
        return across_gap(context);
    }
    None
}

/// Sparse reads: fills the gap after the nearest cached page, as if the request had started there. The gap is smaller
/// than the least chunk.
fn across_gap(context: &AccessContext) -> Option<Opening> {
    let farthest = context.bounds.fewest.saturating_sub(1).min(context.offset);
    let gap = (1..=farthest).find(|gap| context.cache.is_cached(context.offset - gap))?;
    let opening = Opening::here(context.offset - gap + 1, context.bounds.fewest + gap);
    Some(Opening { class: Cause::Sparse, ..opening })
}

fn submit(
    stream: &mut ReadAheadState,
    context: &AccessContext,
    opening: Opening,
    plan: &mut Plan,
) -> Verdict {
    let history = history(context, opening.offset);
    if history == 0 {
        return Verdict::NotApplicable;
    }
    let ahead = opening.ahead();
    if context.marked && history < ahead {
        // The pages before were already reclaimed; those ahead are next.
        if history < opening.offset {
            rescue(context, ahead, plan);
        }
        return Verdict::Decided;
    }
    if let Some(size) = size(context, &opening, history) {
        let size = size.limit(context.bounds.most, ahead);
        stream.set_chunk(opening.class, opening.offset, opening.start, size);
        stream.submit(context, plan);
    }
    Verdict::Decided
}

/// The chunk that a history suggests: an aggressive one if it reaches the start of the file,
/// otherwise a share of it.
fn size(context: &AccessContext, opening: &Opening, history: u64) -> Option<Size> {
    let (offset, ahead) = (opening.offset, opening.ahead());
    if history >= offset {
        return Some(Size { ra: (offset - offset.min(ahead)) + offset, la: offset });
    }
    let ratio = u64::from(context.parameters.readahead_ratio);
    let share = history.saturating_mul(ratio) / 100;
    Size::beyond(share.max(opening.fewest), ahead)
}
