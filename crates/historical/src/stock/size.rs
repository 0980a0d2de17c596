//! Window sizes of the stock read-ahead.

use super::StockRelease;
use crate::kernel;

/// Smallest window after thrashing: 16 KiB (`VM_MIN_READAHEAD`).
const FEWEST_PAGES: u64 = 4;

/// How much a miss within the read-ahead shrinks the window.
const SHRINK_PAGES: u64 = 2;

/// The first window of a sequence. Up to 2.6.16, a tiny request was squared, and a small one became
/// a quarter of the limit. So one page gave one page or, with a small limit, eight.
pub(super) fn initial(release: StockRelease, request: u64, most: u64) -> u64 {
    match release {
        StockRelease::Linux2_6_17 => kernel::initial_size(request, most),
        StockRelease::Linux2_6_13 => {
            let rounded = request.next_power_of_two();
            if rounded <= most / 64 {
                rounded * rounded
            } else if rounded <= most / 4 {
                most / 4
            } else {
                most
            }
        }
    }
}

/// The next size: four times a small window, otherwise twice, at most `most`.
pub(super) fn grown(pages: u64, most: u64) -> u64 {
    let grown = if pages < most / 16 { 4 * pages } else { 2 * pages };
    grown.min(most)
}

/// The window after one whose pages were evicted before use.
pub(super) fn shrunk(pages: u64, most: u64) -> u64 {
    pages.saturating_sub(SHRINK_PAGES).max(FEWEST_PAGES).min(most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use StockRelease::{Linux2_6_13, Linux2_6_17};

    #[test]
    fn the_first_window_depends_on_release_and_limit() {
        let sizes = |release, most| [1, 2, 4, 8, 9, 64, 65].map(|n| initial(release, n, most));
        assert_eq!(sizes(Linux2_6_13, 256), [1, 4, 16, 64, 64, 64, 256]);
        assert_eq!(sizes(Linux2_6_13, 32), [8, 8, 8, 8, 32, 32, 32]);
        assert_eq!(sizes(Linux2_6_17, 256), [4, 8, 16, 32, 32, 128, 256]);
        assert_eq!(sizes(Linux2_6_17, 32), [4, 4, 8, 16, 32, 32, 32]);
    }

    #[test]
    fn thrashing_takes_two_pages_off_a_window_not_half_of_it() {
        assert_eq!([256, 32, 5, 4, 0].map(|n| shrunk(n, 256)), [254, 30, 4, 4, 4]);
        assert_eq!(shrunk(32, 2), 2, "never above the limit");
    }

    #[test]
    fn windows_grow_by_four_then_by_two_up_to_the_limit() {
        assert_eq!([1, 4, 15, 16, 128, 200].map(|n| grown(n, 256)), [4, 16, 60, 32, 256, 256]);
    }
}
