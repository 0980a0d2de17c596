//! The events that the eBPF programs report, and when.

use controller::ids::{FileRef, OpenFile};
use controller::{Access, Advice, DiskStats, Input, Interest, Kind};
use readahead::{CHUNK_PAGES, Hint, Mark, Nanos, PAGE_BYTES, Page, Past};

use super::{BACKING, Body, CGROUP, Due, Started, key_of};
use crate::cache::UserMark;
use crate::machine::Machine;
use crate::process::{Open, Reading};

impl Machine {
    /// A read found its page absent.
    pub(crate) fn report_miss(&mut self, now: Nanos, number: u32, reading: &Reading, past: Past) {
        self.report_plain(now, number, reading, Kind::Miss, past);
    }

    /// A read or a fault touched the kernel's own mark.
    pub(crate) fn report_kernel_mark(&mut self, now: Nanos, number: u32, reading: &Reading) {
        self.report_plain(now, number, reading, Kind::KernelMark, Past::Unknown);
    }

    fn report_plain(&mut self, now: Nanos, number: u32, reading: &Reading, kind: Kind, past: Past) {
        let Some(body) = &self.body else { return };
        let open = self.opens[reading.open as usize];
        let kernel_window = open.kernel_window.unwrap_or(self.kernel_window);
        let is_heard = match body.interest {
            None => return,
            Some(Interest::NotForward { most_window }) if kind == Kind::KernelMark => {
                let (start, end) = open.kernel_read;
                end - start >= u64::from(kernel_window) && kernel_window <= most_window
            }
            Some(Interest::NotForward { .. }) => !goes_forward(open.previous, reading.page),
            Some(Interest::All) => true,
        };
        if body.is_muted(open.file, now) {
            return;
        }
        if kind == Kind::Miss && reading.page == 0 {
            self.report_file(now, number, reading);
        }
        if !is_heard {
            return;
        }
        let access = Access {
            kind,
            open_file: Some(OpenFile(u64::from(reading.open))),
            previous: open.previous,
            kernel_window,
            advice: Advice {
                random: open.hint == Hint::Random,
                sequential: open.kernel_window == Some(self.kernel_window.saturating_mul(2)),
                noreuse: false,
            },
            past,
            ..self.bare(number, reading)
        };
        self.hear(now, access);
    }

    /// A fault found its page absent.
    pub(crate) fn report_fault(&mut self, now: Nanos, number: u32, reading: &Reading, past: Past) {
        let file = self.opens[reading.open as usize].file;
        let Some(body) = &self.body else { return };
        if body.interest.is_none() || body.is_muted(file, now) {
            return;
        }
        self.opens[reading.open as usize].mapped_by = Some(number);
        let access = Access { kind: Kind::Fault, past, ..self.bare(number, reading) };
        self.hear(now, access);
    }

    /// Removes and reports the mark on the current page. Returns whether there was one.
    pub(crate) fn report_mark(&mut self, now: Nanos, number: u32, reading: &Reading) -> bool {
        let file = self.opens[reading.open as usize].file;
        let Some(body) = &self.body else { return false };
        let chunk = reading.page / CHUNK_PAGES % u64::from(u64::BITS);
        if body.listening(file).marked_chunks & 1 << chunk == 0 {
            return false;
        }
        let Some(UserMark { mark, cause }) = self.cache.take_mark(file, reading.page) else {
            return false;
        };
        if let Some(cause) = cause {
            self.matrix.row_mut(cause).look_ahead_hits += 1;
        }
        let Mark { first, last } = mark;
        let mark = Some((first, last));
        let access = Access { kind: Kind::Mark, mark, ..self.bare(number, reading) };
        self.hear(now, access);
        true
    }

    /// The fields of every event.
    pub(super) fn bare(&self, number: u32, reading: &Reading) -> Access {
        let file = self.opens[reading.open as usize].file;
        Access {
            kind: Kind::Miss,
            of: FileRef { file: key_of(file), generation: 0, tgid: number },
            open_file: None,
            cgroup: CGROUP,
            page: reading.page,
            request_pages: (reading.asked_end - reading.page) as u32,
            previous: None,
            file_bytes: self.cache.file(file).pages() * PAGE_BYTES,
            kernel_window: self.kernel_window,
            mapped: reading.is_fault,
            advice: Advice::default(),
            past: Past::Unknown,
            mark: None,
        }
    }

