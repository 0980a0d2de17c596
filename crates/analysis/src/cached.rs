//! The pages that programs have read or written so far, or are still reading.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use readahead::{Nanos, PAGE_BYTES};
use trace::Record;

/// Bits of a word, one for each page.
const BITS: u64 = 64;

/// Where the data of a read were when it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Before {
    /// Some of its pages nobody had asked for.
    #[default]
    New,
    /// All had been asked for, but some were still on their way.
    UnderWay,
    /// Operations that had ended had read or written all of them.
    Known,
}

/// What operations have brought into memory, and what they are about to.
#[derive(Debug)]
pub(crate) struct Cached {
    ended: Pages,
    begun: Pages,
    /// When operations end that have not, their files, and their bytes from the first to the one after the last.
    under_way: BinaryHeap<Reverse<(Nanos, u32, u64, u64)>>,
}

impl Cached {
    /// Nothing of so many files.
    pub(crate) fn new(files: usize) -> Self {
        Cached { ended: Pages::new(files), begun: Pages::new(files), under_way: BinaryHeap::new() }
    }

    /// An operation on bytes up to `end`; operations come in the order in which they begin. Returns where its data
    /// were.
    pub(crate) fn take(&mut self, record: &Record, end: u64) -> Before {
        while let Some(Reverse((ends, file, start, end))) = self.under_way.peek().copied()
            && ends <= record.at
        {
            self.under_way.pop();
            self.ended.add(file, start, end);
        }
        let (file, start) = (record.file, record.offset);
        self.under_way.push(Reverse((record.at + record.took, file, start, end)));
        match (self.ended.has(file, start, end), self.begun.add(file, start, end)) {
            (true, _) => Before::Known,
            (false, true) => Before::UnderWay,
            (false, false) => Before::New,
        }
    }
}

/// A set of pages of files: one bit for each page up to the last one.
#[derive(Debug, Default)]
struct Pages(Vec<Vec<u64>>);

impl Pages {
    /// No pages of so many files.
    fn new(files: usize) -> Self {
        Pages(vec![Vec::new(); files])
    }

    /// Adds the pages of these bytes, one at least. Returns whether all of them were there.
    fn add(&mut self, file: u32, start: u64, end: u64) -> bool {
        let words = &mut self.0[file as usize];
        let needed = (end.saturating_sub(1) / PAGE_BYTES / BITS + 1) as usize;
        if words.len() < needed {
            words.resize(needed, 0);
        }
        let mut were_there = true;
        for (word, pages) in in_words(start, end) {
            let known = &mut words[word];
            were_there &= *known & pages == pages;
            *known |= pages;
        }
        were_there
    }

    /// Whether the pages of these bytes, one at least, are all there.
    fn has(&self, file: u32, start: u64, end: u64) -> bool {
        let words = &self.0[file as usize];
        let is_there = |(word, pages)| words.get(word).is_some_and(|known| known & pages == pages);
        in_words(start, end).all(is_there)
    }
}

/// The pages of these bytes, one at least: words, and bits in each.
fn in_words(start: u64, end: u64) -> impl Iterator<Item = (usize, u64)> {
    let (first, last) = (start / PAGE_BYTES, end.saturating_sub(1) / PAGE_BYTES);
    (first / BITS..=last / BITS).map(move |word| {
        let from = first.max(word * BITS) % BITS;
        let to = last.min(word * BITS + BITS - 1) % BITS;
        (word as usize, (u64::MAX << from) & (u64::MAX >> (BITS - 1 - to)))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use trace::TraceOp;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn data_are_known_once_an_operation_that_asked_for_them_has_ended() {
        let mut cached = Cached::new(1);
        let mut take = |at, took, offset, bytes| {
            let op = TraceOp::Read;
            let record = Record { at, took, process: 0, file: 0, op, offset, bytes };
            cached.take(&record, record.end())
        };
        assert_eq!(take(0, 100, 0, 8192), Before::New);
        assert_eq!(take(99, 1, 4096, 4096), Before::UnderWay);
        assert_eq!(take(99, 7, 4096, 8192), Before::New, "its second page is");
        assert_eq!(take(100, 0, 0, 8192), Before::Known);
        assert_eq!(take(100, 0, 4096, 8192), Before::UnderWay, "its second page still is");
        assert_eq!(take(106, 0, 0, 12288), Before::Known);
    }

    proptest! {
        #[test]
        fn pages_are_there_once_all_of_them_were_added(
            reads in prop::collection::vec((0..2u32, 0..1u64 << 20, 1..1u64 << 20), 1..40)
        ) {
            let mut cached = Pages::new(2);
            let mut known = HashSet::new();
            for (file, start, bytes) in reads {
                let end = start + bytes;
                let pages = start / PAGE_BYTES..end.div_ceil(PAGE_BYTES);
                let mut were_there = true;
                pages.for_each(|page| were_there &= !known.insert((file, page)));
                prop_assert_eq!(cached.has(file, start, end), were_there);
                prop_assert_eq!(cached.add(file, start, end), were_there);
            }
        }
    }
}
