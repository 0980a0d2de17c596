//! What the kernel brought into its cache, and what became of it.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use readahead::{Nanos, PAGE_BYTES};
use trace::{Reason, Record, Trace, TraceOp, Window};

use crate::Stream;

/// Calls that wait for nothing are merged for one tick of the kernel's clock, 10 ms at most (100 Hz), and then dated
/// evenly: a read may seem so much earlier than it was.
const SPREAD: Nanos = 10_000_000;

/// What was brought in for a stream, and what it was good for. In pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ahead {
    /// How many windows.
    pub windows: u64,
    /// The size that half of them do not exceed.
    pub median: u64,
    /// The largest.
    pub largest: u64,
    /// All of them together.
    pub brought: u64,
    /// Of these, what reads and faults themselves had asked for.
    pub asked: u64,
    /// Pages that were brought in before anybody had asked for them, and that this stream was the first to read.
    pub hits: u64,
    /// Of the pages brought in, those of files that nobody maps. The kernel maps cached pages around a fault, so of a
    /// mapped file it is not seen which pages were read.
    pub followed: u64,
    /// Of these, what nobody has read until the end, or until it was brought in again.
    pub wasted: u64,
}

impl Ahead {
    /// Of the pages that were brought in while recording and that this stream was the first to read, those that had
    /// been brought in before it asked for them: these, and all. `None` if there are none.
    pub fn hit(&self) -> Option<(u64, u64)> {
        let all = self.hits + self.asked;
        (all > 0).then_some((self.hits, all))
    }

    /// The pages that were brought in and not read, and all of which that is known. `None` if it is of none.
    pub fn waste(&self) -> Option<(u64, u64)> {
        (self.followed > 0).then_some((self.wasted, self.followed))
    }

    /// Adds the pages and windows of another one; the median stays.
    pub fn add(&mut self, other: &Ahead) {
        self.windows += other.windows;
        self.largest = self.largest.max(other.largest);
        self.brought += other.brought;
        self.asked += other.asked;
        self.hits += other.hits;
        self.followed += other.followed;
        self.wasted += other.wasted;
    }
}

/// Finds out what became of the windows of each stream. Returns the sum, also of windows that belong to no stream, as
/// their process has not read the file.
pub(crate) fn follow(trace: &Trace, streams: &mut [Stream]) -> Ahead {
    let mut pass = Pass::new(trace, streams);
    let is_write = |record: &Record| record.op == TraceOp::Write && trace.has_bytes(record);
    let is_use = |record: &&Record| is_read(trace, record) || is_write(record);
    let mut uses = trace.records().iter().filter(is_use).peekable();
    for (number, window) in trace.windows().iter().enumerate() {
        let from = window.at.saturating_sub(SPREAD);
        while let Some(record) = uses.next_if(|record| record.at < from) {
            pass.use_pages(record);
        }
        pass.bring(number, window);
    }
    uses.for_each(|record| pass.use_pages(record));
    let each = pass.finish();
    let mut sum = Ahead::default();
    each.iter().for_each(|ahead| sum.add(ahead));
    streams.iter_mut().zip(each).for_each(|(stream, ahead)| stream.ahead = ahead);
    sum
}

/// Whether the record is a read that got bytes.
fn is_read(trace: &Trace, record: &Record) -> bool {
    record.op.is_read() && trace.has_bytes(record)
}

/// Pages that were read ahead and that nobody has read yet, from the key up to the end, and the windows that have them.
type Unused = BTreeMap<u64, (u64, usize)>;

/// What is known of reads and windows so far. Of `sizes` and `all` the last entry stands for no stream.
struct Pass<'a> {
    trace: &'a Trace,
    /// The number of the stream of a process and a file, by calls or through a mapping.
    numbers: HashMap<(u32, u32, bool), usize>,
    /// The reads of each process that has windows.
    calls: HashMap<u32, Vec<&'a Record>>,
    /// By file.
    unused: HashMap<u32, Unused>,
    /// Whether somebody maps the file, by file.
    is_mapped: Vec<bool>,
    /// The sizes of windows in pages, by stream.
    sizes: Vec<Vec<u64>>,
    /// By stream.
    all: Vec<Ahead>,
    /// The stream of each window.
    owners: Vec<usize>,
}

