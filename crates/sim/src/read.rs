//! Reading: what happens at each page of a read, and how the answers of policies are carried out.
//!
//! ```text
//!   for each page:   the policy's call is due?      --> ask (Call)
//!                    absent?                        --> ask (Absent); still absent: read it alone
//!                    marked?                        --> take the mark off, ask (Mark)
//!                    on its way?                    --> wait
//!                    use it
//! ```
//!
//! The kernel's policy runs in the reader's context, and its reads are queued at once. The policy on top of it gets
//! events for misses, for the kernel's marks and for its own; its requests come later.

use readahead::{Cause, Nanos, PAGE_BYTES, Page};

use crate::block::{NO_WAITER, Transfer};
use crate::cache::{Evicted, Flags, FrameId};
use crate::machine::{ALONE, Machine, Pause};
use crate::process::{Behalf, Doing, Reading};

impl Machine {
    /// Continues a read until it ends, must wait, or another event is due.
    pub(crate) fn read_on(&mut self, mut now: Nanos, number: u32, mut reading: Reading) -> Pause {
        let mut horizon = self.horizon();
        while reading.page < reading.end {
            if now > horizon {
                self.processes[number as usize].doing = Doing::Reading(reading);
                return Pause::Until(now);
            }
            if std::mem::take(&mut reading.is_plugged) {
                self.block.dispatch(now);
                horizon = self.horizon();
            }
            if !reading.is_asked {
                let (decisions, brought, has_acted) = self.ask_about(now, number, &mut reading);
                reading.is_asked = true;
                let filling = brought * self.cpu.fill;
                if filling > 0 {
                    reading.is_plugged = true;
                } else if has_acted {
                    self.block.dispatch(now);
                    horizon = self.horizon();
                }
                if decisions > 0 {
                    let cost = decisions * self.cpu.decision + filling;
                    self.processes[number as usize].outcome.cpu += cost;
                    now += cost;
                    // Other events may happen meanwhile.
                    self.pin(&reading);
                    continue;
                }
            }
            if self.read_if_absent(now, number, &reading) {
                horizon = self.horizon();
            }
            if let Some(on_its_way) = self.what_to_wait_for(&reading) {
                self.pin(&reading);
                self.note_late(&reading, on_its_way);
                if !self.wait_for(now, number, on_its_way) {
                    self.wait_for_memory(now, number);
                }
                self.processes[number as usize].doing = Doing::Reading(reading);
                return Pause::Blocked;
            }
            now += self.use_page(number, &reading);
            if self.feed_if_idle(now) {
                horizon = self.horizon();
            }
            if self.drops_behind() {
                let file = self.opens[reading.open as usize].file;
                self.pass(now, number, file, reading.page, (false, reading.is_fault));
            }
            reading.page += 1;
            reading.is_asked = false;
            reading.was_absent = false;
            reading.waits_for = None;
        }
        self.processes[number as usize].doing = Doing::Next;
        Pause::Finished(now)
    }

    /// Asks the policies about the current page, and makes sure that it is cached or in flight. Returns how many
    /// decisions the kernel took, how many folios it brought in, and whether anything was queued.
    fn ask_about(&mut self, now: Nanos, number: u32, reading: &mut Reading) -> (Nanos, u64, bool) {
        let file = self.opens[reading.open as usize].file;
        let (mut decisions, mut brought) = (0, 0);
        let mut has_acted = false;
        if reading.call_at == Some(reading.page) && self.kernel.wants_calls() {
            reading.call_at = None;
            brought += self.ask_kernel(now, number, reading, historical::Trigger::Call);
            decisions += 1;
            has_acted = true;
        }
        if self.cache.lookup(file, reading.page).is_none() {
            self.matrix.misses += 1;
            reading.was_absent = true;
            let was_evicted_unused = self.cache.was_evicted_unused(file, reading.page);
            if was_evicted_unused {
                self.opens[reading.open as usize].kernel_asked.thrash();
                if let Some(body) = &mut self.body {
                    body.note_thrashed(number, file);
                }
            }
            let past = self.past_of(reading);
            brought += self.ask_kernel(now, number, reading, historical::Trigger::Absent);
            if self.cache.lookup(file, reading.page).is_none() {
                let behalf = Behalf { process: number, reader: number };
                brought += u64::from(self.read_alone(now, file, reading.page, behalf));
            }
            if reading.is_fault {
                self.report_fault(now, number, reading, past);
            } else {
                self.report_miss(now, number, reading, past);
            }
            decisions += 1;
            has_acted = true;
        }
        if let Some(id) = self.cache.lookup(file, reading.page)
            && self.cache.frame_mut(id).flags.take(Flags::MARKED)
        {
            // A mark is on a page of the chunk for which it was set, or on one that was cached before that.
            self.matrix.row_of(self.cache.frame(id).cause).look_ahead_hits += 1;
            brought += self.ask_kernel(now, number, reading, historical::Trigger::Mark);
            self.report_kernel_mark(now, number, reading);
            decisions += 1;
            has_acted = true;
        }
        if self.body.is_some() {
            has_acted |= self.report_mark(now, number, reading);
        }
        (decisions, brought, has_acted)
    }

