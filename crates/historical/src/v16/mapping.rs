//! Faults in mappings without sequential advice keep what the kernel of the time did: read around
//! the page, until many more faults missed than found their page.

use readahead::Cause;
use readahead::Hint;

use super::Scene;
use super::stream::Stream;
use crate::faults::{FAULT_MISSES, faults_served_since};
use crate::kernel::Chunk;
use crate::plan::Plan;

/// Reads a window of which the page is the middle.
pub(super) fn read_around(stream: &mut Stream, scene: &Scene, plan: &mut Plan) {
    if scene.access.hint == Hint::Random {
        return;
    }
    count(stream, scene);
    let misses_allowed = stream.fault_hits.saturating_add(FAULT_MISSES);
    if scene.marked || stream.fault_misses > misses_allowed {
        return;
    }
    let start = scene.offset.saturating_sub(scene.bounds.most / 2);
    let chunk = Chunk::unmarked(start, scene.bounds.most);
    chunk.submit(scene.access, scene.cache, Cause::Initial, plan);
}

fn count(stream: &mut Stream, scene: &Scene) {
    let served = faults_served_since(stream.last_fault, scene.access, scene.bounds.most);
    stream.last_fault = scene.offset;
    stream.fault_hits = stream.fault_hits.saturating_add(served);
    if scene.marked {
        stream.fault_hits = stream.fault_hits.saturating_add(1);
    } else {
        stream.fault_misses = stream.fault_misses.saturating_add(1);
    }
}