impl<'a> Pass<'a> {
    fn new(trace: &'a Trace, streams: &[Stream]) -> Self {
        let key = |stream: &Stream| (stream.process, stream.file, stream.is_mapped);
        let numbers: HashMap<_, _> =
            streams.iter().enumerate().map(|(number, stream)| (key(stream), number)).collect();
        let mut is_mapped = vec![false; trace.files().len()];
        for stream in streams.iter().filter(|stream| stream.is_mapped) {
            is_mapped[stream.file as usize] = true;
        }
        let whose = trace.windows().iter().filter_map(|window| window.process);
        let mut calls: HashMap<u32, Vec<&Record>> = whose.map(|one| (one, Vec::new())).collect();
        for record in trace.records().iter().filter(|record| record.op == TraceOp::Read) {
            if let Some(calls) = calls.get_mut(&record.process) {
                calls.push(record);
            }
        }
        let mut pass = Pass {
            trace,
            numbers,
            calls,
            unused: HashMap::new(),
            is_mapped,
            sizes: vec![Vec::new(); streams.len() + 1],
            all: vec![Ahead::default(); streams.len() + 1],
            owners: Vec::new(),
        };
        pass.owners = trace.windows().iter().map(|window| pass.owner(window)).collect();
        pass
    }

    /// The stream for which a window was brought in.
    fn owner(&self, window: &Window) -> usize {
        let of = |is_mapped| {
            let process = window.process?;
            self.numbers.get(&(process, window.file, is_mapped)).copied()
        };
        let (first, other) = match window.reason {
            Reason::Fault => (of(true), of(false)),
            Reason::Read | Reason::Request => (of(false), of(true)),
        };
        first.or(other).unwrap_or(self.all.len() - 1)
    }

    /// The kernel brings in a window. What of it was brought in before, and not read, was wasted then.
    fn bring(&mut self, number: usize, window: &Window) {
        let Range { start, end } = window.pages;
        let pages = window.len();
        let again = take(self.unused.entry(window.file).or_default(), start, end);
        again.into_iter().for_each(|(pages, number)| self.waste(number, pages));
        let not_asked = without(start..end, &window.asked);
        let of_call = self.call_of(window);
        let ahead: Vec<Range<u64>> = not_asked.flat_map(|range| without(range, &of_call)).collect();
        let unused = self.unused.entry(window.file).or_default();
        unused.extend(ahead.iter().map(|range| (range.start, (range.end, number))));
        let is_followed = !self.is_mapped[window.file as usize];
        let owner = self.owners[number];
        let all = &mut self.all[owner];
        all.windows += 1;
        all.brought += pages;
        all.asked += pages - ahead.iter().map(|range| range.end - range.start).sum::<u64>();
        all.followed += if is_followed { pages } else { 0 };
        self.sizes[owner].push(pages);
    }

    /// The pages of the call during which the window was brought in, as far as the call began before: a long one goes
    /// on in windows of its own.
    fn call_of(&self, window: &Window) -> Range<u64> {
        let calls = window.process.and_then(|process| self.calls.get(&process));
        let calls = calls.map_or(&[][..], Vec::as_slice);
        let began = calls.partition_point(|record| record.at <= window.at);
        let last = began.checked_sub(1).map(|number| calls[number]);
        let last = last.filter(|record| {
            let goes_on = window.at <= record.at + record.took + SPREAD;
            goes_on
                && window.reason == Reason::Read
                && record.file == window.file
                && record.bytes > 0
        });
        last.map_or(0..0, |record| record.offset / PAGE_BYTES..record.end().div_ceil(PAGE_BYTES))
    }

