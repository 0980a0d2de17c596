//! One start of a command: what it reads, and what of its list was asked for.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use readahead::behind::Span;
use readahead::{DeviceCost, FileKey, Mark, PAGE_BYTES};

use super::range::{RANGE_PAGES, Range, State, next_ranges, next_starts_in_vain};
use super::wanted::wanted;
use super::{Found, REMEMBERED_RANGES, RememberedFile, Version};
use crate::Nanos;
use crate::controller::IDLE_NS;
use crate::ids::{CgroupId, DeviceNumber, Tgid, Ticket};
use crate::input::{Access, Kind, clipped};
use crate::savings::Savings;
use crate::walks::Means;

/// Most ranges of one file: a large library is mapped in hundreds of windows.
const RANGES_OF_FILE: usize = 512;

/// Marks of one file: it has room for marks in 64 chunks, each mark touches two, and streams have some. One mark stands
/// for a group of ranges.
const MARKS_OF_FILE: usize = 24;

/// On a disk, a batch has at least this many times as many ranges as all before it, unless fewer are left: few large
/// sweeps are better than many small ones.
const GROWTH: u64 = 7;

/// Reads are noted for this long after the start.
const LEARNING_NS: Nanos = 30_000_000_000;

/// A start ends no sooner: where a command is started all the time, its list is not written each time.
const SHORTEST_NS: Nanos = 5_000_000_000;

/// Most accesses that are kept until the list has come, which takes milliseconds.
const MOST_EARLY: usize = 256;

/// What a start may ask for as soon as the command has come to a range of the list: on a disk this takes a tenth of a
/// second.
const FIRST_RANGES: u64 = 16;
const FIRST_BYTES: u64 = 1 << 20;

/// This many ranges may be ahead for each one that was used, and this many bytes for each byte.
const EARNED: u64 = 8;

#[derive(Debug)]
pub(super) struct File {
    pub(super) generation: u32,
    pub(super) version: Option<Version>,
    pub(super) ranges: Vec<Range>,
    /// Its place in the list; new files come behind.
    place: usize,
    /// How many other files this start has come to before it; `None` if it has not come to it.
    turn: Option<usize>,
}

impl File {
    /// How many ranges have one mark.
    pub(super) fn group_size(&self) -> usize {
        let listed = self.ranges.iter().filter(|range| !range.is_new).count();
        listed.div_ceil(MARKS_OF_FILE).max(1)
    }

    /// For each range, whether one of its group overlaps these pages.
    fn in_groups(&self, pages: Span) -> Vec<bool> {
        let groups = self.ranges.chunks(self.group_size());
        let overlap =
            |group: &[Range]| vec![group.iter().any(|it| it.overlaps(pages)); group.len()];
        groups.flat_map(overlap).collect()
    }
}

/// A range of a file, by its index.
pub(super) type RangeRef = (FileKey, usize);

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
    pub(crate) used_bytes: u64,
}

impl Totals {
    pub(super) fn add(&mut self, other: &Totals) {
        self.ranges += other.ranges;
        self.bytes += other.bytes;
        self.used += other.used;
        self.used_bytes += other.used_bytes;
    }
}

/// One start of a command. See the [module](super).
#[derive(Debug)]
pub(crate) struct Start {
    began_at: Nanos,
    /// What it has read before its list has come.
    early: Option<Vec<(Nanos, Access)>>,
    pub(super) files: BTreeMap<FileKey, File>,
    pub(super) waiting: BTreeMap<DeviceNumber, VecDeque<RangeRef>>,
    batches: BTreeMap<Ticket, Batch>,
    /// Marks that are set: each file with the first and last page of the mark.
    marks: BTreeSet<(FileKey, u64, u64)>,
    /// Number of files that this start has come to.
    turns: usize,
    /// Ranges and bytes asked for and not used yet.
    ahead_ranges: u64,
    pub(super) ahead_bytes: u64,
    /// Ranges and bytes of the list that the command has used, whether they were ahead or missed.
    pub(super) used_ranges: u64,
    used_bytes: u64,
    cached_ranges: u64,
    /// Ranges asked for in files that have changed. They count against the credit: looking at a file is not free.
    gone_ranges: u64,
    new_ranges: usize,
    /// The command's memory cgroup, as its last access shows.
    pub(crate) cgroup: CgroupId,
    /// The process of that access.
    pub(super) reader: Tgid,
    pub(super) totals: Totals,
    pub(super) savings: Savings,
}

