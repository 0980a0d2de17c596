//! A modelled page cache under one policy, which it asks as a body would.
//!
//! If the page of a read is absent, the policy is asked and its plan carried out. If it is absent
//! still, the rest of the request is read. If the page carries a mark, the mark is taken off and the
//! policy is asked about it.

#![allow(dead_code)] // every test binary uses its own part

pub(crate) mod cache;
pub(crate) mod inputs;
pub(crate) mod liar;
pub(crate) mod policies;

use std::collections::BTreeMap;
use std::ops::Range;

use cache::PageCache;
use readahead::{
    Access, Action, CacheView, FileId, Hint, OpenFileId, Page, Plan, Policy, Trigger, Via, VolumeId,
};

/// The kernel's default window, 128 KiB, in pages.
pub(crate) const KERNEL_WINDOW: u32 = 32;

/// A policy, the page cache of one file, and what happened so far.
pub(crate) struct Machine {
    pub(crate) policy: Box<dyn Policy>,
    pub(crate) cache: PageCache,
    pub(crate) kernel_window: u32,
    /// How long a reader takes for a page, in nanoseconds.
    pub(crate) page_ns: u64,
    pub(crate) file_pages: u64,
    previous: BTreeMap<u64, Page>,
    plan: Plan,
    now: u64,
    trace: Vec<(Page, String)>,
}

impl Machine {
    /// A file of `file_pages` pages, none cached, read through open files whose kernel window is
    /// `kernel_window` pages.
    pub(crate) fn boxed(policy: Box<dyn Policy>, file_pages: u64, kernel_window: u32) -> Self {
        Machine {
            policy,
            cache: PageCache::new(),
            kernel_window,
            page_ns: 1_000,
            file_pages,
            previous: BTreeMap::new(),
            plan: Plan::new(),
            now: 0,
            trace: Vec::new(),
        }
    }

    /// One `read(2)` through the open file of that number.
    pub(crate) fn read(&mut self, open_file: u64, start: Page, pages: u64) {
        let end = (start + pages).min(self.file_pages);
        for page in start..end {
            self.use_page(open_file, page, (end - page) as u32, Via::Read, Hint::Normal);
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

    /// Lets time pass, in which everything under way arrives.
    pub(crate) fn wait_a_second(&mut self) {
        self.now += 1_000_000_000;
    }

    /// Lets a tenth of that pass.
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
        if !self.cache.is_cached(page) {
            self.ask(absent);
        }
        if !self.cache.is_cached(page) {
            (page..page + u64::from(request)).for_each(|page| self.cache.insert(page));
        }
        if self.cache.take_mark(page) {
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
        let lines = lines(access.page, &self.plan);
        self.trace.extend(lines.into_iter().map(|line| (access.page, line)));
    }

    /// What was asked for so far, a chunk a line: `cause@page start+pages-look_ahead`.
    pub(crate) fn trace(&self) -> Vec<&str> {
        self.trace_of(0..self.file_pages)
    }

    /// The part of the trace that accesses to the pages of a range led to.
    pub(crate) fn trace_of(&self, pages: Range<Page>) -> Vec<&str> {
        let within = self.trace.iter().filter(|(page, _)| pages.contains(page));
        within.map(|(_, line)| line.as_str()).collect()
    }
}

fn lines(page: Page, plan: &Plan) -> Vec<String> {
    let mark = plan.actions().iter().find_map(|action| match action {
        Action::Mark(mark) => Some(mark.first),
        _ => None,
    });
    let line = |action: &Action| match *action {
        Action::Read { start, pages, cause } => {
            let end = start + pages;
            let within = mark.filter(|mark| (start..end).contains(mark));
            let look_ahead = within.map_or(0, |mark| end - mark);
            Some(format!("{}@{page} {start}+{pages}-{look_ahead}", cause.name()))
        }
        Action::KernelWindow { pages } => Some(format!("kernel-window@{page} {pages}")),
        Action::Mark(_) => None,
    };
    plan.actions().iter().filter_map(line).collect()
}
