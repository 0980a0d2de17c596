//! A modelled page cache with one policy, called as the kernel would call it.
//!
//! For each page of a read:
//! 1. A policy that wants calls is called at the first page, and at the page it named.
//! 2. If the page is absent, the policy is called and its plan executed. If it is still absent, the
//!    rest of the request is read; for a policy that wants calls, only this page.
//! 3. If the page carries a mark, the mark is removed and the policy is called about it.
//! 4. The page is used. Its first use makes it referenced, the next one active.

#![allow(dead_code)] // every test binary uses its own part

pub(crate) mod cache;
#[path = "../../../readahead/tests/support/inputs.rs"]
pub(crate) mod inputs;
pub(crate) mod liar;
#[path = "../../../readahead/tests/support/mixture.rs"]
pub(crate) mod mixture;
pub(crate) mod policies;
#[path = "../../../readahead/tests/support/trace.rs"]
mod trace;

use std::collections::HashMap;
use std::ops::Range;

use cache::PageCache;
use historical::{Access, Asked, KernelPolicy, Plan, Range as Pages, Trigger};
use readahead::{CacheView, Cause, FileId, Hint, OpenFileId, Page, Via, VolumeId};

/// The kernel's default window, 128 KiB, in pages.
pub(crate) const KERNEL_WINDOW: u32 = 32;

/// A policy, the page cache of one file, and a log.
pub(crate) struct Machine {
    pub(crate) policy: Box<dyn KernelPolicy>,
    pub(crate) cache: PageCache,
    pub(crate) file_pages: u64,
    pub(crate) kernel_window: u32,
    /// Pages that reclaim examines while a reader uses one.
    pub(crate) scanned_per_page: u64,
    /// The program's advice.
    pub(crate) hint: Hint,
    previous: HashMap<u64, Page>,
    plan: Plan,
    now: u64,
    /// Where the policy wants to be called within the current read.
    next_call: Option<Page>,
    /// The page of each access that led to a plan, and a line of that plan.
    trace: Vec<(Page, String)>,
    /// Its requests in the format of 2005.
    published: Vec<String>,
    /// Pages for which the policy made a reader wait.
    pub(crate) waits: Vec<Page>,
}

impl Machine {
    /// A file of `file_pages` pages, none cached. Its open files have a kernel window of
    /// `kernel_window` pages.
    pub(crate) fn new(
        policy: impl KernelPolicy + 'static,
        file_pages: u64,
        kernel_window: u32,
    ) -> Self {
        Self::boxed(Box::new(policy), file_pages, kernel_window)
    }

    /// The same, for a policy chosen at run time.
    pub(crate) fn boxed(
        policy: Box<dyn KernelPolicy>,
        file_pages: u64,
        kernel_window: u32,
    ) -> Self {
        Machine {
            policy,
            cache: PageCache::new(),
            file_pages,
            kernel_window,
            scanned_per_page: 0,
            hint: Hint::Normal,
            previous: HashMap::new(),
            plan: Plan::new(),
            now: 0,
            next_call: None,
            trace: Vec::new(),
            published: Vec::new(),
            waits: Vec::new(),
        }
    }

    /// One `read(2)` through the open file with this number.
    pub(crate) fn read(&mut self, open_file: u64, start: Page, pages: u64) {
        self.read_in_part(open_file, start, pages, pages);
    }

    /// A request for `pages`, of which only `taken` are used, like `sendfile(2)` to a socket.
    pub(crate) fn read_in_part(&mut self, open_file: u64, start: Page, pages: u64, taken: u64) {
        let end = (start + pages).min(self.file_pages);
        self.next_call = Some(start);
        for page in start..end.min(start + taken) {
            self.use_page(open_file, page, (end - page) as u32, Via::Read, self.hint);
        }
    }

    /// One page fault.
    pub(crate) fn fault(&mut self, open_file: u64, page: Page, hint: Hint) {
        self.next_call = Some(page);
        self.use_page(open_file, page, 1, Via::Mmap, hint);
    }

    /// Reads `[start, end)` in requests of `request` pages.
    pub(crate) fn scan(&mut self, open_file: u64, start: Page, end: Page, request: u64) {
        for first in (start..end).step_by(request as usize) {
            self.read(open_file, first, request.min(end - first));
        }
    }

