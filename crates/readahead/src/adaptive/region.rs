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
//! `n` misses have cost the reader `n * L`. If reading the whole region costs `C = L + size/B`, the
//! rest is read as soon as `n * L >= (1/ln(N/n) + 4/n) * C`, `N` being the requests that the rest
//! holds: under the scale-free prior (as many reads are still to come as were seen, whatever their
//! number) the misses still to be saved are worth `n * ln(N/n) * L`. The logarithm counts as 1 at
//! least and 4 at most; `4/n` asks more of a count too small to tell a dense region from a chance
//! cluster.
//!
//! The largest region that qualifies is read in ascending slices. Each further miss in it buys the
//! next slice, so that filling stops by itself when the reader goes away. Where device accesses overlap,
//! what
//! the device can read during one miss delays nobody, and slices stay within it until the misses
//! have cost as much as the rest.
//!
//! A miss of a mapping has brought the kernel's read-around already, and index lookups are mostly
//! sparse: there the misses must have cost twice the rest.

use super::access_context::AccessContext;
use super::allowance::MIN_READ_AHEAD_PAGES;
use crate::access::{FileId, Nanos, Page, Via};
use crate::cache::Past;
use crate::plan::{Cause, Plan};
use crate::table::Table;
use crate::tally::Tally;

/// Smallest region: 256 KiB, below which the kernel's own read-around is as good.
const SMALLEST_LOG2_PAGES: u32 = 6;

/// Misses before a region is judged at all.
const FEWEST_MISSES: u32 = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    file: FileId,
    log2_pages: u32,
    index: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Region {
    misses: u32,
    /// Pages from the region's start that have been asked for.
    filled: u64,
}

#[derive(Debug)]
pub(super) struct Regions {
    table: Table<Key, Region>,
    largest_log2_pages: u32,
}

impl Regions {
    pub(super) fn new(files: usize, plan_pages: u64) -> Self {
        Regions { table: Table::new(files * 8), largest_log2_pages: plan_pages.ilog2() }
    }

    /// Counts an unmatched miss in every region around it, and reads a slice of the largest that pays.
    pub(super) fn on_unmatched_miss(
        &mut self,
        context: &AccessContext,
        plan: &mut Plan,
        tally: &mut Tally,
    ) {
        let top = log2_ceil(context.access.file_pages).min(self.largest_log2_pages);
        let mut best = None;
        for log2_pages in SMALLEST_LOG2_PAGES..=top.max(SMALLEST_LOG2_PAGES) {
            let key =
                Key { file: context.access.file, log2_pages, index: context.first >> log2_pages };
            let region =
                self.table.get_or_insert_with(key, context.access.now, Region::default, drop);
            region.misses = region.misses.saturating_add(1);
            let size = pages_in_file(&key, context.access.file_pages);
            if region.filled >= size {
                // Filled, and missed again: it did not stay. Start judging afresh.
                *region = Region { misses: 1, filled: 0 };
            }
            let left = size - region.filled;
            if left > 0 && (region.filled > 0 || pays(region.misses, left, context)) {
                best = Some(key);
            }
        }
        if let Some(key) = best {
            tally.dense_pages +=
                self.read_slice(key, context, context.allowance.for_region(tally), plan);
        }
    }

    /// Whether the access finds a page gone that was read with its region.
    pub(super) fn have_lost(&mut self, context: &AccessContext) -> bool {
        context.cache.past() != Past::Unknown
            && (SMALLEST_LOG2_PAGES..=self.largest_log2_pages).any(|log2_pages| {
                let index = context.first >> log2_pages;
                let key = Key { file: context.access.file, log2_pages, index };
                let region = self.table.get(&key);
                region.is_some_and(|region| context.first - (index << log2_pages) < region.filled)
            })
    }

    fn read_slice(&mut self, key: Key, context: &AccessContext, room: u64, plan: &mut Plan) -> u64 {
        let Some(region) = self.table.get_mut(&key, context.access.now) else {
            return 0;
        };
        let start = (key.index << key.log2_pages) + region.filled;
        let end = (key.index << key.log2_pages) + pages_in_file(&key, context.access.file_pages);
        let left = end - start;
        let wanted = slice_pages(region.misses, left, context).min(left);
        if room < wanted.min(MIN_READ_AHEAD_PAGES) {
            // Even the smallest slice costs a device access.
            return 0;
        }
        let pages = wanted.min(room);
        region.filled += pages;
        plan.read(start, pages, Cause::Dense);
        pages
    }

    pub(super) fn forget_before(&mut self, moment: Nanos) {
        self.table.forget_before(moment, drop);
    }
}

/// Whether `misses` have cost enough to read the `left` pages of their region.
fn pays(misses: u32, left: u64, context: &AccessContext) -> bool {
    if misses < FEWEST_MISSES {
        return false;
    }
    let share = match context.access.via {
        Via::Read => {
            let request = (context.end - context.first).max(1);
            (context.rules.share_to_fill)(misses, left as f64 / request as f64)
        }
        Via::Mmap => 2.0,
    };
    spent_of_rest(misses, left, context) >= share
}

/// What `misses` have cost, over what reading the `left` pages costs.
fn spent_of_rest(misses: u32, left: u64, context: &AccessContext) -> f64 {
    let rest = context.device.cost.latency_s + left as f64 * context.device.cost.page_s();
    f64::from(misses) * context.device.cost.latency_s / rest
}

/// A slice is a stream's window whose run is what the time spent on misses would have read; or what
/// delays nobody.
fn slice_pages(misses: u32, left: u64, context: &AccessContext) -> u64 {
    let harmless = !context.device.cost.is_serial() && spent_of_rest(misses, left, context) < 1.0;
    let accesses = if harmless { 1.0 } else { (2.0 * f64::from(misses)).sqrt() };
    (context.device.cost.latency_pages() * accesses).ceil().max(1.0) as u64
}

fn pages_in_file(key: &Key, file_pages: Page) -> u64 {
    let start = key.index << key.log2_pages;
    file_pages.saturating_sub(start).min(1 << key.log2_pages)
}

fn log2_ceil(pages: u64) -> u32 {
    pages.max(1).next_power_of_two().ilog2()
}
