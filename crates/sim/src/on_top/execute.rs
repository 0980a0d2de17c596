//! Carries out commands, and answers them.

use controller::ids::{FileRef, Target, Ticket};
use controller::{Attributes, Command, Completed, Input, WindowOutcome, WindowSetting};
use historical::Asked;
use readahead::behind::Span;
use readahead::{Cause, Hint, Nanos};

use super::{Body, Due};
use crate::account::Decision;
use crate::machine::{Machine, USER};
use crate::process::{Behalf, Open};

impl Machine {
    /// Processes the next event that is due. Returns whether there was one.
    pub(crate) fn process_due_event(&mut self, now: Nanos) -> bool {
        let Some(body) = &mut self.body else { return false };
        match body.take_due(now) {
            Some(Due::Command(command)) => self.carry_out(now, command),
            Some(Due::Input(input)) => self.answer(now, &input),
            Some(Due::Submit) => self.block.dispatch(now),
            Some(Due::Heads(heads)) => self.read_heads(now, heads),
            Some(Due::Ranges(ranges)) => self.read_ranges(now, ranges),
            None if body.tick_at <= now => {
                self.report_disk(now);
                self.give_input(now, &Input::Tick);
            }
            None => return false,
        }
        true
    }

    fn carry_out(&mut self, now: Nanos, command: Command) {
        let completed = match command {
            Command::Read { ticket, of, span, why } => {
                return self.read_ahead(now, ticket, of, span, why);
            }
            Command::SetWindow { ticket, target, file, setting, .. } => {
                let outcome = self.set_window(target, file.ino as u32, setting);
                Completed::WindowSet { ticket: Some(ticket), target, outcome, during: (now, now) }
            }
            Command::Describe(stream, _) => {
                let process = self.processes.get(stream.tgid as usize);
                let command = process.map(|process| process.name.clone()).unwrap_or_default();
                let attributes = Attributes { command, ..Attributes::default() };
                Completed::Described { stream, attributes }
            }
            Command::WriteOut { ticket, of, span } => {
                self.write_out(now, of.file.ino as u32, span.start, span.end);
                Completed::WroteOut { ticket }
            }
            Command::Release { ticket, stream, of, span, counted, drops_unused, unmaps } => {
                let file = of.file.ino as u32;
                let terms = crate::cache::Terms { owner: stream.tgid, drops_unused, unmaps };
                let released = self.cache.release(file, span, counted, terms);
                let (dropped_pages, kept_pages) = (released.dropped, released.kept);
                Completed::Released { ticket, dropped_pages, kept_pages, left: released.left }
            }
            Command::List { ticket, place, tgid } => self.list(ticket, place, tgid),
            Command::ReadFiles { ticket, tgid, files, head, most_bytes, .. } => {
                let heads = self.choose_heads((ticket, tgid), &files, head, most_bytes);
                return self.read_heads(now, heads);
            }
            Command::ReadRemembered { ticket, files, .. } => {
                let ranges = self.choose_ranges(ticket, &files);
                return self.read_ranges(now, ranges);
            }
            // These are carried out at once, or not at all.
            Command::ForgetListing(_)
            | Command::Mark(..)
            | Command::Listen(..)
            | Command::Watch(..)
            | Command::Count(..)
            | Command::Probe(_)
            | Command::Remember(..)
            | Command::LookBehind(_)
            | Command::Touched(_)
            | Command::ForgetStream(_)
            | Command::WatchProcess(..)
            | Command::Recall(_)
            | Command::KeepStart { .. } => return,
        };
        self.answer(now, &Input::Completed(completed));
    }

