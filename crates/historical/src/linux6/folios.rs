//! Large folios, as far as they mislead the kernel's search for holes in the page cache.
//!
//! ```text
//!   slot looked at    |  h  |  h  | h+1 | h+2 | ...   h: first page of the folio that holds page p
//!   page counted      |  p  | p+1 | p+2 | p+3 | ...
//! ```
//!
//! A file's pages lie in a tree of nodes with 64 slots. A search that begins inside a large folio begins at the
//! folio's first slot but counts from the page it was asked about. So it looks at slots that lie behind the page it
//! counts, and reports a hole too late by the difference. At the next node both are the same again, and the slots
//! in between are not looked at. Folios of 64 pages and more lie one level higher and do not mislead.

use readahead::Page;

use crate::view::KernelView;

/// Slots of a node of the tree.
const NODE_SLOTS: u64 = 64;

/// Windows of a file that are remembered: two for each of sixteen streams.
const WINDOWS: usize = 32;

/// The folios that were last read for one file.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Folios {
    windows: [Laid; WINDOWS],
    /// Which of them is overwritten next.
    next: usize,
}

/// A window that was read in folios of at most `2^order` pages.
#[derive(Clone, Copy, Debug, Default)]
struct Laid {
    start: Page,
    pages: u64,
    order: u32,
}

/// log2 of the pages of the folio that begins at `index`, in a window up to `end` that is read in folios of at most
/// `2^order` pages: aligned to its size, and none beyond the window.
pub fn folio_order(index: Page, end: Page, order: u32) -> u32 {
    let left = end.saturating_sub(index).max(1);
    order.min(index.trailing_zeros()).min(left.ilog2())
}

impl Laid {
    /// First page and pages of the folio that holds `page`.
    fn folio_of(&self, page: Page) -> Option<(Page, u64)> {
        let mut index = self.start;
        let end = self.start + self.pages;
        while index < end {
            let pages = 1 << folio_order(index, end, self.order);
            if page < index + pages {
                return (page >= index).then_some((index, pages));
            }
            index += pages;
        }
        None
    }
}

impl Folios {
    /// A window was read in folios of at most `2^order` pages; only pages of the file are.
    pub(super) fn note(&mut self, start: Page, pages: u64, order: u32, file_pages: u64) {
        let pages = pages.min(file_pages.saturating_sub(start));
        self.windows[self.next] = Laid { start, pages, order };
        self.next = (self.next + 1) % WINDOWS;
    }

    /// How far behind `page` a search begins that begins there.
    fn lag(&self, page: Page) -> u64 {
        let newest_first = (1..=WINDOWS).map(|age| (self.next + WINDOWS - age) % WINDOWS);
        let folio = newest_first.filter_map(|at| self.windows[at].folio_of(page)).next();
        let (head, pages) = folio.unwrap_or((page, 1));
        if pages < NODE_SLOTS { page - head } else { 0 }
    }

    /// What the kernel takes for the first absent page after `page`, within `most` pages.
    pub(super) fn next_hole(&self, page: Page, most: u64, cache: &dyn KernelView) -> Option<Page> {
        let first = page.checked_add(1)?;
        let hole = first + cache.run_after(first, most);
        let lag = if hole == first { 0 } else { self.lag(first) };
        let node_end = (first / NODE_SLOTS + 1) * NODE_SLOTS;
        let reported = match hole {
            _ if lag == 0 || hole >= node_end + lag => hole,
            _ if hole < node_end => hole + lag,
            _ => node_end + lag + cache.run_after(node_end + lag, most),
        };
        (reported - page <= most).then_some(reported)
    }

    /// What the kernel takes for the length of the cached run before `page`, of at most `most` pages.
    pub(super) fn run_before(&self, page: Page, most: u64, cache: &dyn KernelView) -> u64 {
        let last = page.wrapping_sub(1);
        let lag = if page > 0 && cache.is_cached(last) { self.lag(last) } else { 0 };
        if lag == 0 {
            return cache.run_before(page, most);
        }
        let (mut counted, mut slot) = (last, last - lag);
        for run in 0..most {
            if !cache.is_cached(slot) {
                return run;
            }
            let Some(next) = counted.checked_sub(1) else { return run + 1 };
            let offset = next % NODE_SLOTS;
            if slot % NODE_SLOTS > 0 {
                slot -= 1;
            } else if offset > 0 {
                // The node before, at the place that is counted.
                let Some(node) = (slot / NODE_SLOTS).checked_sub(1) else { return run + 1 };
                slot = node * NODE_SLOTS + offset;
            }
            counted = next;
        }
        most
    }
}

#[cfg(test)]
mod tests {
    use readahead::CacheView;

    use super::*;

    /// Pages from one to another, without the second.
    struct Cached(Page, Page);

    impl CacheView for Cached {
        fn cached_in(&self, start: Page, pages: u64) -> u64 {
            self.1.min(start + pages).saturating_sub(self.0.max(start))
        }
    }

    impl KernelView for Cached {}

    fn folios(start: Page, pages: u64, order: u32) -> Folios {
        let mut folios = Folios::default();
        folios.note(start, pages, order, 1000);
        folios
    }

    /// From the tracepoints of a 6.18 kernel: two streams on one descriptor, windows of 32 pages.
    #[test]
    fn behind_a_large_folio_no_hole_is_found_within_a_whole_window() {
        let cache = Cached(0, 96);
        assert_eq!(folios(64, 32, 0).next_hole(64, 32, &cache), Some(96));
        assert_eq!(folios(64, 32, 4).next_hole(64, 32, &cache), None);
        assert_eq!(folios(64, 32, 4).next_hole(64, 64, &cache), Some(97), "one too late");
    }

    #[test]
    fn the_next_node_sets_it_right() {
        let folios = folios(32, 64, 4);
        assert_eq!(folios.next_hole(32, 100, &Cached(0, 63)), Some(64));
        assert_eq!(folios.next_hole(32, 100, &Cached(0, 64)), Some(65), "not looked at");
        assert_eq!(folios.next_hole(32, 100, &Cached(0, 70)), Some(70));
    }

    #[test]
    fn a_folio_of_a_node_or_more_does_not_mislead() {
        assert_eq!(folios(64, 64, 6).next_hole(64, 100, &Cached(0, 128)), Some(128));
    }

    #[test]
    fn a_window_begins_and_ends_with_folios_that_fit() {
        let laid = Laid { start: 6, pages: 13, order: 3 };
        let heads: Vec<_> = (6..19).filter_map(|page| laid.folio_of(page)).collect();
        assert_eq!(heads[..3], [(6, 2), (6, 2), (8, 8)]);
        assert_eq!(heads[10..], [(16, 2), (16, 2), (18, 1)]);
        assert_eq!((laid.folio_of(5), laid.folio_of(19)), (None, None));
        assert_eq!(folios(990, 32, 2).windows[0].pages, 10, "no folio lies beyond the file");
    }

    #[test]
    fn a_run_before_is_looked_for_in_slots_behind_it() {
        let none = Folios::default();
        let cache = Cached(70, 96);
        assert_eq!(none.run_before(96, 64, &cache), 26);
        // From slot 80 on: 80 to 70, and then the hole.
        assert_eq!(folios(80, 16, 4).run_before(96, 64, &cache), 11);
        assert_eq!(folios(80, 16, 4).run_before(96, 8, &cache), 8);
        assert_eq!(folios(80, 16, 4).run_before(96, 64, &Cached(96, 97)), 0, "nothing is cached");
        assert_eq!(folios(0, 16, 4).run_before(16, 64, &Cached(0, 16)), 1);
    }
}
