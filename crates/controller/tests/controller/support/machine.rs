//! A small machine: files and their cached pages, disks that take time, open files with windows, a journal.
//!
//! ```text
//!   read, pass, fault ---> inputs ---> controller ---> commands ---> carried out here
//!                            ^                                          |
//!                            +------ answers, late ---------------------+
//! ```

use std::collections::{BTreeMap, BTreeSet};

use controller::ids::{BackingId, DeviceNumber, FileKey, OpenFile, StreamKey, Target, Tgid};
use controller::{
    Access, Advice, Attributes, CHUNK_PAGES, Command, Completed, Controller, DiskStats, Failure,
    Input, Interest, Kind, Listening, Nanos, Options, Passed, WindowOutcome, WindowSetting,
};
use readahead::behind::Span;
use readahead::{DeviceCost, Mark};

use super::law::Law;
use super::manners::Manners;
use super::{DEV, DISK, FILE_PAGES, MS, SECOND, WINDOW, facts, memory, mounted, reference};

/// A stream causes an event for drop-behind every 4 MiB.
const PASSED_PAGES: u64 = 1024;

#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Page {
    cached: bool,
    dirty: bool,
    /// Held by somebody, so that it cannot be dropped.
    held: bool,
}

struct File {
    pages: Vec<Page>,
    marks: Vec<Mark>,
    listening: Listening,
}

/// An open file.
#[derive(Clone, Copy)]
pub(crate) struct Open {
    ino: u64,
    tgid: Tgid,
    pub(crate) window: u32,
    pub(crate) advice: Advice,
    previous: Option<u64>,
}

/// See the [module](self).
pub(crate) struct Machine {
    pub(crate) controller: Controller,
    pub(crate) now: Nanos,
    pub(crate) manners: Manners,
    /// All commands so far.
    pub(crate) log: Vec<Command>,
    pub(crate) law: Law,
    pub(crate) watched: BTreeMap<DeviceNumber, Interest>,
    pub(crate) counted: BTreeSet<BackingId>,
    pub(crate) attributes: Attributes,
    /// Changed windows, and what each was before.
    pub(crate) journal: BTreeMap<Target, u32>,
    /// What a probe finds.
    pub(crate) true_cost: Option<DeviceCost>,
    /// Entries of the journal that an earlier run has left.
    pub(crate) left_behind: u32,
    pub(crate) stats: DiskStats,
    latency_ns: Nanos,
    files: BTreeMap<FileKey, File>,
    opens: BTreeMap<OpenFile, Open>,
    touched: BTreeMap<StreamKey, Span>,
    watched_processes: BTreeSet<Tgid>,
    ended: BTreeSet<Tgid>,
    is_looking_behind: bool,
    /// Answers under way: when each is due, and in which order they were given.
    answers: BTreeMap<(Nanos, u64), Input>,
    answered: u64,
    next_tick: Nanos,
    is_off: bool,
}

impl Machine {
    /// With 8 GiB of memory and one volume on a disk of this cost.
    pub(crate) fn new(cost: DeviceCost, options: Options) -> Self {
        let mut machine = Machine::empty(options);
        machine.latency_ns = (cost.latency_s * 1e9) as Nanos;
        machine.give(&mounted(DEV, DISK, facts(cost)));
        machine
    }

    /// With no volume.
    pub(crate) fn empty(options: Options) -> Self {
        let mut out = Vec::new();
        let controller = super::adaptive(options, &mut out);
        let mut machine = Machine {
            controller,
            now: SECOND,
            manners: Manners::Orderly,
            log: Vec::new(),
            law: Law::default(),
            watched: BTreeMap::new(),
            counted: BTreeSet::new(),
            attributes: Attributes::default(),
            journal: BTreeMap::new(),
            true_cost: None,
            left_behind: 0,
            stats: DiskStats::default(),
            latency_ns: 0,
            files: BTreeMap::new(),
            opens: BTreeMap::new(),
            touched: BTreeMap::new(),
            watched_processes: BTreeSet::new(),
            ended: BTreeSet::new(),
            is_looking_behind: false,
            answers: BTreeMap::new(),
            answered: 0,
            next_tick: SECOND,
            is_off: false,
        };
        machine.carry_out(out);
        machine.give(&memory(8 << 30));
        machine
    }

