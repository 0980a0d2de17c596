//! One process's way through one file, and which pages are dropped behind it.

use readahead::PAGE_BYTES;
use readahead::behind::{DropPlan, Passing, Span, StreamProgress, Terms};

use super::pages_of;
use super::rules::Mode;
use crate::Nanos;
use crate::ids::{FileRef, StreamKey};
use crate::input::Passed;

/// After this pause a stream keeps no pages for followers, unless it has come to the end of its file.
const PAUSE_NS: Nanos = 1_000_000_000;

/// After this long, an answer is not expected any more.
const ANSWER_NS: Nanos = 10_000_000_000;

/// A stream is reported after each step of 4 MiB.
const STEP_PAGES: u64 = 1024;

/// After this pause a stream may have come to the end of its file.
const END_PAUSE_NS: Nanos = 200_000_000;

/// Nobody follows in a file of one step: its reader is done too soon.
const SMALL_FILE_BYTES: u64 = STEP_PAGES * PAGE_BYTES;

/// Nothing is read ahead for a process while more than this of what it wrote is not on the disk: this many steps, or a
/// sixteenth of its memory (at most 64 MiB) if that is more. Its writing then catches up.
const BACKLOG_STEPS: u64 = 3;
const MOST_BACKLOG_BYTES: u64 = 64 << 20;
const BACKLOG_SHARE: u64 = 16;

/// How close a follower is: its distance of 12 MiB, and for each of both streams a step of 4 MiB that was not reported
/// yet.
const REACH_PAGES: u64 = 5120;

/// What happens behind a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Treatment {
    /// Not known before its attributes are; the pages that it has passed meanwhile.
    Undecided(Option<Span>),
    /// Nothing is dropped.
    LeftAlone,
    /// Pages are dropped on these terms.
    Dropped(Terms),
}

/// A stream.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) of: FileRef,
    written: bool,
    pub(super) mapped: bool,
    pub(super) file_bytes: u64,
    /// Time of its last event, and how far it had come.
    pub(super) heard_at: Nanos,
    at: u64,
    pub(super) progress: StreamProgress,
    treatment: Treatment,
    terms: Terms,
    pub(super) most_backlog_pages: u64,
    /// Its end or pause has been dealt with.
    pub(super) is_settled: bool,
    /// Its process has ended.
    pub(super) has_ended: bool,
    /// Pages that could not be dropped, and are not retried before its end.
    pub(super) left_pages: u64,
    /// The pages that it had touched at the last question.
    touched: Option<Span>,
    /// When it was asked what it has touched; and the answer, once it is the same twice or the process has ended.
    asked_at: Option<Nanos>,
    pub(super) rests_at: Option<Option<Span>>,
}

impl Stream {
    pub(super) fn new(now: Nanos, passed: &Passed, mode: Option<Mode>, memory: u64) -> Self {
        let terms = Terms::of_memory(passing(passed.written), memory / PAGE_BYTES);
        let backlog_bytes = (memory / BACKLOG_SHARE).min(MOST_BACKLOG_BYTES);
        let backlog_pages = BACKLOG_STEPS * terms.write_step_pages;
        let mut stream = Stream {
            of: passed.of,
            written: passed.written,
            mapped: passed.mapped,
            file_bytes: passed.file_bytes,
            heard_at: now,
            at: passed.span.end,
            progress: StreamProgress::default(),
            treatment: Treatment::Undecided(None),
            terms,
            // In addition to the current step, which the disk has not got yet.
            most_backlog_pages: terms.write_step_pages
                + backlog_pages.max(backlog_bytes / PAGE_BYTES),
            is_settled: false,
            has_ended: false,
            left_pages: 0,
            touched: None,
            asked_at: None,
            rests_at: None,
        };
        if let Some(mode) = mode {
            stream.decide(mode);
        }
        stream
    }

    /// It has passed another step.
    pub(super) fn note_step(&mut self, now: Nanos, passed: &Passed) {
        self.of = passed.of;
        self.mapped = passed.mapped;
        self.file_bytes = passed.file_bytes;
        self.heard_at = now;
        self.at = passed.span.end;
        self.is_settled = false;
        self.has_ended = false;
        self.touched = None;
        self.rests_at = None;
    }

