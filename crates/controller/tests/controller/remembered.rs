//! Commands whose start is remembered.

use std::collections::{BTreeMap, BTreeSet};

use controller::ids::{CgroupId, FileRef, StartId, Tgid, Ticket};
use controller::{
    Access, Command, Completed, FilePages, Found, Input, Kind, MemoryStats, Nanos, Options,
    REMEMBERED_RANGES, RememberedFile, RememberedRange, Version,
};
use proptest::collection::vec;
use proptest::prelude::*;
use readahead::behind::Span;
use readahead::{DeviceCost, Mark, PAGE_BYTES};

use crate::support::{Bench, DEV, MS, SECOND, VOLUME, fault, file, memory, miss, reference, span};
use crate::walks::{Forest, Sort};

/// Pages of each file that a command reads here: less than the kernel's first window.
pub(crate) const PAGES: u64 = 3;

/// The version of all files: none of them changes.
const VERSION: Version = Version { bytes: PAGES * PAGE_BYTES, changed_ns: 7 };

/// After this long, learning has ended, and nobody waits for a mark any more.
pub(crate) const LET_GO: Nanos = 41 * SECOND;

/// Ranges that a start may ask for when the command has used one: 16 to begin with, and 8 more for each used range.
const CREDIT: usize = 24;

fn listed(ino: u64, ranges: &[Span]) -> RememberedFile {
    let range = |pages: &Span| RememberedRange { pages: *pages, starts_in_vain: 0 };
    let ranges = ranges.iter().map(range).collect();
    RememberedFile { file: file(ino), generation: 0, version: Some(VERSION), ranges }
}

/// A list of these files with the first [`PAGES`] pages of each.
pub(crate) fn list(inos: impl IntoIterator<Item = u64>) -> Vec<RememberedFile> {
    inos.into_iter().map(|ino| listed(ino, &[span(0, PAGES)])).collect()
}

pub(crate) fn inos(list: &[RememberedFile]) -> Vec<u64> {
    list.iter().map(|file| file.file.ino).collect()
}

/// A machine on which a command starts.
pub(crate) struct Start {
    pub(crate) bench: Bench,
    cached: BTreeSet<u64>,
    gone: BTreeSet<u64>,
    marks: BTreeSet<u64>,
    /// Files that were asked for, in order.
    pub(crate) asked: Vec<u64>,
    batches: usize,
    /// Files that the command waited for.
    pub(crate) waits: usize,
    /// What is known of starts that processes join.
    pub(crate) lists: BTreeMap<StartId, Vec<RememberedFile>>,
    /// What was to be kept of these.
    pub(crate) kept: BTreeMap<StartId, Vec<RememberedFile>>,
    /// Processes whose end is to be reported.
    pub(crate) watched: BTreeSet<Tgid>,
}

impl Start {
    fn new(cost: DeviceCost, list: Vec<RememberedFile>) -> Self {
        Start::with(Bench::new(cost, Options::default()), list, [])
    }

    fn with(
        bench: Bench,
        list: Vec<RememberedFile>,
        cached: impl IntoIterator<Item = u64>,
    ) -> Self {
        let mut start = Start::idle(bench);
        start.cached.extend(cached);
        start.tell(&Input::Remembered(list));
        start
    }

    pub(crate) fn idle(bench: Bench) -> Self {
        Start {
            bench,
            cached: BTreeSet::new(),
            gone: BTreeSet::new(),
            marks: BTreeSet::new(),
            asked: Vec::new(),
            batches: 0,
            waits: 0,
            lists: BTreeMap::new(),
            kept: BTreeMap::new(),
            watched: BTreeSet::new(),
        }
    }

    pub(crate) fn tell(&mut self, input: &Input) {
        let mut commands = self.bench.on(input);
        while !commands.is_empty() {
            let answers: Vec<Input> =
                commands.iter().filter_map(|command| self.carry_out(command)).collect();
            commands = answers.iter().flat_map(|answer| self.bench.on(answer)).collect();
        }
    }