    /// Gives an input to the controller, and carries out its commands.
    pub(crate) fn give(&mut self, input: &Input) {
        self.law.give(input);
        let mut out = Vec::new();
        self.controller.on(self.now, input, &mut out);
        self.is_within_depth(&out);
        self.carry_out(out);
        self.next_tick = self.next_tick.min(self.controller.next_tick(self.now)).max(self.now);
    }

    /// Checks that at most the depth and one window are in flight.
    fn is_within_depth(&self, out: &[Command]) {
        if out.iter().any(|command| matches!(command, Command::Read { .. })) {
            for device in self.controller.status(self.now).devices {
                let most = device.depth_bytes + (device.depth_bytes / 8).max(1 << 20);
                assert!(device.in_flight_bytes <= most, "{device:?}");
            }
        }
    }

    /// Time passes.
    pub(crate) fn wait(&mut self, ns: Nanos) {
        let until = self.now.saturating_add(ns);
        loop {
            let answer = self.answers.first_key_value().map_or(Nanos::MAX, |((due, _), _)| *due);
            let due = answer.min(self.next_tick);
            if due > until {
                break;
            }
            self.now = self.now.max(due);
            if answer <= self.next_tick {
                let (_, input) = self.answers.pop_first().expect("one is due");
                self.give(&input);
            } else {
                self.next_tick = Nanos::MAX;
                self.give(&Input::DiskStats(DISK, self.stats));
                self.give(&Input::Tick);
            }
        }
        self.now = until;
    }

    /// The next commands are not carried out, nor answered, until [`Machine::turn_on`].
    pub(crate) fn turn_off(&mut self) {
        self.is_off = true;
    }

    pub(crate) fn turn_on(&mut self) {
        self.is_off = false;
    }

    pub(crate) fn open(&mut self, number: u64, ino: u64, tgid: Tgid) -> OpenFile {
        let (window, advice) = (WINDOW, Advice::default());
        let open = Open { ino, tgid, window, advice, previous: None };
        self.opens.insert(OpenFile(number), open);
        OpenFile(number)
    }

    pub(crate) fn is_open(&self, open_file: OpenFile) -> bool {
        self.opens.contains_key(&open_file)
    }

    pub(crate) fn opened(&mut self, open_file: OpenFile) -> &mut Open {
        self.opens.get_mut(&open_file).expect("it is open")
    }

    fn file_mut(&mut self, ino: u64) -> &mut File {
        let of = reference(ino, 1).file;
        self.files.entry(of).or_insert_with(|| File {
            pages: vec![Page::default(); FILE_PAGES as usize],
            marks: Vec::new(),
            listening: Listening::default(),
        })
    }

    pub(crate) fn cached(&mut self, ino: u64, pages: Span) -> u64 {
        let file = self.file_mut(ino);
        let pages = &file.pages[pages.start as usize..pages.end as usize];
        pages.iter().filter(|page| page.cached).count() as u64
    }

    /// What the disk has written.
    pub(crate) fn clean(&mut self, ino: u64) {
        self.file_mut(ino).pages.iter_mut().for_each(|page| page.dirty = false);
    }

    /// Somebody uses these pages.
    pub(crate) fn hold(&mut self, ino: u64, pages: Span, held: bool) {
        let span = pages.start as usize..pages.end as usize;
        self.file_mut(ino).pages[span].iter_mut().for_each(|page| page.held = held);
    }

