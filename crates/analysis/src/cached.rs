//! The pages that programs have read or written so far.

use readahead::PAGE_BYTES;

/// Bits of a word, one for each page.
const BITS: u64 = 64;

/// A set of pages of files: one bit for each page up to the last one.
#[derive(Debug, Default)]
pub(crate) struct Cached(Vec<Vec<u64>>);

impl Cached {
    /// No pages of so many files.
    pub(crate) fn new(files: usize) -> Self {
        Cached(vec![Vec::new(); files])
    }

    /// Adds the pages of these bytes, one at least. Returns whether all of them were there.
    pub(crate) fn add(&mut self, file: u32, start: u64, end: u64) -> bool {
        let words = &mut self.0[file as usize];
        let (first, last) = (start / PAGE_BYTES, end.saturating_sub(1) / PAGE_BYTES);
        let needed = (last / BITS + 1) as usize;
        if words.len() < needed {
            words.resize(needed, 0);
        }
        let mut were_there = true;
        for word in first / BITS..=last / BITS {
            let from = first.max(word * BITS) % BITS;
            let to = last.min(word * BITS + BITS - 1) % BITS;
            let pages = (u64::MAX << from) & (u64::MAX >> (BITS - 1 - to));
            let known = &mut words[word as usize];
            were_there &= *known & pages == pages;
            *known |= pages;
        }
        were_there
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn pages_are_there_once_all_of_them_were_added(
            reads in prop::collection::vec((0..2u32, 0..1u64 << 20, 1..1u64 << 20), 1..40)
        ) {
            let mut cached = Cached::new(2);
            let mut known = HashSet::new();
            for (file, start, bytes) in reads {
                let end = start + bytes;
                let pages = start / PAGE_BYTES..end.div_ceil(PAGE_BYTES);
                let mut were_there = true;
                pages.for_each(|page| were_there &= !known.insert((file, page)));
                prop_assert_eq!(cached.add(file, start, end), were_there);
            }
        }
    }
}
