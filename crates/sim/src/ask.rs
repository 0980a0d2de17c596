//! Calls policies: what they learn of an access, and how their answers are carried out and counted.

use historical::{Asked, Range};
use readahead::{Access, Action, Cause, FileId, Nanos, OpenFileId, Page, Via, VolumeId};

use crate::account::Decision;
use crate::cache::Flags;
use crate::machine::Machine;
use crate::process::{Behalf, Reading};
use crate::read::Brought;
use crate::view::View;

impl Machine {
    fn access<T>(&self, now: Nanos, reading: &Reading, trigger: T) -> Access<T> {
        let open = &self.opens[reading.open as usize];
        Access {
            file: FileId(u64::from(open.file)),
            volume: VolumeId(0),
            open_file: OpenFileId(u64::from(reading.open)),
            page: reading.page,
            request: (reading.asked_end - reading.page) as u32,
            previous: open.previous,
            trigger,
            via: if reading.is_fault { Via::Mmap } else { Via::Read },
            hint: open.hint,
            file_pages: self.cache.file(open.file).pages(),
            kernel_window: open.kernel_window.unwrap_or(self.kernel_window),
            now,
        }
    }

    /// Calls the kernel's policy and carries out its answer. Returns how many folios that brings into the cache.
    pub(crate) fn ask_kernel(
        &mut self,
        now: Nanos,
        number: u32,
        reading: &mut Reading,
        trigger: historical::Trigger,
    ) -> u64 {
        let access = self.access(now, reading, trigger);
        let file = self.opens[reading.open as usize].file;
        let is_congested = self.block.is_congested();
        let (cache, cost) = (&self.cache, self.cost);
        let view = View { cache, file, cost, is_congested };
        self.plan.clear();
        self.kernel.on_access(&access, &view, &mut self.plan);
        if trigger == historical::Trigger::Call {
            reading.call_at = self.plan.next_call();
        }
        reading.waits_for = self.plan.waits_for().or(reading.waits_for);
        let open = &mut self.opens[reading.open as usize];
        open.kernel_read = window_of(self.plan.asked()).unwrap_or(open.kernel_read);
        if let Some(cause) = open.kernel_asked.next(self.plan.asked(), access.file_pages) {
            self.matrix.row_mut(cause).shrinks += 1;
        }
        let (mut asked, mut brought) = (0, 0);
        for index in 0..self.plan.ahead().actions().len() {
            match self.plan.ahead().actions()[index] {
                Action::Read { start, pages, cause } => {
                    self.note_beyond(file, start, &mut asked);
                    let behalf = Behalf { process: number, reader: number };
                    let order = self.plan.folio_order();
                    let Brought { pages: read, folios } =
                        self.read_range(now, file, (start, pages), cause, order, behalf);
                    brought += folios;
                    let decision = Decision {
                        file,
                        start,
                        asked: self.plan.asked()[asked].pages,
                        read,
                        cause,
                    };
                    self.note(decision);
                    asked += 1;
                }
                Action::Mark(mark) => {
                    if let Some(id) = self.cache.lookup(file, mark.first) {
                        self.cache.frame_mut(id).flags.set(Flags::MARKED);
                    }
                }
                Action::KernelWindow { pages } => {
                    self.opens[reading.open as usize].kernel_window = Some(pages);
                }
            }
        }
        self.note_beyond(file, Page::MAX, &mut asked);
        if let Some(Range { start, pages }) = self.plan.rescued() {
            self.cache.rescue(file, start, pages);
        }
        if let Some(Range { start, pages }) = self.plan.demoted() {
            self.cache.demote(file, start, pages);
        }
        brought
    }

    /// Notes the chunks from number `asked` on that are wholly beyond the end of the file, up to the one that is read
    /// from `next` on.
    fn note_beyond(&mut self, file: u32, next: Page, asked: &mut usize) {
        while let Some(chunk) = self.plan.asked().get(*asked).copied() {
            if chunk.start == next || chunk.within(self.cache.file(file).pages()) > 0 {
                return;
            }
            let Asked { start, pages, cause } = chunk;
            let decision = Decision { file, start, asked: pages, read: 0, cause };
            self.note(decision);
            *asked += 1;
        }
    }

    /// Counts and logs a requested chunk.
    pub(crate) fn note(&mut self, decision: Decision) {
        let pages = self.cache.file(decision.file).pages();
        let row = self.matrix.row_mut(decision.cause);
        row.requests += 1;
        row.pages += decision.asked;
        row.read += decision.read;
        row.to_the_end += u64::from(decision.start + decision.asked >= pages);
        if let Some(log) = &mut self.log {
            log.push(decision);
        }
    }
}

/// The window that a kernel's policy has opened; random reads are no window.
fn window_of(asked: &[Asked]) -> Option<(Page, Page)> {
    let chunks = || asked.iter().filter(|chunk| chunk.cause != Cause::Random);
    let start = chunks().map(|chunk| chunk.start).min()?;
    let end = chunks().map(|chunk| chunk.start.saturating_add(chunk.pages)).max()?;
    Some((start, end))
}
