//! A scripted session: programs on a small machine with one disk and a page cache that keeps what
//! was read.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use controller::ids::{BackingId, CgroupId, DeviceNumber, FileKey, FileRef, OpenFile, Tgid};
use controller::{
    Access, Advice, Attributes, Command, Completed, Controller, DeviceFacts, DirectoryRef,
    DiskStats, Entry, EntryKind, FileMiss, Input, Kind, Listing, MemoryStats, Mounted, Nanos,
    Origin, Passed, WindowOutcome,
};
use readahead::behind::Span;
use readahead::{DeviceCost, History, Mark, Past};
use recording::{Header, Recorder};

/// The file system that holds all files.
pub(crate) const DISK: DeviceNumber = DeviceNumber { major: 8, minor: 1 };

const BACKING: BackingId = BackingId(0);
const READERS: CgroupId = CgroupId(1);
const MS: Nanos = 1_000_000;

/// The inode number of a folder; those of its files follow.
const FOLDER: u64 = 5000;

/// What a reader waits for a page that is absent.
const ACCESS_NS: Nanos = 5 * MS;

/// Pages per read: 64 KiB.
pub(crate) const REQUEST_PAGES: u64 = 16;

/// A machine that records.
pub(crate) struct Session {
    now: Nanos,
    controller: Controller,
    recorder: Option<Recorder>,
    answers: VecDeque<Input>,
    cached: BTreeMap<FileKey, BTreeSet<u64>>,
    marks: BTreeMap<FileKey, Vec<Mark>>,
    /// Number of releases answered. The first one releases nothing.
    released: u64,
    /// Number of inputs told.
    pub(crate) inputs: u64,
}

impl Session {
    /// Starts the machine and mounts the disk.
    pub(crate) fn begin(header: &Header, recorder: Option<Recorder>) -> Self {
        let mut commands = Vec::new();
        let policy = recording::policy(header.limits).expect("sane");
        let controller = Controller::new(header.options.clone(), policy, &mut commands);
        let mut session = Session {
            now: 1_000 * MS,
            controller,
            recorder,
            answers: VecDeque::new(),
            cached: BTreeMap::new(),
            marks: BTreeMap::new(),
            released: 0,
            inputs: 0,
        };
        if let Some(recorder) = &mut session.recorder {
            recorder.begun(session.now, &commands);
        }
        session.carry_out(commands);
        let machine =
            MemoryStats::Machine { available_bytes: Some(1 << 30), own_cgroup_bytes: None };
        session.tell(Input::MemoryStats(machine));
        let device =
            DeviceFacts { cost: DeviceCost::DISK, origin: Origin::Guessed, is_counted: true };
        session.tell(Input::Mounted(Mounted { dev: DISK, backing: BACKING, device }));
        session.tell(Input::History(DISK, Box::new(history())));
        session.tell(Input::DiskStats(BACKING, DiskStats::default()));
        session
    }

    /// A file on the disk that a process has open.
    pub(crate) fn file(ino: u64, tgid: Tgid) -> FileRef {
        FileRef { file: FileKey { dev: DISK, ino }, generation: 77, tgid }
    }

    /// Tells the controller an input, executes its commands and answers them.
    pub(crate) fn tell(&mut self, input: Input) {
        self.answers.push_back(input);
        while let Some(input) = self.answers.pop_front() {
            self.now += MS / 20;
            let mut commands = Vec::new();
            self.controller.on(self.now, &input, &mut commands);
            if let Some(recorder) = &mut self.recorder {
                recorder.note(self.now, &input, &commands);
            }
            self.inputs += 1;
            self.carry_out(commands);
        }
    }