    fn carry_out(&mut self, command: &Command) -> Option<Input> {
        match command {
            Command::ReadRemembered { ticket, files, .. } => {
                self.batches += 1;
                let found = files.iter().flat_map(|of| vec![self.read_ahead(of); of.spans.len()]);
                let (ticket, found) = (*ticket, found.collect());
                Some(Input::Completed(Completed::RememberedRead { ticket, found }))
            }
            Command::Mark(of, Mark { first: 0, .. }) => {
                self.marks.insert(of.ino);
                None
            }
            Command::Recall(start) => {
                let list = self.lists.get(start)?.clone();
                Some(Input::Completed(Completed::Recalled { start: *start, list }))
            }
            Command::KeepStart { start, files } => {
                self.kept.insert(*start, files.clone());
                None
            }
            Command::WatchProcess(tgid, is_watched) => {
                match is_watched {
                    true => self.watched.insert(*tgid),
                    false => self.watched.remove(tgid),
                };
                None
            }
            _ => None,
        }
    }

    fn read_ahead(&mut self, of: &FilePages) -> Found {
        assert_eq!(of.version, VERSION);
        self.asked.push(of.file.ino);
        match () {
            () if self.gone.contains(&of.file.ino) => Found::Gone,
            () if !self.cached.insert(of.file.ino) => Found::Cached,
            () => Found::Read,
        }
    }

    /// The command reads these files, one after the other.
    fn reads(&mut self, inos: impl IntoIterator<Item = u64>) {
        self.process_reads(1, inos);
    }

    /// A process reads these files, one after the other.
    pub(crate) fn process_reads(&mut self, tgid: Tgid, inos: impl IntoIterator<Item = u64>) {
        for ino in inos {
            self.bench.now += MS;
            let is_cached = !self.cached.insert(ino);
            let is_marked = self.marks.remove(&ino);
            self.waits += usize::from(!is_cached);
            let access = Access {
                of: reference(ino, tgid),
                kind: if is_marked && is_cached { Kind::Mark } else { Kind::Miss },
                mark: (is_marked && is_cached).then_some((0, PAGES - 1)),
                request_pages: PAGES as u32,
                file_bytes: PAGES * PAGE_BYTES,
                ..miss(ino, 0)
            };
            if is_marked || !is_cached {
                self.tell(&Input::Access(access));
            }
        }
    }

    fn list(&self) -> Vec<RememberedFile> {
        self.bench.controller.remembered()
    }

    /// The list, after the body has looked at the files that are new in it.
    fn next_list(&self) -> Vec<RememberedFile> {
        let look = |of: RememberedFile| RememberedFile { version: Some(VERSION), ..of };
        self.list().into_iter().map(look).collect()
    }
}

/// Inode numbers from 1000 on, in an irregular order.
pub(crate) fn irregular(files: u64) -> impl Iterator<Item = u64> {
    (0..files).map(move |n| 1000 + n * 61 % files)
}

#[test]
fn a_first_start_asks_for_nothing_and_is_remembered_in_its_order() {
    let mut start = Start::new(VOLUME, Vec::new());
    start.reads(irregular(100));
    assert_eq!(start.asked, [0; 0]);
    assert_eq!(inos(&start.list()), irregular(100).collect::<Vec<_>>());
    for of in start.list() {
        let range = RememberedRange { pages: span(0, PAGES), starts_in_vain: 0 };
        assert_eq!((of.version, of.ranges), (None, vec![range]), "the body looks at it");
    }
}

#[test]
fn a_start_is_remembered_only_if_that_was_asked_for() {
    let mut bench = Bench::new(VOLUME, Options::default());
    bench.access(miss(1, 0));
    assert_eq!(bench.controller.remembered(), []);
}

#[test]
fn the_next_start_waits_for_hardly_any_file() {
    for (cost, most_batches) in [(VOLUME, 100), (DeviceCost::DISK, 3)] {
        let mut start = Start::new(cost, list(irregular(300)));
        start.reads(irregular(300));
        assert_eq!(start.waits, 1, "for the first one, on {cost:?}");
        assert_eq!(start.asked, irregular(300).skip(1).collect::<Vec<_>>(), "in order, and once");
        assert!(start.batches <= most_batches, "{} batches on {cost:?}", start.batches);
        assert_eq!(start.next_list(), list(irregular(300)), "it stays as it is");
        let metrics = start.bench.controller.metrics();
        assert_eq!((metrics.remembered_ranges, metrics.remembered_used), (299, 299));
        assert_eq!(metrics.remembered_bytes, 299 * PAGES * PAGE_BYTES);
        assert!((metrics.earned_s - 299.0 * cost.latency_s).abs() < 1e-6, "{}", metrics.earned_s);
        assert!(metrics.spent_s < metrics.earned_s / 4.0, "{}", metrics.spent_s);
    }
}