    /// The program reads. Returns the pages that it had to wait for.
    pub(crate) fn read(&mut self, open_file: OpenFile, page: u64, pages: u64) -> u64 {
        let mut waits = 0;
        let end = (page + pages).min(FILE_PAGES);
        for at in page..end {
            waits += u64::from(self.touch(open_file, at, end));
        }
        if let Some(open) = self.opens.get_mut(&open_file) {
            open.previous = Some(end - 1);
        }
        self.wait(MS / 20);
        waits
    }

    /// Touches one page. Returns whether it was absent.
    fn touch(&mut self, open_file: OpenFile, page: u64, end: u64) -> bool {
        let open = self.opens[&open_file];
        let now = self.now;
        let file = self.file_mut(open.ino);
        let is_marked = file.listening.marked_chunks >> (page / CHUNK_PAGES % 64) & 1 == 1;
        let marked = file.marks.iter().position(|m| (m.first..=m.last).contains(&page));
        let mark = marked.filter(|_| is_marked).map(|at| file.marks.remove(at));
        let is_absent = !file.pages[page as usize].cached;
        let is_heard = file.listening.muted_until <= now;
        if let Some(mark) = mark {
            let mark = Some((mark.first, mark.last));
            self.access(open_file, Access { kind: Kind::Mark, mark, ..self.at(open, page, end) });
        } else if is_absent && is_heard {
            self.access(open_file, self.at(open, page, end));
        }
        if is_absent {
            self.wait(self.latency_ns);
            let is_forward = open.previous.is_none_or(|before| before + 1 == page) || page == 0;
            let window = if is_forward && !open.advice.random { open.window.into() } else { 1 };
            self.fill(open.ino, Span { start: page, end: (page + window).max(end) });
        }
        is_absent
    }

    fn at(&self, open: Open, page: u64, end: u64) -> Access {
        Access {
            of: reference(open.ino, open.tgid),
            request_pages: (end - page) as u32,
            previous: open.previous,
            kernel_window: open.window,
            advice: open.advice,
            ..super::miss(open.ino, page)
        }
    }

    fn access(&mut self, open_file: OpenFile, access: Access) {
        self.give(&Input::Access(Access { open_file: Some(open_file), ..access }));
    }

    fn fill(&mut self, ino: u64, pages: Span) {
        let span = pages.start as usize..pages.end.min(FILE_PAGES) as usize;
        self.file_mut(ino).pages[span].iter_mut().for_each(|page| page.cached = true);
    }

    /// A process goes through a file, as drop-behind sees it.
    pub(crate) fn pass(&mut self, ino: u64, tgid: Tgid, written: bool, pages: Span) {
        let mut at = pages.start;
        while at < pages.end {
            let end = (at + PASSED_PAGES).min(pages.end);
            let step = Span { start: at, end };
            self.fill(ino, step);
            let span = at as usize..end as usize;
            let file = self.file_mut(ino);
            file.pages[span].iter_mut().for_each(|page| page.dirty |= written);
            let stream = StreamKey { file: reference(ino, tgid).file, tgid, written };
            let touched = self.touched.entry(stream).or_insert(step);
            *touched = Span { start: touched.start.min(at), end: touched.end.max(end) };
            if step.pages() == PASSED_PAGES || self.is_looking_behind {
                let of = reference(ino, tgid);
                self.give(&Input::Passed(Passed { of, written, ..super::passed(ino, step) }));
            }
            at = end;
            self.wait(MS);
        }
    }

    /// A process ends.
    pub(crate) fn exit(&mut self, tgid: Tgid) {
        self.ended.insert(tgid);
        self.opens.retain(|_, open| open.tgid != tgid);
        if self.watched_processes.remove(&tgid) {
            self.give(&Input::Exited(tgid));
        }
    }

    pub(crate) fn unmount(&mut self, dev: DeviceNumber) {
        self.give(&Input::Unmounted(dev));
        self.files.retain(|file, _| file.dev != dev);
        self.touched.retain(|stream, _| stream.file.dev != dev);
        // All open files of it are closed.
        self.opens.clear();
        self.journal.clear();
    }

