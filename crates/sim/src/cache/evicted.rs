//! Pages that were evicted and are read again.

use readahead::{Cause, Page};

use super::table::Evicted;
use super::{FrameId, PageCache};

impl PageCache {
    /// Whether a page was evicted before anything used it, and has not been read since.
    pub(crate) fn was_evicted_unused(&self, file: u32, page: Page) -> bool {
        matches!(self.evicted(file, page), Some(Evicted::Unused { .. }))
    }

    /// Whether an absent page was evicted, used or not.
    pub(crate) fn was_evicted(&self, file: u32, page: Page) -> bool {
        self.evicted(file, page).is_some()
    }

    /// How an absent page left the cache, if it was cached before.
    fn evicted(&self, file: u32, page: Page) -> Option<Evicted> {
        self.files[file as usize].table.evicted(page)
    }

    /// Takes a frame for an absent page that will be read. Returns how the page left the cache before, if it did, and
    /// counts that. `None` if every frame is locked or dirty.
    pub(crate) fn insert_read(
        &mut self,
        file: u32,
        page: Page,
        cause: Cause,
    ) -> Option<(FrameId, Option<Evicted>)> {
        let evicted = self.evicted(file, page);
        let id = self.insert(file, page, cause)?;
        let evicted_at = &self.files[file as usize].evicted_at;
        if let (Some(_), Some(&at)) = (evicted, evicted_at.get(page as usize)) {
            let number = usize::from(self.frames[id].zone);
            // As in `workingset_refault`: with the active list's room it would not have been evicted.
            if self.age - at <= self.zones[number].active.len() {
                self.age += 1;
                self.has_refaulted = true;
                self.move_to(id, true);
            }
        }
        match evicted {
            Some(Evicted::Unused { .. }) => self.counters.read_again += 1,
            Some(Evicted::Used) => self.counters.refaulted += 1,
            None => {}
        }
        Some((id, evicted))
    }
}
