//! Operations of policies on runs of cached pages.

use readahead::Page;
use readahead::behind::Span;

use super::{Flags, Frame, FrameId, PageCache};

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

    /// Makes a run of pages the first that reclaim evicts, up to the first page that others use, too.
    pub(crate) fn demote(&mut self, file: u32, start: Page, pages: u64) {
        let (mut page, end) = (start, start.saturating_add(pages));
        while let Some((at, id)) = self.files[file as usize].table.first_frame_in(page..end) {
            page = at + 1;
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

    /// Frees the pages of a span that its process brought in and has used once, if they are clean, unmapped and held by
    /// nobody.
    pub(crate) fn release(
        &mut self,
        file: u32,
        span: Span,
        counted: Span,
        terms: Terms,
    ) -> Released {
        let file_pages = self.files[file as usize].pages();
        let mut released = Released::default();
        for page in span.start..span.end.min(file_pages) {
            let Some(id) = self.lookup(file, page).filter(|id| terms.may_go(&self.frames[*id]))
            else {
                continue;
            };
            if terms.unmaps {
                self.forget_mapping(id);
            }
            let flags = self.frames[id].flags;
            let busy = [Flags::LOCKED, Flags::DIRTY, Flags::MAPPED, Flags::PINNED];
            if busy.into_iter().any(|bit| flags.has(bit)) {
                released.leave(page);
                continue;
            }
            self.remove_from_list(id);
            self.evict(id);
            released.dropped += 1;
        }
        let stays = |page: &Page| {
            let frame = self.lookup(file, *page).map(|id| &self.frames[id]);
            frame.is_some_and(|frame| !terms.may_go(frame) && !terms.is_waiting(frame))
        };
        let end = counted.end.min(file_pages);
        released.kept = (counted.start..end).filter(stays).count() as u64;
        released
    }

    /// Removes a frame from its list.
    pub(super) fn remove_from_list(&mut self, id: FrameId) {
        let is_active = self.frames[id].flags.has(Flags::ACTIVE);
        let (zone, frames) = self.zone_mut(id);
        let list = if is_active { &mut zone.active } else { &mut zone.inactive };
        list.remove(frames, id);
    }
}

/// Which pages to release.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    /// The process that has passed them.
    pub(crate) owner: u32,
    /// Also release pages that were never used.
    pub(crate) drops_unused: bool,
    /// Remove mapped pages from the page tables first.
    pub(crate) unmaps: bool,
}

impl Terms {
    fn may_go(self, frame: &Frame) -> bool {
        frame.owner == self.owner && (self.drops_unused || frame.flags.has(Flags::USED))
    }

    /// Whether it was brought in and not used yet.
    fn is_waiting(self, frame: &Frame) -> bool {
        frame.owner == self.owner && !frame.flags.has(Flags::USED)
    }
}

/// The result of a release.
#[derive(Debug, Default)]
pub(crate) struct Released {
    pub(crate) dropped: u64,
    /// Pages that stay: cached before, used by others, or used again.
    pub(crate) kept: u64,
    /// Spans of pages that cannot be released now, each with the number of cached pages.
    pub(crate) left: Vec<(Span, u64)>,
}

impl Released {
    fn leave(&mut self, page: Page) {
        match self.left.last_mut() {
            Some((span, pages)) if span.end == page => {
                span.end += 1;
                *pages += 1;
            }
            _ => self.left.push((Span { start: page, end: page + 1 }, 1)),
        }
    }
}
