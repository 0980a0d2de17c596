//! What the kernel's own read-ahead sees of the page cache, beyond what any policy may ask.

use readahead::{CacheView, Page};

/// State of one page of the file at hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageState {
    /// Not in the page cache.
    Absent,
    /// Cached, not used since it was read.
    Fresh,
    /// Cached and used once.
    Referenced,
    /// Cached and used repeatedly (on the active list).
    Active,
    /// On the active list, and used once more since.
    ActiveReferenced,
}

/// The page cache's ageing clock, for policies that estimate how long a page survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ageing {
    /// Pages reclaim has examined so far; ever increasing.
    pub scanned_pages: u64,
    /// Inactive and free pages: the length of the list a new page travels along.
    pub inactive_and_free_pages: u64,
}

/// The page cache and the device, seen from within the kernel.
///
/// The defaults are what a policy sees that runs in user space.
pub trait KernelView: CacheView {
    /// State of one page; by default a cached page was used once.
    fn state(&self, page: Page) -> PageState {
        if self.is_cached(page) { PageState::Referenced } else { PageState::Absent }
    }

    /// The ageing clock; by default one that stands still.
    fn ageing(&self) -> Ageing {
        Ageing { scanned_pages: 0, inactive_and_free_pages: u64::MAX >> 20 }
    }
}
