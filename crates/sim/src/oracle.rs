//! A policy that knows the trace: a bound for other policies.
//!
//! Its assumptions:
//!
//! * It knows each file's page accesses in the order of one reader. It does not know the order of accesses by different
//!   readers. It begins with the first access to a file. It runs in the kernel, so it has no reaction time, and neither
//!   the kernel's window nor a congested queue limits it.
//! * It requests exactly the absent pages that will be read, up to `ahead_pages` ahead of the reader. Half of memory,
//!   shared by the files, is safe: an unused page is then never the oldest.
//! * It takes them from the trace in batches, and requests each batch in ascending order, neighbours in one request.
//!   With `bridges`, it also reads gaps that cost less to read than to skip; these are the only unneeded pages that it
//!   requests.
//! * It does not choose what is evicted. A trace that reads pages again in little memory could be served better.
//!
//! The best batch depends on device and trace: small ones bring the next page soon, large ones save device accesses. So
//! the bound is the least time of several variants ([`variants`]). A kernel could reach it; it does not prove that
//! nothing is faster.

use std::collections::VecDeque;

use historical::{Access, KernelPolicy, KernelView, Plan, Trigger};
use readahead::{Cause, Nanos, Page};

/// Slots of a plan that are kept free for its mark.
const MARKS: usize = 1;

/// Largest batches, as shares of `ahead_pages`.
const BATCHES: [u64; 6] = [512, 64, 16, 4, 2, 1];

/// How far ahead an oracle requests pages, and in which batches.
#[derive(Clone, Copy, Debug)]
pub struct Variant {
    ahead_pages: u64,
    batch_pages: u64,
    bridges: bool,
}

impl Variant {
    /// The oracle that knows these accesses.
    pub fn oracle(self, traces: Vec<Vec<Page>>) -> Oracle {
        Oracle::new(traces, self.ahead_pages, self.batch_pages, self.bridges)
    }
}

/// The oracles whose least time is the bound, for `readers` files in memory of `memory_pages`. Ahead of each reader:
/// three quarters of memory, nine sixteenths or a quarter; or a half, an eighth or a 32nd shared among them. Six sizes
/// of batch; with and without reading gaps.
pub fn variants(readers: u64, memory_pages: u64) -> [Variant; 72] {
    let (pages, shared) = (memory_pages, memory_pages / readers.max(1));
    let ahead = [pages / 4 * 3, pages / 16 * 9, pages / 4, shared / 2, shared / 8, shared / 32];
    std::array::from_fn(|number| {
        let ahead_pages = ahead[number / 12];
        let batch_pages = (ahead_pages / BATCHES[number / 2 % 6]).max(1);
        Variant { ahead_pages, batch_pages, bridges: number % 2 == 1 }
    })
}

/// One file's trace, and how far it is read and requested.
#[derive(Debug, Default)]
struct Trace {
    order: Vec<Page>,
    /// The current access.
    reader: usize,
    /// First access not taken into a batch.
    frontier: usize,
    /// The rest of the batch: runs `(start, pages)`; the last one is requested first.
    batch: Vec<(Page, u64)>,
    /// Batches that are not completely read: the access after each, and its pages.
    ahead: VecDeque<(usize, u64)>,
    /// Pages of these batches.
    pages_ahead: u64,
}

/// The policy. See the [module](self) for what it knows.
#[derive(Debug)]
pub struct Oracle {
    files: Vec<Trace>,
    ahead_pages: u64,
    batch_pages: u64,
    bridges: bool,
}

impl Oracle {
    /// A policy that knows the order in which the pages of each file are read. It requests up to `ahead_pages` ahead in
    /// each file, in batches of `batch_pages`.
    pub fn new(traces: Vec<Vec<Page>>, ahead_pages: u64, batch_pages: u64, bridges: bool) -> Self {
        let files = traces.into_iter().map(|order| Trace { order, ..Trace::default() }).collect();
        let ahead_pages = ahead_pages.max(1);
        Oracle { files, ahead_pages, batch_pages: batch_pages.clamp(1, ahead_pages), bridges }
    }
}

impl KernelPolicy for Oracle {
    fn name(&self) -> &'static str {
        "oracle"
    }

    fn on_access(&mut self, access: &Access, cache: &dyn KernelView, plan: &mut Plan) {
        let Some(trace) = self.files.get_mut(access.file.0 as usize) else { return };
        if !trace.find(access.page) {
            return;
        }
        if access.trigger == Trigger::Absent && !trace.is_in_batch(access.page) {
            // Not requested, or evicted: start again here.
            trace.frontier = trace.reader;
            trace.batch.clear();
            trace.ahead.clear();
            trace.pages_ahead = 0;
        }
        // A gap of so many pages takes less time to read than another device access.
        let gap = if self.bridges { cache.cost().access_pages() } else { 0 };
        while plan.ahead().spare() > MARKS {
            if trace.batch.is_empty() {
                let ahead = trace.pages_ahead;
                let is_due = ahead == 0 || ahead + self.batch_pages <= self.ahead_pages;
                if !is_due || !trace.take_batch(self.batch_pages, gap, cache) {
                    break;
                }
            }
            if let Some((start, pages)) = trace.batch.pop() {
                plan.read(start, pages, access.file_pages, Cause::Sequential);
            }
        }
        trace.mark(plan);
    }

    fn forget_idle(&mut self, _now: Nanos, _idle: Nanos) {}
}

