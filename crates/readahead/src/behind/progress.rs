//! The progress of one stream through its file.

use super::plan::{DropPlan, Passing};
use super::span::{FOLIO_PAGES, Span};
use crate::access::Page;

/// Decide after every MiB, rarely enough to cost nothing.
const STEP_PAGES: u64 = 256;

/// Keep 12 MiB behind a reader: a follower may be 8 MiB behind it, and both may read 4 MiB before
/// the next decision.
const FOLLOWER_PAGES: u64 = 3072;

/// A reader of a very large file engages only after a run of 8 MiB. One that reads at random may
/// come back.
const LARGE_RUN_PAGES: u64 = 2048;

/// The last 8 MiB of a run may not have been reported yet: reports come every 4 MiB, and may be
/// about pages up to 4 MiB ahead.
const UNTOLD_PAGES: u64 = 2048;

/// When to act behind a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Number of passed pages after which a stream engages.
    pub engage_pages: u64,
    /// Written pages are written out in steps of this size; the last step stays behind. On a disk
    /// with a head, each step costs two seeks.
    pub write_step_pages: u64,
}

/// How far a stream has come, and what was done behind it.
#[derive(Clone, Copy, Debug, Default)]
pub struct StreamProgress {
    /// Start of the current run, and its end so far.
    from: Page,
    at: Page,
    /// End of the pages already judged, and of those already released.
    stepped: Page,
    released: Page,
    engaged: bool,
}

impl StreamProgress {
    /// The stream has passed the pages `passed` of its `file_pages` pages.
    pub fn on_pass(
        &mut self,
        passed: Span,
        file_pages: u64,
        passing: Passing,
        terms: Terms,
    ) -> DropPlan {
        let is_known = passed.start >= self.from && passed.end <= self.at;
        if is_known {
            return DropPlan::default();
        }
        if !(self.from..=self.at).contains(&passed.start) {
            let start = passed.start;
            *self = StreamProgress {
                from: start,
                at: start,
                stepped: start,
                released: start,
                engaged: false,
            };
        }
        self.at = passed.end;
        self.engage(file_pages, passing, terms.engage_pages);
        let step_pages = match passing {
            Passing::Read => STEP_PAGES,
            Passing::Write => terms.write_step_pages,
        };
        if !self.engaged || self.at - self.stepped < step_pages {
            return DropPlan::default();
        }
        self.step(passing, terms)
    }

    fn engage(&mut self, file_pages: u64, passing: Passing, engage_pages: u64) {
        let run = self.at - self.from;
        let is_large = file_pages > engage_pages && passing == Passing::Read;
        let is_stream = run > engage_pages || (is_large && run >= LARGE_RUN_PAGES);
        self.engaged = is_stream || engage_pages == 0;
    }

    /// Passed pages that were not released yet.
    pub fn pending_pages(&self) -> u64 {
        if self.engaged { self.at - self.released } else { 0 }
    }

    /// Whether pages behind it are dropped.
    pub fn is_engaged(&self) -> bool {
        self.engaged
    }

    /// The current run.
    pub fn run(&self) -> Span {
        Span { start: self.from, end: self.at }
    }

    /// The stream has ended or pauses, so nothing is kept for followers. `end` is the end of
    /// everything it has touched, in this run or another.
    pub fn finish(
        &mut self,
        end: Page,
        file_pages: u64,
        passing: Passing,
        terms: Terms,
    ) -> DropPlan {
        if (self.at..=self.at + UNTOLD_PAGES).contains(&end) {
            self.at = end;
        }
        self.engage(file_pages, passing, terms.engage_pages);
        if !self.engaged {
            return DropPlan::default();
        }
        let of = |start, end| (start < end).then_some(Span { start, end });
        let write_out = of(self.stepped, self.at).filter(|_| passing == Passing::Write);
        let release = of(self.released, self.at);
        (self.stepped, self.released) = (self.at, self.at);
        DropPlan { write_out, release }
    }

