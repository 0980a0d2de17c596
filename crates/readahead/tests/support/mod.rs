//! A model of a page cache with one policy, called as a body would call it.
//!
//! If the page of a read is absent, the policy is called and its plan executed. If it is still absent, the rest of the
//! request is read. If the page carries a mark, the mark is removed and the policy is called about it.

#![allow(dead_code)] // every test binary uses its own part

pub(crate) mod cache;
pub(crate) mod inputs;
pub(crate) mod liar;
pub(crate) mod mixture;
pub(crate) mod policies;
mod trace;

use std::collections::BTreeMap;
use std::ops::Range;

use cache::PageCache;
use readahead::{
    Access, CacheView, FileId, Hint, OpenFileId, Page, Plan, Policy, Trigger, Via, VolumeId,
};

/// The kernel's default window, 128 KiB, in pages.
pub(crate) const KERNEL_WINDOW: u32 = 32;

/// A policy, the page cache of one file, and a log.
pub(crate) struct Machine {
    pub(crate) policy: Box<dyn Policy>,
    pub(crate) cache: PageCache,
    pub(crate) kernel_window: u32,
    /// Nanoseconds that a reader takes for a page.
    pub(crate) page_ns: u64,
    /// What a device access takes, as a share of the latency that the policy knows: less to near places of a disk.
    pub(crate) nearness: f64,
    /// How many pages ahead of a read in progress its marks are seen.
    pub(crate) sees_ahead: u64,
    /// As before Linux 6.12, the marks of a read are seen when it is over.
    pub(crate) sees_when_over: bool,
    pub(crate) file_pages: u64,
    /// On which the file lies.
    pub(crate) volume: VolumeId,
    previous: BTreeMap<u64, Page>,
    plan: Plan,
    now: u64,
    trace: Vec<(Page, String)>,
}

impl Machine {
    /// A file of `file_pages` pages, none cached. Its open files have a kernel window of `kernel_window` pages.
    pub(crate) fn boxed(policy: Box<dyn Policy>, file_pages: u64, kernel_window: u32) -> Self {
        Machine {
            policy,
            cache: PageCache::new(),
            kernel_window,
            page_ns: 1_000,
            nearness: 1.0,
            sees_ahead: 0,
            sees_when_over: false,
            file_pages,
            volume: VolumeId(1),
            previous: BTreeMap::new(),
            plan: Plan::new(),
            now: 0,
            trace: Vec::new(),
        }
    }

    /// One `read(2)` through the open file with this number.
    pub(crate) fn read(&mut self, open_file: u64, start: Page, pages: u64) {
        let end = (start + pages).min(self.file_pages);
        for page in start..end {
            self.use_page(open_file, page, (end - page) as u32, Via::Read, Hint::Normal);
        }
        if self.sees_when_over && self.takes_mark(start..end) {
            let over = self.access(open_file, start, (end - start) as u32, Trigger::Mark);
            self.ask(over);
        }
    }

    /// One page fault.
    pub(crate) fn fault(&mut self, open_file: u64, page: Page, hint: Hint) {
        self.use_page(open_file, page, 1, Via::Mmap, hint);
    }

    /// Reads `[start, end)` in requests of `request` pages.
    pub(crate) fn scan(&mut self, open_file: u64, start: Page, end: Page, request: u64) {
        for first in (start..end).step_by(request as usize) {
            self.read(open_file, first, request.min(end - first));
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

    fn access(&self, open_file: u64, page: Page, request: u32, trigger: Trigger) -> Access {
        Access {
            file: FileId(1),
            volume: self.volume,
            open_file: OpenFileId(open_file),
            page,
            request,
            previous: self.previous.get(&open_file).copied(),
            trigger,
            via: Via::Read,
            hint: Hint::Normal,
            file_pages: self.file_pages,
            kernel_window: self.kernel_window,
            now: self.now,
        }
    }

    /// Nanoseconds of a device access. The head of a disk is where the reader left it: reading on costs none.
    fn access_ns(&self, access: Access) -> u64 {
        let reads_on = access.previous.is_some_and(|previous| previous + 1 == access.page);
        let is_free = reads_on && self.cache.cost.is_serial();
        if is_free { 0 } else { (self.nearness * self.cache.cost.latency_s * 1e9) as u64 }
    }

    fn takes_mark(&mut self, pages: Range<Page>) -> bool {
        pages.filter(|page| self.cache.take_mark(*page)).count() > 0
    }

    fn use_page(&mut self, open_file: u64, page: Page, request: u32, via: Via, hint: Hint) {
        let access =
            |trigger| Access { via, hint, ..self.access(open_file, page, request, trigger) };
        let (absent, marked) = (access(Trigger::Absent), access(Trigger::Mark));
        let access_ns = self.access_ns(absent);
        if !self.cache.is_cached(page) {
            self.ask(absent);
        }
        if !self.cache.is_cached(page) {
            (page..page + u64::from(request)).for_each(|page| self.cache.insert(page));
            self.now += access_ns;
        }
        let seen = page..page + 1 + self.sees_ahead.min(u64::from(request) - 1);
        if !self.sees_when_over && self.takes_mark(seen) {
            self.ask(marked);
        }
        self.previous.insert(open_file, page);
        self.cache.touch(page);
        self.now += self.page_ns;
    }

    fn ask(&mut self, access: Access) {
        self.plan.clear();
        self.policy.on_access(&access, &self.cache, &mut self.plan);
        self.cache.carry_out(&self.plan, self.file_pages);
        let lines = trace::lines(access.page, &self.plan);
        self.trace.extend(lines.into_iter().map(|line| (access.page, line)));
    }

    /// The requests so far, one line for each: `cause@page start+pages-look_ahead`.
    pub(crate) fn trace(&self) -> Vec<&str> {
        self.trace_of(0..self.file_pages)
    }

    /// The lines of the trace caused by accesses to a range of pages.
    pub(crate) fn trace_of(&self, pages: Range<Page>) -> Vec<&str> {
        let within = self.trace.iter().filter(|(page, _)| pages.contains(page));
        within.map(|(_, line)| line.as_str()).collect()
    }
}