    /// Reads only the current page, if the requests left no frame for it, or if it was evicted before its reader came.
    /// Returns whether anything was queued.
    fn read_if_absent(&mut self, now: Nanos, number: u32, reading: &Reading) -> bool {
        let file = self.opens[reading.open as usize].file;
        if self.cache.lookup(file, reading.page).is_some() {
            return false;
        }
        let behalf = Behalf { process: number, reader: number };
        let has_asked = self.read_alone(now, file, reading.page, behalf);
        if has_asked {
            self.block.dispatch(now);
        }
        has_asked
    }

    /// Reads the absent pages of a range, in folios of at most `2^order` pages and in transfers that the device takes.
    pub(crate) fn read_range(
        &mut self,
        now: Nanos,
        file: u32,
        (start, pages): (Page, u64),
        cause: Cause,
        order: u32,
        behalf: Behalf,
    ) -> Brought {
        let end = start.saturating_add(pages).min(self.cache.file(file).pages());
        let owner = self.owner_for(now, file, start, behalf.reader);
        let mut brought = Brought::default();
        let mut page = start;
        while page < end {
            if self.cache.lookup(file, page).is_some() {
                page += 1;
                continue;
            }
            let run = self.insert_run(file, page, end, cause, owner);
            if run == 0 {
                // No frame is available: read-ahead is not worth waiting for one.
                break;
            }
            brought.pages += run;
            brought.folios += self.cache.lay_folios(file, start..end, page..page + run, order);
            if self.cache.file(file).is_sparse {
                (page..page + run).for_each(|page| self.arrived(file, page, false));
            } else {
                for at in (page..page + run).step_by(self.request_pages as usize) {
                    let pages = self.request_pages.min(page + run - at);
                    self.queue_mapped(now, file, at, pages, behalf.process);
                }
            }
            page += run;
        }
        brought
    }

    /// Reads a page that only its reader requested: it counts neither as read-ahead nor as a hit. Returns whether there
    /// was a frame for it.
    fn read_alone(&mut self, now: Nanos, file: u32, page: Page, behalf: Behalf) -> bool {
        let read = self.read_range(now, file, (page, 1), ALONE, 0, behalf).pages;
        self.matrix.alone += read;
        if let Some(id) = self.cache.lookup(file, page) {
            self.cache.frame_mut(id).flags.clear(Flags::AHEAD);
        }
        read > 0
    }

    /// Takes frames for the absent pages from `page` on. Returns their number.
    fn insert_run(&mut self, file: u32, page: Page, end: Page, cause: Cause, owner: u32) -> u64 {
        let mut next = page;
        while next < end && self.cache.lookup(file, next).is_none() {
            let Some((id, evicted)) = self.cache.insert_read(file, next, cause) else { break };
            if let Some(Evicted::Unused { cause }) = evicted {
                self.matrix.row_of(cause).thrashed += 1;
            }
            let frame = self.cache.frame_mut(id);
            frame.owner = owner;
            frame.flags.set(Flags::LOCKED);
            frame.flags.set(Flags::AHEAD);
            next += 1;
        }
        next - page
    }