    /// A read, a fault or a write uses pages, the first ones of which may have been read ahead.
    fn use_pages(&mut self, record: &Record) {
        let Some(unused) = self.unused.get_mut(&record.file) else { return };
        let end = record.end().min(self.trace.files()[record.file as usize].bytes);
        let first = record.offset / PAGE_BYTES;
        let used = take(unused, first, end.div_ceil(PAGE_BYTES));
        if record.op == TraceOp::Write {
            // Nobody can read any more what was brought in.
            return used.into_iter().for_each(|(pages, number)| self.waste(number, pages));
        }
        let key = (record.process, record.file, record.op == TraceOp::Mmap);
        let pages: u64 = used.iter().map(|(pages, _)| pages).sum();
        self.all[self.numbers[&key]].hits += pages;
    }

    /// Counts pages of a window that nobody has read, unless the file is mapped, so that nobody knows.
    fn waste(&mut self, window: usize, pages: u64) {
        let file = self.trace.windows()[window].file;
        if !self.is_mapped[file as usize] {
            self.all[self.owners[window]].wasted += pages;
        }
    }

    /// What is known of each stream; what belongs to none comes last.
    fn finish(mut self) -> Vec<Ahead> {
        let left = std::mem::take(&mut self.unused);
        for (first, (end, window)) in left.into_values().flatten() {
            self.waste(window, end - first);
        }
        for (ahead, sizes) in self.all.iter_mut().zip(&mut self.sizes) {
            sizes.sort_unstable();
            ahead.median = sizes.get(sizes.len().saturating_sub(1) / 2).copied().unwrap_or(0);
            ahead.largest = sizes.last().copied().unwrap_or(0);
        }
        self.all
    }
}

/// The parts of a range that are not in another one.
fn without(range: Range<u64>, other: &Range<u64>) -> impl Iterator<Item = Range<u64>> + use<> {
    let before = range.start..range.end.min(other.start);
    let behind = range.start.max(other.end)..range.end;
    let parts = if other.is_empty() { [range, 0..0] } else { [before, behind] };
    parts.into_iter().filter(|part| !part.is_empty())
}

/// Takes the pages of a range out. Returns how many there were of each window.
fn take(unused: &mut Unused, first: u64, end: u64) -> Vec<(u64, usize)> {
    let mut taken = Vec::new();
    while let Some((&from, &(to, window))) = unused.range(..end).next_back()
        && to > first
    {
        unused.remove(&from);
        if from < first {
            unused.insert(from, (first, window));
        }
        if to > end {
            unused.insert(end, (to, window));
        }
        taken.push((to.min(end) - from.max(first), window));
    }
    taken
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap as Pages;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn each_page_is_taken_once(
            windows in prop::collection::vec((0..99u64, 1..40u64, any::<bool>()), 1..60)
        ) {
            let (mut unused, mut pages) = (Unused::new(), Pages::new());
            for (number, (first, count, is_brought)) in windows.into_iter().enumerate() {
                let range = first..first + count;
                let mut expected = Pages::new();
                for window in range.clone().filter_map(|page| pages.remove(&page)) {
                    *expected.entry(window).or_insert(0) += 1;
                }
                let mut taken = Pages::new();
                for (pages, window) in take(&mut unused, range.start, range.end) {
                    *taken.entry(window).or_insert(0) += pages;
                }
                prop_assert_eq!(taken, expected);
                if is_brought {
                    unused.insert(range.start, (range.end, number));
                    pages.extend(range.map(|page| (page, number)));
                }
            }
        }

        #[test]
        fn what_is_left_of_a_range_is_not_in_the_other(
            a in 0..20u64, b in 0..20u64, c in 0..20u64, d in 0..20u64
        ) {
            let left: Vec<u64> = without(a..b, &(c..d)).flatten().collect();
            let expected: Vec<u64> = (a..b).filter(|page| !(c..d).contains(page)).collect();
            prop_assert_eq!(left, expected);
        }
    }
}