impl Trace {
    /// Moves the reader to the next access to a page. Returns false if the trace has none.
    fn find(&mut self, page: Page) -> bool {
        let Some(steps) = self.order[self.reader..].iter().position(|next| *next == page) else {
            return false;
        };
        self.reader += steps;
        self.frontier = self.frontier.max(self.reader);
        while let Some((_, pages)) = self.ahead.front().filter(|(end, _)| *end <= self.reader) {
            self.pages_ahead -= pages;
            self.ahead.pop_front();
        }
        true
    }

    fn is_in_batch(&self, page: Page) -> bool {
        self.batch.iter().any(|(start, pages)| (*start..*start + *pages).contains(&page))
    }

    /// Makes a batch of the next accesses to absent pages, as many as fit into `pages` with the gaps that are read.
    /// Returns false if the trace has no more.
    fn take_batch(&mut self, pages: u64, gap: u64, cache: &dyn KernelView) -> bool {
        let left = &self.order[self.frontier..];
        let mut accesses = left.len().min(pages as usize);
        if accesses == 0 {
            return false;
        }
        let mut total = fill(&mut self.batch, &left[..accesses], gap, cache);
        while total > pages && accesses > 1 {
            accesses /= 2;
            total = fill(&mut self.batch, &left[..accesses], gap, cache);
        }
        self.frontier += accesses;
        self.ahead.push_back((self.frontier, total));
        self.pages_ahead += total;
        true
    }

    /// Sets a mark: on the first page that it just requested if there is more to request at once, otherwise at the end
    /// of the oldest batch.
    fn mark(&self, plan: &mut Plan) {
        let due = if self.batch.is_empty() {
            self.ahead.front().and_then(|(end, _)| self.order[..self.frontier].get(*end))
        } else {
            let asked = |page: &&Page| {
                plan.asked().iter().any(|run| (run.start..run.start + run.pages).contains(*page))
            };
            self.order[self.reader..self.frontier].iter().find(asked)
        };
        if let Some(page) = due {
            plan.mark(*page);
        }
    }
}

/// Replaces a batch by the absent pages of these accesses, the first last. Returns the number of pages.
fn fill(batch: &mut Vec<(Page, u64)>, accesses: &[Page], gap: u64, cache: &dyn KernelView) -> u64 {
    let absent = accesses.iter().copied().filter(|page| !cache.is_cached(*page));
    let mut absent: Vec<Page> = absent.collect();
    absent.sort_unstable();
    batch.clear();
    for page in absent {
        match batch.last_mut() {
            Some((start, pages)) if page <= *start + *pages + gap => {
                *pages = (page + 1 - *start).max(*pages);
            }
            _ => batch.push((page, 1)),
        }
    }
    batch.reverse();
    batch.iter().map(|(_, pages)| pages).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use readahead::{CacheView, DeviceCost, FileId, Hint, OpenFileId, Via, VolumeId};

    /// A cache with nothing in it.
    struct Empty;

    impl CacheView for Empty {
        fn cached_in(&self, _start: Page, _pages: u64) -> u64 {
            0
        }

        fn cost(&self) -> DeviceCost {
            // Gaps of up to three pages are worth reading.
            DeviceCost { latency_s: 0.001, bandwidth: 4096.0 * 3500.0, concurrency: 1.0 }
        }
    }

    impl KernelView for Empty {}

    fn asked(oracle: &mut Oracle, page: Page) -> (Vec<(Page, u64)>, Option<Page>) {
        let access = Access {
            file: FileId(0),
            volume: VolumeId(0),
            open_file: OpenFileId(0),
            page,
            request: 1,
            previous: None,
            trigger: Trigger::Absent,
            via: Via::Read,
            hint: Hint::Normal,
            file_pages: 100,
            kernel_window: 32,
            now: 0,
        };
        let mut plan = Plan::new();
        oracle.on_access(&access, &Empty, &mut plan);
        let mark = plan.ahead().actions().iter().find_map(|action| match action {
            readahead::Action::Mark(mark) => Some(mark.first),
            _ => None,
        });
        (plan.asked().iter().map(|run| (run.start, run.pages)).collect(), mark)
    }

    #[test]
    fn it_requests_the_pages_that_will_be_read_in_batches_and_within_its_limit() {
        let mut oracle = Oracle::new(vec![vec![9, 8, 20, 7, 50, 51, 60]], 4, 2, false);
        let (runs, mark) = asked(&mut oracle, 9);
        assert_eq!(runs, [(8, 2), (7, 1), (20, 1)]);
        assert_eq!(mark, Some(20), "there the first batch is read");
    }

    #[test]
    fn it_reads_a_gap_that_costs_less_than_a_visit() {
        let mut oracle = Oracle::new(vec![vec![10, 14, 20]], 16, 8, true);
        assert_eq!(asked(&mut oracle, 10).0, [(10, 5), (20, 1)]);
    }

    #[test]
    fn variants_ask_for_parts_of_memory_in_batches_of_all_sizes() {
        let all = variants(2, 1600);
        let ahead = all.map(|variant| variant.ahead_pages);
        let each: Vec<u64> = ahead.iter().step_by(12).copied().collect();
        assert_eq!(each, [1200, 900, 400, 400, 100, 25]);
        let batches: Vec<u64> = all[..12].iter().map(|variant| variant.batch_pages).collect();
        assert_eq!(batches, [2, 2, 18, 18, 75, 75, 300, 300, 600, 600, 1200, 1200]);
        assert_eq!(all.iter().filter(|variant| variant.bridges).count(), 36);
    }

    #[test]
    fn what_was_evicted_is_asked_for_again() {
        let mut oracle = Oracle::new(vec![vec![1, 2, 3]], 8, 8, false);
        assert_eq!(asked(&mut oracle, 1).0, [(1, 3)]);
        assert_eq!(asked(&mut oracle, 2).0, [(2, 2)]);
    }
}