impl Start {
    pub(super) fn new(now: Nanos, list: &[RememberedFile]) -> Self {
        let mut start = Start {
            began_at: now,
            early: None,
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
            gone_ranges: 0,
            new_ranges: 0,
            cgroup: CgroupId::default(),
            reader: Tgid::default(),
            totals: Totals::default(),
            savings: Savings::default(),
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

    /// A start whose list will come later, or never.
    pub(super) fn without_list(now: Nanos) -> Self {
        Start { early: Some(Vec::new()), ..Start::new(now, &[]) }
    }

    /// The list has come. Returns what was read before, to be heard again.
    pub(super) fn recall(&mut self, list: &[RememberedFile]) -> Vec<(Nanos, Access)> {
        let Some(early) = self.early.take() else { return Vec::new() };
        let (cgroup, marks) = (self.cgroup, std::mem::take(&mut self.marks));
        *self = Start { cgroup, marks, ..Start::new(self.began_at, list) };
        early
    }

    /// Whether its list has not come yet. Then the access is heard once it has.
    pub(super) fn keep_early(&mut self, now: Nanos, access: &Access) -> bool {
        let Some(early) = &mut self.early else { return false };
        if early.len() < MOST_EARLY {
            early.push((now, *access));
        }
        true
    }

    /// Notes an access. Returns the mark of this start that it has touched. A walk of its process reads `head_pages` of
    /// each file ahead.
    pub(super) fn hear(&mut self, now: Nanos, access: &Access, head_pages: u64) -> Option<Mark> {
        (self.cgroup, self.reader) = (access.cgroup, access.of.tgid);
        let file = access.of.file;
        let is_learning = self.is_learning(now);
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
        if is_learning && access.kind == Kind::Mark && access.page == 0 {
            self.note_head(access, head_pages);
        }
        self.use_ranges(file, touched, mark.is_some());
        if is_learning {
            self.note(file, wanted(access), State::Used);
        }
        mark
    }

    /// The command has come to a file whose first pages a walk may have read ahead, so that no miss is reported.
    fn note_head(&mut self, access: &Access, head_pages: u64) {
        let Some(file) = self.files.get(&access.of.file) else { return };
        if file.ranges.iter().any(|range| range.pages.start == 0 && range.bytes() > 0) {
            return;
        }
        let end = head_pages.min(RANGE_PAGES).min(access.file_bytes.div_ceil(PAGE_BYTES));
        self.note(access.of.file, Span { start: 0, end }, State::Used);
    }

    /// Bowwave itself reads these pages ahead. No event tells whether they are used, so the next start tries them with
    /// a mark.
    pub(crate) fn note_read_ahead(&mut self, now: Nanos, file: FileKey, pages: Span) {
        if self.is_learning(now) {
            let end = pages.end.min(pages.start + RANGE_PAGES);
            self.note(file, Span { end, ..pages }, State::InVain);
        }
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
            file.version = None;
            self.forget_ranges(access.of.file, |_| true);
        }
    }

    /// The ranges that overlap the `touched` pages are used. A touched mark stands for all ranges of its group that are
    /// ahead.
    fn use_ranges(&mut self, key: FileKey, touched: Span, is_mark: bool) {
        let Some(file) = self.files.get_mut(&key) else { return };
        let in_groups = file.in_groups(touched);
        for (range, is_in_group) in file.ranges.iter_mut().zip(in_groups) {
            let is_in_group = is_mark && range.is_ahead() && is_in_group;
            if range.state == State::Used || !(is_in_group || range.overlaps(touched)) {
                continue;
            }
            if range.is_ahead() {
                self.ahead_ranges -= 1;
                self.ahead_bytes -= range.bytes();
            }
            if range.state == State::Read {
                self.totals.used += 1;
                self.totals.used_bytes += range.bytes();
            }
            range.state = State::Used;
            if !range.is_new {
                self.used_ranges += 1;
                self.used_bytes += range.bytes();
            }
        }
    }

    /// Adds those of these pages to the list that are not in it.
    fn note(&mut self, key: FileKey, pages: Span, state: State) {
        let Some(file) = self.files.get_mut(&key) else { return };
        let is_ours = |range: &&mut Range| range.is_new && range.overlaps(pages);
        if state == State::Used {
            file.ranges.iter_mut().filter(is_ours).for_each(|range| range.state = state);
        }
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
        let fits = |range: &&mut Range| {
            let pages = range.pages.pages();
            range.is_new && range.state == state && pages > 0 && pages + new.pages() <= RANGE_PAGES
        };
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
            file.ranges.push(Range { pages: new, starts_in_vain: 0, state, is_new: true });
        }
    }

