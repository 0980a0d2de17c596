//! What the kernel's own read-ahead can request beyond what other policies can.

use readahead::{Cause, Page};

/// Pages of the current file, from `start` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// First page.
    pub start: Page,
    /// Number of pages.
    pub pages: u64,
}

/// A read as the policy sized it, before it was cut to the file. Traces print `start+pages=new`, even if nothing is
/// left to read because it is beyond the end or cached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// First page requested.
    pub start: Page,
    /// Pages requested.
    pub pages: u64,
    /// Why.
    pub cause: Cause,
}

impl Asked {
    /// The number of these pages that are within a file of `file_pages`.
    pub fn within(&self, file_pages: u64) -> u64 {
        self.pages.min(file_pages.saturating_sub(self.start))
    }
}

/// The plan of a kernel's policy.
#[derive(Debug)]
pub struct Plan {
    ahead: readahead::Plan,
    asked: Vec<Asked>,
    rescued: Option<Range>,
    demoted: Option<Range>,
    next_call: Option<Page>,
    waits_for: Option<Page>,
    folio_order: u32,
}

impl Plan {
    /// An empty plan. A plan allocates only here.
    pub fn new() -> Self {
        Plan {
            ahead: readahead::Plan::new(),
            asked: Vec::with_capacity(readahead::Plan::CAPACITY),
            rescued: None,
            demoted: None,
            next_call: None,
            waits_for: None,
            folio_order: 0,
        }
    }

    /// Empties the plan.
    pub fn clear(&mut self) {
        self.ahead.clear();
        self.asked.clear();
        self.rescued = None;
        self.demoted = None;
        self.next_call = None;
        self.waits_for = None;
        self.folio_order = 0;
    }

    /// Reads `[start, start + pages)`, cut to a file of `file_pages`. [`asked`](Self::asked) has it uncut.
    pub fn read(&mut self, start: Page, pages: u64, file_pages: u64, cause: Cause) {
        if pages > 0 && self.asked.len() < readahead::Plan::CAPACITY {
            let asked = Asked { start, pages, cause };
            self.asked.push(asked);
            self.ahead.read(start, asked.within(file_pages), cause);
        }
    }

    /// Appends a mark on a page.
    pub fn mark(&mut self, page: Page) {
        self.ahead.mark(page, page);
    }

    /// What to read ahead and which pages to mark. Executed first.
    pub fn ahead(&self) -> &readahead::Plan {
        &self.ahead
    }

    /// The reads of this plan as they were sized, in order.
    pub fn asked(&self) -> &[Asked] {
        &self.asked
    }

    /// Keeps `[start, start + pages)` from being reclaimed for another round.
    pub fn rescue(&mut self, start: Page, pages: u64) {
        self.rescued = Some(Range { start, pages });
    }

    /// The pages to keep for another round.
    pub fn rescued(&self) -> Option<Range> {
        self.rescued
    }

    /// Puts the pages of `[start, start + pages)` that the stream has read first in line for
    /// reclaim, up to an active page, which others use.
    pub fn demote(&mut self, start: Page, pages: u64) {
        self.demoted = Some(Range { start, pages });
    }

    /// The pages to put first in line for reclaim.
    pub fn demoted(&self) -> Option<Range> {
        self.demoted
    }

    /// Requests a call when the current read reaches `page`. Without this, a policy that wants
    /// calls gets one per read.
    pub fn call_again_at(&mut self, page: Page) {
        self.next_call = Some(page);
    }

    /// Where the policy wants to be called within the current read.
    pub fn next_call(&self) -> Option<Page> {
        self.next_call
    }

    /// Makes the reader wait until `page` has been read, as if it had requested it.
    pub fn wait_for(&mut self, page: Page) {
        self.waits_for = Some(page);
    }

    /// The additional page that the reader waits for.
    pub fn waits_for(&self) -> Option<Page> {
        self.waits_for
    }

    /// Reads in folios of at most `2^order` pages.
    pub fn read_in_folios(&mut self, order: u32) {
        self.folio_order = order;
    }

    /// log2 of the pages of the largest folio to read in.
    pub fn folio_order(&self) -> u32 {
        self.folio_order
    }
}

impl Default for Plan {
    fn default() -> Self {
        Self::new()
    }
}