#[test]
fn a_stale_list_costs_nothing() {
    for cost in [VOLUME, DeviceCost::DISK] {
        let mut start = Start::new(cost, list(irregular(300)));
        start.reads(5000..5200);
        assert_eq!(start.asked, [0; 0], "{cost:?}");
        let next = inos(&start.list());
        assert_eq!(next[..200], (5000..5200).collect::<Vec<_>>(), "what was read comes first");
        assert_eq!(next.len(), 500, "the rest is not forgotten at once");
    }
}

#[test]
fn a_list_most_of_which_is_stale_costs_no_more_than_a_first_credit() {
    for cost in [VOLUME, DeviceCost::DISK] {
        let mut start = Start::new(cost, list(irregular(300)));
        start.reads(irregular(300).skip(200).take(1).chain(5000..5200));
        assert_eq!(start.asked.len(), CREDIT, "{cost:?}");
    }
}

#[test]
fn a_list_of_files_that_are_gone_costs_no_more_than_a_first_credit() {
    for cost in [VOLUME, DeviceCost::DISK] {
        let mut start = Start::idle(Bench::new(cost, Options::default()));
        start.gone = irregular(300).skip(1).collect();
        start.tell(&Input::Remembered(list(irregular(300))));
        start.reads(irregular(300).take(1).chain(5000..5200));
        assert_eq!(start.asked.len(), CREDIT, "{cost:?}");
    }
}

#[test]
fn a_command_that_goes_on_as_before_after_other_files_has_the_rest_read_ahead() {
    let mut start = Start::new(VOLUME, list(irregular(300)));
    start.reads(5000..5050);
    start.reads(irregular(300).skip(100));
    // It waits for the 50 that are new, and for a few until it has earned the rest.
    assert!(start.waits < 65, "{} waits", start.waits);
}

#[test]
fn what_is_read_in_vain_three_times_is_forgotten() {
    let mut next = list((0..100).chain(900..910));
    for starts in 1..=3 {
        let mut start = Start::new(VOLUME, next);
        start.reads(0..100);
        assert_eq!(start.asked.len(), 109, "all but the first");
        next = start.next_list();
        let vain = next.iter().map(|of| of.ranges[0].starts_in_vain);
        let vain: Vec<u8> = vain.filter(|vain| *vain > 0).collect();
        assert_eq!(vain, vec![starts; if starts < 3 { 10 } else { 0 }]);
    }
    assert_eq!(next, list(0..100));
}

#[test]
fn a_use_makes_good_for_starts_in_vain() {
    let mut faded = list(0..3);
    faded[1].ranges[0].starts_in_vain = 2;
    let mut start = Start::new(VOLUME, faded);
    start.reads(0..3);
    assert_eq!(start.next_list(), list(0..3));
}

#[test]
fn a_start_from_the_cache_changes_nothing() {
    let bench = Bench::new(VOLUME, Options::default());
    let mut start = Start::with(bench, list(irregular(300)), irregular(300));
    start.reads(irregular(300));
    assert_eq!(start.asked, [0; 0]);
    assert_eq!(start.next_list(), list(irregular(300)));
}

#[test]
fn what_was_replaced_is_forgotten_and_noted_anew_when_it_is_read() {
    let mut start = Start::idle(Bench::new(VOLUME, Options::default()));
    start.gone = BTreeSet::from([3, 4]);
    start.tell(&Input::Remembered(list(0..10)));
    start.reads([0, 1, 2, 4, 5, 6, 7, 8, 9]);
    assert_eq!(inos(&start.list()), [0, 1, 2, 4, 5, 6, 7, 8, 9]);
}

#[test]
fn the_body_looks_again_at_what_the_command_has_come_to() {
    let mut start = Start::new(VOLUME, list(0..10));
    start.reads([3, 30]);
    let next = start.list();
    let looked_at = next.iter().filter(|of| of.version.is_none());
    assert_eq!(looked_at.map(|of| of.file.ino).collect::<Vec<_>>(), [3, 30]);
    assert_eq!(next.len(), 11);
}

