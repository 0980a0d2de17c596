//! Start-up lists: what a command read at its last start is read ahead at its next one.
//!
//! ```text
//!   Input::Remembered: the list --> waiting --> ReadRemembered, Mark: as many as the start has earned
//!                                     ^              |
//!   Access: a miss, a mark -----------+              v
//!       |                                 Completed::RememberedRead: gone, cached or read
//!       v                                            |
//!   which pages, in which order                      v
//!       '---------------------------------> Controller::remembered: the next list
//! ```
//!
//! A list may be stale, so a start begins with a small credit and earns more with each range that the command uses.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use readahead::behind::Span;
use readahead::{FileKey, Mark, PAGE_BYTES};
use serde::{Deserialize, Serialize};

use crate::command::{Command, Interest, Listening};
use crate::controller::Controller;
use crate::ids::{CgroupId, DeviceNumber, Ticket};
use crate::input::{Access, Kind, clipped};
use crate::walks::Means;
use crate::{CHUNK_PAGES, MARK_PAGES, Nanos};

/// Most ranges of a list.
pub const REMEMBERED_RANGES: usize = 4096;

/// Most ranges of one file. Each carries a mark, and a file can have marks in 64 chunks.
const RANGES_OF_FILE: usize = 32;

/// Most pages of one range: a long read is a stream, which needs no list.
const RANGE_PAGES: u64 = 1024;

/// Ranges with a smaller gap between them are one: reading the gap costs less than another access.
const GAP_PAGES: u64 = 8;

/// The mark on a range covers its first pages. A fault has its page in the middle of what the kernel reads for it.
const MARKED_PAGES: u64 = CHUNK_PAGES;

/// Reads are noted for so long after the start.
const LEARNING_NS: Nanos = 30_000_000_000;

/// A range that was read and not used at so many starts in a row is forgotten.
const STARTS_IN_VAIN: u8 = 3;

/// What a start may ask for before anything was used: on a disk this takes a tenth of a second.
const FIRST_RANGES: u64 = 16;
const FIRST_BYTES: u64 = 1 << 20;

/// So many ranges may be ahead for each one that was used, and as many times the bytes.
const EARNED: u64 = 8;

/// Ranges of one command where accesses overlap, so that several threads open files at once.
const CHUNK: usize = 16;

/// The contents of a file, as its size and the time of its last change tell them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version {
    /// Size in bytes.
    pub bytes: u64,
    /// Time of the last change, in nanoseconds since 1970.
    pub changed_ns: i64,
}

/// A file of a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RememberedFile {
    /// The file.
    pub file: FileKey,
    /// Its generation: inode numbers are used again.
    pub generation: u32,
    /// What it contained; `None` of a file that is new in the list, at which the body has to look.
    pub version: Option<Version>,
    /// Its pages, by their number; no two ranges overlap.
    pub ranges: Vec<RememberedRange>,
}

/// Pages of a file that a command has read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RememberedRange {
    /// The pages.
    pub pages: Span,
    /// At how many starts in a row it was read ahead and not used.
    pub starts_in_vain: u8,
}

/// Pages of one file to be read ahead, if the file is still the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilePages {
    /// The file.
    pub file: FileKey,
    /// Its generation.
    pub generation: u32,
    /// What it has to contain.
    pub version: Version,
    /// The pages.
    pub spans: Vec<Span>,
}

/// What became of one range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Found {
    /// The file is gone, or another one, or was changed.
    Gone,
    /// It was cached, or cannot be read ahead now: nothing follows from whether it is used.
    Cached,
    /// It was asked for.
    Read,
}

/// How far a range has come in this start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waiting,
    Asked,
    Read,
    Cached,
    Used,
}

#[derive(Clone, Copy, Debug)]
struct Range {
    pages: Span,
    starts_in_vain: u8,
    state: State,
    /// It is not in the list that was given.
    is_new: bool,
}

impl Range {
    fn mark(&self) -> Mark {
        let last = (self.pages.end - 1).min(self.pages.start + MARKED_PAGES - 1);
        Mark { first: self.pages.start, last }
    }

    fn bytes(&self) -> u64 {
        self.pages.pages() * PAGE_BYTES
    }

    fn overlaps(&self, pages: Span) -> bool {
        self.pages.start < pages.end && pages.start < self.pages.end
    }

