//! What a policy sees of the machine.

use historical::{Ageing, KernelView, PageState};
use readahead::{CacheView, DeviceCost, Page};

use crate::cache::PageCache;

/// The page cache as seen from an access to one file.
pub(crate) struct View<'a> {
    pub(crate) cache: &'a PageCache,
    pub(crate) file: u32,
    pub(crate) cost: DeviceCost,
    pub(crate) is_congested: bool,
}

impl CacheView for View<'_> {
    fn cached_in(&self, start: Page, pages: u64) -> u64 {
        self.cache.cached_in(self.file, start, pages)
    }

    fn cost(&self) -> DeviceCost {
        self.cost
    }

    fn room_pages(&self) -> u64 {
        if self.is_congested { 0 } else { u64::MAX }
    }
}

impl KernelView for View<'_> {
    fn state(&self, page: Page) -> PageState {
        self.cache.state(self.file, page)
    }

    fn ageing(&self) -> Ageing {
        self.cache.ageing()
    }
}
