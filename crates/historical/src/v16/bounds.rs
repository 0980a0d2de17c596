//! Sizes shared by all methods: limits from memory, the division of a chunk into needed pages and
//! look-ahead, and the device's thrash estimate.

use readahead::PAGE_BYTES;

use super::parameters::V16Parameters;
use crate::view::Ageing;

/// Smallest chunk worth a request: 16 KiB (`MIN_RA_PAGES`).
pub(super) const MIN_PAGES: u64 = 4;

/// Upper limit of `fewest`: 64 KiB.
const MOST_FEWEST_PAGES: u64 = 16;

/// Largest chunk that the original's state could hold.
const MOST_PAGES: u64 = 65_535;

/// One part in this many of a chunk is look-ahead (`LOOKAHEAD_RATIO`).
pub(super) const LOOKAHEAD_RATIO: u64 = 8;

/// Much memory allows larger minimal chunks: one more page for each 64 MiB.
const PAGES_PER_EXTRA_PAGE: u64 = 16_384;

/// Limits of a chunk in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    /// Least pages worth reading on an uncertain guess.
    pub(super) fewest: u64,
    /// Most pages to read at once.
    pub(super) most: u64,
}

impl Bounds {
    pub(super) fn new(parameters: &V16Parameters, ageing: &Ageing) -> Self {
        let memory = ageing.inactive_and_free_pages;
        let most = u64::from(parameters.max_pages).min(MOST_PAGES).min(memory / 2);
        let fewest =
            (MIN_PAGES + memory / PAGES_PER_EXTRA_PAGE).min(MOST_FEWEST_PAGES).min(most / 8);
        Bounds { fewest, most }
    }
}

/// Size of a chunk: `ra` pages to read, of which the last `la` are look-ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) ra: u64,
    pub(super) la: u64,
}

impl Size {
    /// `ra` pages, one eighth of them look-ahead.
    pub(super) fn with_default_look_ahead(ra: u64) -> Self {
        Size { ra, la: ra / LOOKAHEAD_RATIO }
    }

    /// The part of `threshold` that remains when `ahead` pages are in memory already; `None` if
    /// nothing remains.
    pub(super) fn beyond(threshold: u64, ahead: u64) -> Option<Self> {
        let ra = threshold.checked_sub(ahead).filter(|ra| *ra > 0)?;
        Some(Self::with_default_look_ahead(ra))
    }

    /// Limits the chunk to `most` pages. Also limits its look-ahead, so that at least a quarter of
    /// the chunk is used before the next call. `ahead` pages precede the chunk.
    pub(super) fn limit(self, most: u64, ahead: u64) -> Self {
        let ra = self.ra.min(most);
        let la = self.la.min(ra);
        let interval = ahead + ra - la;
        let shortfall = (ra / 4).saturating_sub(interval);
        Size { ra, la: la - shortfall }
    }
}

/// How many pages survive on this device between read-ahead and use. The running average rises
/// slowly and falls fast, so it stays close to the minimum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ThrashEstimate {
    bytes: u64,
}

impl ThrashEstimate {
    pub(super) fn new(pages: u32) -> Self {
        ThrashEstimate { bytes: u64::from(pages) * PAGE_BYTES }
    }

    pub(super) fn pages(&self) -> u64 {
        self.bytes / PAGE_BYTES
    }

    /// Learns that `pages` survived.
    pub(super) fn update(&mut self, pages: u64) {
        let seen = pages.saturating_mul(PAGE_BYTES);
        let inertia = if self.bytes < seen { 127 } else { 7 };
        self.bytes = seen.saturating_add(inertia * self.bytes) / (inertia + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(memory_mib: u64) -> Bounds {
        let ageing = Ageing { scanned_pages: 0, inactive_and_free_pages: memory_mib * 256 };
        Bounds::new(&V16Parameters::default(), &ageing)
    }

    #[test]
    fn the_smallest_chunk_grows_with_memory() {
        let fewest = [64, 128, 256, 512, 1024, 65_536].map(|mib| bounds(mib).fewest * 4);
        assert_eq!(fewest, [20, 24, 32, 48, 64, 64], "KiB");
    }

    #[test]
    fn the_largest_chunk_fits_into_half_the_memory() {
        assert_eq!(bounds(1024).most, 256);
        assert_eq!(bounds(1).most, 128);
        assert_eq!(bounds(0), Bounds { fewest: 0, most: 0 });
    }

    #[test]
    fn pages_already_ahead_are_taken_off_a_threshold() {
        assert_eq!(Size::beyond(18, 2), Some(Size { ra: 16, la: 2 }));
        assert_eq!(Size::beyond(2, 2), None);
        assert_eq!(Size::beyond(1, 2), None);
    }

    #[test]
    fn at_least_a_quarter_of_a_chunk_passes_before_the_next_decision() {
        let all = Size { ra: 1000, la: 125 };
        assert_eq!(all.limit(49, 2), Size { ra: 49, la: 39 });
        assert_eq!(
            all.limit(49, 12),
            Size { ra: 49, la: 49 },
            "what was ahead already is interval enough"
        );
    }

    #[test]
    fn the_thrash_estimate_rises_slowly_and_falls_fast() {
        let mut estimate = ThrashEstimate::new(128);
        estimate.update(256);
        assert_eq!(estimate.pages(), 129);
        let mut estimate = ThrashEstimate::new(128);
        estimate.update(0);
        assert_eq!(estimate.pages(), 112);
    }
}
