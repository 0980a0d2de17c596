//! A range of a file in one start of a command: how far it has come, and what the next list says of it.

use readahead::behind::Span;
use readahead::{Mark, PAGE_BYTES};

use super::RememberedRange;
use crate::{CHUNK_PAGES, MARK_PAGES};

/// Most pages of one range: a long read is a stream, which needs no list.
pub(super) const RANGE_PAGES: u64 = 1024;

/// The mark on a range covers this many of its first pages. The range of a fault is what the kernel reads around it, so
/// the fault itself lies in the middle.
const MARKED_PAGES: u64 = CHUNK_PAGES;

/// A range that was read and not used at this many starts in a row is forgotten.
const STARTS_IN_VAIN: u8 = 3;

/// How far a range has come in this start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Waiting,
    Asked,
    Read,
    /// It was read, and no event showed its use.
    InVain,
    Cached,
    Used,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Range {
    pub(super) pages: Span,
    pub(super) starts_in_vain: u8,
    pub(super) state: State,
    /// It is not in the list that was given.
    pub(super) is_new: bool,
}

impl Range {
    pub(super) fn mark(&self) -> Mark {
        let last = (self.pages.end - 1).min(self.pages.start + MARKED_PAGES - 1);
        Mark { first: self.pages.start, last }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.pages.pages() * PAGE_BYTES
    }

    pub(super) fn overlaps(&self, pages: Span) -> bool {
        self.pages.start < pages.end && pages.start < self.pages.end
    }

    /// Asked for and not used yet.
    pub(super) fn is_ahead(&self) -> bool {
        matches!(self.state, State::Asked | State::Read)
    }
}

/// The range's [`RememberedRange::starts_in_vain`] in the next list.
pub(super) fn next_starts_in_vain(range: &Range) -> u8 {
    match range.state {
        State::Used => 0,
        State::Read | State::InVain => range.starts_in_vain.saturating_add(1),
        State::Waiting | State::Asked | State::Cached => range.starts_in_vain,
    }
}

/// A file's ranges in the next list. Ranges with a gap between them that takes its device less time than another access,
/// `gap_pages`, are one.
pub(super) fn next_ranges(ranges: &[Range], gap_pages: u64) -> Vec<RememberedRange> {
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
        match joined.last_mut().filter(|last| is_one(last, &range, gap_pages)) {
            Some(last) => last.pages.end = range.pages.end,
            None => joined.push(range),
        }
    }
    joined
}

/// Whether two ranges, the first before the other one, are better read as one.
fn is_one(first: &RememberedRange, other: &RememberedRange, gap_pages: u64) -> bool {
    first.starts_in_vain == other.starts_in_vain
        && other.pages.start - first.pages.end <= gap_pages
        && other.pages.end - first.pages.start <= RANGE_PAGES
}

/// Marks that tell when each range is used. A chunk has room for one mark, which then stands for all ranges there.
pub(super) fn marks_of(ranges: &[Range]) -> Vec<Mark> {
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