    /// Carries out one `readahead(2)`: a command's span, or as much of it as the kernel takes at once. One thread
    /// carries out the commands of a ticket, and the last one is answered.
    fn read_ahead(&mut self, now: Nanos, ticket: Ticket, of: FileRef, span: Span, why: Cause) {
        // What takes no time need not be divided.
        let most = match self.cpu.fill {
            0 => u64::MAX,
            _ => self.request_pages.max(u64::from(self.kernel_window)),
        };
        let (file, start, asked) = (of.file.ino as u32, span.start, span.pages().min(most));
        let behalf = Behalf { process: USER, reader: of.tgid };
        let read = self.read_range(now, file, (start, asked), why, 0, behalf).pages;
        self.note(Decision { file, start, asked, read, cause: why });
        let filled = now + read * self.cpu.fill;
        if filled == now {
            self.block.dispatch(now);
        }
        let Some(body) = &mut self.body else { return };
        let rest = Span { start: start + asked, end: span.end };
        if rest.pages() > 0 {
            let rest = Command::Read { ticket, of, span: rest, why };
            body.due.push_front((filled, Due::Command(rest)));
        }
        let is_of_ticket = |due: &Due| match due {
            Due::Command(Command::Read { ticket: other, .. }) => *other == ticket,
            _ => false,
        };
        let is_last = !body.due.iter().any(|(_, due)| is_of_ticket(due));
        let answer = Input::Completed(Completed::Read { ticket, failed: None });
        if filled == now {
            if is_last {
                self.answer(now, &answer);
            }
            return;
        }
        if is_last {
            body.due.push_front((filled, Due::Input(answer)));
        }
        body.due.push_front((filled, Due::Submit));
        for (at, due) in &mut body.due {
            *at = if is_of_ticket(due) { filled.max(*at) } else { *at };
        }
        body.due.make_contiguous().sort_by_key(|(at, _)| *at);
    }

    /// Answers a command. Reports the counters first, so that everything submitted is counted at least once.
    pub(super) fn answer(&mut self, now: Nanos, input: &Input) {
        self.report_disk(now);
        self.give_input(now, input);
    }

    /// Sets the requested marks, and notes the sizes of windows.
    pub(super) fn account(&mut self, commands: &[Command]) {
        let mut cause = None;
        let mut asked = Vec::new();
        let mut reader = None;
        for command in commands {
            match *command {
                Command::Read { of, span, why, .. } => {
                    cause = Some(why);
                    reader = Some((of.tgid, of.file.ino as u32));
                    asked.push(Asked { start: span.start, pages: span.pages(), cause: why });
                }
                Command::Mark(file, mark) => self.cache.set_mark(file.ino as u32, mark, cause),
                _ => {}
            }
        }
        let (Some(reader), Some(body)) = (reader, &mut self.body) else { return };
        let file_pages = self.cache.file(reader.1).pages();
        let window = body.windows.entry(reader).or_default();
        if let Some(cause) = window.next(&asked, file_pages) {
            self.matrix.row_mut(cause).shrinks += 1;
        }
    }

    /// Sets the kernel's window of open files, or gives them their own back.
    fn set_window(&mut self, target: Target, file: u32, setting: WindowSetting) -> WindowOutcome {
        let own_pages = self.kernel_window;
        let mut outcome = WindowOutcome::Failed;
        for (number, open) in (0..).zip(&mut self.opens) {
            let is_meant = match target {
                Target::OpenFile(id) => id.0 == number,
                Target::Mapping(tgid, _) => open.mapped_by == Some(tgid),
                Target::Recovered(_) => false,
            };
            if is_meant && open.file == file && !open.is_closed {
                outcome = open.set(setting, own_pages);
            }
        }
        outcome
    }
}

impl Open {
    /// Sets its window. The device's own window is `device_pages`.
    fn set(&mut self, setting: WindowSetting, device_pages: u32) -> WindowOutcome {
        let own = *self.own_window.get_or_insert(self.kernel_window);
        match setting {
            WindowSetting::Own | WindowSetting::Abandoned => {
                self.own_window = None;
                if setting == WindowSetting::Own {
                    self.kernel_window = own;
                    self.hint = if self.is_without_look_ahead { Hint::Normal } else { self.hint };
                }
                self.is_without_look_ahead = false;
                return WindowOutcome::Own;
            }
            WindowSetting::Bounded(pages) | WindowSetting::Larger(pages) => {
                self.kernel_window = Some(pages);
            }
            WindowSetting::NoLookAhead => {
                self.is_without_look_ahead = true;
                self.hint = Hint::Random;
            }
        }
        WindowOutcome::Set { own_pages: own.unwrap_or(device_pages) }
    }
}

impl Body {
    /// A reader missed a page that had been evicted before it came.
    pub(crate) fn note_thrashed(&mut self, number: u32, file: u32) {
        if let Some(window) = self.windows.get_mut(&(number, file)) {
            window.thrash();
        }
    }
}