    /// Asked for and not used yet.
    fn is_ahead(&self) -> bool {
        matches!(self.state, State::Asked | State::Read)
    }
}

#[derive(Debug)]
struct File {
    generation: u32,
    version: Option<Version>,
    ranges: Vec<Range>,
    /// Its place in the list; new files come behind.
    place: usize,
    /// When this start has come to it, among all files.
    turn: Option<usize>,
}

/// A range of a file, by its index.
type RangeRef = (FileKey, usize);

/// Ranges asked for with one command.
#[derive(Debug)]
struct Batch {
    dev: DeviceNumber,
    ranges: Vec<RangeRef>,
}

/// What was done, in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) ranges: u64,
    pub(crate) bytes: u64,
    pub(crate) used: u64,
}

/// One start of a command. See the [module](self).
#[derive(Debug)]
pub(crate) struct Start {
    began_at: Nanos,
    files: BTreeMap<FileKey, File>,
    waiting: BTreeMap<DeviceNumber, VecDeque<RangeRef>>,
    batches: BTreeMap<Ticket, Batch>,
    /// First and last page of each.
    marks: BTreeSet<(FileKey, u64, u64)>,
    /// Files that this start has come to.
    turns: usize,
    /// Ranges and bytes asked for and not used yet.
    ahead_ranges: u64,
    ahead_bytes: u64,
    /// The same of what was used, by misses also.
    used_ranges: u64,
    used_bytes: u64,
    cached_ranges: u64,
    new_ranges: usize,
    /// Of the command, as its reads tell.
    cgroup: CgroupId,
    totals: Totals,
}

impl Start {
    fn new(now: Nanos, list: &[RememberedFile]) -> Self {
        let mut start = Start {
            began_at: now,
            files: BTreeMap::new(),
            waiting: BTreeMap::new(),
            batches: BTreeMap::new(),
            marks: BTreeSet::new(),
            turns: 0,
            ahead_ranges: 0,
            ahead_bytes: 0,
            used_ranges: 0,
            used_bytes: 0,
            cached_ranges: 0,
            new_ranges: 0,
            cgroup: CgroupId::default(),
            totals: Totals::default(),
        };
        let mut room = REMEMBERED_RANGES;
        for (place, listed) in list.iter().enumerate() {
            if start.files.contains_key(&listed.file) || listed.version.is_none() {
                continue;
            }
            let mut ranges: Vec<Range> = Vec::new();
            for range in listed.ranges.iter().take(RANGES_OF_FILE.min(room)) {
                let pages = clipped(range.pages);
                let follows = ranges.last().is_none_or(|last| last.pages.end <= pages.start);
                if follows && pages.start < pages.end && pages.pages() <= RANGE_PAGES {
                    let starts_in_vain = range.starts_in_vain;
                    let state = State::Waiting;
                    ranges.push(Range { pages, starts_in_vain, state, is_new: false });
                }
            }
            room -= ranges.len();
            let queue = start.waiting.entry(listed.file.dev).or_default();
            queue.extend((0..ranges.len()).map(|at| (listed.file, at)));
            let (generation, version) = (listed.generation, listed.version);
            let file = File { generation, version, ranges, place, turn: None };
            start.files.insert(listed.file, file);
        }
        start
    }

    /// Notes an access; gives the mark of this start that it has touched.
    fn hear(&mut self, now: Nanos, access: &Access) -> Option<Mark> {
        self.cgroup = access.cgroup;
        let file = access.of.file;
        let is_learning = now.saturating_sub(self.began_at) < LEARNING_NS;
        if is_learning {
            self.come_to(access);
        }
        let mark = access.mark.map(|(first, last)| Mark { first, last });
        let mark = mark.filter(|mark| self.marks.remove(&(file, mark.first, mark.last)));
        let touched = match mark {
            Some(mark) => Span { start: mark.first, end: mark.last + 1 },
            None => {
                let end = access.page + u64::from(access.request_pages);
                Span { start: access.page, end }
            }
        };
        self.use_ranges(file, touched);
        if is_learning {
            self.note(file, wanted(access));
        }
        mark
    }

