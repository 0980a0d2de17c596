//! Which windows of the kernel's to try, and which one to consider.

use readahead::STOCK_WINDOW_KB;

/// Windows below 16 KiB, the kernel's first request for a small read, are hardly different.
const LEAST_KB: u64 = 16;

/// A window loses nothing if it costs at most this share of today's waiting processes' time. `bowwave tune` uses the
/// same share (docs/tune.md).
const LOSES_NOTHING: f64 = 0.015;

/// Today's window, and powers of two up to `most_kb`; the stock one in any case.
pub(crate) fn candidates(today_kb: u64, most_kb: u64) -> Vec<u64> {
    let powers = (LEAST_KB.ilog2()..u64::BITS).map(|log| 1 << log);
    let mut sizes: Vec<u64> = powers.take_while(|kb| *kb <= most_kb.max(STOCK_WINDOW_KB)).collect();
    sizes.push(today_kb);
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// The window (KiB) that loses nothing against the best and is nearest to the stock window, which programs outside
/// the trace are used to. `tried` has a window and its seconds in each place.
pub(crate) fn best(tried: &[(u64, f64)], busy_s: f64) -> Option<u64> {
    let least = tried.iter().map(|(_, seconds)| *seconds).fold(f64::INFINITY, f64::min);
    let good = tried.iter().filter(|(_, seconds)| *seconds <= least + LOSES_NOTHING * busy_s);
    let distance = |kib: u64| (kib.max(1) as f64 / STOCK_WINDOW_KB as f64).log2().abs();
    good.map(|(kib, _)| *kib).min_by(|a, b| distance(*a).total_cmp(&distance(*b)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn todays_window_and_powers_of_two_are_tried() {
        assert_eq!(candidates(128, 256), [16, 32, 64, 128, 256]);
        assert_eq!(candidates(300, 512), [16, 32, 64, 128, 256, 300, 512]);
        assert_eq!(candidates(4096, 64), [16, 32, 64, 128, 4096]);
    }

    #[test]
    fn the_window_nearest_to_the_stock_one_is_taken_among_the_good_ones() {
        let larger = [(64, 9.0), (128, 9.0), (512, 1.1), (1024, 1.0), (2048, 1.0)];
        assert_eq!(best(&larger, 9.0), Some(512));
        assert_eq!(best(&larger, 1.0), Some(1024), "a tenth matters if it is a tenth of today");
        let smaller = [(16, 1.0), (32, 1.0), (64, 1.1), (128, 1.2), (4096, 9.0)];
        assert_eq!(best(&smaller, 9.0), Some(64));
        assert_eq!(best(&[(0, 3.0), (64, 3.0), (128, 3.0), (256, 3.0)], 3.0), Some(128));
    }
}
