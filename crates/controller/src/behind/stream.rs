//! One process's way through one file, and what is done behind it.

use readahead::PAGE_BYTES;
use readahead::behind::{DropPlan, Passing, Span, StreamProgress, Terms};

use super::pages_of;
use super::rules::Mode;
use crate::Nanos;
use crate::ids::{FileRef, StreamKey};
use crate::input::Passed;

/// A stream that paused for so long keeps nothing for followers any more.
const PAUSE_NS: Nanos = 1_000_000_000;

/// An answer that has not come after so long does not come.
const ANSWER_NS: Nanos = 10_000_000_000;

/// Nobody follows in a file of one step, which its reader is done with sooner.
const SMALL_FILE_BYTES: u64 = 4 << 20;
const SMALL_PAUSE_NS: Nanos = 200_000_000;

/// Nothing is read ahead for a process while the disk has still to take more than this of what it wrote: so many
/// steps, or a sixteenth of its memory (64 MiB at most) if that is more. Its writing then catches up.
const BACKLOG_STEPS: u64 = 3;
const MOST_BACKLOG_BYTES: u64 = 64 << 20;
const BACKLOG_SHARE: u64 = 16;

/// The distance a follower is granted, and a step that has not been told yet for each: 20 MiB.
const REACH_PAGES: u64 = 5120;

/// What is done behind a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Treatment {
    /// Rules have to be asked first; what it has passed meanwhile.
    Undecided(Option<Span>),
    /// Nothing.
    LeftAlone,
    /// Pages go on these terms.
    Dropped(Terms),
}

/// A stream.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) of: FileRef,
    pub(super) mapped: bool,
    pub(super) file_bytes: u64,
    /// When its last event came, and how far it had come.
    pub(super) heard_at: Nanos,
    at: u64,
    pub(super) progress: StreamProgress,
    treatment: Treatment,
    terms: Terms,
    pub(super) most_backlog_pages: u64,
    /// Its end, or where it paused, has been dealt with.
    pub(super) is_settled: bool,
    /// Its process has ended.
    pub(super) has_ended: bool,
    /// Pages that would not go, and are not tried again before its end.
    pub(super) left_pages: u64,
    /// The pages it had touched when that was last asked.
    touched: Option<Span>,
    /// It was asked what it has touched; the answer, once it is the same twice or its process has ended.
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
            mapped: passed.mapped,
            file_bytes: passed.file_bytes,
            heard_at: now,
            at: passed.span.end,
            progress: StreamProgress::default(),
            treatment: Treatment::Undecided(None),
            terms,
            // Besides the step under way, which the disk has not been given.
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

    /// It went on.
    pub(super) fn hear(&mut self, now: Nanos, passed: &Passed) {
        self.of = passed.of;
        self.mapped = passed.mapped;
        self.file_bytes = passed.file_bytes;
        self.heard_at = now;
        self.at = passed.span.end;
        self.is_settled = false;
        self.has_ended = false;
        self.rests_at = None;
    }

    /// Its mode is known; gives what it has passed before that.
    pub(super) fn decide(&mut self, mode: Mode) -> Option<Span> {
        let Treatment::Undecided(passed) = self.treatment else { return None };
        self.treatment = match mode {
            Mode::Always => Treatment::Dropped(Terms { engage_pages: 0, ..self.terms }),
            Mode::Never => Treatment::LeftAlone,
            Mode::Auto => Treatment::Dropped(self.terms),
        };
        passed
    }

    /// On which terms pages go behind it, if they do.
    pub(super) fn terms(&self) -> Option<Terms> {
        match self.treatment {
            Treatment::Dropped(terms) => Some(terms),
            Treatment::Undecided(_) | Treatment::LeftAlone => None,
        }
    }

    /// Whether nothing goes behind it.
    pub(super) fn is_left_alone(&self) -> bool {
        self.treatment == Treatment::LeftAlone
    }

    /// Whether everything goes, also what is mapped.
    pub(super) fn drops_everything(&self) -> bool {
        self.terms().is_some_and(|terms| terms.engage_pages == 0)
    }

    /// What is to be done about pages that it has passed.
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

    /// Whether it is to be asked what it has touched: it has not been, or the answer does not come.
    pub(super) fn asks(&mut self, now: Nanos) -> bool {
        let is_due = self.asked_at.is_none_or(|at| now.saturating_sub(at) >= ANSWER_NS);
        if is_due {
            self.asked_at = Some(now);
        }
        is_due
    }

    /// The answer to what it has touched. If it has come further since, it has not paused: there is an event each
    /// 4 MiB only.
    pub(super) fn note_touched(&mut self, span: Option<Span>, now: Nanos) {
        if self.asked_at.take().is_none() {
            return;
        }
        if !self.has_ended && span.is_some() && span != self.touched {
            self.touched = span;
            self.heard_at = now;
        } else {
            self.rests_at = Some(span);
        }
    }

    pub(super) fn is_small(&self) -> bool {
        self.file_bytes <= SMALL_FILE_BYTES
    }

    /// Having paused for so long, it is dealt with as if it had ended.
    pub(super) fn pause_ns(&self) -> Nanos {
        if self.is_small() { SMALL_PAUSE_NS } else { PAUSE_NS }
    }

    /// Whether it may be about to use what the other one has just passed.
    pub(super) fn follows(&self, other: &Stream) -> bool {
        let end = other.at;
        (end.saturating_sub(REACH_PAGES)..=end + REACH_PAGES).contains(&self.at)
    }
}

/// How a stream passes its file.
pub(super) fn passing(is_written: bool) -> Passing {
    if is_written { Passing::Write } else { Passing::Read }
}