    /// The command has come to a file.
    fn come_to(&mut self, access: &Access) {
        if self.new_ranges >= REMEMBERED_RANGES && !self.files.contains_key(&access.of.file) {
            return;
        }
        let (place, turn) = (usize::MAX / 2 + self.turns, self.turns);
        let generation = access.of.generation;
        let new = || File { generation, version: None, ranges: Vec::new(), place, turn: None };
        let file = self.files.entry(access.of.file).or_insert_with(new);
        if file.turn.is_none() {
            file.turn = Some(turn);
            self.turns += 1;
        }
        if file.generation != generation {
            // Another file has got its inode.
            file.generation = generation;
            self.forget_ranges(access.of.file);
        }
    }

    /// The ranges that an access has come to were of use.
    fn use_ranges(&mut self, key: FileKey, touched: Span) {
        let Some(file) = self.files.get_mut(&key) else { return };
        let is_news = |range: &&mut Range| range.overlaps(touched) && range.state != State::Used;
        for range in file.ranges.iter_mut().filter(is_news) {
            if range.is_ahead() {
                self.ahead_ranges -= 1;
                self.ahead_bytes -= range.bytes();
            }
            self.totals.used += u64::from(range.state == State::Read);
            range.state = State::Used;
            self.used_ranges += 1;
            self.used_bytes += range.bytes();
        }
    }

    /// Adds to the list what of these pages is not in it.
    fn note(&mut self, key: FileKey, pages: Span) {
        let Some(file) = self.files.get_mut(&key) else { return };
        let mut new = pages;
        for range in &file.ranges {
            if range.pages.start <= new.start && new.start < range.pages.end {
                new.start = range.pages.end;
            } else if range.pages.start < new.end && new.end <= range.pages.end {
                new.end = range.pages.start;
            }
        }
        let is_whole = file.ranges.iter().all(|range| !range.overlaps(new));
        if new.start >= new.end || !is_whole {
            return;
        }
        let fits =
            |range: &&mut Range| range.is_new && range.pages.pages() + new.pages() <= RANGE_PAGES;
        for range in file.ranges.iter_mut().filter(fits) {
            if range.pages.end == new.start {
                range.pages.end = new.end;
                return;
            }
            if range.pages.start == new.end {
                range.pages.start = new.start;
                return;
            }
        }
        let ranges = file.ranges.iter().filter(|range| range.bytes() > 0).count();
        if ranges < RANGES_OF_FILE && self.new_ranges < REMEMBERED_RANGES {
            self.new_ranges += 1;
            let state = State::Used;
            file.ranges.push(Range { pages: new, starts_in_vain: 0, state, is_new: true });
        }
    }

    /// A file is not what it was.
    fn forget_ranges(&mut self, key: FileKey) {
        let Some(file) = self.files.get_mut(&key) else { return };
        file.version = None;
        for range in file.ranges.iter_mut().filter(|range| !range.is_new) {
            if range.is_ahead() {
                self.ahead_ranges -= 1;
                self.ahead_bytes -= range.bytes();
            }
            // Others are known by their index.
            *range = Range { pages: Span { start: 0, end: 0 }, state: State::Cached, ..*range };
        }
    }

    /// A mark was set: the command's first access there is heard of.
    pub(crate) fn expect(&mut self, file: FileKey, mark: Mark) {
        self.marks.insert((file, mark.first, mark.last));
    }

    /// Bytes of a device that were asked for and are not answered yet.
    fn unanswered_bytes(&self, dev: DeviceNumber) -> u64 {
        let batches = self.batches.values().filter(|batch| batch.dev == dev);
        let ranges = batches.flat_map(|batch| &batch.ranges);
        ranges.filter_map(|range| self.range(*range)).map(Range::bytes).sum()
    }

    fn range(&self, (file, at): RangeRef) -> Option<&Range> {
        self.files.get(&file)?.ranges.get(at)
    }