    /// Copies the state of one open file to another.
    pub(crate) fn copy_state(&mut self, from: u64, to: u64) {
        self.copy_place(from, to);
        self.policy.copy_state(OpenFileId(from), OpenFileId(to), self.now);
    }

    /// Sets an open file's position to where another one was last read, without telling the policy.
    pub(crate) fn copy_place(&mut self, from: u64, to: u64) {
        if let Some(page) = self.previous.get(&from).copied() {
            self.previous.insert(to, page);
        }
    }

    /// Lets a second pass, in which all reads complete.
    pub(crate) fn wait_a_second(&mut self) {
        self.now += 1_000_000_000;
    }

    /// Lets a tenth of that time pass.
    pub(crate) fn wait_a_tenth(&mut self) {
        self.now += 100_000_000;
    }

    fn use_page(&mut self, open_file: u64, page: Page, request: u32, via: Via, hint: Hint) {
        let access = |trigger| Access {
            file: FileId(1),
            volume: VolumeId(1),
            open_file: OpenFileId(open_file),
            page,
            request,
            previous: self.previous.get(&open_file).copied(),
            trigger,
            via,
            hint,
            file_pages: self.file_pages,
            kernel_window: self.kernel_window,
            now: self.now,
        };
        let (absent, marked) = (access(Trigger::Absent), access(Trigger::Mark));
        let call = access(Trigger::Call);
        let wants_calls = self.policy.wants_calls();
        if wants_calls && self.next_call == Some(page) {
            self.ask(call);
        }
        if !self.cache.is_cached(page) {
            self.ask(absent);
        }
        if !self.cache.is_cached(page) {
            let end = page + if wants_calls { 1 } else { u64::from(request) };
            (page..end).for_each(|page| self.cache.insert(page));
        }
        if self.cache.take_mark(page) {
            self.ask(marked);
        }
        if self.previous.insert(open_file, page) != Some(page) {
            self.cache.touch(page);
        }
        self.cache.ageing.scanned_pages += self.scanned_per_page;
        self.now += 1_000;
    }

    fn ask(&mut self, access: Access) {
        self.plan.clear();
        self.policy.on_access(&access, &self.cache, &mut self.plan);
        self.next_call = self.plan.next_call().or(self.next_call);
        self.waits.extend(self.plan.waits_for());
        let published = |asked: &Asked| {
            let within = asked.within(self.file_pages);
            let new = within - self.cache.cached_in(asked.start, within);
            format!("{}+{}={new}", asked.start, asked.pages)
        };
        self.published.extend(self.plan.asked().iter().map(published));
        self.cache.carry_out(self.plan.ahead(), self.file_pages);
        let lines = lines(access.page, &self.plan);
        self.trace.extend(lines.into_iter().map(|line| (access.page, line)));
    }

    /// The requests so far as printed in 2005, `start+pages=new`: not cut at the end of the file,
    /// with the number of new pages.
    pub(crate) fn published(&self) -> Vec<&str> {
        self.published.iter().map(String::as_str).collect()
    }

    /// The requests so far, one line per chunk: `cause@page start+pages-look_ahead`.
    pub(crate) fn trace(&self) -> Vec<&str> {
        self.trace_of(0..self.file_pages)
    }

    /// The lines of the trace caused by accesses to a range of pages.
    pub(crate) fn trace_of(&self, pages: Range<Page>) -> Vec<&str> {
        let within = self.trace.iter().filter(|(page, _)| pages.contains(page));
        within.map(|(_, line)| line.as_str()).collect()
    }

    /// The first `count` lines of the trace.
    pub(crate) fn first(&self, count: usize) -> Vec<&str> {
        self.trace().into_iter().take(count).collect()
    }
}

fn lines(page: Page, plan: &Plan) -> Vec<String> {
    let mut lines = trace::lines(page, plan.ahead());
    for (what, pages) in [("rescue", plan.rescued()), ("demote", plan.demoted())] {
        let line = |Pages { start, pages }| format!("{what}@{page} {start}+{pages}");
        lines.extend(pages.map(line));
    }
    lines
}

/// The causes in a trace, for tests that ignore sizes.
pub(crate) fn causes(trace: &[&str]) -> Vec<Cause> {
    let cause = |line: &&str| {
        let name = line.split('@').next()?;
        Cause::ALL.into_iter().find(|cause| cause.name() == name)
    };
    trace.iter().filter_map(cause).collect()
}
