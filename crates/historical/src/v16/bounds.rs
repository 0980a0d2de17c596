//! Sizes that hold for all methods: bounds from memory, the split of a chunk into what is needed
//! now and what is looked ahead to, and the device's thrash estimate.

use readahead::PAGE_BYTES;

use super::parameters::V16Parameters;
use crate::view::Ageing;

/// Smallest chunk worth a request: 16 KiB (`MIN_RA_PAGES`).
pub(super) const MIN_PAGES: u64 = 4;

/// Largest lower bound: 64 KiB.
const MOST_FEWEST_PAGES: u64 = 16;

/// Largest chunk that the state could hold.
const MOST_PAGES: u64 = 65_535;

/// One page in so many of a chunk is looked ahead to (`LOOKAHEAD_RATIO`).
pub(super) const LOOKAHEAD_RATIO: u64 = 8;

/// A large memory affords larger minimal chunks: one page more for each 64 MiB.
const PAGES_PER_EXTRA_PAGE: u64 = 16_384;

/// Bounds of a chunk, in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    /// Fewest that are worth reading on an uncertain guess.
    pub(super) fewest: u64,
    /// Most that may be read at once.
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

/// A chunk: `ra` pages to read, the last `la` of them look-ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) ra: u64,
    pub(super) la: u64,
}

impl Size {
    /// `ra` pages, an eighth of them look-ahead.
    pub(super) fn with_default_look_ahead(ra: u64) -> Self {
        Size { ra, la: ra / LOOKAHEAD_RATIO }
    }

    /// What is left of `threshold` when `ahead` pages are in memory already; `None` if nothing.
    pub(super) fn beyond(threshold: u64, ahead: u64) -> Option<Self> {
        let ra = threshold.checked_sub(ahead).filter(|ra| *ra > 0)?;
        Some(Self::with_default_look_ahead(ra))
    }

    /// Cuts the chunk to `most` pages, and its look-ahead so that at least a quarter of the chunk
    /// passes before the policy is asked again; `ahead` pages come before the chunk.
    pub(super) fn limit(self, most: u64, ahead: u64) -> Self {
        let ra = self.ra.min(most);
        let la = self.la.min(ra);
        let interval = ahead + ra - la;
        let shortfall = (ra / 4).saturating_sub(interval);
        Size { ra, la: la - shortfall }
    }
}

/// Pages that survive on this device between being read ahead and being used: a running average
/// that rises slowly and falls fast, so that it is nearer to a minimum.
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
