//! What the kernel's own read-ahead sees of the page cache beyond what other policies see.

use readahead::{CacheView, Page};

/// State of one page of the current file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageState {
    /// Not in the page cache.
    Absent,
    /// Cached and not used since it was read.
    Fresh,
    /// Cached and used once.
    Referenced,
    /// Cached and used repeatedly (on the active list).
    Active,
    /// On the active list and used once more since.
    ActiveReferenced,
}

/// The page cache's ageing clock, which tells how long pages survive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ageing {
    /// Pages examined by reclaim so far. Never decreases.
    pub scanned_pages: u64,
    /// Inactive and free pages: the length of the list that a new page passes through.
    pub inactive_and_free_pages: u64,
}

/// The page cache and the device as seen from within the kernel.
///
/// The defaults are what a policy in user space sees.
pub trait KernelView: CacheView {
    /// State of one page. By default, a cached page has been used once.
    fn state(&self, page: Page) -> PageState {
        if self.is_cached(page) { PageState::Referenced } else { PageState::Absent }
    }

    /// The ageing clock. By default it stands still.
    fn ageing(&self) -> Ageing {
        Ageing { scanned_pages: 0, inactive_and_free_pages: u64::MAX >> 20 }
    }
}