    /// Queues a read of consecutive pages.
    pub(crate) fn queue_read(
        &mut self,
        now: Nanos,
        file: u32,
        start: Page,
        pages: u64,
        process: u32,
    ) {
        let (id, offset) = self.start_read(now, file, start, pages, process);
        self.block.queue(now, id, offset, process, true);
    }

    /// Begins a transfer without queueing it. Returns it and its place on the device.
    pub(crate) fn start_read(
        &mut self,
        now: Nanos,
        file: u32,
        start: Page,
        pages: u64,
        process: u32,
    ) -> (u32, u64) {
        let offset = self.cache.file(file).offset + start * PAGE_BYTES;
        let started = self.note_started(now, offset, pages, process);
        let transfer =
            Transfer { file, start, pages, is_write: false, started, waiters: NO_WAITER };
        let id = self.block.reserve(transfer);
        for page in start..start + pages {
            if let Some(frame) = self.cache.lookup(file, page) {
                self.cache.frame_mut(frame).transfer = id;
            }
        }
        (id, offset)
    }

    /// What must arrive before the reader can continue.
    fn what_to_wait_for(&mut self, reading: &Reading) -> Option<Awaited> {
        let file = self.opens[reading.open as usize].file;
        let Some(id) = self.cache.lookup(file, reading.page) else { return Some(Awaited::Memory) };
        let on_its_way = self.cache.on_its_way(id).or_else(|| {
            let farther = self.cache.lookup(file, reading.waits_for?)?;
            self.cache.on_its_way(farther)
        });
        on_its_way.map(Awaited::Frame)
    }

    /// Counts a page read ahead that its reader found in flight. A page that was absent is not late.
    fn note_late(&mut self, reading: &Reading, awaited: Awaited) {
        let Awaited::Frame(id) = awaited else { return };
        let frame = self.cache.frame(id);
        let is_at_hand = u64::from(frame.page) == reading.page;
        if is_at_hand && !reading.was_absent && frame.flags.has(Flags::AHEAD) {
            self.matrix.row_of(frame.cause).late += 1;
        }
    }

    /// Keeps the current page, if it has a frame, until its reader has used it.
    fn pin(&mut self, reading: &Reading) {
        let file = self.opens[reading.open as usize].file;
        if let Some(id) = self.cache.lookup(file, reading.page) {
            self.cache.frame_mut(id).flags.set(Flags::PINNED);
        }
    }

    /// Chains a process to the transfer that it waits for. Returns false if there is none, as no frame is free.
    fn wait_for(&mut self, now: Nanos, number: u32, awaited: Awaited) -> bool {
        let process = &mut self.processes[number as usize];
        process.waits_since = now;
        let Awaited::Frame(id) = awaited else { return false };
        let transfer = self.block.transfer_mut(self.cache.frame(id).transfer);
        process.next_waiter = transfer.waiters;
        transfer.waiters = number;
        true
    }

    /// Uses the current page. Returns the cost in nanoseconds.
    fn use_page(&mut self, number: u32, reading: &Reading) -> Nanos {
        let open = &mut self.opens[reading.open as usize];
        let previous = open.previous.replace(reading.page);
        let outcome = &mut self.processes[number as usize].outcome;
        outcome.pages += 1;
        let Some(id) = self.cache.lookup(open.file, reading.page) else { return 0 };
        let frame = self.cache.frame_mut(id);
        frame.flags.clear(Flags::PINNED);
        if frame.flags.take(Flags::AHEAD) {
            let cause = frame.cause;
            self.matrix.row_of(cause).hits += 1;
        }
        // Continuing within a folio is not another use of it.
        if previous.is_none_or(|previous| !frame.shares_folio_with(previous)) {
            frame.note_use(number);
            self.cache.mark_accessed(id);
        }
        let cost = if reading.is_fault {
            self.cache.map(id);
            0
        } else {
            self.cpu.page
        };
        outcome.cpu += cost;
        cost
    }
}

/// What a read has brought into the cache.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Brought {
    pub(crate) pages: u64,
    pub(crate) folios: u64,
}

/// What a reader waits for.
#[derive(Clone, Copy, Debug)]
enum Awaited {
    Frame(FrameId),
    /// No frame was free.
    Memory,
}