    /// The ranges of a device to ask for now.
    fn next_ranges(&mut self, dev: DeviceNumber, means: &Means) -> Vec<RangeRef> {
        let unanswered = self.unanswered_bytes(dev);
        let room_bytes = means.room_bytes.saturating_sub(unanswered);
        let credit = |first: u64, used: u64, ahead: u64| {
            first.saturating_add(EARNED.saturating_mul(used)).saturating_sub(ahead)
        };
        let most = credit(FIRST_RANGES, self.used_ranges, self.ahead_ranges);
        let most_bytes = credit(FIRST_BYTES, self.used_bytes, self.ahead_bytes).min(room_bytes);
        let files = &self.files;
        let state_of = |(file, at): &RangeRef| files.get(file)?.ranges.get(*at).copied();
        let Some(queue) = self.waiting.get_mut(&dev) else { return Vec::new() };
        queue.retain(|at| state_of(at).is_some_and(|range| range.state == State::Waiting));
        let mut bytes = 0;
        let fits = |at: &&RangeRef| {
            bytes += state_of(at).map_or(0, |range| range.bytes());
            bytes <= most_bytes
        };
        let count = queue.iter().take(most as usize).take_while(fits).count();
        // On a disk few large sweeps are better than many small ones.
        let enough = (self.totals.ranges as usize).min(queue.len());
        if means.cost.is_serial() && (unanswered > 0 || count < enough) {
            return Vec::new();
        }
        queue.drain(..count).collect()
    }

    /// These ranges were asked for.
    fn asked(&mut self, ticket: Ticket, dev: DeviceNumber, ranges: Vec<RangeRef>) {
        for (file, at) in &ranges {
            let file = self.files.get_mut(file);
            let Some(range) = file.and_then(|file| file.ranges.get_mut(*at)) else { continue };
            range.state = State::Asked;
            self.ahead_ranges += 1;
            self.ahead_bytes += range.bytes();
        }
        self.totals.ranges += ranges.len() as u64;
        self.batches.insert(ticket, Batch { dev, ranges });
    }

    /// A batch was answered.
    fn answered(&mut self, ticket: Ticket, found: &[Found]) {
        let Some(batch) = self.batches.remove(&ticket) else { return };
        for ((key, at), found) in batch.ranges.into_iter().zip(found) {
            let file = self.files.get_mut(&key);
            let Some(range) = file.and_then(|file| file.ranges.get_mut(at)) else { continue };
            let is_asked = range.state == State::Asked;
            match found {
                Found::Gone => self.forget_ranges(key),
                Found::Read => {
                    self.totals.bytes += range.bytes();
                    if is_asked {
                        range.state = State::Read;
                    } else {
                        self.totals.used += u64::from(range.state == State::Used);
                    }
                }
                Found::Cached => {
                    self.cached_ranges += 1;
                    if is_asked {
                        range.state = State::Cached;
                        self.ahead_ranges -= 1;
                        self.ahead_bytes -= range.bytes();
                    }
                }
            }
        }
    }

    /// A file system is gone. What is remembered of it stays.
    fn forget_volume(&mut self, dev: DeviceNumber) {
        self.waiting.remove(&dev);
        self.batches.retain(|_, batch| batch.dev != dev);
        for (_, file) in self.files.iter_mut().filter(|(key, _)| key.dev == dev) {
            for range in file.ranges.iter_mut().filter(|range| range.is_ahead()) {
                self.ahead_ranges -= 1;
                self.ahead_bytes -= range.bytes();
                range.state = State::Cached;
            }
        }
    }

    /// Files with marks that the command may still come to.
    fn expected(&self, now: Nanos) -> impl Iterator<Item = FileKey> {
        let is_learning = now.saturating_sub(self.began_at) < LEARNING_NS;
        let is_expected = |file: &File| file.ranges.iter().any(Range::is_ahead);
        let files = self.files.iter().filter(move |(_, file)| is_learning && is_expected(file));
        files.map(|(key, _)| *key)
    }

    /// What the next start shall read ahead, in this order.
    fn list(&self) -> Vec<RememberedFile> {
        // A start from the cache tells nothing about the order.
        let is_cold = self.totals.ranges >= 2 * self.cached_ranges;
        let mut files: Vec<(&FileKey, &File)> = self.files.iter().collect();
        files.sort_by_key(|(_, file)| {
            let is_in_vain = file.ranges.iter().all(|range| next_starts_in_vain(range) > 0);
            match file.turn.filter(|_| is_cold) {
                Some(turn) => (false, false, turn),
                None => (is_cold, is_cold && is_in_vain, file.place),
            }
        });
        let mut room = REMEMBERED_RANGES;
        let mut list = Vec::new();
        for (key, file) in files {
            let mut ranges = next_ranges(&file.ranges);
            ranges.truncate(room);
            room -= ranges.len();
            if !ranges.is_empty() {
                let (generation, version) = (file.generation, file.version);
                list.push(RememberedFile { file: *key, generation, version, ranges });
            }
        }
        list
    }
}

