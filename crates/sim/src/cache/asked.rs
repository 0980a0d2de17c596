//! What policies have done to runs of cached pages.

use readahead::Page;
use readahead::behind::Span;

use super::{Flags, FrameId, PageCache};

impl PageCache {
    /// Moves a run of pages to the young end of the inactive list, up to the first that is absent.
    pub(crate) fn rescue(&mut self, file: u32, start: Page, pages: u64) {
        for page in start..start.saturating_add(pages) {
            let Some(id) = self.lookup(file, page) else { return };
            let flags = self.frames[id].flags;
            if !flags.has(Flags::ACTIVE) && !flags.has(Flags::LOCKED) {
                self.remove_inactive(id);
                self.add_inactive(id);
            }
        }
    }

    /// Puts a run of pages first in line for reclaim, up to the first that others use, too.
    pub(crate) fn demote(&mut self, file: u32, start: Page, pages: u64) {
        for page in start..start.saturating_add(pages) {
            let Some(id) = self.lookup(file, page) else { continue };
            let flags = &mut self.frames[id].flags;
            if flags.has(Flags::ACTIVE) {
                return;
            }
            if !flags.has(Flags::LOCKED) {
                flags.clear(Flags::REFERENCED);
                self.remove_inactive(id);
                let (zone, frames) = self.zone_mut(id);
                zone.inactive.push_tail(frames, id);
            }
        }
    }

    /// Frees those pages of a run that one open file brought in, that were used no more than once, and
    /// that are unmapped; dirty ones as soon as they are clean.
    pub(crate) fn release(&mut self, file: u32, owner: u32, span: Span) {
        let end = span.end.min(self.files[file as usize].pages());
        for page in span.start..end {
            let Some(id) = self.lookup(file, page) else { continue };
            let frame = &mut self.frames[id];
            if frame.owner == owner && !frame.flags.has(Flags::AHEAD) {
                frame.flags.set(Flags::PASSED);
                self.let_go(id);
            }
        }
    }

    /// Frees a page that was passed, unless it is dirty or others use it.
    pub(super) fn let_go(&mut self, id: FrameId) {
        let flags = self.frames[id].flags;
        let busy = [Flags::ACTIVE, Flags::LOCKED, Flags::DIRTY, Flags::MAPPED, Flags::PINNED];
        if flags.has(Flags::PASSED) && !busy.into_iter().any(|bit| flags.has(bit)) {
            self.remove_inactive(id);
            self.evict(id);
        }
    }
}
