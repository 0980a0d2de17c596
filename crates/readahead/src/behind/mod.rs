//! Drop-behind: pages that a stream has passed and will not need again leave the cache before
//! others' pages must.
//!
//! ```text
//!             released          kept: a follower       passed      reader or
//!         . . . . . . . . . |  may be close behind  |             | writer
//!   0 ----------------------|-----------------------|-------------> ---------
//!                           ^ `released`             one step at a time
//!   written pages:   go as soon as they are clean           <-- written out
//! ```
//!
//! A stream *engages* after it has passed half of memory (an eighth, if it writes), or at once if its file is larger
//! than that. Smaller streams gain nothing. It must have passed the file in one direction, each
//! page once. The caller decides whether a page may really be dropped: only if this stream brought
//! it in ([`Block`]) and it is clean, unmapped and not in use by others. The caller must never
//! stall the program for this.

mod block;
mod copying;
mod plan;
mod progress;
mod span;

pub use block::{BLOCK_PAGES, Block, Unused, Verdict, may_go};
pub use copying::is_copy;
pub use plan::{DropPlan, Passing};
pub use progress::{StreamProgress, Terms};
pub use span::{Span, TurnedRound};

/// A reader engages after it has passed one in this many of memory's pages. Less may be read again, and the kernel
/// keeps it then.
const READ_SHARE: u64 = 2;

/// A writer engages after one in this many, since the kernel cannot drop its pages before they are on the disk.
const WRITTEN_SHARE: u64 = 8;

/// One in this many of memory's pages may wait to be written out, within 8 to 16 MiB: as large a
/// step as memory permits. Up to three steps may wait at a time.
const WRITE_SHARE: u64 = 32;
const LEAST_WRITE_STEP_PAGES: u64 = 2048;
const MOST_WRITE_STEP_PAGES: u64 = 4096;

impl Terms {
    /// The terms for a machine or memory cgroup of `memory_pages` pages.
    pub fn of_memory(passing: Passing, memory_pages: u64) -> Terms {
        let share = match passing {
            Passing::Read => READ_SHARE,
            Passing::Write => WRITTEN_SHARE,
        };
        let write_step_pages =
            (memory_pages / WRITE_SHARE).clamp(LEAST_WRITE_STEP_PAGES, MOST_WRITE_STEP_PAGES);
        Terms { engage_pages: memory_pages / share, write_step_pages }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Page;

    const MEMORY: u64 = 80_000;

    fn pass(
        stream: &mut StreamProgress,
        pages: std::ops::Range<Page>,
        file_pages: u64,
        passing: Passing,
    ) -> Vec<DropPlan> {
        let nothing = DropPlan::default();
        pages
            .map(|page| {
                let passed = Span { start: page, end: page + 1 };
                stream.on_pass(passed, file_pages, passing, Terms::of_memory(passing, MEMORY))
            })
            .filter(|answer| *answer != nothing)
            .collect()
    }

    #[test]
    fn pieces_cover_a_span_and_end_where_no_folio_can_be_cut() {
        let pieces = |start, end| Span { start, end }.pieces().collect::<Vec<_>>();
        let span = |start, end| Span { start, end };
        assert_eq!(pieces(500, 1100), [span(500, 512), span(512, 1024), span(1024, 1100)]);
        assert_eq!(pieces(512, 1024), [span(512, 1024)]);
        assert_eq!(pieces(700, 700).iter().map(Span::pages).sum::<u64>(), 0);
    }

    #[test]
    fn a_small_file_is_left_alone() {
        let mut stream = StreamProgress::default();
        assert_eq!(pass(&mut stream, 0..10_000, 10_000, Passing::Read), []);
    }

    #[test]
    fn a_large_file_is_released_a_followers_distance_behind() {
        let mut stream = StreamProgress::default();
        let answers = pass(&mut stream, 0..4096, 45_000, Passing::Read);
        let last = answers.last().and_then(|answer| answer.release);
        assert_eq!(last, Some(Span { start: 512, end: 4096 - 3072 }));
        assert!(answers.iter().all(|answer| answer.write_out.is_none()));
    }

    #[test]
    fn released_spans_cover_what_was_passed_without_a_gap() {
        let mut stream = StreamProgress::default();
        let mut end = 0;
        for answer in pass(&mut stream, 0..50_000, 100_000, Passing::Read) {
            let Some(span) = answer.release else { continue };
            assert_eq!(span.start, end);
            end = span.end;
        }
        assert!(end > 45_000);
    }

    #[test]
    fn written_pages_are_written_out_step_by_step() {
        let mut stream = StreamProgress::default();
        let answers = pass(&mut stream, 0..30_000, 30_000, Passing::Write);
        let first = answers.first().and_then(|answer| answer.write_out);
        assert_eq!(first.map(|span| span.start), Some(0), "from the start, once engaged");
        let spans: Vec<Span> = answers.iter().filter_map(|answer| answer.write_out).collect();
        assert!(spans.windows(2).all(|pair| pair[0].end == pair[1].start));
    }

    #[test]
    fn a_seek_starts_a_new_stream() {
        let mut stream = StreamProgress::default();
        pass(&mut stream, 0..12_000, 20_000, Passing::Read);
        assert_eq!(pass(&mut stream, 15_000..15_255, 20_000, Passing::Read), []);
        let again = pass(&mut stream, 3_000..6_000, 20_000, Passing::Read);
        assert!(again.iter().filter_map(|a| a.release).all(|span| span.start >= 3_000));
    }
}
