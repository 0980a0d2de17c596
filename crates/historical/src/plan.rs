//! What the kernel's own read-ahead can do, beyond what any policy may ask for.

use readahead::Page;

/// Pages of the file at hand, from `start` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// First page.
    pub start: Page,
    /// How many.
    pub pages: u64,
}

/// A plan of a policy inside the kernel.
#[derive(Debug, Default)]
pub struct Plan {
    /// What to read ahead, and which pages to mark. This is done first.
    pub ahead: readahead::Plan,
    rescued: Option<Range>,
    demoted: Option<Range>,
    next_call: Option<Page>,
    waits_for: Option<Page>,
}

impl Plan {
    /// An empty plan; the only allocations a plan ever makes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Empties the plan.
    pub fn clear(&mut self) {
        self.ahead.clear();
        self.rescued = None;
        self.demoted = None;
        self.next_call = None;
        self.waits_for = None;
    }

    /// Keeps `[start, start + pages)` from being reclaimed for another round.
    pub fn rescue(&mut self, start: Page, pages: u64) {
        self.rescued = Some(Range { start, pages });
    }

    /// The pages to keep for another round.
    pub fn rescued(&self) -> Option<Range> {
        self.rescued
    }

    /// Puts what the stream has read of `[start, start + pages)` first in line for reclaim, up to a
    /// page that others use, too (an active one).
    pub fn demote(&mut self, start: Page, pages: u64) {
        self.demoted = Some(Range { start, pages });
    }

    /// The pages to put first in line for reclaim.
    pub fn demoted(&self) -> Option<Range> {
        self.demoted
    }

    /// Asks to be called when the read under way reaches `page`. Otherwise a policy that wants calls
    /// is called once a read.
    pub fn call_again_at(&mut self, page: Page) {
        self.next_call = Some(page);
    }

    /// Where the policy wants to be called within the read under way.
    pub fn next_call(&self) -> Option<Page> {
        self.next_call
    }

    /// Has the reader wait until `page` has been read, as if it had asked for it.
    pub fn wait_for(&mut self, page: Page) {
        self.waits_for = Some(page);
    }

    /// The page that the reader waits for, beyond what it asked for.
    pub fn waits_for(&self) -> Option<Page> {
        self.waits_for
    }
}
