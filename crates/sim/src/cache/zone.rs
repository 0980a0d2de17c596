//! A zone of memory: frames with separate lists and watermarks.

use std::ops::Range;

use super::frame::{FrameId, Frames, List};

/// A zone.
#[derive(Debug)]
pub(super) struct Zone {
    pub(super) free: List,
    pub(super) inactive: List,
    pub(super) active: List,
    /// Reclaim fell short of its goal, and nothing has arrived or been written since.
    pub(super) is_exhausted: bool,
    /// Active pages that reclaim has still to examine, carried over from round to round.
    pub(super) refill_due: f64,
    pub(super) low_watermark: u64,
    pub(super) high_watermark: u64,
}

impl Zone {
    /// These frames, all free.
    pub(super) fn new(frames: &mut Frames, ids: Range<FrameId>, number: u8) -> Self {
        let pages = u64::from(ids.end - ids.start);
        let mut free = List::EMPTY;
        for id in ids {
            frames[id].zone = number;
            free.push_tail(frames, id);
        }
        // As the kernel sets them for a zone: 1/256 of it, and half as much again.
        let low_watermark = (pages / 256).max(8).min(pages / 4);
        Zone {
            free,
            inactive: List::EMPTY,
            active: List::EMPTY,
            is_exhausted: false,
            refill_due: 0.0,
            low_watermark,
            high_watermark: low_watermark + low_watermark / 2,
        }
    }

    /// Pages that one turn of reclaim examines in a zone of file pages: its inactive ones divided by 2^12, plus one
    /// (Linux 2.6's `shrink_zone` at its first priority). When one zone is short, every zone has its turn.
    pub(super) fn scanned_a_turn(&self) -> u64 {
        (self.size() >> 12) + 1
    }

    /// Frames of the zone.
    pub(super) fn size(&self) -> u64 {
        self.free.len() + self.inactive.len() + self.active.len()
    }
}
