//! Dense random reading: when to stop renting and buy (ski rental).
//!
//! A file is seen as aligned regions of power-of-two sizes, from 256 KiB up to [`Limits::region_bytes`](super::Limits), each
//! counting the unmatched misses that fell into it:
//!
//! ```text
//!   level 2  |                               n = 9                           |
//!   level 1  |             n = 7             |             n = 2             |
//!   level 0  |    n = 6      |    n = 1      |    n = 0      |    n = 2      |
//! ```
//!
//! The table holds the largest region from its first miss on, and each smaller one only once the region twice its size
//! has two misses. So a miss that has its largest region to itself takes one entry.
//!
//! A miss costs `L`; on a device that serves one access at a time, the time since these readers' last miss, if that is
//! less: near places of a disk cost less. `n` misses have cost `W`. If reading the whole region costs `C = L + size/B`,
//! the rest is read as soon as `W >= (1/ln(N/n) + 4/n) * C`, `N` being the requests that the rest holds: under the
//! scale-free prior (as many reads are still to come as were seen, whatever their number) the misses still to be saved
//! are worth `ln(N/n) * W`. The logarithm counts as 1 at least and 4 at most; `4/n` asks more of a count too small to
//! tell a dense region from a chance cluster.
//!
//! The largest region that qualifies is read in ascending slices. If these are several, the first begins behind the
//! miss, as many readers go upwards. Each slice is paid for from the reader's [account](crate::Account). Each further
//! miss in the region buys the next slice, and so does each touch of a [mark](super::samples) in what was read. So
//! reading stops when the reader goes away, and when what was read is not used. Where device accesses overlap, the
//! device can read `L B` during a miss and delay nobody. Slices stay within that until the misses have cost as much as
//! the rest. They also stay within what the device can have read since the account's last slice: readers that miss at
//! the same time share one slice.
//!
//! A miss of a mapping has brought the kernel's read-around already, and index lookups are mostly sparse: there no more
//! misses are expected than were seen, so the logarithm counts as 1. Where accesses overlap, a quarter of the rest is
//! enough, as slices of a mapping do not delay a lone reader there.

use super::access_context::AccessContext;
use super::allowance::MIN_READ_AHEAD_PAGES;
use super::rules::Rule;
use super::samples::{Samples, Used};
use crate::Account;
use crate::access::{FileId, Nanos, Page, Via};
use crate::cache::Past;
use crate::plan::{Cause, Plan};
use crate::table::Table;
use crate::tally::Tally;

/// Smallest region: 256 KiB, below which the kernel's own read-around is as good.
const SMALLEST_LOG2_PAGES: u32 = 6;

/// The share of the cost of reading the rest that misses of a mapping must have cost where accesses overlap.
const SHARE_OF_MAPPED_HARMLESS: f64 = 0.25;

/// Misses before a region is judged at all: fewer are likely to be a chance cluster.
const FEWEST_MISSES: u32 = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    file: FileId,
    log2_pages: u32,
    index: u64,
}

