//! Writing: pages become dirty, and a flusher writes them in that order.
//!
//! The flusher starts when a tenth of memory is dirty. A writer waits while four tenths are, as in the kernels of 2007.
//! Pages are written whole.

use std::collections::VecDeque;

use readahead::{Cause, Nanos, PAGE_BYTES, Page};

use crate::block::{NO_WAITER, Transfer};
use crate::cache::Flags;
use crate::machine::{FLUSHER, Machine, Pause};
use crate::process::Doing;

/// Most transfers of the flusher in flight: half of a queue's 128 requests.
const WRITES_AT_ONCE: usize = 64;

impl Machine {
    /// Continues a write until it ends, must wait, or another event is due.
    pub(crate) fn write_on(
        &mut self,
        mut now: Nanos,
        number: u32,
        open: u32,
        mut page: Page,
        end: Page,
    ) -> Pause {
        let file = self.opens[open as usize].file;
        let mut horizon = self.horizon();
        while page < end {
            if now > horizon {
                self.processes[number as usize].doing = Doing::Writing { open, page, end };
                return Pause::Until(now);
            }
            let is_over = self.cache.dirty() >= self.writeback.limit;
            if is_over || !self.dirty_page(now, number, open, page) {
                self.processes[number as usize].doing = Doing::Writing { open, page, end };
                if is_over {
                    self.wait_for_writeback(now, number);
                } else {
                    self.wait_for_memory(now, number);
                }
                return Pause::Blocked;
            }
            self.processes[number as usize].outcome.cpu += self.cpu.page_write;
            now += self.cpu.page_write;
            page += 1;
            if self.feed_if_idle(now) {
                horizon = self.horizon();
            }
            if self.drops_behind() {
                self.pass(now, number, file, page - 1, (true, false));
            }
            if self.writeback.queued > self.writeback.background && self.writeback.writes == 0 {
                self.flush(now);
                self.block.dispatch(now);
                horizon = self.horizon();
            }
        }
        self.processes[number as usize].doing = Doing::Next;
        Pause::Finished(now)
    }

    /// Makes a page dirty. Returns false if no frame is free for it.
    fn dirty_page(&mut self, now: Nanos, number: u32, open: u32, page: Page) -> bool {
        let file = self.opens[open as usize].file;
        let cached = self.cache.lookup(file, page);
        let Some(id) = cached.or_else(|| self.cache.insert(file, page, Cause::Random)) else {
            return false;
        };
        if cached.is_none() {
            let owner = self.owner_for(now, file, page, number);
            self.cache.frame_mut(id).owner = owner;
        }
        let open = &mut self.opens[open as usize];
        if open.previous_written.replace(page) != Some(page) {
            self.cache.frame_mut(id).note_use(number);
        }
        self.cache.frame_mut(id).flags.set(Flags::UP_TO_DATE);
        if !self.cache.frame(id).flags.has(Flags::DIRTY) {
            self.cache.set_dirty(id);
            self.writeback.add(file, page);
        }
        self.cache.mark_accessed(id);
        true
    }

    /// Queues dirty pages, oldest first.
    pub(crate) fn flush(&mut self, now: Nanos) {
        while self.writeback.writes < WRITES_AT_ONCE {
            let Some((file, start, pages)) = self.writeback.queue.pop_front() else { return };
            let run = pages.min(self.request_pages);
            if run < pages {
                self.writeback.queue.push_front((file, start + run, pages - run));
            }
            self.queue_write(now, file, start, run);
        }
    }

    /// Queues the dirty pages of a range before all others, without waiting for them.
    pub(crate) fn write_out(&mut self, now: Nanos, file: u32, start: Page, end: Page) {
        let mut later = VecDeque::new();
        while let Some((of, first, pages)) = self.writeback.queue.pop_front() {
            let last = first + pages;
            if of != file || first >= end || last <= start {
                later.push_back((of, first, pages));
                continue;
            }
            let (from, to) = (first.max(start), last.min(end));
            let rest = [(first, from), (to, last)].into_iter().filter(|(from, to)| from < to);
            later.extend(rest.map(|(from, to)| (file, from, to - from)));
            self.queue_write(now, file, from, to - from);
        }
        self.writeback.queue = later;
        self.block.dispatch(now);
    }

    /// Queues the write of a run of dirty pages, in transfers that the device takes.
    fn queue_write(&mut self, now: Nanos, file: u32, start: Page, pages: u64) {
        let mut page = start;
        while page < start + pages {
            let run = (start + pages - page).min(self.request_pages);
            self.writeback.queued -= run;
            self.writeback.writes += 1;
            let transfer = Transfer {
                file,
                start: page,
                pages: run,
                is_write: true,
                started: None,
                waiters: NO_WAITER,
            };
            let offset = self.cache.file(file).offset + page * PAGE_BYTES;
            self.block.add(now, transfer, offset, FLUSHER, false);
            page += run;
        }
    }

    /// A transfer of dirty pages has completed.
    pub(crate) fn written(&mut self, now: Nanos) {
        self.writeback.writes -= 1;
        let is_pressed = !self.writeback.throttled.is_empty() || !self.writeback.starved.is_empty();
        if is_pressed || self.writeback.queued > self.writeback.background {
            self.flush(now);
            self.block.dispatch(now);
        }
        if self.cache.dirty() < self.writeback.limit {
            self.wake_writers(now);
        }
    }
}