    /// The commands that `which` picks.
    pub(crate) fn asked<T>(&self, which: impl Fn(&Command) -> Option<T>) -> Vec<T> {
        self.log.iter().filter_map(which).collect()
    }

    fn carry_out(&mut self, commands: Vec<Command>) {
        let mut read = None;
        for command in &commands {
            self.law.check(self.now, command);
            // A batch is answered once.
            let goes_on = match command {
                Command::Read { ticket, .. } => read.replace(*ticket) == Some(*ticket),
                _ => false,
            };
            if !self.is_off {
                self.carry_out_one(command, goes_on);
            }
        }
        self.log.extend(commands);
    }

    fn carry_out_one(&mut self, command: &Command, goes_on: bool) {
        let is_question = !matches!(
            command,
            Command::Mark(..)
                | Command::Listen(..)
                | Command::Watch(..)
                | Command::Count(..)
                | Command::Remember(..)
                | Command::LookBehind(_)
                | Command::ForgetStream(_)
                | Command::ForgetListing(_)
                | Command::WatchProcess(..)
        );
        if !is_question {
            return self.note(command);
        }
        let fate = self.manners.fate();
        let answer = match fate.is_done {
            true => self.perform(command),
            false => self.failure(command),
        };
        let answers = if goes_on { [None, None] } else { fate.answers };
        for delay in answers.into_iter().flatten() {
            self.answered += 1;
            let due = self.now.saturating_add(delay);
            self.answers.insert((due, self.answered), Input::Completed(answer.clone()));
        }
    }

    /// Carries out a command that needs no answer.
    fn note(&mut self, command: &Command) {
        match command {
            Command::Mark(file, mark) => {
                if let Some(file) = self.files.get_mut(file) {
                    file.marks.push(*mark);
                }
            }
            Command::Listen(file, listening) => {
                if let Some(file) = self.files.get_mut(file) {
                    file.listening = *listening;
                }
            }
            Command::Watch(dev, Some(interest)) => {
                self.watched.insert(*dev, *interest);
            }
            Command::Watch(dev, None) => {
                self.watched.remove(dev);
            }
            Command::Count(backing, true) => {
                self.counted.insert(*backing);
            }
            Command::Count(backing, false) => {
                self.counted.remove(backing);
            }
            Command::LookBehind(is_on) => self.is_looking_behind = *is_on,
            Command::WatchProcess(tgid, true) if self.ended.contains(tgid) => {
                self.answered += 1;
                self.answers.insert((self.now, self.answered), Input::Exited(*tgid));
            }
            Command::WatchProcess(tgid, true) => {
                self.watched_processes.insert(*tgid);
            }
            Command::WatchProcess(tgid, false) => {
                self.watched_processes.remove(tgid);
            }
            _ => {}
        }
    }

    /// Carries out a command, and returns its answer.
    fn perform(&mut self, command: &Command) -> Completed {
        match command {
            Command::Read { ticket, of, span, .. } => {
                self.fill(of.file.ino, *span);
                Completed::Read { ticket: *ticket, failed: None }
            }
            Command::Probe(backing) => {
                Completed::Probed { backing: *backing, cost: self.true_cost }
            }
            Command::SetWindow { ticket, target, setting, .. } => {
                let outcome = self.set_window(*target, *setting);
                let during = (self.now, self.now);
                Completed::WindowSet { ticket: Some(*ticket), target: *target, outcome, during }
            }
            Command::Describe(stream, _) => {
                Completed::Described { stream: *stream, attributes: self.attributes.clone() }
            }
            Command::Touched(stream) => {
                let span = self.touched.get(stream).copied();
                Completed::Touched { stream: *stream, span }
            }
            Command::WriteOut { ticket, .. } => Completed::WroteOut { ticket: *ticket },
            // There are no directories here; see `walks.rs`.
            Command::List { ticket, .. } => Completed::Listed { ticket: *ticket, listing: None },
            Command::ReadFiles { ticket, files, .. } => {
                let files = files.len() as u32;
                Completed::FilesRead { ticket: *ticket, files, bytes: 0 }
            }
            // No list is given here; see `remembered.rs`.
            Command::ReadRemembered { ticket, .. } => {
                Completed::RememberedRead { ticket: *ticket, found: Vec::new() }
            }
            Command::Recall(start) => Completed::Recalled { start: *start, list: Vec::new() },
            Command::Release { ticket, of, span, .. } => self.release(*ticket, of.file.ino, *span),
            other => unreachable!("{other:?} has no answer"),
        }
    }

