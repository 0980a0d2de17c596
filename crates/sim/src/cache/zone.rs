//! A zone of memory: frames with separate lists and watermarks.

use std::ops::Range;

use super::frame::{FrameId, Frames, List};

/// A zone.
#[derive(Debug)]
pub(super) struct Zone {
    free: Free,
    pub(super) inactive: List,
    pub(super) active: List,
    /// Reclaim fell short of its goal, and nothing has arrived or been written since.
    pub(super) is_exhausted: bool,
    /// Active pages that reclaim has still to examine, carried over from round to round.
    pub(super) refill_due: f64,
    pub(super) low_watermark: u64,
    pub(super) high_watermark: u64,
    number: u8,
}

/// Free frames.
#[derive(Debug)]
struct Free {
    /// Not used so far.
    unused: Range<FrameId>,
    /// Used before; the last one that was freed is at the tail.
    again: List,
}

impl Zone {
    /// These frames, all free.
    pub(super) fn new(ids: Range<FrameId>, number: u8) -> Self {
        let pages = u64::from(ids.end - ids.start);
        // As the kernel sets them for a zone: 1/256 of it, and half as much again.
        let low_watermark = (pages / 256).max(8).min(pages / 4);
        Zone {
            free: Free { unused: ids, again: List::EMPTY },
            number,
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

    /// Its free frames.
    pub(super) fn free(&self) -> u64 {
        u64::from(self.free.unused.end - self.free.unused.start) + self.free.again.len()
    }

    /// Takes a free frame: the last one that was freed.
    pub(super) fn take(&mut self, frames: &mut Frames) -> Option<FrameId> {
        self.free.again.pop_tail(frames).or_else(|| {
            let id = self.free.unused.next()?;
            frames.begin(id, self.number);
            Some(id)
        })
    }

    /// Frees a frame that is on no list.
    pub(super) fn free_up(&mut self, frames: &mut Frames, id: FrameId) {
        self.free.again.push_tail(frames, id);
    }

    /// Frames of the zone.
    pub(super) fn size(&self) -> u64 {
        self.free() + self.inactive.len() + self.active.len()
    }
}