    /// The stream has passed a step: writes it out, and releases what is far enough behind.
    fn step(&mut self, passing: Passing, terms: Terms) -> DropPlan {
        let passed = Span { start: self.stepped, end: self.at };
        self.stepped = self.at;
        let write_out = (passing == Passing::Write).then_some(passed);
        let start = self.released;
        let distance = match passing {
            Passing::Read => FOLLOWER_PAGES,
            Passing::Write => terms.write_step_pages,
        };
        // What is released ends where a folio does.
        let end = self.at.saturating_sub(distance) / FOLIO_PAGES * FOLIO_PAGES;
        if end <= start {
            return DropPlan { write_out, release: None };
        }
        self.released = end;
        DropPlan { write_out, release: Some(Span { start, end }) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn passes() -> impl Strategy<Value = Vec<(u64, u64)>> {
        prop::collection::vec((0..20_000u64, 1..6000u64), 1..60)
    }

    proptest! {
        #[test]
        fn only_passed_pages_go_and_a_follower_finds_its_pages(
            passes in passes(), engage in 0..8000u64, write_step_pages in 1..5000u64, is_read in any::<bool>(), runs_on in prop::collection::vec(any::<bool>(), 60),
        ) {
            let (passing, distance) = if is_read {
                (Passing::Read, FOLLOWER_PAGES)
            } else {
                (Passing::Write, write_step_pages)
            };
            let mut progress = StreamProgress::default();
            let mut at = 0;
            let mut passed = vec![false; 400_000];
            for ((start, pages), goes_on) in passes.into_iter().zip(runs_on) {
                let start = if goes_on { at } else { start };
                let span = Span { start, end: start + pages };
                at = span.end;
                passed[start as usize..at as usize].fill(true);
                let answer = progress.on_pass(span, 400_000, passing, Terms { engage_pages: engage, write_step_pages });
                for page in answer.write_out.iter().flat_map(|span| span.start..span.end) {
                    prop_assert!(passed[page as usize]);
                }
                if let Some(release) = answer.release {
                    prop_assert!(release.start < release.end);
                    prop_assert!(release.end + distance <= at);
                    prop_assert!((release.start..release.end).all(|page| passed[page as usize]));
                }
            }
        }

        #[test]
        fn spans_of_one_run_never_overlap_and_leave_no_gap(
            steps in prop::collection::vec(1..3000u64, 1..60), engage in 0..8000u64, write_step_pages in 1..5000u64,
        ) {
            let terms = Terms { engage_pages: engage, write_step_pages };
            let mut progress = StreamProgress::default();
            let (mut at, mut released, mut written) = (0, 0, 0);
            let mut answers = Vec::new();
            for step in steps {
                let span = Span { start: at, end: at + step };
                at += step;
                answers.push(progress.on_pass(span, at, Passing::Write, terms));
            }
            answers.push(progress.finish(at, at, Passing::Write, terms));
            for answer in answers {
                if let Some(span) = answer.release {
                    prop_assert_eq!(span.start, released);
                    released = span.end;
                }
                if let Some(span) = answer.write_out {
                    prop_assert_eq!(span.start, written);
                    written = span.end;
                }
            }
            let expected = if at > engage { at } else { 0 };
            prop_assert_eq!((released, written), (expected, expected));
        }
    }

    #[test]
    fn a_random_reader_of_a_large_file_is_no_stream() {
        let terms = Terms { engage_pages: 1000, write_step_pages: 1024 };
        let mut progress = StreamProgress::default();
        for start in [500_000, 7, 90_000, 300_000] {
            progress.on_pass(Span { start, end: start + 8 }, 1 << 20, Passing::Read, terms);
            assert_eq!(
                progress.finish(1 << 20, 1 << 20, Passing::Read, terms),
                DropPlan::default()
            );
        }
        // A footer is read before the file is read from its start.
        progress.on_pass(Span { start: 0, end: 4096 }, 1 << 20, Passing::Read, terms);
        let answer = progress.finish(1 << 20, 1 << 20, Passing::Read, terms);
        assert_eq!(answer.release.map(|span| span.end), Some(4096));
    }

    #[test]
    fn always_engages_with_the_first_page() {
        let mut progress = StreamProgress::default();
        let terms = Terms { engage_pages: 0, write_step_pages: 1024 };
        progress.on_pass(Span { start: 0, end: 3 }, 3, Passing::Read, terms);
        assert_eq!(
            progress.finish(3, 3, Passing::Read, terms).release,
            Some(Span { start: 0, end: 3 })
        );
    }
}