    fn set_window(&mut self, target: Target, setting: WindowSetting) -> WindowOutcome {
        let open = match target {
            Target::OpenFile(open_file) => self.opens.get_mut(&open_file),
            Target::Mapping(..) | Target::Recovered(_) => None,
        };
        let is_gone = matches!(target, Target::OpenFile(_)) && open.is_none();
        let mut other =
            Open { ino: 0, tgid: 0, window: WINDOW, advice: Advice::default(), previous: None };
        let open = open.unwrap_or(&mut other);
        let before = self.journal.get(&target).copied();
        match setting {
            WindowSetting::Own | WindowSetting::Abandoned => {
                if setting == WindowSetting::Own {
                    (open.window, open.advice.random) = (before.unwrap_or(open.window), false);
                }
                self.journal.remove(&target);
                WindowOutcome::Own
            }
            _ if is_gone => {
                self.journal.remove(&target);
                WindowOutcome::Own
            }
            WindowSetting::Bounded(pages) | WindowSetting::Larger(pages) => {
                let own_pages = *self.journal.entry(target).or_insert(open.window);
                open.window = pages;
                WindowOutcome::Set { own_pages }
            }
            WindowSetting::NoLookAhead => {
                let own_pages = *self.journal.entry(target).or_insert(open.window);
                open.advice.random = true;
                WindowOutcome::Set { own_pages }
            }
        }
    }

    fn release(&mut self, ticket: controller::ids::Ticket, ino: u64, span: Span) -> Completed {
        let (mut dropped_pages, mut left) = (0, Vec::<(Span, u64)>::new());
        let file = self.file_mut(ino);
        for at in span.start..span.end.min(FILE_PAGES) {
            let page = &mut file.pages[at as usize];
            if page.cached && (page.dirty || page.held) {
                match left.last_mut().filter(|(span, _)| span.end == at) {
                    Some((span, pages)) => (span.end, *pages) = (at + 1, *pages + 1),
                    None => left.push((Span { start: at, end: at + 1 }, 1)),
                }
            } else if page.cached {
                (*page, dropped_pages) = (Page::default(), dropped_pages + 1);
            }
        }
        Completed::Released { ticket, dropped_pages, kept_pages: 0, left }
    }

    /// The answer to a command that was not carried out.
    fn failure(&mut self, command: &Command) -> Completed {
        match command {
            Command::Read { ticket, .. } => {
                Completed::Read { ticket: *ticket, failed: Some(Failure::NotOpened) }
            }
            Command::Probe(backing) => Completed::Probed { backing: *backing, cost: None },
            Command::SetWindow { ticket, target, .. } => Completed::WindowSet {
                ticket: Some(*ticket),
                target: *target,
                outcome: WindowOutcome::Failed,
                during: (self.now, self.now),
            },
            Command::Touched(stream) => Completed::Touched { stream: *stream, span: None },
            Command::Release { ticket, span, .. } => Completed::Released {
                ticket: *ticket,
                dropped_pages: 0,
                kept_pages: 0,
                left: vec![(*span, span.pages())],
            },
            other => self.perform(other),
        }
    }
}
