//! Marks on a sample of what was read of a region: they tell how much of it is used.
//!
//! ```text
//!   slice   |------------ part -----------|------------ part -----------|
//!   marks   . . . [mmmm] . . . . . . . . . . . . . . . . [mmmm] . . . . .
//! ```
//!
//! A mark is reported once. Each page of it that is used then stands for `part / mark` pages of its part. Places
//! are scattered, so that no stride in the reader's pages goes past all of them or meets each.

use super::access_context::AccessContext;
use crate::access::{FileId, Nanos, Page};
use crate::plan::{CHUNK_PAGES, Plan};
use crate::table::{SCATTER, Table};

/// The most parts of a slice. The body remembers 64 marked chunks of a file, which streams need as well.
const MOST_PARTS: u64 = 8;

/// The least pages of a part, if the slice is not smaller: an eighth of it is a mark of one chunk.
const PART_PAGES: u64 = 256;

/// One page in this many is marked.
const MARKED: u64 = 8;

/// Look for the mark that a read has touched in this many chunks from its start on, as the body does.
const MOST_CHUNKS: u64 = 16;

/// A mark, and what it stands for.
#[derive(Clone, Copy, Debug)]
struct Sample {
    first: Page,
    end: Page,
    /// Pages of its part; 0 once it was touched.
    part: u64,
    /// Pages of one request.
    request: u64,
    /// What such a request waits if it finds nothing, in seconds.
    wait_s: f64,
}

/// What a touched mark tells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Used {
    /// Pages of the part that are used, on average.
    pub(super) pages: f64,
    /// What the requests that find them in the cache do not wait, in seconds.
    pub(super) saved_s: f64,
}

#[derive(Debug)]
pub(super) struct Samples {
    /// By chunk.
    table: Table<(FileId, u64), Sample>,
}

impl Samples {
    pub(super) fn new(capacity: usize) -> Self {
        Samples { table: Table::new(capacity) }
    }

    /// Marks some of the `pages` from `start` on, which requests of `request` pages are to find. Each has waited
    /// `wait_s` seconds until now.
    pub(super) fn mark(
        &mut self,
        context: &AccessContext,
        start: Page,
        pages: u64,
        request: u64,
        wait_s: f64,
        plan: &mut Plan,
    ) {
        let parts = (pages / PART_PAGES).clamp(1, MOST_PARTS);
        for number in 0..parts {
            let (from, to) = (start + pages * number / parts, start + pages * (number + 1) / parts);
            let part = to - from;
            let length = part.div_ceil(MARKED).min(CHUNK_PAGES);
            let first = place(from, part, length);
            let end = (first + length).min(first / CHUNK_PAGES * CHUNK_PAGES + CHUNK_PAGES);
            let key = (context.access.file, first / CHUNK_PAGES);
            let sample = Sample { first, end, part, request: request.max(1), wait_s };
            *self.table.get_or_insert_for(
                context.cache.group(),
                key,
                context.access.now,
                || sample,
                drop,
            ) = sample;
            plan.mark(first, end - 1);
        }
    }

    /// The use that the access shows, if it has touched one of the marks. A read may begin before the mark.
    pub(super) fn touch(&mut self, context: &AccessContext) -> Option<Used> {
        let (file, now) = (context.access.file, context.access.now);
        let mut chunks = context.first / CHUNK_PAGES..context.end.div_ceil(CHUNK_PAGES);
        chunks.end = chunks.end.min(chunks.start + MOST_CHUNKS);
        chunks.find_map(|chunk| {
            let sample = self.table.get_mut(&(file, chunk), now)?;
            let touched = context.end.min(sample.end).checked_sub(context.first.max(sample.first));
            let touched = touched.filter(|touched| *touched > 0 && sample.part > 0)?;
            let pages = (touched * sample.part) as f64 / (sample.end - sample.first) as f64;
            let request = sample.request.max(context.end - context.first);
            sample.part = 0;
            Some(Used { pages, saved_s: pages / request as f64 * sample.wait_s })
        })
    }

    pub(super) fn forget_before(&mut self, moment: Nanos) {
        self.table.forget_before(moment, drop);
    }
}

/// The first page of a mark of `length` pages within the `part` pages from `from` on. A mark as long as a chunk covers
/// one chunk exactly, if the part contains a whole one.
fn place(from: Page, part: u64, length: u64) -> Page {
    let scattered = from.wrapping_mul(SCATTER) >> 32;
    let first_chunk = from.div_ceil(CHUNK_PAGES);
    let chunks = ((from + part) / CHUNK_PAGES).saturating_sub(first_chunk);
    if length == CHUNK_PAGES && chunks > 0 {
        (first_chunk + scattered % chunks) * CHUNK_PAGES
    } else {
        from + scattered % (part - length + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_lies_in_its_part() {
        for from in 0..200 {
            for part in [1_u64, 5, 63, 64, 100, 256, 1000] {
                let length = part.div_ceil(MARKED).min(CHUNK_PAGES);
                let first = place(from, part, length);
                assert!(first >= from && first + length <= from + part, "{from} {part}: {first}");
            }
        }
    }

    #[test]
    fn marks_of_parts_that_follow_one_another_stand_at_no_equal_distances() {
        let places: Vec<u64> = (0..16).map(|part| place(part * 256, 256, 32) % 256).collect();
        let mut distinct = places.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert!(distinct.len() >= 5, "{places:?}");
    }
}
