//! A modelled page cache under one policy, which it asks as the kernel would.
//!
//! For each page of a read: a policy that wants calls is asked at the first one and at the one it
//! named. If the page is absent the policy is asked and its plan carried out; if it is absent still,
//! what is left of the request is read, for a policy that wants calls that page alone. If it
//! carries a mark, the mark is taken off and the policy is asked about it. Then the page is used:
//! the first use makes it referenced, the next active.

#![allow(dead_code)] // every test binary uses its own part

pub(crate) mod cache;
pub(crate) mod inputs;
pub(crate) mod liar;
pub(crate) mod policies;

use std::collections::BTreeMap;
use std::ops::Range;

use readahead::{
    Access, Action, Asked, CacheView, Cause, FileId, Hint, OpenFileId, Page, Plan, Policy, Trigger,
    Via, VolumeId,
};

use cache::PageCache;

/// The kernel's default window, 128 KiB, in pages.
pub(crate) const KERNEL_WINDOW: u32 = 32;

/// A policy, the page cache of one file, and what happened so far.
pub(crate) struct Machine {
    pub(crate) policy: Box<dyn Policy>,
    pub(crate) cache: PageCache,
    pub(crate) file_pages: u64,
    pub(crate) kernel_window: u32,
    /// Pages that reclaim examines while a reader uses one.
    pub(crate) scanned_per_page: u64,
    /// What the program has said about its reads.
    pub(crate) hint: Hint,
    previous: BTreeMap<u64, Page>,
    plan: Plan,
    now: u64,
    next_call: Option<Page>,
    trace: Vec<(Page, String)>,
    published: Vec<String>,
    /// Pages that the policy had a reader wait for.
    pub(crate) waits: Vec<Page>,
}

impl Machine {
    /// A file of `file_pages` pages, none cached, read through open files whose kernel window is
    /// `kernel_window` pages.
    pub(crate) fn new(policy: impl Policy + 'static, file_pages: u64, kernel_window: u32) -> Self {
        Self::boxed(Box::new(policy), file_pages, kernel_window)
    }

    /// The same for a policy chosen at run time.
    pub(crate) fn boxed(policy: Box<dyn Policy>, file_pages: u64, kernel_window: u32) -> Self {
        Machine {
            policy,
            cache: PageCache::new(),
            file_pages,
            kernel_window,
            scanned_per_page: 0,
            hint: Hint::Normal,
            previous: BTreeMap::new(),
            plan: Plan::new(),
            now: 0,
            next_call: None,
            trace: Vec::new(),
            published: Vec::new(),
            waits: Vec::new(),
        }
    }

    /// One `read(2)` through the open file of that number.
    pub(crate) fn read(&mut self, open_file: u64, start: Page, pages: u64) {
        self.read_in_part(open_file, start, pages, pages);
    }

    /// One request for `pages` of which only `taken` are consumed, as of `sendfile(2)` to a socket.
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

    /// Has an open file begin with the state of another.
    pub(crate) fn copy_state(&mut self, from: u64, to: u64) {
        self.copy_place(from, to);
        self.policy.copy_state(OpenFileId(from), OpenFileId(to), self.now);
    }

    /// Has an open file begin where another one was read last, of which its policy is not told.
    pub(crate) fn copy_place(&mut self, from: u64, to: u64) {
        if let Some(page) = self.previous.get(&from).copied() {
            self.previous.insert(to, page);
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
        self.cache.carry_out(&self.plan, self.file_pages);
        let lines = lines(access.page, &self.plan);
        self.trace.extend(lines.into_iter().map(|line| (access.page, line)));
    }

    /// What was asked for so far as it was printed in 2005, `start+pages=new`: not cut to the file,
    /// and how many of the pages were new.
    pub(crate) fn published(&self) -> Vec<&str> {
        self.published.iter().map(String::as_str).collect()
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

    /// The first `count` lines of the trace.
    pub(crate) fn first(&self, count: usize) -> Vec<&str> {
        self.trace().into_iter().take(count).collect()
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
        Action::Rescue { start, pages } => Some(format!("rescue@{page} {start}+{pages}")),
        Action::Demote { start, pages } => Some(format!("demote@{page} {start}+{pages}")),
        Action::KernelWindow { pages } => Some(format!("kernel-window@{page} {pages}")),
        Action::Mark(_) => None,
    };
    plan.actions().iter().filter_map(line).collect()
}

/// Causes in the order of a trace, for tests that do not care for sizes.
pub(crate) fn causes(trace: &[&str]) -> Vec<Cause> {
    let cause = |line: &&str| {
        let name = line.split('@').next()?;
        Cause::ALL.into_iter().find(|cause| cause.name() == name)
    };
    trace.iter().filter_map(cause).collect()
}
