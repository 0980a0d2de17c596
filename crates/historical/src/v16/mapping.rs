//! Faults in mappings without sequential advice are handled as by the kernel of the time: read
//! around the page until far more faults have missed than found their page.

use readahead::Cause;
use readahead::Hint;

use super::AccessContext;
use super::stream::ReadAheadState;
use crate::faults::{FAULT_MISSES, faults_served_since};
use crate::kernel::Chunk;
use crate::plan::Plan;

/// Reads a window with the page in its middle.
pub(super) fn read_around(stream: &mut ReadAheadState, context: &AccessContext, plan: &mut Plan) {
    if context.access.hint == Hint::Random {
        return;
    }
    count(stream, context);
    let misses_allowed = stream.fault_hits.saturating_add(FAULT_MISSES);
    if context.marked || stream.fault_misses > misses_allowed {
        return;
    }
    let start = context.offset.saturating_sub(context.bounds.most / 2);
    let chunk = Chunk::unmarked(start, context.bounds.most);
    chunk.submit(context.access, context.cache, Cause::Initial, plan);
}

/// Counts this fault, and those since the last one that found their page.
fn count(stream: &mut ReadAheadState, context: &AccessContext) {
    let served = faults_served_since(stream.last_fault, context.access, context.bounds.most);
    stream.last_fault = context.offset;
    stream.fault_hits = stream.fault_hits.saturating_add(served);
    if context.marked {
        stream.fault_hits = stream.fault_hits.saturating_add(1);
    } else {
        stream.fault_misses = stream.fault_misses.saturating_add(1);
    }
}
