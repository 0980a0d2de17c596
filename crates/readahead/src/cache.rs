//! What a policy may ask about the page cache and the device.

use serde::{Deserialize, Serialize};

use crate::access::{GroupId, Page};
use crate::cost::DeviceCost;

/// How an absent page left the page cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Past {
    /// It was never there, was dropped on purpose, or is not known.
    #[default]
    Unknown,
    /// The kernel evicted it, perhaps after it was used.
    Evicted,
    /// The kernel evicted it. Its reader came from the page before it, which was read ahead for that reader.
    EvictedNext,
    /// The kernel had read it ahead, and evicted it before its reader came: thrashing.
    EvictedUnused,
}

/// A read-only view of the page cache and the device, for the file of the current access.
pub trait CacheView {
    /// How many pages of `[start, start + pages)` are cached or being read.
    fn cached_in(&self, start: Page, pages: u64) -> u64;

    /// Whether one page is cached or being read.
    fn is_cached(&self, page: Page) -> bool {
        self.cached_in(page, 1) == 1
    }

    /// Length of the cached run that ends just before `page`, looking back at most `limit` pages.
    fn run_before(&self, page: Page, limit: u64) -> u64 {
        let limit = limit.min(page);
        longest_cached(limit, |n| self.cached_in(page - n, n) == n)
    }

    /// Length of the cached run that starts at `page`, looking at most `limit` pages ahead.
    fn run_after(&self, page: Page, limit: u64) -> u64 {
        longest_cached(limit, |n| self.cached_in(page, n) == n)
    }

    /// How the absent page of this access left the page cache. A body that cannot tell says that it was never there.
    fn past(&self) -> Past {
        Past::Unknown
    }

    /// The group of readers whose memory the pages of this access take. Thrashing in one group does not affect another.
    /// A body that cannot tell has only one group.
    fn group(&self) -> GroupId {
        GroupId::default()
    }

    /// The cost of the file's device.
    fn cost(&self) -> DeviceCost {
        DeviceCost::FLASH
    }

    /// Pages that may be requested now: the device takes them without delaying others, and the memory budget allows
    /// them.
    fn room_pages(&self) -> u64 {
        u64::MAX
    }

    /// Pages that memory allows now for everything that is read ahead and not used yet.
    fn ahead_pages(&self) -> u64 {
        u64::MAX
    }
}

/// Largest `n <= limit` for which `all_cached(n)` holds, given that it is monotone. Probes doubling lengths first,
/// since runs are usually short or as long as the limit.
fn longest_cached(limit: u64, all_cached: impl Fn(u64) -> bool) -> u64 {
    let (mut good, mut step) = (0, 1);
    while good < limit {
        let probe = (good + step).min(limit);
        if !all_cached(probe) {
            break;
        }
        good = probe;
        step *= 2;
    }
    let mut bad = (good + step).min(limit + 1);
    while bad - good > 1 {
        let probe = good + (bad - good) / 2;
        if all_cached(probe) {
            good = probe;
        } else {
            bad = probe;
        }
    }
    good
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_cached_run_is_found_exactly() {
        for limit in 0..70 {
            for run in 0..=limit {
                assert_eq!(longest_cached(limit, |n| n <= run), run, "limit {limit}");
            }
        }
    }
}
