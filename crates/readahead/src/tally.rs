//! What became of the pages read ahead.

/// Totals since the policy was built, as far as the policy can know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Pages asked for on behalf of streams.
    pub asked_pages: u64,
    /// Pages that readers have passed, asked for or not, as far as was heard of them.
    pub passed_pages: u64,
    /// Of the pages asked for, those that the reader has passed.
    pub used_pages: u64,
    /// Of the pages asked for, those of streams that ended before, or that were evicted.
    pub wasted_pages: u64,
    /// Pages read because their region was read densely at random; their use is told by a sample.
    pub dense_pages: u64,
    /// Requests that would have waited for the device, and found their page.
    pub stalls_saved: u64,
}

impl Tally {
    /// Pages asked for, and neither used nor given up yet.
    pub fn ahead_pages(&self) -> u64 {
        self.asked_pages.saturating_sub(self.used_pages).saturating_sub(self.wasted_pages)
    }
}
