//! The policy that does the most harm: it requests pages that will not be read, and makes pages that will be read the
//! first to be reclaimed.
//!
//! It bounds the harm of any policy on top of a kernel's. It keeps the contract: a plan has a fixed number of reads, it
//! requests no more pages at once than it may and than there is room for, and it stays inside the file. It marks every
//! page, and so gets an event for each.

use readahead::{Access, CacheView, Cause, Nanos, Page, Plan, Policy};

/// Slots of a plan without reads: one for the mark, one to spare.
const OTHERS: usize = 2;

/// The policy.
#[derive(Debug)]
pub struct Worst {
    /// For each file, which pages will be read.
    wanted: Vec<Vec<bool>>,
    /// Where the search for unwanted pages continues.
    cursor: Page,
    /// The most pages of one plan.
    plan_pages: u64,
    /// Which files have had their mark.
    is_marked: Vec<bool>,
}

impl Worst {
    /// A policy that knows which pages of each file will be read. It requests at most `plan_pages` pages at once.
    pub fn new(files: &[Vec<Page>], plan_pages: u64) -> Self {
        let mark = |pages: &Vec<Page>| {
            let mut wanted = vec![false; pages.iter().max().map_or(0, |last| *last as usize + 1)];
            pages.iter().for_each(|page| wanted[*page as usize] = true);
            wanted
        };
        Worst {
            wanted: files.iter().map(mark).collect(),
            cursor: 0,
            plan_pages,
            is_marked: vec![false; files.len()],
        }
    }

    /// Whether the page will be read.
    fn is_wanted(&self, file: usize, page: Page) -> bool {
        let wanted = self.wanted.get(file).and_then(|pages| pages.get(page as usize));
        wanted.copied().unwrap_or(false)
    }
}

impl Policy for Worst {
    fn name(&self) -> &'static str {
        "worst"
    }

    fn on_access(&mut self, access: &Access, cache: &dyn CacheView, plan: &mut Plan) {
        let file = access.file.0 as usize;
        let mut room = self.plan_pages.min(cache.room_pages());
        // Backward, a page at a time, so that nothing can be merged before it is queued.
        for _ in 0..access.file_pages {
            if room == 0 || plan.spare() <= OTHERS {
                break;
            }
            self.cursor = self.cursor.checked_sub(1).unwrap_or(access.file_pages - 1);
            self.cursor = self.cursor.min(access.file_pages - 1);
            if !self.is_wanted(file, self.cursor) && !cache.is_cached(self.cursor) {
                plan.read(self.cursor, 1, Cause::Random);
                room -= 1;
            }
        }
        // The reported access has removed its mark; a miss leaves it.
        let is_marked = self.is_marked.get_mut(file);
        if access.trigger == readahead::Trigger::Mark || is_marked.as_ref().is_some_and(|m| !**m) {
            plan.mark(0, access.file_pages - 1);
        }
        if let Some(is_marked) = is_marked {
            *is_marked = true;
        }
    }

    fn forget_idle(&mut self, _now: Nanos, _idle: Nanos) {}
}