    /// A file is not what it was. What this start has used of it is noted anew.
    fn forget_version(&mut self, key: FileKey) {
        let Some(file) = self.files.get_mut(&key) else { return };
        file.version = None;
        for range in file.ranges.iter_mut().filter(|range| range.state == State::Used) {
            *range = Range { starts_in_vain: 0, is_new: true, ..*range };
        }
        self.forget_ranges(key, |range| !range.is_new);
    }

    /// Forgets ranges of a file.
    fn forget_ranges(&mut self, key: FileKey, is_forgotten: impl Fn(&Range) -> bool) {
        let Some(file) = self.files.get_mut(&key) else { return };
        for range in file.ranges.iter_mut().filter(|range| is_forgotten(range)) {
            if range.is_ahead() {
                self.ahead_ranges -= 1;
                self.ahead_bytes -= range.bytes();
            }
            // It stays as an empty range, since others are known by their index, and still counts as new.
            *range = Range { pages: Span { start: 0, end: 0 }, state: State::Cached, ..*range };
        }
    }

    /// Another program has touched a mark: whether the command uses those pages will not be known. Returns whether it
    /// was a mark of this start.
    pub(super) fn lose_mark(&mut self, key: FileKey, mark: Mark) -> bool {
        let is_ours = self.marks.remove(&(key, mark.first, mark.last));
        if is_ours && let Some(file) = self.files.get_mut(&key) {
            let marked = Span { start: mark.first, end: mark.last + 1 };
            let in_groups = file.in_groups(marked);
            for (range, is_in_group) in file.ranges.iter_mut().zip(in_groups) {
                if range.is_ahead() && is_in_group {
                    self.ahead_ranges -= 1;
                    self.ahead_bytes -= range.bytes();
                    range.state = State::Cached;
                }
            }
        }
        is_ours
    }

    pub(super) fn lose_marks_of(&mut self, key: FileKey) {
        let of_file = self.marks.range((key, 0, 0)..=(key, u64::MAX, u64::MAX));
        let lost: Vec<Mark> = of_file.map(|&(_, first, last)| Mark { first, last }).collect();
        for mark in lost {
            self.lose_mark(key, mark);
        }
    }

    pub(super) fn expects(&self, file: FileKey, mark: Mark) -> bool {
        self.marks.contains(&(file, mark.first, mark.last))
    }

    pub(super) fn has_asked(&self, ticket: Ticket) -> bool {
        self.batches.contains_key(&ticket)
    }

    /// A mark was set: the first access there will be reported.
    pub(crate) fn expect(&mut self, file: FileKey, mark: Mark) {
        self.marks.insert((file, mark.first, mark.last));
    }

