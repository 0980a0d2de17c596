//! State of one open file: the current chunk and the one before.

use readahead::Cause;
use readahead::Page;

use super::AccessContext;
use super::bounds::{MIN_PAGES, Size};
use crate::kernel::Chunk;
use crate::plan::Plan;

/// How far a mark is moved while the disk rests (`LAPTOP_POLL_INTERVAL`).
const LAPTOP_POLL_PAGES: u64 = 16;

/// Positions as in the [diagram](super), and state for the other methods.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadAheadState {
    pub(super) la_index: Page,
    pub(super) ra_index: Page,
    pub(super) lookahead_index: Page,
    pub(super) readahead_index: Page,
    /// The ageing clock when the chunk was submitted.
    pub(super) age: u64,
    /// Why the chunk was submitted.
    pub(super) class: Cause,
    /// Faults without sequential advice: misses and hits.
    pub(super) fault_misses: u64,
    pub(super) fault_hits: u64,
    pub(super) last_fault: Page,
}

impl Default for ReadAheadState {
    fn default() -> Self {
        ReadAheadState {
            la_index: 0,
            ra_index: 0,
            lookahead_index: 0,
            readahead_index: 0,
            age: 0,
            class: Cause::Random,
            fault_misses: 0,
            fault_hits: 0,
            last_fault: 0,
        }
    }
}

impl ReadAheadState {
    /// Pages of the chunk.
    pub(super) fn ra_size(&self) -> u64 {
        self.readahead_index - self.ra_index
    }

    /// Pages that the reader used between the last decision and this one.
    pub(super) fn interval(&self) -> u64 {
        self.lookahead_index.saturating_sub(self.la_index)
    }

    /// Whether a page is part of the chunks.
    pub(super) fn covers(&self, page: Page) -> bool {
        (self.la_index..self.readahead_index).contains(&page)
    }

    /// Makes `[start, start + size.ra)` the new chunk. Its reader is at `reader`.
    pub(super) fn set_chunk(&mut self, class: Cause, reader: Page, start: Page, size: Size) {
        self.class = class;
        self.la_index = reader;
        self.ra_index = start;
        self.readahead_index = start.saturating_add(size.ra);
        self.lookahead_index = self.readahead_index.saturating_sub(size.la);
    }

    /// Submits the chunk. Extends it to the end of the file if only a tiny rest would remain.
    pub(super) fn submit(&mut self, context: &AccessContext, plan: &mut Plan) {
        let eof = context.access.file_pages;
        if self.ra_index >= eof {
            return;
        }
        let reach = MIN_PAGES + self.ra_size() / 4;
        if self.readahead_index.saturating_add(reach) > eof {
            self.readahead_index = eof;
            self.lookahead_index = self.lookahead_index.min(eof);
        }
        if context.parameters.loop_device {
            self.lookahead_index = self.readahead_index;
        }
        self.age = context.ageing.scanned_pages;
        let chunk = Chunk {
            start: self.ra_index,
            pages: self.ra_size(),
            look_ahead: self.readahead_index - self.lookahead_index,
        };
        chunk.submit(context.access, context.cache, self.class, plan);
    }

    /// Moves the mark further within the chunk instead of reading. Returns false if it is at the
    /// end.
    pub(super) fn defer_mark(&mut self, context: &AccessContext, plan: &mut Plan) -> bool {
        let Some(next) = context.offset.checked_add(LAPTOP_POLL_PAGES) else {
            return false;
        };
        let within = self.covers(context.offset) && self.covers(next);
        if !within || next >= context.access.file_pages || !context.cache.is_cached(next) {
            return false;
        }
        self.lookahead_index = next;
        plan.mark(next);
        true
    }
}

/// Keeps `pages` from `context`'s page on from being reclaimed before use.
pub(super) fn rescue(context: &AccessContext, pages: u64, plan: &mut Plan) {
    let left = context.access.file_pages.saturating_sub(context.offset);
    let pages = pages.min(left);
    if pages > 0 {
        plan.rescue(context.offset, pages);
    }
}