fn next_starts_in_vain(range: &Range) -> u8 {
    match range.state {
        State::Used => 0,
        State::Read => range.starts_in_vain.saturating_add(1),
        State::Waiting | State::Asked | State::Cached => range.starts_in_vain,
    }
}

/// A file's ranges in the next list.
fn next_ranges(ranges: &[Range]) -> Vec<RememberedRange> {
    let next = |range: &Range| RememberedRange {
        pages: range.pages,
        starts_in_vain: next_starts_in_vain(range),
    };
    let stays = |range: &RememberedRange| {
        range.starts_in_vain < STARTS_IN_VAIN && range.pages.start < range.pages.end
    };
    let mut left: Vec<RememberedRange> = ranges.iter().map(next).filter(stays).collect();
    left.sort_unstable_by_key(|range| range.pages.start);
    let mut joined: Vec<RememberedRange> = Vec::with_capacity(left.len());
    for range in left {
        match joined.last_mut().filter(|last| is_one(last, &range)) {
            Some(last) => last.pages.end = range.pages.end,
            None => joined.push(range),
        }
    }
    joined
}

/// Whether two ranges, the first before the other one, are better read as one.
fn is_one(first: &RememberedRange, other: &RememberedRange) -> bool {
    first.starts_in_vain == other.starts_in_vain
        && other.pages.start - first.pages.end < GAP_PAGES
        && other.pages.end - first.pages.start <= RANGE_PAGES
}

/// The pages that the kernel itself reads for an access, so that a start without any list reads no less.
fn wanted(access: &Access) -> Span {
    let file_pages = access.file_bytes.div_ceil(PAGE_BYTES);
    let window = u64::from(access.kernel_window);
    let request = u64::from(access.request_pages);
    let is_forward = access.page == 0
        || access.previous.is_some_and(|before| access.page.wrapping_sub(before) <= 1);
    let (start, pages) = match access.kind {
        _ if access.advice.random => (access.page, request),
        Kind::Fault => (access.page.saturating_sub(window / 2), window),
        Kind::Miss | Kind::Mark if is_forward => {
            (access.page, request.max(first_window(request, window)))
        }
        Kind::KernelMark => (access.page, request.max(window)),
        Kind::Miss | Kind::Mark => (access.page, request),
    };
    let start = start.min(file_pages);
    Span { start, end: (start + pages.clamp(1, RANGE_PAGES)).min(file_pages) }
}

/// The window with which the kernel begins to read a file, in pages (`get_init_ra_size` in mm/readahead.c).
fn first_window(request: u64, window: u64) -> u64 {
    let size = request.next_power_of_two();
    match () {
        () if size <= window / 32 => size * 4,
        () if size <= window / 4 => size * 2,
        () => window,
    }
}

/// Marks that tell when each range is used. A chunk has room for one, which then stands for all ranges there.
fn marks_of(ranges: &[Range]) -> Vec<Mark> {
    let mut marks: Vec<Mark> = Vec::with_capacity(ranges.len());
    for mark in ranges.iter().map(Range::mark) {
        let shares = |before: &&mut Mark| {
            before.last / CHUNK_PAGES >= mark.first / CHUNK_PAGES
                && mark.last - before.first < MARK_PAGES
        };
        match marks.last_mut().filter(shares) {
            Some(before) => before.last = mark.last,
            None => marks.push(mark),
        }
    }
    marks
}

impl Controller {
    /// A command starts, of which this is remembered.
    pub(crate) fn on_start(&mut self, now: Nanos, list: &[RememberedFile], out: &mut Vec<Command>) {
        self.start = Some(Start::new(now, list));
        self.walks.mark_all();
        self.ask_for_remembered(now, out);
    }

    /// Notes an access for the list; `true` if it told only that a remembered range was used.
    pub(crate) fn on_starting_access(
        &mut self,
        now: Nanos,
        access: &Access,
        out: &mut Vec<Command>,
    ) -> bool {
        let Some(start) = &mut self.start else { return false };
        let used = start.used_ranges;
        let mark = start.hear(now, access);
        let has_earned = start.used_ranges > used;
        if let Some(mark) = mark {
            let notes = self.files.notes(access.of.file, now);
            notes.mark_taken(mark);
            let listening = Listening { managed: true, ..notes.listening(0) };
            out.push(Command::Listen(access.of.file, listening));
        }
        if has_earned {
            self.ask_for_remembered(now, out);
        }
        mark.is_some()
    }