#[test]
fn what_the_command_has_read_before_its_file_is_found_to_be_another_stays() {
    let mut bench = Bench::new(VOLUME, Options::default());
    let ranges = [span(0, PAGES), span(90, 100)];
    bench.on(&Input::Remembered(vec![listed(1, &ranges), listed(2, &ranges)]));
    for command in bench.access(miss(2, 0)) {
        let Command::ReadRemembered { ticket, files, .. } = command else { continue };
        let found = files.iter().flat_map(|of| vec![Found::Gone; of.spans.len()]).collect();
        bench.completed(Completed::RememberedRead { ticket, found });
    }
    let next = bench.controller.remembered();
    assert_eq!(inos(&next), [2]);
    assert_eq!((next[0].version, next[0].ranges[0].pages.start), (None, 0));
    assert!(
        next[0].ranges.iter().all(|range| range.pages.start < 90),
        "it has not come to the other one"
    );
}

#[test]
fn an_inode_of_another_generation_is_another_file() {
    let mut start = Start::new(VOLUME, list(0..40));
    let of = FileRef { generation: 5, ..reference(30, 1) };
    start.tell(&Input::Access(Access { of, ..miss(30, 8) }));
    let next = start.list();
    let other = next.iter().find(|of| of.file.ino == 30).expect("it was read");
    assert_eq!((other.generation, other.version), (5, None));
    assert_eq!(other.ranges[0].pages.start, 8);
}

#[test]
fn pages_are_remembered_as_the_kernel_reads_them() {
    let mut start = Start::new(VOLUME, Vec::new());
    let mut noted = |access: Access| {
        start.tell(&Input::Access(access));
        let list = start.list();
        let of = list.iter().find(|of| of.file == access.of.file).expect("it was read");
        let used = of.ranges.iter().filter(|range| range.starts_in_vain == 0);
        used.map(|range| range.pages).collect::<Vec<_>>()
    };
    assert_eq!(noted(miss(1, 0)), [span(0, 4)], "the first window");
    assert_eq!(noted(miss(1, 500)), [span(0, 4), span(500, 501)], "one page in between");
    let on = Access { kind: Kind::KernelMark, ..miss(1, 1) };
    assert_eq!(
        noted(on),
        [span(0, 36), span(500, 501)],
        "the next window, of which bowwave read more"
    );
    assert_eq!(noted(miss(1, 505)), [span(0, 36), span(500, 506)], "a gap is read with the rest");
    assert_eq!(noted(fault(2, 100)), [span(84, 116)], "around a fault");
    assert_eq!(noted(fault(2, 130)), [span(84, 146)], "each page once");
    let short = Access { file_bytes: 2 * PAGE_BYTES, ..miss(3, 0) };
    assert_eq!(noted(short), [span(0, 2)], "not beyond the end");
}

#[test]
fn a_large_library_has_few_marks_and_all_that_they_stand_for_is_used() {
    let windows: Vec<Span> = (0..300).map(|n| span(n * 64, n * 64 + 32)).collect();
    let mut bench = Bench::new(VOLUME, Options::default());
    bench.on(&Input::Remembered(vec![listed(1, &windows)]));
    let mut log = bench.access(fault(1, 16));
    let (mut marks, mut asked) = (0, 0);
    while !log.is_empty() {
        let mut next = Vec::new();
        for command in log {
            let input = match command {
                Command::Mark(of, mark) => {
                    marks += 1;
                    let access = Access { kind: Kind::Mark, ..fault(of.ino, mark.first) };
                    Input::Access(Access { mark: Some((mark.first, mark.last)), ..access })
                }
                Command::ReadRemembered { ticket, files, .. } => {
                    asked += files[0].spans.len();
                    let found = vec![Found::Read; files[0].spans.len()];
                    Input::Completed(Completed::RememberedRead { ticket, found })
                }
                _ => continue,
            };
            next.extend(bench.on(&input));
        }
        log = next;
    }
    assert_eq!(asked, 299);
    assert!(marks < 64, "{marks} marks");
    let vain = bench.controller.remembered()[0]
        .ranges
        .iter()
        .map(|range| range.starts_in_vain)
        .sum::<u8>();
    assert_eq!(vain, 0);
}

