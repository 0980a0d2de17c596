//! Dense random reading: when to stop renting and buy (ski rental).
//!
//! A file is seen as aligned regions of power-of-two sizes, from 256 KiB up to the plan limit, each
//! counting the unmatched misses that fell into it:
//!
//! ```text
//!   level 2  |                               n = 9                           |
//!   level 1  |             n = 7             |             n = 2             |
//!   level 0  |    n = 6      |    n = 1      |    n = 0      |    n = 2      |
//! ```
//!
//! A region is remembered from the first miss on in a larger one that has others. So a miss that is far from all others
//! costs one look-up, and one entry of the table.
//!
//! `n` misses have cost the reader `n * L`. If reading the whole region costs `C = L + size/B`, the
//! rest is read as soon as `n * L >= (1/ln(N/n) + 4/n) * C`, `N` being the requests that the rest
//! holds: under the scale-free prior (as many reads are still to come as were seen, whatever their
//! number) the misses still to be saved are worth `n * ln(N/n) * L`. The logarithm counts as 1 at
//! least and 4 at most; `4/n` asks more of a count too small to tell a dense region from a chance
//! cluster.
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
    /// Pages of it that the file had at the last miss; the last region of a file is cut.
    size: u64,
    /// Where filling began, in pages from the region's start.
    origin: u64,
    /// Pages that have been asked for: from `origin` to the region's end, then from its start to `origin`.
    filled: u64,
    /// Pages of the last miss's request.
    request: u64,
    /// The page of the first miss, which is the only one at first.
    only: Page,
}

impl Region {
    /// Counts a miss. The file has `size` pages of the region now.
    fn count(&mut self, context: &AccessContext, size: u64) {
        self.misses = self.misses.saturating_add(1);
        self.request = context.end - context.first;
        if self.size != size {
            // The file has grown or shrunk.
            *self = Region { size, origin: 0, filled: 0, ..*self };
        }
        if self.filled >= size {
            // It was read whole and misses again: its pages were evicted. Start judging afresh.
            *self = Region { misses: 1, filled: 0, ..*self };
        }
        if self.misses == 1 {
            self.only = context.first;
        }
    }