    /// Its mode is known. Returns the pages that it has passed before.
    pub(super) fn decide(&mut self, mode: Mode) -> Option<Span> {
        let Treatment::Undecided(passed) = self.treatment else { return None };
        self.treatment = match mode {
            Mode::Always => Treatment::Dropped(Terms { engage_pages: 0, ..self.terms }),
            Mode::Never => Treatment::LeftAlone,
            Mode::Auto => Treatment::Dropped(self.terms),
        };
        passed
    }

    /// The terms on which pages are dropped behind it, if they are.
    pub(super) fn terms(&self) -> Option<Terms> {
        match self.treatment {
            Treatment::Dropped(terms) => Some(terms),
            Treatment::Undecided(_) | Treatment::LeftAlone => None,
        }
    }

    /// Whether nothing is dropped behind it.
    pub(super) fn is_left_alone(&self) -> bool {
        self.treatment == Treatment::LeftAlone
    }

    /// Whether everything is dropped, mapped pages included.
    pub(super) fn drops_everything(&self) -> bool {
        self.terms().is_some_and(|terms| terms.engage_pages == 0)
    }

    /// What to do about pages that it has passed.
    pub(super) fn pass(&mut self, key: StreamKey, passed: Span) -> Option<DropPlan> {
        match &mut self.treatment {
            Treatment::LeftAlone => None,
            Treatment::Undecided(before) => {
                let start =
                    before.filter(|b| b.end == passed.start).map_or(passed.start, |b| b.start);
                *before = Some(Span { start, end: passed.end });
                None
            }
            Treatment::Dropped(terms) => {
                let file_pages = pages_of(self.file_bytes);
                Some(self.progress.on_pass(passed, file_pages, passing(key.written), *terms))
            }
        }
    }

    /// Whether to ask what it has touched: nobody has asked, or the answer is overdue.
    pub(super) fn asks(&mut self, now: Nanos) -> bool {
        let is_due = self.asked_at.is_none_or(|at| now.saturating_sub(at) >= ANSWER_NS);
        if is_due {
            self.asked_at = Some(now);
        }
        is_due
    }

    /// Notes the pages that it has touched. If it has gone on since the last answer, it has not paused: there is an
    /// event only for each 4 MiB. A reader cannot go on at the end of its file.
    pub(super) fn note_touched(&mut self, span: Option<Span>, now: Nanos) {
        if self.asked_at.take().is_none() {
            return;
        }
        if self.has_ended || self.is_at_end(span) || span.is_none() || span == self.touched {
            self.rests_at = Some(span);
        } else {
            self.touched = span;
            self.heard_at = now;
        }
    }

    /// Whether it has touched the end of its file in its current step. If it is further back, it touched the end before.
    fn is_at_end(&self, touched: Option<Span>) -> bool {
        let file_pages = pages_of(self.file_bytes);
        let has_touched = touched.is_some_and(|span| span.end >= file_pages);
        !self.written && has_touched && file_pages.saturating_sub(self.at) <= STEP_PAGES
    }

    pub(super) fn is_small(&self) -> bool {
        self.file_bytes <= SMALL_FILE_BYTES
    }

    /// Whether it has ended or paused, as far as its events tell, so that it is to be asked what it has touched.
    pub(super) fn is_quiet(&self, now: Nanos) -> bool {
        let pause = if self.touched.is_none() { END_PAUSE_NS } else { self.pause_ns() };
        self.has_ended || self.idle_ns(now) >= pause
    }

    /// Whether it still goes on, so that it may follow another one.
    pub(super) fn is_active(&self, now: Nanos) -> bool {
        !self.has_ended && self.idle_ns(now) < self.pause_ns()
    }

    fn idle_ns(&self, now: Nanos) -> Nanos {
        now.saturating_sub(self.heard_at)
    }

    fn pause_ns(&self) -> Nanos {
        if self.is_small() { END_PAUSE_NS } else { PAUSE_NS }
    }

    /// Whether it may soon use the pages that the other stream has just passed.
    pub(super) fn follows(&self, other: &Stream) -> bool {
        let end = other.at;
        (end.saturating_sub(REACH_PAGES)..=end + REACH_PAGES).contains(&self.at)
    }
}

/// How a stream passes its file.
pub(super) fn passing(is_written: bool) -> Passing {
    if is_written { Passing::Write } else { Passing::Read }
}