#[test]
fn files_that_walks_read_ahead_are_remembered_as_well_until_learning_ends() {
    let mut forest = Forest::new(VOLUME);
    forest.tell(Input::Remembered(Vec::new()));
    let pages = 12;
    let first = forest.folder(10_000, None, 200);
    let walk = forest.walk(first, Sort::Name, true);
    forest.sizes = walk.iter().map(|(_, ino)| (*ino, pages * PAGE_BYTES)).collect();
    forest.read_all(7, walk);
    let noted: BTreeSet<u64> = inos(&forest.bench.controller.remembered()).into_iter().collect();
    assert!(forest.asked.len() > 150, "{} files", forest.asked.len());
    assert!(forest.asked.iter().all(|ino| noted.contains(ino)), "each has a mark");
    for of in forest.bench.controller.remembered() {
        assert_eq!(of.ranges[0].pages, span(0, pages), "as far as the walk reads it");
    }

    forest.bench.now += LET_GO;
    forest.tell(Input::Tick);
    forest.asked.clear();
    let second = forest.folder(20_000, None, 200);
    forest.read_all(7, forest.walk(second, Sort::Name, true).into_iter().take(10));
    let walk = forest.walk(second, Sort::Name, true);
    let read: Vec<u64> = walk.iter().take(10).map(|(_, ino)| *ino).collect();
    let unread = forest.asked.iter().filter(|ino| !read.contains(ino));
    let unmarked = unread.filter(|ino| !forest.marked.contains(ino)).count();
    assert!(unmarked > 0, "a walk itself marks only some of {:?}", forest.asked);
}

#[test]
fn what_bowwave_reads_ahead_within_a_file_is_remembered_and_counts_as_read_in_vain_until_it_is_used()
 {
    let mut bench = Bench::new(VOLUME, Options::default());
    bench.on(&Input::Remembered(Vec::new()));
    let reads = [400, 399].map(|page| bench.access(miss(1, page)));
    let ahead = reads.iter().flatten().find_map(|command| match command {
        Command::Read { span, .. } => Some(*span),
        _ => None,
    });
    let ahead = ahead.expect("a backward reader");
    let times_in_vain = |bench: &Bench, page: u64| {
        let next = bench.controller.remembered();
        let mut ranges = next[0].ranges.iter();
        let range = ranges.find(|range| (range.pages.start..range.pages.end).contains(&page));
        range.expect("it is remembered").starts_in_vain
    };
    assert_eq!(times_in_vain(&bench, 400), 0);
    assert_eq!((times_in_vain(&bench, ahead.start), times_in_vain(&bench, ahead.end - 1)), (1, 1));
    let mark = Some((ahead.start, ahead.start));
    bench.access(Access { kind: Kind::Mark, mark, ..miss(1, ahead.start) });
    assert_eq!(times_in_vain(&bench, ahead.start), 0);
}

#[test]
fn only_the_first_half_minute_is_remembered() {
    let mut start = Start::new(VOLUME, Vec::new());
    start.reads(0..3);
    start.bench.now += 30 * SECOND;
    start.reads(3..6);
    assert_eq!(inos(&start.list()), [0, 1, 2]);
}

#[test]
fn no_more_is_ahead_than_memory_allows() {
    let mut bench = Bench::new(VOLUME, Options::default());
    bench.on(&memory(32 << 20));
    let long: Vec<RememberedFile> = (0..200).map(|ino| listed(ino, &[span(0, 64)])).collect();
    let mut start = Start::with(bench, long, []);
    let budget = 4 << 20;
    for ino in 0..200 {
        start.reads([ino]);
        let status = start.bench.controller.status(start.bench.now);
        assert!(status.ahead_bytes <= budget, "{} bytes", status.ahead_bytes);
    }
    assert!(start.asked.len() > 150, "{} files", start.asked.len());
}

#[test]
fn a_list_that_is_larger_than_the_room_is_read_ahead_in_parts() {
    for cost in [VOLUME, DeviceCost::DISK] {
        let mut bench = Bench::new(cost, Options::default());
        bench.on(&memory(64 << 20));
        let long: Vec<RememberedFile> = (0..300).map(|ino| listed(ino, &[span(0, 32)])).collect();
        let mut start = Start::with(bench, long, []);
        let budget = 8 << 20;
        for ino in 0..300 {
            start.reads([ino]);
            let status = start.bench.controller.status(start.bench.now);
            assert!(status.ahead_bytes <= budget, "{} bytes", status.ahead_bytes);
        }
        assert!(start.asked.len() > 280, "{} files on {cost:?}", start.asked.len());
        assert!(start.waits < 20, "{} waits on {cost:?}", start.waits);
    }
}