    /// Whether a slice of it should be read after this miss.
    fn qualifies(&self, context: &AccessContext) -> bool {
        let left = self.size - self.filled;
        left > 0 && (self.filled > 0 || pays(self.misses, left, context))
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
    pub(super) fn new(files: usize, plan_pages: u64) -> Self {
        Regions {
            table: Table::new(files * 8),
            samples: Samples::new(files * 4),
            largest_log2_pages: plan_pages.ilog2().max(SMALLEST_LOG2_PAGES),
        }
    }

    /// Counts an unmatched miss in every region around it, and reads a slice of the largest that pays.
    pub(super) fn on_unmatched_miss(
        &mut self,
        context: &AccessContext,
        account: &mut Account,
        plan: &mut Plan,
        tally: &mut Tally,
    ) {
        let (group, now) = (context.cache.group(), context.access.now);
        let top = log2_ceil(context.access.file_pages).min(self.largest_log2_pages);
        let mut best = None;
        for log2_pages in (SMALLEST_LOG2_PAGES..=top.max(SMALLEST_LOG2_PAGES)).rev() {
            let key = Key::around(context.first, log2_pages, context);
            let region = self.table.get_or_insert_for(group, key, now, Region::default, drop);
            let before = *region;
            region.count(context, pages_in_file(&key, context.access.file_pages));
            if best.is_none() && region.qualifies(context) {
                best = Some(key);
            }
            if before.misses == 0 {
                break;
            }
            if before.misses == 1 && log2_pages > SMALLEST_LOG2_PAGES {
                let half = Key::around(before.only, log2_pages - 1, context);
                let size = pages_in_file(&half, context.access.file_pages);
                let begun = || Region { size, ..before };
                self.table.get_or_insert_for(group, half, now, begun, drop);
            }
        }
        if let Some(key) = best {
            self.buy_slice(key, context, account, plan, tally);
        }
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
        let requests = if is_of_a_stream { 0.0 } else { used.requests };
        account.use_up(used.pages * cost.page_s(), requests * cost.latency_s);
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
        let wanted = slice_pages(region.misses, size - region.filled, since_s, context);
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
        self.samples.mark(context, from + place, pages, region.request, plan);
    }

    pub(super) fn forget_before(&mut self, moment: Nanos) {
        self.table.forget_before(moment, drop);
        self.samples.forget_before(moment);
    }
}

/// Whether `misses` have cost enough to read the `left` pages of their region.
fn pays(misses: u32, left: u64, context: &AccessContext) -> bool {
    if misses < FEWEST_MISSES {
        return false;
    }
    let is_mapped = context.access.via == Via::Mmap && context.rules.have(Rule::Mapped);
    let share = if is_mapped && overlaps(context) {
        SHARE_OF_MAPPED_HARMLESS
    } else {
        let request = if is_mapped { left } else { (context.end - context.first).max(1) };
        (context.rules.share_to_fill)(misses, left as f64 / request as f64)
    };
    spent_of_rest(misses, left, context) >= share
}

/// The cost of `misses` as a share of the cost of reading the `left` pages.
fn spent_of_rest(misses: u32, left: u64, context: &AccessContext) -> f64 {
    let rest = context.device.cost.latency_s + left as f64 * context.device.cost.page_s();
    f64::from(misses) * context.device.cost.latency_s / rest
}

/// Whether the device can read slices while it serves misses.
fn overlaps(context: &AccessContext) -> bool {
    !context.device.cost.is_serial() && context.rules.have(Rule::Harmless)
}

/// Pages of the next slice. It is the window of a stream whose run is what the device would have read in the time spent
/// on misses (`sqrt(2 r L)`, `r = n L`). An early slice, where accesses overlap, is what delays nobody: what the device
/// reads during one access, or in `since_slice_s` if that is shorter.
fn slice_pages(misses: u32, left: u64, since_slice_s: f64, context: &AccessContext) -> u64 {
    let cost = &context.device.cost;
    let is_early = context.access.via == Via::Mmap || spent_of_rest(misses, left, context) < 1.0;
    let accesses = if overlaps(context) && is_early {
        (since_slice_s / cost.latency_s).min(1.0)
    } else {
        (2.0 * f64::from(misses)).sqrt()
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
    use super::*;
    use crate::access::{Access, Hint, OpenFileId, Trigger, VolumeId};
    use crate::adaptive::allowance::Allowance;
    use crate::adaptive::device::Device;
    use crate::adaptive::rules::Rules;
    use crate::cache::CacheView;
    use crate::cost::DeviceCost;
    use crate::table::SCATTER;

    const FILE: FileId = FileId(1);

    struct NothingCached;

    impl CacheView for NothingCached {
        fn cached_in(&self, _: Page, _: u64) -> u64 {
            0
        }
    }

    /// A miss in a file of 4 GiB, of one page.
    fn miss(regions: &mut Regions, page: Page) {
        let access = Access {
            file: FILE,
            volume: VolumeId(1),
            open_file: OpenFileId(1),
            page,
            request: 1,
            previous: None,
            trigger: Trigger::Absent,
            via: Via::Read,
            hint: Hint::Normal,
            file_pages: 1 << 20,
            kernel_window: 32,
            now: 1,
        };
        let (rules, device) = (Rules::default(), Device::new(DeviceCost::DISK));
        // There is room for nothing, so no slice is read.
        let allowance = Allowance::default();
        let context = AccessContext::new(&access, &NothingCached, &rules, &device, allowance);
        let (mut account, mut plan, mut tally) = Default::default();
        regions.on_unmatched_miss(&context, &mut account, &mut plan, &mut tally);
        assert!(plan.actions().is_empty());
    }

    #[test]
    fn every_region_with_two_misses_has_counted_all_of_its_misses() {
        let mut regions = Regions::new(1024, 1 << 16);
        // Half of them are scattered, and half lie within 4 MiB.
        let pages: Vec<Page> = (1..=200_u64)
            .map(|n| (n.wrapping_mul(SCATTER) >> 20) % if n % 2 == 0 { 1 << 20 } else { 1 << 10 })
            .collect();
        pages.iter().for_each(|page| miss(&mut regions, *page));
        for log2_pages in SMALLEST_LOG2_PAGES..=16 {
            for page in &pages {
                let index = page >> log2_pages;
                let misses = pages.iter().filter(|other| *other >> log2_pages == index).count();
                let counted = regions.table.get(&Key { file: FILE, log2_pages, index });
                let counted = counted.map_or(0, |region| region.misses as usize);
                let is_remembered = misses > 1 || log2_pages == 16;
                assert!(
                    counted == misses || (counted == 0 && !is_remembered),
                    "{counted} of {misses} in region {index} of level {log2_pages}"
                );
            }
        }
    }

    #[test]
    fn a_miss_that_is_far_from_all_others_takes_one_entry() {
        let mut regions = Regions::new(1024, 1 << 16);
        (0..16).for_each(|n| miss(&mut regions, n << 16));
        assert_eq!(regions.table.len(), 16);
        miss(&mut regions, 1 << 15);
        assert_eq!(regions.table.len(), 18, "two halves");
    }
}
