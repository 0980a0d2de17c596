//! Least and most pages of a chunk, from the memory that reclaim can offer.

use crate::view::Ageing;

const PAGES_PER_MIB: u64 = 256;
const KIB_PER_PAGE: u64 = 4;

/// More memory than this (2 GiB) makes no difference.
const MOST_MEMORY_MIB: u64 = 2048;

/// Bounds of a chunk, in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    /// Pages read at the start of a file, and the least length of a history.
    pub(super) fewest: u64,
    /// Most pages to read at once.
    pub(super) most: u64,
}

impl Bounds {
    /// Most pages: the least of 64 KiB plus 8 KiB per MiB of inactive and free memory, 2 MiB, and
    /// the device's limit. Fewest: 32 KiB plus a quarter of a KiB for each of these MiB, up to 128
    /// KiB.
    pub(super) fn new(kernel_window: u32, ageing: &Ageing) -> Self {
        let memory_mib = (ageing.inactive_and_free_pages / PAGES_PER_MIB).min(MOST_MEMORY_MIB);
        let most_kib = (64 + 8 * memory_mib).min(2048);
        let most = (most_kib / KIB_PER_PAGE).min(u64::from(kernel_window));
        let fewest_kib = (32 + memory_mib / 4).min(128);
        Bounds { fewest: (fewest_kib / KIB_PER_PAGE).min(most), most }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(memory_mib: u64, window: u32) -> Bounds {
        let pages = memory_mib * PAGES_PER_MIB;
        Bounds::new(window, &Ageing { scanned_pages: 0, inactive_and_free_pages: pages })
    }

    #[test]
    fn memory_decides_about_both_bounds() {
        let kib = |mib| {
            let Bounds { fewest, most } = bounds(mib, 100_000);
            (fewest * KIB_PER_PAGE, most * KIB_PER_PAGE)
        };
        assert_eq!(
            [0, 64, 248, 384, 1 << 30].map(kib),
            [(32, 64), (48, 576), (92, 2048), (128, 2048), (128, 2048)]
        );
    }

    #[test]
    fn the_devices_limit_holds_for_both() {
        assert_eq!(bounds(1024, 256), Bounds { fewest: 32, most: 256 });
        assert_eq!(bounds(1024, 8), Bounds { fewest: 8, most: 8 });
    }
}