#[test]
fn a_range_that_is_larger_than_the_room_does_not_hold_up_those_behind_it() {
    for cost in [VOLUME, DeviceCost::DISK] {
        let mut bench = Bench::new(cost, Options::default());
        let (cgroup, file_bytes) = (CgroupId(0), Some(16 << 20));
        let limit = MemoryStats::Cgroup { cgroup, file_bytes, stalled_percent: 0.0 };
        bench.on(&Input::MemoryStats(limit));
        let mut large = list(0..200);
        large[0] = listed(0, &[span(0, 1024)]);
        let mut start = Start::with(bench, large, []);
        start.reads(1..200);
        assert_eq!(start.asked.len(), 198, "{cost:?}");
        assert_eq!(start.waits, 1, "{cost:?}");
    }
}

#[test]
fn what_was_read_in_vain_takes_no_room_after_learning() {
    let mut start = Start::new(VOLUME, list(irregular(300)));
    start.reads(irregular(300).take(1).chain(5000..5010));
    let ahead_bytes = |start: &Start| start.bench.controller.status(start.bench.now).ahead_bytes;
    let (asked, ahead) = (start.asked.clone(), ahead_bytes(&start));
    assert!(ahead >= CREDIT as u64 * PAGES * PAGE_BYTES, "{ahead} bytes");
    start.bench.now += 29 * SECOND;
    start.tell(&Input::Tick);
    start.bench.now += 6 * SECOND;
    // So its notes are kept.
    start.bench.access(Access { file_bytes: 300 * PAGE_BYTES, ..miss(asked[0], 50) });
    assert_eq!(ahead_bytes(&start), ahead, "a mark may still be touched");

    start.bench.now += LET_GO - 35 * SECOND;
    let forgets = |command: &Command| {
        matches!(command, Command::Listen(of, listening)
            if of.ino == asked[0] && listening.marked_chunks == 0)
    };
    assert!(start.bench.on(&Input::Tick).iter().any(forgets), "its mark is of no use any more");
    assert_eq!(ahead_bytes(&start), 0);
    start.reads(irregular(300).skip(30));
    assert_eq!(start.asked, asked, "nothing more is asked for");
    let next = start.list();
    let vain = next.iter().filter(|of| of.ranges[0].starts_in_vain == 1);
    assert_eq!(vain.count(), CREDIT);
}

#[test]
fn a_device_that_answers_at_once_is_not_asked() {
    let start = Start::new(DeviceCost::FLASH, list(0..100));
    assert_eq!(start.asked, [0; 0]);
    assert_eq!(start.next_list(), list(0..100));
}

#[test]
fn what_lies_on_a_file_system_that_goes_stays_remembered() {
    let mut start = Start::new(VOLUME, list(0..100));
    start.tell(&Input::Unmounted(DEV));
    assert_eq!(inos(&start.list()).len(), 100);
}

/// What the controller may be told.
#[derive(Clone, Debug)]
enum Event {
    Access {
        ino: u64,
        page: u64,
        pages: u32,
        kind: u8,
        tgid: Tgid,
        generation: u32,
    },
    /// The mark with this number, of those that were set, is touched.
    Mark(usize),
    /// The request with this number is answered, with these results.
    Answer(usize, Vec<u8>),
    Wait(Nanos),
    Unmounted,
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let access = (0..40u64, 0..200u64, 1..40u32, 0..4u8, 1..3u32, 0..2u32);
    let access = access.prop_map(|(ino, page, pages, kind, tgid, generation)| Event::Access {
        ino,
        page,
        pages,
        kind,
        tgid,
        generation,
    });
    let event = prop_oneof![
        20 => access,
        20 => (0..1000usize).prop_map(Event::Mark),
        10 => (0..1000usize, vec(0..3u8, 0..40)).prop_map(|(at, found)| Event::Answer(at, found)),
        2 => (0..20 * SECOND).prop_map(Event::Wait),
        1 => Just(Event::Unmounted),
    ];
    vec(event, 0..200)
}