    fn carry_out(&mut self, commands: Vec<Command>) {
        let mut tickets = BTreeSet::new();
        for command in commands {
            let answer = match command {
                Command::Read { ticket, of, span, .. } => {
                    self.cached.entry(of.file).or_default().extend(span.start..span.end);
                    if !tickets.insert(ticket) {
                        continue;
                    }
                    Completed::Read { ticket, failed: None }
                }
                Command::Mark(file, mark) => {
                    self.marks.entry(file).or_default().push(mark);
                    continue;
                }
                Command::Probe(backing) => {
                    // The virtual disk cannot be opened.
                    let cost = DeviceCost { latency_s: 0.009, ..DeviceCost::DISK };
                    Completed::Probed { backing, cost: (backing == BACKING).then_some(cost) }
                }
                Command::SetWindow { ticket, target, kernel_window, .. } => {
                    let outcome = WindowOutcome::Set { own_pages: kernel_window };
                    let (ticket, during) = (Some(ticket), (self.now, self.now + 60_000));
                    Completed::WindowSet { ticket, target, outcome, during }
                }
                Command::Describe(stream, _) => {
                    let path = format!("/srv/backup/{}", stream.file.ino);
                    let cgroups = vec!["/backup.slice".to_owned()];
                    let attributes = Attributes { path, cgroups, command: "tar".into() };
                    Completed::Described { stream, attributes }
                }
                Command::Touched(stream) => {
                    Completed::Touched { stream, span: Some(Span { start: 0, end: 3000 }) }
                }
                Command::List { ticket, place, .. } => {
                    let directory = DirectoryRef { key: place.key(), generation: 77 };
                    let entry = |n: u32| Entry {
                        ino: FOLDER + 1 + u64::from(n * 7 % 64),
                        name_rank: n,
                        suffix: 0,
                        kind: EntryKind::File,
                    };
                    let entries = (0..64).map(entry).collect::<Vec<_>>().into();
                    let listing = Some(Listing { directory, parent: None, entries });
                    Completed::Listed { ticket, listing }
                }
                Command::ReadFiles { ticket, dev, files, .. } => {
                    for at in &files {
                        let ino = FOLDER + 1 + u64::from(at.entry * 7 % 64);
                        self.cached.entry(FileKey { dev, ino }).or_default().extend(0..16);
                    }
                    let count = files.len() as u32;
                    Completed::FilesRead { ticket, files: count, bytes: files.len() as u64 * 4096 }
                }
                Command::WriteOut { ticket, .. } => Completed::WroteOut { ticket },
                Command::Release { ticket, span, .. } => {
                    self.released += 1;
                    let is_first = self.released == 1;
                    let dropped_pages = if is_first { 0 } else { span.pages() };
                    let left = if is_first { vec![(span, span.pages())] } else { Vec::new() };
                    Completed::Released { ticket, dropped_pages, kept_pages: 0, left }
                }
                _ => continue,
            };
            self.answers.push_back(Input::Completed(answer));
        }
    }

    /// A program reads. The read is reported if a page is absent or marked.
    pub(crate) fn read(&mut self, of: FileRef, page: u64, previous: Option<u64>, file_pages: u64) {
        let cached = self.cached.entry(of.file).or_default();
        let pages = page..page + REQUEST_PAGES;
        let absent = pages.clone().find(|page| !cached.contains(page));
        cached.extend(pages.clone());
        let marks = self.marks.entry(of.file).or_default();
        let touched = marks.iter().position(|m| m.first < pages.end && m.last >= pages.start);
        let mark = touched.map(|at| marks.swap_remove(at));
        let kind = match (absent, mark) {
            (Some(_), _) => Kind::Miss,
            (None, Some(_)) => Kind::Mark,
            (None, None) => return,
        };
        self.tell(Input::Access(Access {
            kind,
            of,
            open_file: Some(OpenFile(0xffff_8880_0000_0000 | of.file.ino << 8)),
            cgroup: READERS,
            page: absent.unwrap_or(page),
            request_pages: REQUEST_PAGES as u32,
            previous,
            file_bytes: file_pages << 12,
            kernel_window: 32,
            mapped: false,
            advice: Advice::default(),
            past: if kind == Kind::Miss && page.is_multiple_of(64) {
                Past::EvictedUnused
            } else {
                Past::Unknown
            },
            mark: mark.filter(|_| kind == Kind::Mark).map(|mark| (mark.first, mark.last)),
        }));
        if kind == Kind::Miss {
            self.pass_time(ACCESS_NS);
        }
    }

    /// A program reads the 64 files of a folder, in the order in which they were created.
    pub(crate) fn walk(&mut self, tgid: Tgid) {
        let key = FileKey { dev: DISK, ino: FOLDER };
        for of in (1..=64).map(|n| Session::file(FOLDER + n, tgid)) {
            if !self.cached.entry(of.file).or_default().contains(&0) {
                let directory = DirectoryRef { key, generation: 77 };
                let (file_bytes, request_pages) = (16 << 12, REQUEST_PAGES as u32);
                let miss =
                    FileMiss { of, cgroup: CgroupId(9), directory, file_bytes, request_pages };
                self.tell(Input::FileMiss(miss));
            }
            self.read(of, 0, None, 16);
            self.pass_time(MS);
        }
    }