    /// Bytes of a device that were asked for and are not answered yet.
    fn unanswered_bytes(&self, dev: DeviceNumber) -> u64 {
        let batches = self.batches.values().filter(|batch| batch.dev == dev);
        let ranges = batches.flat_map(|batch| &batch.ranges);
        ranges.filter_map(|range| self.range(*range)).map(Range::bytes).sum()
    }

    pub(super) fn range(&self, (file, at): RangeRef) -> Option<&Range> {
        self.files.get(&file)?.ranges.get(at)
    }

    /// The ranges of a device to ask for now.
    pub(super) fn next_ranges(&mut self, dev: DeviceNumber, means: &Means) -> Vec<RangeRef> {
        let is_serial = means.cost.is_serial();
        let unanswered = self.unanswered_bytes(dev);
        if is_serial && unanswered > 0 {
            return Vec::new();
        }
        let room_bytes = means.room_bytes().saturating_sub(unanswered);
        // A command that has used nothing of the list may be another program: it has earned nothing.
        let earned = |first: u64, used: u64| match used {
            0 => 0,
            _ => first.saturating_add(EARNED.saturating_mul(used)),
        };
        let earned_bytes = earned(FIRST_BYTES, self.used_bytes);
        let credit = earned(FIRST_RANGES, self.used_ranges)
            .saturating_sub(self.ahead_ranges + self.gone_ranges);
        let credit_bytes = earned_bytes.saturating_sub(self.ahead_bytes);
        // A range that would be too large even if nothing were ahead does not hold up those behind it.
        let largest = earned_bytes.min(room_bytes.saturating_add(self.ahead_bytes));
        let files = &self.files;
        let range = |(file, at): &RangeRef| files.get(file)?.ranges.get(*at);
        let Some(queue) = self.waiting.get_mut(&dev) else { return Vec::new() };
        queue.retain(|at| range(at).is_some_and(|range| range.state == State::Waiting));
        let bytes = |at: &RangeRef| range(at).map_or(0, Range::bytes);
        let mut next: Vec<RangeRef> =
            queue.iter().filter(|at| bytes(at) <= largest).copied().collect();
        let fit = |next: &[RangeRef], most_bytes: u64| {
            let sums = next.iter().scan(0, |sum, at| {
                *sum += bytes(at);
                Some(*sum)
            });
            sums.take_while(|sum| *sum <= most_bytes).count()
        };
        let count = fit(&next, credit_bytes).min(usize::try_from(credit).unwrap_or(usize::MAX));
        let enough = ((GROWTH * self.totals.ranges) as usize).min(next.len());
        if is_serial && count < enough {
            return Vec::new();
        }
        next.truncate(count.min(fit(&next, room_bytes)));
        next
    }