    /// Remembered ranges were asked for, as far as they could be.
    pub(crate) fn on_remembered_read(
        &mut self,
        now: Nanos,
        ticket: Ticket,
        found: &[Found],
        out: &mut Vec<Command>,
    ) {
        if let Some(start) = &mut self.start {
            start.answered(ticket, found);
            self.ask_for_remembered(now, out);
        }
    }

    /// Asks for as much of the list as the start has earned and devices and memory leave room for.
    pub(crate) fn ask_for_remembered(&mut self, now: Nanos, out: &mut Vec<Command>) {
        let Some(start) = &self.start else { return };
        let cgroup = start.cgroup;
        let devs: Vec<DeviceNumber> = start
            .waiting
            .iter()
            .filter(|(_, queue)| !queue.is_empty())
            .map(|(dev, _)| *dev)
            .collect();
        for dev in devs {
            let backing = self.volumes.backing(dev).and_then(|id| self.backings.get(id));
            // A device that answers at once needs no list.
            if backing.is_none_or(|backing| backing.interest() != Interest::All) {
                continue;
            }
            let Some(means) = self.means(dev, cgroup) else { continue };
            let Some(start) = &mut self.start else { return };
            let ranges = start.next_ranges(dev, &means);
            let chunk = if means.cost.is_serial() { ranges.len().max(1) } else { CHUNK };
            for ranges in ranges.chunks(chunk) {
                self.ask_for_ranges(now, dev, ranges, out);
            }
        }
    }

    fn ask_for_ranges(
        &mut self,
        now: Nanos,
        dev: DeviceNumber,
        ranges: &[RangeRef],
        out: &mut Vec<Command>,
    ) {
        let Some(start) = &mut self.start else { return };
        let ticket = self.tickets.next();
        let mut files: Vec<FilePages> = Vec::new();
        for of_file in ranges.chunk_by(|(one, _), (other, _)| one == other) {
            let key = of_file[0].0;
            let Some(file) = start.files.get(&key) else { continue };
            let (generation, Some(version)) = (file.generation, file.version) else { continue };
            let listed = of_file.iter().filter_map(|(_, at)| file.ranges.get(*at));
            let ranges: Vec<Range> = listed.copied().collect();
            let forget = |other| out.push(Command::Listen(other, Listening::default()));
            self.files.make_room(key, forget);
            let notes = self.files.notes(key, now);
            for mark in marks_of(&ranges) {
                out.push(Command::Mark(key, mark));
                notes.mark_set(mark);
                start.expect(key, mark);
            }
            let spans = ranges.iter().map(|range| range.pages).collect();
            // Its own reads are not another program's, before which read-ahead steps back.
            let listening = Listening { managed: true, ..notes.listening(0) };
            out.push(Command::Listen(key, listening));
            files.push(FilePages { file: key, generation, version, spans });
        }
        start.asked(ticket, dev, ranges.to_vec());
        out.push(Command::ReadRemembered { ticket, dev, files });
    }

    /// A file system is gone.
    pub(crate) fn forget_remembered_volume(&mut self, dev: DeviceNumber) {
        if let Some(start) = &mut self.start {
            start.forget_volume(dev);
        }
    }

    /// Marks stay for as long as the start may come to them.
    pub(crate) fn keep_remembered_marks(&mut self, now: Nanos) {
        let expected = self.start.iter().flat_map(|start| start.expected(now));
        for file in expected {
            self.files.notes(file, now);
        }
    }

    /// What the next start of the command shall read ahead, in this order; nothing if no start was
    /// [told of](crate::Input::Remembered).
    pub fn remembered(&self) -> Vec<RememberedFile> {
        self.start.as_ref().map(Start::list).unwrap_or_default()
    }

    pub(crate) fn remembered_ahead_bytes(&self) -> u64 {
        self.start.as_ref().map_or(0, |start| start.ahead_bytes)
    }

    pub(crate) fn remembered_totals(&self) -> Totals {
        self.start.as_ref().map(|start| start.totals).unwrap_or_default()
    }
}