    fn hear(&mut self, now: Nanos, access: Access) {
        self.report_disk(now);
        let file = access.of.file.ino as u32;
        self.give_input(now, &Input::Access(access));
        if self.body.as_ref().is_some_and(|body| body.is_worst()) {
            let pages = self.cache.file(file).pages();
            self.cache.demote(file, 0, pages);
        }
    }

    /// Reports the block layer's counters.
    pub(super) fn report_disk(&mut self, now: Nanos) {
        let stats: Option<DiskStats> = self.body.as_mut().and_then(|body| body.disk.news());
        if let Some(stats) = stats {
            self.give_input(now, &Input::DiskStats(BACKING, stats));
        }
    }

    /// Gives the decider an input, and begins to carry out its commands.
    pub(super) fn give_input(&mut self, now: Nanos, input: &Input) {
        let Some(body) = &mut self.body else { return };
        let mut out = std::mem::take(&mut body.out);
        body.decide(now, input, &self.cache, self.cost, &mut out);
        out.iter().for_each(|command| body.observe(now, command));
        self.account(&out);
        if let Some(body) = &mut self.body {
            out.clear();
            body.out = out;
        }
    }

    /// A read of a file reaches the block layer.
    pub(crate) fn note_started(
        &mut self,
        now: Nanos,
        offset: u64,
        pages: u64,
        process: u32,
    ) -> Option<Started> {
        let body = self.body.as_mut()?;
        Some(body.disk.start(now, offset, pages * PAGE_BYTES, process))
    }

    /// A read of a file has completed.
    pub(crate) fn note_ended(&mut self, now: Nanos, file: u32, pages: u64, started: Started) {
        let Some(body) = &mut self.body else { return };
        let is_managed = body.listening(file).managed;
        body.disk.end(now, started, pages * PAGE_BYTES, is_managed);
    }

    /// A process has ended.
    pub(crate) fn note_exited(&mut self, now: Nanos, number: u32) {
        let Some(body) = &mut self.body else { return };
        if body.streams.as_ref().is_some_and(|streams| streams.is_watched(number)) {
            body.arrange(now, Due::Input(Input::Exited(number)));
        }
    }

    /// How the absent current page left the cache.
    pub(crate) fn past_of(&self, reading: &Reading) -> Past {
        let Open { file, previous, kernel_read: (start, end), .. } =
            self.opens[reading.open as usize];
        if !self.cache.was_evicted(file, reading.page) {
            return Past::Unknown;
        }
        // Its reader is in the kernel's present window, or in the one before it.
        let is_ahead = previous.is_some_and(|previous| {
            previous < reading.page && previous + (end - start) >= start && reading.page < end
        });
        let is_next = previous.is_some_and(|previous| previous + 1 == reading.page);
        match (is_ahead, is_next && end > start) {
            (true, _) => Past::EvictedUnused,
            (false, true) => Past::EvictedNext,
            (false, false) => Past::Evicted,
        }
    }
}

impl Body {
    fn is_muted(&self, file: u32, now: Nanos) -> bool {
        self.listening(file).muted_until > now
    }

    /// Removes and returns the next event that is due.
    pub(super) fn take_due(&mut self, now: Nanos) -> Option<Due> {
        self.due.front().filter(|(at, _)| *at <= now)?;
        self.due.pop_front().map(|(_, due)| due)
    }
}

/// Whether the kernel takes this for plain forward reading, which it reads ahead by itself. The eBPF programs allow a
/// distance of 1 from the kernel's `prev_pos`, which is where the last read ended: a page behind `previous`.
fn goes_forward(previous: Option<Page>, page: Page) -> bool {
    page == 0 || previous.is_some_and(|previous| page.wrapping_sub(previous) <= 2)
}