    /// These ranges were asked for.
    pub(super) fn asked(&mut self, ticket: Ticket, dev: DeviceNumber, ranges: Vec<RangeRef>) {
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

    /// A batch was answered. Returns its file system.
    pub(super) fn answered(&mut self, ticket: Ticket, found: &[Found]) -> Option<DeviceNumber> {
        let batch = self.batches.remove(&ticket)?;
        for ((key, at), found) in batch.ranges.into_iter().zip(found) {
            let file = self.files.get_mut(&key);
            let Some(range) = file.and_then(|file| file.ranges.get_mut(at)) else { continue };
            let is_asked = range.state == State::Asked;
            match found {
                Found::Gone => {
                    self.gone_ranges += 1;
                    self.forget_version(key);
                }
                Found::Read => {
                    self.totals.bytes += range.bytes();
                    if is_asked {
                        range.state = State::Read;
                    } else if range.state == State::Used {
                        self.totals.used += 1;
                        self.totals.used_bytes += range.bytes();
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
        Some(batch.dev)
    }

    /// The command has come to ranges since the totals `before`, and `is_spared` the waiting for them.
    pub(super) fn earn(
        &mut self,
        dev: DeviceNumber,
        before: Totals,
        is_spared: bool,
        cost: &DeviceCost,
    ) {
        let ranges = if is_spared { self.totals.used - before.used } else { 0 };
        let bytes = self.totals.used_bytes - before.used_bytes;
        self.savings.earn(dev, ranges as f64 * cost.latency_s, bytes, cost);
    }

    /// That many ranges were read since the totals `before`. The command has waited for those that it has used.
    pub(super) fn spend(
        &mut self,
        dev: DeviceNumber,
        ranges: u32,
        before: Totals,
        cost: &DeviceCost,
    ) {
        self.savings.spend(dev, ranges, self.totals.bytes - before.bytes, cost);
        self.earn(dev, before, false, cost);
    }

    fn is_learning(&self, now: Nanos) -> bool {
        now.saturating_sub(self.began_at) < LEARNING_NS
    }

    /// Whether it may end with its processes.
    pub(super) fn is_old(&self, now: Nanos) -> bool {
        now.saturating_sub(self.began_at) >= SHORTEST_NS
    }

    /// Whether nothing more is concluded from what the command reads.
    pub(crate) fn is_over(&self, now: Nanos) -> bool {
        now.saturating_sub(self.began_at) >= LEARNING_NS + IDLE_NS
    }

    /// Asks for nothing more, and counts nothing as ahead any more. Gives the marks that are still set.
    pub(super) fn let_go(&mut self) -> Vec<(FileKey, Mark)> {
        self.waiting.clear();
        self.batches.clear();
        (self.ahead_ranges, self.ahead_bytes) = (0, 0);
        for range in self.files.values_mut().flat_map(|file| &mut file.ranges) {
            range.state = match range.state {
                State::Read => State::InVain,
                // Its answer has not come.
                State::Asked => State::Cached,
                other => other,
            };
        }
        let marks = std::mem::take(&mut self.marks);
        marks.into_iter().map(|(file, first, last)| (file, Mark { first, last })).collect()
    }

    /// A file system is gone. What is remembered of it stays.
    pub(super) fn forget_volume(&mut self, dev: DeviceNumber) {
        self.waiting.remove(&dev);
        self.savings.forget_volume(dev);
        self.batches.retain(|_, batch| batch.dev != dev);
        self.marks.retain(|(file, ..)| file.dev != dev);
        for (_, file) in self.files.iter_mut().filter(|(key, _)| key.dev == dev) {
            for range in file.ranges.iter_mut().filter(|range| range.is_ahead()) {
                self.ahead_ranges -= 1;
                self.ahead_bytes -= range.bytes();
                range.state = State::Cached;
            }
        }
    }

    /// Files with marks that the command may still come to.
    pub(super) fn expected(&self, now: Nanos) -> impl Iterator<Item = FileKey> {
        let is_learning = self.is_learning(now);
        let is_expected = |file: &File| file.ranges.iter().any(Range::is_ahead);
        let files = self.files.iter().filter(move |(_, file)| is_learning && is_expected(file));
        files.map(|(key, _)| *key)
    }

    /// What the next start should read ahead, in this order. `gap_pages` are those that take a device as long as another
    /// access.
    pub(super) fn list(&self, gap_pages: impl Fn(DeviceNumber) -> u64) -> Vec<RememberedFile> {
        // If most ranges were cached, few accesses were reported, and their order tells little.
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
            let mut ranges = next_ranges(&file.ranges, gap_pages(key.dev));
            ranges.truncate(room);
            room -= ranges.len();
            if !ranges.is_empty() {
                let generation = file.generation;
                // The command may have changed a file that it came to, so the body looks at it again.
                let version = file.version.filter(|_| file.turn.is_none());
                list.push(RememberedFile { file: *key, generation, version, ranges });
            }
        }
        list
    }
}
