//! What a process's next operation begins with.

use readahead::{Cause, Hint, Nanos, PAGE_BYTES};

use crate::account::Decision;
use crate::machine::{Machine, Pause};
use crate::process::{Behalf, Doing, Op, OpenFile, Reading};

impl Machine {
    /// Takes the next operation of a process's script.
    pub(crate) fn begin(&mut self, now: Nanos, number: u32) -> Pause {
        let process = &mut self.processes[number as usize];
        let op = process.script.next(now);
        match op {
            Op::Read { open, at, bytes } => self.begin_read(now, number, open, at, bytes, bytes),
            Op::Send { open, at, asked, taken } => {
                self.begin_read(now, number, open, at, asked, taken)
            }
            Op::Fault { open, page } => {
                process.doing = Doing::Reading(Reading {
                    open: open.0,
                    page,
                    end: page + 1,
                    asked_end: page + 1,
                    call_at: Some(page),
                    is_asked: false,
                    is_plugged: false,
                    was_absent: false,
                    waits_for: None,
                    is_fault: true,
                });
                self.charge(number, now, self.cpu.fault)
            }
            Op::Write { open, at, bytes } => {
                let page = at / PAGE_BYTES;
                let pages = self.file_pages(open.0);
                let end = (at + bytes).div_ceil(PAGE_BYTES).min(pages);
                self.processes[number as usize].doing = Doing::Writing { open: open.0, page, end };
                self.charge(number, now, self.cpu.call)
            }
            Op::Unmap { open } => {
                self.cache.unmap_file(self.opens[open.0 as usize].file);
                Pause::Finished(now)
            }
            Op::Close { open } => {
                self.opens[open.0 as usize].is_closed = true;
                self.charge(number, now, self.cpu.call)
            }
            Op::Advise { open, advice } => {
                let open = &mut self.opens[open.0 as usize];
                open.hint = advice;
                (open.own_window, open.is_without_look_ahead) = (None, false);
                match advice {
                    Hint::Normal => open.kernel_window = None,
                    Hint::Sequential => {
                        open.kernel_window = Some(self.kernel_window.saturating_mul(2));
                    }
                    Hint::Random => {}
                }
                self.charge(number, now, self.cpu.call)
            }
            Op::WillNeed { open, at, bytes } => self.will_need(now, number, open, at, bytes),
            Op::LookUp { ns } => self.charge(number, now, ns),
            Op::Compute { ns } => {
                process.outcome.user += ns;
                self.charge(number, now, ns)
            }
            Op::SleepUntil { at } => Pause::Until(at.max(now)),
            Op::Stamp { label } => {
                process.outcome.stamps.push((label, now));
                Pause::Finished(now)
            }
            Op::Park => {
                process.doing = Doing::Parked;
                process.outcome.ended = now;
                Pause::Blocked
            }
            Op::Exit => {
                process.doing = Doing::Ended;
                process.outcome.ended = now;
                self.block.exited(now, number);
                self.note_exited(now, number);
                Pause::Blocked
            }
        }
    }

    fn begin_read(
        &mut self,
        now: Nanos,
        number: u32,
        open: OpenFile,
        at: u64,
        asked: u64,
        taken: u64,
    ) -> Pause {
        let pages = self.file_pages(open.0);
        let page = at / PAGE_BYTES;
        let end = |bytes: u64| (at + bytes).div_ceil(PAGE_BYTES).min(pages);
        self.processes[number as usize].doing = Doing::Reading(Reading {
            open: open.0,
            page,
            end: end(taken),
            asked_end: end(asked),
            call_at: Some(page),
            is_asked: false,
            is_plugged: false,
            was_absent: false,
            waits_for: None,
            is_fault: false,
        });
        self.charge(number, now, self.cpu.call)
    }

    fn will_need(&mut self, now: Nanos, number: u32, open: OpenFile, at: u64, bytes: u64) -> Pause {
        let (file, start) = (self.opens[open.0 as usize].file, at / PAGE_BYTES);
        let asked = (at + bytes).div_ceil(PAGE_BYTES) - start;
        let (cause, behalf) = (Cause::Random, Behalf { process: number, reader: number });
        let read = self.read_range(now, file, (start, asked), cause, 0, behalf).pages;
        self.note(Decision { file, start, asked, read, cause });
        self.block.dispatch(now);
        self.charge(number, now, self.cpu.call + read * self.cpu.fill)
    }

    pub(crate) fn file_pages(&self, open: u32) -> u64 {
        self.cache.file(self.opens[open as usize].file).pages()
    }

    fn charge(&mut self, number: u32, now: Nanos, ns: Nanos) -> Pause {
        self.processes[number as usize].outcome.cpu += ns;
        Pause::Finished(now + ns)
    }
}