fn lists() -> impl Strategy<Value = Vec<RememberedFile>> {
    let range = (0..150u64, 0..60u64, 0..4u8);
    let of = (0..40u64, 0..2u32, prop::option::weighted(0.9, Just(VERSION)), vec(range, 0..40));
    let of = of.prop_map(|(ino, generation, version, ranges)| {
        let range = |(start, pages, starts_in_vain)| RememberedRange {
            pages: span(start, start + pages),
            starts_in_vain,
        };
        let ranges = ranges.into_iter().map(range).collect();
        RememberedFile { file: file(ino), generation, version, ranges }
    });
    vec(of, 0..60)
}

/// Gives the events to a controller that has this list. Returns its commands, and the list at the end.
fn run(
    cost: DeviceCost,
    list: &[RememberedFile],
    events: &[Event],
) -> (Vec<Command>, Vec<RememberedFile>) {
    let mut bench = Bench::new(cost, Options::default());
    let mut log = bench.on(&Input::Remembered(list.to_vec()));
    for event in events {
        let tickets: Vec<Ticket> = log
            .iter()
            .filter_map(|command| match command {
                Command::ReadRemembered { ticket, .. } => Some(*ticket),
                _ => None,
            })
            .collect();
        let marks: Vec<_> = log
            .iter()
            .filter_map(|command| match command {
                Command::Mark(of, mark) => Some((*of, *mark)),
                _ => None,
            })
            .collect();
        let input = match event {
            Event::Access { ino, page, pages, kind, tgid, generation } => {
                let kind = [Kind::Miss, Kind::Fault, Kind::KernelMark, Kind::Miss][*kind as usize];
                let of = FileRef { generation: *generation, ..reference(*ino, *tgid) };
                let file_bytes = 300 * PAGE_BYTES;
                Input::Access(Access {
                    of,
                    kind,
                    request_pages: *pages,
                    file_bytes,
                    ..miss(*ino, *page)
                })
            }
            Event::Mark(at) if !marks.is_empty() => {
                let (of, mark) = marks[at % marks.len()];
                let access = miss(of.ino, mark.first);
                Input::Access(Access {
                    kind: Kind::Mark,
                    mark: Some((mark.first, mark.last)),
                    ..access
                })
            }
            Event::Answer(at, found) if !tickets.is_empty() => {
                let kinds = [Found::Gone, Found::Cached, Found::Read];
                let found = found.iter().map(|kind| kinds[*kind as usize]).collect();
                let ticket = tickets[at % tickets.len()];
                Input::Completed(Completed::RememberedRead { ticket, found })
            }
            Event::Wait(ns) => {
                bench.now += ns;
                Input::Tick
            }
            Event::Unmounted => Input::Unmounted(DEV),
            Event::Mark(_) | Event::Answer(..) => Input::Tick,
        };
        bench.now += MS;
        log.extend(bench.on(&input));
    }
    (log, bench.controller.remembered())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_comes_only_what_was_listed_is_asked_for_and_the_next_list_is_one(
        list in lists(),
        events in events(),
        is_serial in any::<bool>(),
    ) {
        let cost = if is_serial { DeviceCost::DISK } else { VOLUME };
        let (log, next) = run(cost, &list, &events);
        let mut asked = BTreeSet::new();
        for command in &log {
            let Command::ReadRemembered { files, .. } = command else { continue };
            for of in files {
                let is_it = |given: &&RememberedFile| {
                    given.file == of.file && given.version == Some(of.version)
                };
                let given = list.iter().find(is_it).expect("it is listed");
                for pages in &of.spans {
                    prop_assert!(given.ranges.iter().any(|range| range.pages == *pages));
                    prop_assert!(asked.insert((of.file, pages.start)), "asked for twice");
                }
            }
        }
        let mut seen = BTreeSet::new();
        for of in &next {
            prop_assert!(seen.insert(of.file) && !of.ranges.is_empty());
            prop_assert!(of.ranges.iter().all(|range| range.pages.start < range.pages.end));
            prop_assert!(of.ranges.windows(2).all(|pair| pair[0].pages.end <= pair[1].pages.start));
        }
        prop_assert!(next.iter().map(|of| of.ranges.len()).sum::<usize>() <= REMEMBERED_RANGES);
        prop_assert_eq!(run(cost, &list, &events), (log, next), "the same again");
    }
}