    /// A program reads a file from its end to its beginning, with 1 ms of work after each read.
    pub(crate) fn read_backward(&mut self, of: FileRef, file_pages: u64) {
        let mut previous = None;
        for page in (0..file_pages / REQUEST_PAGES).rev().map(|request| request * REQUEST_PAGES) {
            self.read(of, page, previous, file_pages);
            previous = Some(page);
            self.pass_time(MS);
        }
    }

    /// A program reads the first `pages` pages of a file.
    pub(crate) fn read_forward(&mut self, of: FileRef, pages: u64, file_pages: u64) {
        let mut previous = None;
        for page in (0..pages / REQUEST_PAGES).map(|request| request * REQUEST_PAGES) {
            self.read(of, page, previous, file_pages);
            previous = Some(page + REQUEST_PAGES - 1);
            self.pass_time(MS);
        }
    }

    /// A program reads or writes its way through a file. This is reported every 4 MiB.
    pub(crate) fn pass(&mut self, of: FileRef, pages: u64, file_pages: u64, written: bool) {
        for start in (0..pages).step_by(1024) {
            self.tell(Input::Passed(Passed {
                of,
                cgroup: READERS,
                file_bytes: file_pages << 12,
                written,
                mapped: false,
                foreground: false,
                span: Span { start, end: start + 1024 },
            }));
            self.pass_time(5 * MS);
        }
    }

    /// Mounts a virtual disk that is first taken for a rotating one, then found to be faster.
    pub(crate) fn learn_a_disk(&mut self) {
        let (dev, backing) = (DeviceNumber { major: 253, minor: 0 }, BackingId(1));
        let device =
            DeviceFacts { cost: DeviceCost::DISK, origin: Origin::Learned, is_counted: true };
        self.tell(Input::Mounted(Mounted { dev, backing, device }));
        let stats = DiskStats { seek_reads: 100, seek_ns: 100 * 2 * MS, ..DiskStats::default() };
        self.tell(Input::DiskStats(backing, stats));
        let file = FileKey { dev, ino: 7 };
        self.read_backward(FileRef { file, generation: 1, tgid: 45 }, 256);
    }

    /// Limits the memory cgroup of all readers, whose tasks then wait for memory.
    pub(crate) fn limit_memory(&mut self, file_bytes: u64) {
        let stats = MemoryStats::Cgroup {
            cgroup: READERS,
            file_bytes: Some(file_bytes),
            stalled_percent: 12.5,
        };
        self.tell(Input::MemoryStats(stats));
    }

    /// Lets time pass, and calls the controller when it asked for that.
    pub(crate) fn pass_time(&mut self, for_ns: Nanos) {
        let until = self.now + for_ns;
        let mut tick = self.controller.next_tick(self.now);
        while tick < until {
            self.now = tick;
            self.tell(Input::Tick);
            tick = self.controller.next_tick(self.now);
        }
        self.now = self.now.max(until);
    }

    /// Shuts the controller down and finishes the recording. Returns its totals, if one was made.
    pub(crate) fn finish(mut self) -> Option<recording::Totals> {
        self.controller.finish();
        if let Some(recorder) = &mut self.recorder {
            recorder.finishing(self.now);
        }
        self.tell(Input::Tick);
        self.recorder.map(|recorder| recorder.finish().expect("there is room"))
    }
}

/// A sample session: a backward reader, two forward ones, a backup that drops behind, little
/// memory, the end.
pub(crate) fn play(session: &mut Session) {
    session.read_backward(Session::file(1001, 41), 4096);
    session.read_forward(Session::file(1002, 42), 1024, 1 << 20);
    session.walk(46);
    session.pass(Session::file(1003, 43), 8192, 8192, false);
    session.pass(Session::file(1004, 43), 8192, 8192, true);
    session.learn_a_disk();
    session.limit_memory(1 << 20);
    session.read_forward(Session::file(1005, 44), 512, 1 << 20);
    let file = Session::file(1006, 0).file;
    session.tell(Input::Completed(Completed::LeftBehind { entry: 1, file }));
    session.tell(Input::Exited(43));
    session.pass_time(12_000 * MS);
    session.tell(Input::Unmounted(DISK));
}

/// Files of which a few were read whole.
fn history() -> History {
    let text = r#"{"completion_rate":{"begun":5.0,"ended":4.0},
        "starts":{"misses":9.0,"forward":2.0,"backward":1.0},"curve":[[9,1.0,4.0,20]]}"#;
    serde_json::from_str(text).expect("a history")
}
