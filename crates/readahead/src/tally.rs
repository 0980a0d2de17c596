//! Totals of the pages read ahead, and of what became of them.

/// Totals since the policy was built, as far as the policy can know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Pages requested for streams.
    pub asked_pages: u64,
    /// Pages that readers have passed, requested or not, as far as is known.
    pub passed_pages: u64,
    /// Of the pages requested, those that the reader has passed.
    pub used_pages: u64,
    /// Of the pages requested, those that were evicted, or whose streams ended first.
    pub wasted_pages: u64,
    /// Pages read because their region is read densely at random. A sample shows how many are used.
    pub dense_pages: u64,
    /// Requests that would have waited for the device, but found their page.
    pub stalls_saved: u64,
}

impl Tally {
    /// Pages requested, and neither used nor given up yet.
    pub fn ahead_pages(&self) -> u64 {
        self.asked_pages.saturating_sub(self.used_pages).saturating_sub(self.wasted_pages)
    }
}
