//! Folios: pages of a file that are marked, moved and freed as one.
//!
//! They are aligned to their size, so a page's folio follows from the page and the folio's order.

use std::ops::Range;

use readahead::Page;

use super::{Flags, FrameId, PageCache, Reclaim};

impl PageCache {
    /// Makes folios of at most `2^order` pages from the inserted `run` of a window, if this kernel has folios. Pages
    /// around previously cached ones stay single. Returns the number of folios of the run.
    pub(crate) fn lay_folios(
        &mut self,
        file: u32,
        window: Range<Page>,
        run: Range<Page>,
        order: u32,
    ) -> u64 {
        let mut folios = run.end - run.start;
        if self.rules != Reclaim::WholeFolios || order == 0 {
            return folios;
        }
        let mut index = window.start;
        while index < run.end {
            let order = historical::folio_order(index, window.end, order);
            let pages = index..index + (1 << order);
            index = pages.end;
            if pages.start < run.start || run.end < pages.end {
                continue;
            }
            folios -= (1 << order) - 1;
            let last = self.lookup(file, pages.end - 1);
            let is_active = last.is_some_and(|id| self.frames[id].flags.has(Flags::ACTIVE));
            for page in pages {
                if let Some(id) = self.lookup(file, page) {
                    self.frames[id].order = order as u8;
                    self.move_to(id, is_active);
                }
            }
        }
        folios
    }

    /// A page of a folio that has not arrived yet. Until then, none of its pages can be used.
    #[inline]
    pub(crate) fn on_its_way(&self, id: FrameId) -> Option<FrameId> {
        let frame = &self.frames[id];
        let is_locked = |id: &FrameId| self.frames[*id].flags.has(Flags::LOCKED);
        if frame.order == 0 {
            return Some(id).filter(is_locked);
        }
        let mut ids = frame.folio().rev().filter_map(|page| self.lookup(frame.file, page));
        ids.find(is_locked)
    }

    /// Calls a function for every page of a folio.
    pub(super) fn each_of_folio(
        &mut self,
        id: FrameId,
        mut action: impl FnMut(&mut Self, FrameId),
    ) {
        let (file, pages) = (self.frames[id].file, self.frames[id].folio());
        for page in pages {
            if let Some(id) = self.lookup(file, page) {
                action(self, id);
            }
        }
    }

    /// Whether any page of a folio has one of these flags.
    pub(super) fn folio_has(&self, id: FrameId, flags: &[Flags]) -> bool {
        let frame = &self.frames[id];
        let mut ids = frame.folio().filter_map(|page| self.lookup(frame.file, page));
        ids.any(|id| flags.iter().any(|flag| self.frames[id].flags.has(*flag)))
    }
}