impl Key {
    /// The region of that size around a page of the file that is read.
    fn around(page: Page, log2_pages: u32, context: &AccessContext) -> Self {
        Key { file: context.access.file, log2_pages, index: page >> log2_pages }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Region {
    misses: u32,
    /// What they have cost, in seconds.
    waited_s: f32,
    /// Pages of it that the file had at the last miss; the last region of a file is cut.
    size: u64,
    /// Where filling began, in pages from the region's start.
    origin: u64,
    /// Pages that have been asked for: from `origin` to the region's end, then from its start to `origin`.
    filled: u64,
    /// Pages of the last miss's request.
    request: u64,
    /// The page of the first miss.
    first_miss: Page,
}

impl Region {
    /// Counts a miss that costs its reader `wait_s` seconds. The file has `size` pages of the region now.
    fn count(&mut self, context: &AccessContext, size: u64, wait_s: f32) {
        self.misses = self.misses.saturating_add(1);
        self.waited_s += wait_s;
        self.request = context.end - context.first;
        if self.size != size {
            // The file has grown or shrunk.
            *self = Region { size, origin: 0, filled: 0, ..*self };
        }
        if self.filled >= size {
            // It was read whole and misses again: its pages were evicted. Start judging afresh.
            *self = Region { misses: 1, waited_s: wait_s, origin: 0, filled: 0, ..*self };
        }
        if self.misses == 1 {
            self.first_miss = context.first;
        }
    }

    /// Whether a slice of it should be read after this miss.
    fn qualifies(&self, context: &AccessContext) -> bool {
        let left = self.size - self.filled;
        left > 0 && (self.filled > 0 || self.pays(left, context))
    }

    /// Whether its misses have cost enough to read the `left` pages of it.
    fn pays(&self, left: u64, context: &AccessContext) -> bool {
        if self.misses < FEWEST_MISSES {
            return false;
        }
        let is_mapped = context.access.via == Via::Mmap && context.rules.have(Rule::Mapped);
        let share = if is_mapped && overlaps(context) {
            SHARE_OF_MAPPED_HARMLESS
        } else {
            let request = if is_mapped { left } else { (context.end - context.first).max(1) };
            (context.rules.share_to_fill)(self.misses, left as f64 / request as f64)
        };
        self.spent_of_rest(left, context) >= share
    }

    /// The cost of its misses as a share of the cost of reading the `left` pages.
    fn spent_of_rest(&self, left: u64, context: &AccessContext) -> f64 {
        let cost = &context.device.cost;
        f64::from(self.waited_s) / (cost.latency_s + left as f64 * cost.page_s())
    }

    /// What a miss has cost on average, in seconds.
    fn wait_s(&self) -> f64 {
        f64::from(self.waited_s) / f64::from(self.misses.max(1))
    }

    /// Whether the page that is `place` pages from the region's start was asked for.
    fn has_read(&self, place: u64) -> bool {
        let behind = place + if place < self.origin { self.size } else { 0 };
        place < self.size && behind - self.origin < self.filled
    }

    /// Whether some of it was asked for, and some not. False if the file has changed its size since.
    fn is_begun(&self, size: u64) -> bool {
        self.size == size && (1..size).contains(&self.filled)
    }
}

#[derive(Debug)]
pub(super) struct Regions {
    table: Table<Key, Region>,
    samples: Samples,
    largest_log2_pages: u32,
}

impl Regions {
    pub(super) fn new(files: usize, region_pages: u64) -> Self {
        Regions {
            table: Table::new(files * 8),
            samples: Samples::new(files * 4),
            largest_log2_pages: region_pages.ilog2().max(SMALLEST_LOG2_PAGES),
        }
    }

    /// Counts an unmatched miss, and reads a slice of the largest region around it that pays.
    pub(super) fn on_unmatched_miss(
        &mut self,
        context: &AccessContext,
        account: &mut Account,
        plan: &mut Plan,
        tally: &mut Tally,
    ) {
        let latency_s = context.device.cost.latency_s;
        let waited_s = account.miss(context.access.now, latency_s);
        let wait_s = if context.has_near_places() { waited_s } else { latency_s };
        if let Some(key) = self.count(context, wait_s as f32) {
            self.buy_slice(key, context, account, plan, tally);
        }
    }

    /// Counts a miss that costs its reader `wait_s` seconds in the regions around it, from the largest on. Returns the
    /// largest that pays.
    fn count(&mut self, context: &AccessContext, wait_s: f32) -> Option<Key> {
        let (group, now) = (context.cache.group(), context.access.now);
        let file_pages = context.access.file_pages;
        let top = log2_ceil(file_pages).min(self.largest_log2_pages);
        let mut best = None;
        for log2_pages in (SMALLEST_LOG2_PAGES..=top.max(SMALLEST_LOG2_PAGES)).rev() {
            let key = Key::around(context.first, log2_pages, context);
            let region = self.table.get_or_insert_for(group, key, now, Region::default, drop);
            let before = *region;
            region.count(context, pages_in_file(&key, file_pages), wait_s);
            if best.is_none() && region.qualifies(context) {
                best = Some(key);
            }
            if log2_pages == SMALLEST_LOG2_PAGES {
                break;
            }
            let half_around = |page| Key::around(page, log2_pages - 1, context);
            match before.misses {
                // The half around the miss is known if the file has grown, or the table had forgotten this region.
                0 if self.table.get(&half_around(context.first)).is_none() => break,
                1 => {
                    let half = half_around(before.first_miss);
                    let size = pages_in_file(&half, file_pages);
                    let with_its_miss = || Region { size, ..before };
                    self.table.get_or_insert_for(group, half, now, with_its_miss, drop);
                }
                _ => {}
            }
        }
        best
    }

    /// The use of a region that the access shows, if it has touched a mark in a slice.
    pub(super) fn used(&mut self, context: &AccessContext) -> Option<Used> {
        self.samples.touch(context)
    }

    /// What is used of a region pays for more of it.
    pub(super) fn on_use(
        &mut self,
        used: &Used,
        context: &AccessContext,
        is_of_a_stream: bool,
        account: &mut Account,
        plan: &mut Plan,
        tally: &mut Tally,
    ) {
        let cost = &context.device.cost;
        // A stream's pages would have been read ahead anyhow: no wait was saved.
        let saved_s = if is_of_a_stream { 0.0 } else { used.saved_s };
        account.use_up(used.pages * cost.page_s(), saved_s);
        let key = |log2_pages| Key::around(context.first, log2_pages, context);
        let levels = (SMALLEST_LOG2_PAGES..=self.largest_log2_pages).rev().map(key);
        let is_begun = |key: &Key| {
            let region = self.table.get(key);
            region.is_some_and(|it| it.is_begun(pages_in_file(key, context.access.file_pages)))
        };
        if let Some(key) = levels.into_iter().find(is_begun) {
            self.buy_slice(key, context, account, plan, tally);
        }
    }

    /// Whether the access finds a page gone that was read with its region.
    pub(super) fn have_lost(&mut self, context: &AccessContext) -> bool {
        context.cache.past() != Past::Unknown
            && (SMALLEST_LOG2_PAGES..=self.largest_log2_pages).any(|log2_pages| {
                let key = Key::around(context.first, log2_pages, context);
                let region = self.table.get(&key);
                region.is_some_and(|it| it.has_read(context.first - (key.index << log2_pages)))
            })
    }

    /// Reads the next slice of a region, if there is room and credit for it.
    fn buy_slice(
        &mut self,
        key: Key,
        context: &AccessContext,
        account: &mut Account,
        plan: &mut Plan,
        tally: &mut Tally,
    ) {
        let Some(region) = self.table.get_mut(&key, context.access.now) else { return };
        let (from, size) =
            (key.index << key.log2_pages, pages_in_file(&key, context.access.file_pages));
        let since_s = account.since_slice_s();
        let wanted = slice_pages(region, size - region.filled, since_s, context);
        if region.filled == 0 {
            let behind = (context.end - from).min(size - 1);
            region.origin = if wanted < size { behind } else { 0 };
        }
        let place = (region.origin + region.filled) % size;
        let wanted = wanted.min(size - region.filled).min(size - place);
        let cost = &context.device.cost;
        let (room, credit) = (context.allowance.for_region(tally), account.region_pages(cost));
        let pages = wanted.min(room).min(credit);
        // Even the smallest slice costs a device access, which nothing brings back.
        let least = (cost.latency_pages() as u64).max(MIN_READ_AHEAD_PAGES);
        if room < wanted.min(MIN_READ_AHEAD_PAGES) || credit < wanted.min(least) {
            return;
        }
        account.spend_on_slice(cost.access_s() + pages as f64 * cost.page_s());
        region.filled += pages;
        tally.dense_pages += pages;
        plan.read(from + place, pages, Cause::Dense);
        self.samples.mark(context, from + place, pages, region.request, region.wait_s(), plan);
    }

    pub(super) fn forget_before(&mut self, moment: Nanos) {
        self.table.forget_before(moment, drop);
        self.samples.forget_before(moment);
    }
}

/// Whether the device can read slices while it serves misses.
fn overlaps(context: &AccessContext) -> bool {
    !context.device.cost.is_serial() && context.rules.have(Rule::Harmless)
}

/// Pages of the next slice. It is the window of a stream whose run is what the device would have read in the time spent
/// on misses (`sqrt(2 r L)`, `r` being that time). An early slice, where accesses overlap, is what delays nobody: what
/// the device reads during one access, or in `since_slice_s` if that is shorter.
fn slice_pages(region: &Region, left: u64, since_slice_s: f64, context: &AccessContext) -> u64 {
    let cost = &context.device.cost;
    let is_early = context.access.via == Via::Mmap || region.spent_of_rest(left, context) < 1.0;
    let accesses = if overlaps(context) && is_early {
        (since_slice_s / cost.latency_s).min(1.0)
    } else {
        (2.0 * f64::from(region.waited_s) / cost.latency_s).sqrt()
    };
    (cost.latency_pages() * accesses).ceil().max(1.0) as u64
}

fn pages_in_file(key: &Key, file_pages: Page) -> u64 {
    let start = key.index << key.log2_pages;
    file_pages.saturating_sub(start).min(1 << key.log2_pages)
}

fn log2_ceil(pages: u64) -> u32 {
    pages.max(1).next_power_of_two().ilog2()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::access::{Access, Hint, OpenFileId, Trigger, VolumeId};
    use crate::adaptive::allowance::Allowance;
    use crate::adaptive::device::Device;
    use crate::adaptive::rules::Rules;
    use crate::cache::CacheView;
    use crate::cost::DeviceCost;

    /// Log2 of the pages of the largest region.
    const LARGEST: u32 = 16;

    struct NothingCached;

    impl CacheView for NothingCached {
        fn cached_in(&self, _: Page, _: u64) -> u64 {
            0
        }
    }

    /// Passes a miss of one page to `judge`.
    fn with_miss<T>(page: Page, file_pages: u64, judge: impl FnOnce(&AccessContext) -> T) -> T {
        let access = Access {
            file: FileId(1),
            volume: VolumeId(1),
            open_file: OpenFileId(1),
            page,
            request: 1,
            previous: None,
            trigger: Trigger::Absent,
            via: Via::Read,
            hint: Hint::Normal,
            file_pages,
            kernel_window: 32,
            now: 1,
        };
        let (rules, device) = (Rules::default(), Device::new(DeviceCost::DISK));
        let allowance = Allowance::default();
        judge(&AccessContext::new(&access, &NothingCached, &rules, &device, allowance))
    }

    /// What [`Regions::count`] returns if each region is counted from its first miss on.
    fn count_in_all(
        regions: &mut BTreeMap<(u32, u64), Region>,
        context: &AccessContext,
        wait_s: f32,
    ) -> Option<Key> {
        let top = log2_ceil(context.access.file_pages).clamp(SMALLEST_LOG2_PAGES, LARGEST);
        let mut best = None;
        for log2_pages in SMALLEST_LOG2_PAGES..=top {
            let key = Key::around(context.first, log2_pages, context);
            let region = regions.entry((log2_pages, key.index)).or_default();
            region.count(context, pages_in_file(&key, context.access.file_pages), wait_s);
            if region.qualifies(context) {
                best = Some(key);
            }
        }
        best
    }

    proptest! {
        #[test]
        fn the_region_that_pays_is_the_same_as_if_all_were_counted(
            mut file_pages in 100..100_000u64,
            misses in prop::collection::vec((0..1u64 << 20, 0..4u32, 0..300u64, 0..20u32, 0.0..0.007f32), 1..200),
        ) {
            let (mut regions, mut all) = (Regions::new(8192, 1 << LARGEST), BTreeMap::new());
            for (place, narrower, slice, grows, wait_s) in misses {
                // The file doubles now and then, and most misses lie in clusters.
                file_pages *= if grows == 0 && file_pages < 1 << 20 { 2 } else { 1 };
                let page = (place >> (4 * narrower)) % file_pages;
                let (paying, expected) = with_miss(page, file_pages, |context| {
                    (regions.count(context, wait_s), count_in_all(&mut all, context, wait_s))
                });
                prop_assert_eq!(paying, expected);
                if let Some(key) = paying {
                    let region = regions.table.get_mut(&key, 1).expect("it was counted");
                    region.filled = (region.filled + slice).min(region.size);
                    all.insert((key.log2_pages, key.index), *region);
                }
            }
        }
    }

    #[test]
    fn a_miss_that_has_its_largest_region_to_itself_takes_one_entry() {
        let mut regions = Regions::new(1024, 1 << LARGEST);
        let mut miss = |page: Page| {
            with_miss(page, 1 << 20, |context| regions.count(context, 0.007));
            regions.table.len()
        };
        let entries: Vec<usize> = (0..16).map(|n| miss(n << LARGEST)).collect();
        assert_eq!(entries, (1..=16).collect::<Vec<_>>());
        assert_eq!(miss(1 << (LARGEST - 1)), 18, "and two halves");
    }

    #[test]
    fn a_region_that_begins_anew_tells_its_half_nothing_of_what_was_read() {
        let mut regions = Regions::new(1024, 1 << LARGEST);
        let miss = |regions: &mut Regions| {
            with_miss(0, 1 << LARGEST, |context| {
                regions.count(context, 0.007);
                Key::around(0, LARGEST, context)
            })
        };
        let key = miss(&mut regions);
        // It was read whole, from near its end on. Then its pages were evicted, and the table has forgotten its halves.
        let region = regions.table.get_mut(&key, 1).expect("it was counted");
        *region = Region { misses: 9, origin: 60_000, filled: region.size, ..*region };
        miss(&mut regions);
        regions.table.get_mut(&key, 9);
        regions.table.forget_before(5, drop);
        miss(&mut regions);
        let half = Key { log2_pages: LARGEST - 1, ..key };
        let half = regions.table.get(&half).expect("the region has two misses");
        assert_eq!((half.misses, half.origin, half.filled), (2, 0, 0));
        assert!(!half.has_read(0));
    }
}
