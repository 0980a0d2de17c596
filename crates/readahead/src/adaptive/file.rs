//! What is remembered of one file: its streams, and the recent misses that belong to none.
//!
//! A miss that no stream explains is an *unmatched miss*. A stream begins when a miss lies beside a recent
//! unmatched miss, when the file is read from its start, when misses stand at equal distances, or when several in a row
//! go in one direction.

use super::access_context::{AccessContext, READ_SLACK_PAGES};
use super::completion_rate::CompletionRate;
use super::outlook::Outlook;
use super::pace::Pace;
use super::read_around::ReadAround;
use super::rules::Rule;
use super::starts::Starts;
use super::stream::{Stream, has_announced};
use super::streams::{Slot, Streams};
use super::survival::{Curve, Lengths};
use super::tail_exponent::Runs;
use super::unmatched_misses::{UNMATCHED_MISSES, UnmatchedMiss, UnmatchedMisses};
use super::volume::History;
use crate::access::{GroupId, Nanos, Page, Trigger, Via, VolumeId};
use crate::plan::Cause;
use crate::tally::Tally;

/// Misses that must go on in one direction before the gaps between them are read.
const MISSES_ACROSS_GAPS: usize = 4;

/// The widest gap that counts, as a share of what the device transfers during an access. The starts of parallel readers
/// mostly lie further apart.
const NARROW_GAP: f64 = 0.25;

/// How many times as far as the furthest of these misses the next one may lie. If the gaps are distributed
/// geometrically, one in ten lies further.
const WIDER_GAPS: u64 = 2;

/// Where a miss is placed.
pub(super) enum Found<'a> {
    /// It belongs to this stream, known or just begun. The outlook is what other runs tell of its run.
    Stream(&'a mut Stream, Outlook<'a>),
    /// It belongs to none.
    UnmatchedMiss,
    /// It is a later page of a request for this many pages, whose first page was an unmatched miss.
    SameRequest(u64),
}

#[derive(Debug)]
pub(super) struct FileState {
    /// Who read it last.
    group: GroupId,
    volume: VolumeId,
    streams: Streams,
    ended: Runs,
    curve: Curve,
    starts: Starts,
    read_around: ReadAround,
    unmatched_misses: UnmatchedMisses,
}

impl FileState {
    pub(super) fn on(volume: VolumeId) -> Self {
        FileState {
            group: GroupId::default(),
            volume,
            streams: Streams::new(),
            ended: Runs::default(),
            curve: Curve::default(),
            starts: Starts::default(),
            read_around: ReadAround::new(),
            unmatched_misses: UnmatchedMisses::new(),
        }
    }

    pub(super) fn group(&self) -> GroupId {
        self.group
    }

    /// Where it is.
    pub(super) fn volume(&self) -> VolumeId {
        self.volume
    }

    /// A reader of that group has come to it.
    pub(super) fn read_in(&mut self, group: GroupId) {
        self.group = group;
    }

    /// Whether a stream explains the access.
    pub(super) fn follows(&self, context: &AccessContext) -> bool {
        self.streams.nearest(context, |_| true).is_some()
    }

    /// Finds the stream an access belongs to, begins one, or notes an unmatched miss.
    ///
    /// Contiguous streams are tried first: the starts of parallel streams may lie at equal distances, and so look like
    /// a stride. For the same reason, pieces of a strided stream are remembered like unmatched misses: one may turn out
    /// to be the start of a contiguous stream.
    pub(super) fn place<'a>(
        &'a mut self,
        context: &AccessContext,
        history: &'a mut History,
        tally: &mut Tally,
    ) -> Found<'a> {
        if let Some(slot) = self.streams.nearest(context, Stream::is_contiguous) {
            self.go_on(slot, history);
            return self.found(slot, context, history);
        }
        if let Some(pages) = self.request_at_hand(context) {
            return Found::SameRequest(pages);
        }
        // A known stream counts the pages that it passes; others are counted here. A new forward stream counts the rest
        // of its request.
        let count = |begun: Option<&Stream>, tally: &mut Tally| {
            tally.passed_pages += match begun {
                Some(stream) if stream.step() == 1 => context.read_to - context.first,
                _ => context.end - context.first,
            };
        };
        let before = tally.passed_pages;
        if let Some(stream) = self.beside_an_unmatched_miss(context, self.slack(context), before) {
            count(Some(&stream), tally);
            // Only misses of `read(2)` are counted.
            if context.access.via == Via::Read {
                self.starts.went_on(stream.step());
                history.starts.went_on(stream.step());
            }
            return self.begun(stream, context, history, tally);
        }
        if let Some(index) = self.streams.nearest(context, |stream| !stream.is_contiguous()) {
            self.remember(context, before);
            return self.found(index, context, history);
        }
        let begun = self
            .at_equal_distances(context)
            .or_else(|| self.across_gaps(context))
            .or_else(|| at_the_start(context, &mut history.completion_rate));
        self.remember(context, before);
        let begun = begun.or_else(|| self.at_a_likely_start(context, history));
        count(begun.as_ref(), tally);
        match begun {
            Some(stream) => {
                let pace = Pace::unknown(tally.passed_pages);
                self.begun(stream.at_pace(pace), context, history, tally)
            }
            None => Found::UnmatchedMiss,
        }
    }

    /// The kernel's window that this open file should get after a miss, in pages; `None` if it should stay as it is.
    /// `is_unmatched` tells that the miss belongs to no stream.
    pub(super) fn judge_read_around(
        &mut self,
        is_unmatched: bool,
        context: &AccessContext,
    ) -> Option<u32> {
        if context.access.trigger != Trigger::Absent || !context.rules.have(Rule::ReadAround) {
            return None;
        }
        if context.access.via == Via::Read {
            return self.read_around.read(context);
        }
        let is_near = |reach| {
            // The most recent miss is this fault itself.
            let mut others = self.unmatched_misses.recent(UNMATCHED_MISSES).skip(1);
            others.any(|unmatched_miss| unmatched_miss.first.abs_diff(context.first) <= reach)
        };
        let is_lone = is_unmatched && !self.read_around.reach(context).is_some_and(is_near);
        self.read_around.fault(is_lone, context)
    }

    fn found<'a>(
        &'a mut self,
        slot: Slot,
        context: &AccessContext,
        history: &'a mut History,
    ) -> Found<'a> {
        let is_led = |stream: &mut Stream| stream.is_led(context);
        let tail_exponent = self
            .streams
            .get_mut(slot)
            .is_some_and(is_led)
            .then(|| self.tail_exponent(context, history));
        let lengths = Lengths { file: &mut self.curve, volume: &mut history.curve };
        match self.streams.get_mut(slot) {
            Some(stream) => {
                Found::Stream(stream, Outlook { tail_exponent, lengths, waits: &mut history.waits })
            }
            None => Found::UnmatchedMiss,
        }
    }

    /// Admits a new stream. Earlier runs tell how long its run will be.
    fn begun<'a>(
        &'a mut self,
        mut stream: Stream,
        context: &AccessContext,
        history: &'a mut History,
        tally: &mut Tally,
    ) -> Found<'a> {
        let tail_exponent = stream.is_led(context).then(|| self.tail_exponent(context, history));
        if stream.is_contiguous() {
            self.streams.each(|other| {
                other.shares_its_file();
                stream.shares_its_file();
            });
        }
        let ended = &mut self.ended;
        let stream = self.streams.admit(stream, |forgotten| end(forgotten, ended, tally));
        let lengths = Lengths { file: &mut self.curve, volume: &mut history.curve };
        Found::Stream(stream, Outlook { tail_exponent, lengths, waits: &mut history.waits })
    }

    /// The tail exponent of the runs of this file: those that are over, those whose readers have stopped, and those
    /// that go on.
    fn tail_exponent(&mut self, context: &AccessContext, history: &mut History) -> f64 {
        let now = context.access.now;
        let mut runs = self.ended;
        let mut lengths = Lengths { file: &mut self.curve, volume: &mut history.curve };
        self.streams.each(|stream| {
            if !stream.is_guess() {
                runs.note(stream.log_length(), stream.has_stopped(now) && !stream.is_at_the_end());
            }
            end_run(stream, now, &mut lengths);
        });
        if context.rules.have(Rule::Tail) { runs.tail_exponent() } else { 1.0 }
    }

    /// Notes the runs whose readers should have been seen again by now, also for the volume.
    pub(super) fn end_runs(&mut self, now: Nanos, volume: &mut Curve) {
        let mut lengths = Lengths { file: &mut self.curve, volume };
        self.streams.each(|stream| end_run(stream, now, &mut lengths));
    }

    /// Takes the miss for the start of a run, if most misses of this file and its volume turned out to be one.
    fn at_a_likely_start(
        &mut self,
        context: &AccessContext,
        history: &mut History,
    ) -> Option<Stream> {
        let access = context.access;
        let spares_a_wait = !context.device.cost.outpaces_user_space();
        let may_be = access.via == Via::Read && spares_a_wait && context.rules.have(Rule::Starts);
        if access.trigger != Trigger::Absent || !may_be {
            return None;
        }
        // This miss counts whether a run is expected or not, but only for the next ones.
        let step = self.starts.step(&history.starts);
        self.starts.miss();
        history.starts.miss();
        let step = step?;
        let (origin, end, cause) = match step {
            1 => (context.first, context.read_to, Cause::Context),
            _ => (context.end - 1, context.end, Cause::Backward),
        };
        let run = end - context.first;
        Some(Stream::contiguous(origin, step, run, cause, access.now).guessed())
    }

    /// A stream goes on. If it was a guess until now, the guess was right.
    fn go_on(&mut self, slot: Slot, history: &mut History) {
        if let Some(step) = self.streams.get_mut(slot).and_then(Stream::confirm) {
            self.starts.went_on(step);
            history.starts.went_on(step);
        }
    }

    /// Pages of the request that the access belongs to, if its first page was an unmatched miss. The kernel reads a
    /// request that exceeds its window as if it were a sequence, and meets its own marks in it. That tells nothing of
    /// what the program reads next.
    fn request_at_hand(&self, context: &AccessContext) -> Option<u64> {
        let is_a_mark = context.access.trigger == Trigger::Mark && context.access.via == Via::Read;
        if !is_a_mark || !self.unmatched_misses.may_be_at(context.end) {
            return None;
        }
        let mut recent = self.unmatched_misses.recent(UNMATCHED_MISSES);
        let request = recent.find(|miss| miss.end == context.end && miss.first < context.first)?;
        Some(request.end - request.first)
    }

    /// How far from an unmatched miss an access may lie that continues it, in pages. Between marks of the kernel lie
    /// its windows; nothing lies between the mark of a strided stream and its reader.
    fn slack(&self, context: &AccessContext) -> u64 {
        let is_ours =
            || self.streams.nearest(context, |stream| stream.has_marked(context)).is_some();
        let is_a_mark = context.access.trigger == Trigger::Mark;
        if is_a_mark && is_ours() { READ_SLACK_PAGES } else { context.slack }
    }

    /// A new stream, forward or backward: the access lies at most `slack` pages from a recent unmatched miss. All
    /// readers together had passed `before` pages before it.
    fn beside_an_unmatched_miss(
        &self,
        context: &AccessContext,
        slack: u64,
        before: u64,
    ) -> Option<Stream> {
        let now = context.access.now;
        let overlap = if context.access.via == Via::Mmap { slack } else { 1 };
        // The distance between faults or marks is the kernel's window, and tells nothing of what the reader skips.
        let tells = context.access.via == Via::Read && context.access.trigger == Trigger::Absent;
        let pages = context.end - context.first;
        let skipping = |stream: Stream, from: Page, to: Page| match to.saturating_sub(from) {
            gap if tells && gap > 0 => stream.skipping(pages + gap, share(pages, pages + gap)),
            _ => stream,
        };
        // Either edge of a miss would do: its end if the access continues it forward, its start if backward.
        let nearest = context.first.saturating_sub(slack);
        if !self.unmatched_misses.may_be_within(nearest, context.end.saturating_add(slack)) {
            return None;
        }
        self.unmatched_misses.recent(UNMATCHED_MISSES).find_map(|unmatched_miss| {
            let ahead = context.first.saturating_add(overlap) >= unmatched_miss.end
                && context.first > unmatched_miss.first
                && context.first <= unmatched_miss.end.saturating_add(slack);
            if ahead {
                let run = context.read_to - unmatched_miss.first;
                let stream = Stream::contiguous(unmatched_miss.first, 1, run, Cause::Context, now);
                let stream = skipping(stream, unmatched_miss.end, context.first);
                let passed = before + (context.read_to - context.first);
                return Some(unmatched_miss.followed_by(stream, passed));
            }
            let behind = context.end <= unmatched_miss.first.saturating_add(overlap)
                && context.first < unmatched_miss.first
                && context.end.saturating_add(slack) >= unmatched_miss.first;
            if behind {
                let run = unmatched_miss.end - context.first;
                let stream =
                    Stream::contiguous(unmatched_miss.end - 1, -1, run, Cause::Backward, now);
                let stream = skipping(stream, context.end, unmatched_miss.first);
                return Some(unmatched_miss.followed_by(stream, before + pages));
            }
            None
        })
    }

    /// A new strided stream: three consecutive misses at equal distances, or four among the recent ones.
    fn at_equal_distances(&self, context: &AccessContext) -> Option<Stream> {
        if context.access.via == Via::Mmap || context.access.trigger == Trigger::Mark {
            return None;
        }
        let consecutive = self.unmatched_misses.recent(1).next()?;
        let step = step_between(consecutive, context);
        if back(context.first, step, 2).is_some_and(|page| self.unmatched_misses.hold(page, 2)) {
            return strided(context, consecutive.at, step, 3);
        }
        self.unmatched_misses.recent(UNMATCHED_MISSES / 2).find_map(|unmatched_miss| {
            let step = step_between(unmatched_miss, context);
            let before = |page: Page| page.wrapping_sub(step as u64);
            let (two, three) = (before(unmatched_miss.first), before(before(unmatched_miss.first)));
            if !self.unmatched_misses.may_be_at_both(two, three) {
                return None;
            }
            let is_unmatched = |page| self.unmatched_misses.hold(page, UNMATCHED_MISSES);
            let two = is_unmatched(back(context.first, step, 2)?);
            let three = two && is_unmatched(back(context.first, step, 3)?);
            if three { strided(context, unmatched_miss.at, step, 4) } else { None }
        })
    }

    /// A new stream across irregular gaps: the last misses all lie in the same direction, no older one lies among them,
    /// and reading each gap takes a small part of an access. The gaps to come may be wider.
    fn across_gaps(&self, context: &AccessContext) -> Option<Stream> {
        let (access, cost) = (context.access, &context.device.cost);
        let is_seen = access.via == Via::Read && access.trigger == Trigger::Absent;
        let is_worth_it = !cost.is_serial() && !cost.outpaces_user_space();
        if !is_seen || !is_worth_it || !context.rules.have(Rule::Gaps) {
            return None;
        }
        let last = *self.unmatched_misses.recent(1).next()?;
        let step = if context.first > last.first { 1 } else { -1 };
        let narrow = (cost.latency_pages() * NARROW_GAP) as u64;
        let (mut first, mut end, mut widest) = (context.first, context.end, 0);
        let mut recent = self.unmatched_misses.recent(UNMATCHED_MISSES);
        for _ in 1..MISSES_ACROSS_GAPS {
            let miss = recent.next()?;
            let (low, high) = if step > 0 { (miss.end, first) } else { (end, miss.first) };
            if high.checked_sub(low)? > narrow || end - first > narrow {
                return None;
            }
            widest = widest.max(first.abs_diff(miss.first));
            (first, end) = (miss.first, miss.end);
        }
        if end - first > narrow {
            return None;
        }
        let (pages, origin, run) = match step {
            1 => (first..context.end, first, context.read_to - first),
            _ => (context.first..end, end - 1, end - context.first),
        };
        if recent.any(|older| pages.contains(&older.first)) {
            return None;
        }
        let read = MISSES_ACROSS_GAPS as u64 * (context.end - context.first);
        let stream = Stream::sparse(origin, step, run, access.now);
        let stream = stream.skipping(WIDER_GAPS * widest, share(read, run));
        Some(stream.waiting_since(last.at, run - last.first.abs_diff(context.first)))
    }

    /// Remembers an unmatched miss, before which all readers had passed `before` pages.
    fn remember(&mut self, context: &AccessContext, before: u64) {
        let (first, end, at) = (context.first, context.end, context.access.now);
        let passed = before + (end - first);
        self.unmatched_misses.note(UnmatchedMiss { first, end, at, passed });
    }

    /// Ends the streams last used before `moment`.
    pub(super) fn forget_before(&mut self, moment: Nanos, tally: &mut Tally) {
        let ended = &mut self.ended;
        self.streams.forget_before(moment, |forgotten| end(forgotten, ended, tally));
    }

    /// Streams whose readers have stopped give up what is ahead of them. A reader whose pace is not known has stopped
    /// if all readers have passed `round` pages since it was seen.
    pub(super) fn give_up_stopped(&mut self, now: Nanos, round: u64, tally: &mut Tally) {
        self.streams.each(|stream| stream.give_up_if_stopped(now, round, tally));
    }

    /// Ends all streams.
    pub(super) fn give_up(mut self, tally: &mut Tally) {
        self.forget_before(Nanos::MAX, tally);
    }
}

/// Notes the length of a stream's run, if its reader should have been seen again by now.
fn end_run(stream: &mut Stream, now: Nanos, lengths: &mut Lengths) {
    if let Some(length) = stream.end_run(now) {
        lengths.end(length);
    }
}

/// A stream has ended. Its length helps to predict later runs.
fn end(stream: Stream, ended: &mut Runs, tally: &mut Tally) {
    if !stream.is_guess() {
        ended.note(stream.log_length(), !stream.is_at_the_end());
    }
    stream.give_up(tally);
}

/// The start of a file, or any read by a program that announced a sequential one, begins a run.
fn at_the_start(context: &AccessContext, completion_rate: &mut CompletionRate) -> Option<Stream> {
    let (run, now) = (context.read_to - context.first, context.access.now);
    if context.first == 0 {
        let learned = completion_rate.begin(context.access.file_pages);
        let tail_exponent = if context.rules.have(Rule::Completion) { learned } else { 1.0 };
        return Some(Stream::initial(run, tail_exponent, now));
    }
    has_announced(context).then(|| Stream::contiguous(context.first, 1, run, Cause::Initial, now))
}

/// What share of `passed` pages `read` pages are.
fn share(read: u64, passed: u64) -> f64 {
    (read as f64 / passed.max(1) as f64).min(1.0)
}

fn step_between(unmatched_miss: &UnmatchedMiss, context: &AccessContext) -> i64 {
    context.first.wrapping_sub(unmatched_miss.first) as i64
}

/// The page `count` steps before `page`.
fn back(page: Page, step: i64, count: i64) -> Option<Page> {
    page.checked_add_signed(step.checked_mul(-count)?)
}

/// A strided stream of `run` pieces that ends with the access; the piece before was read at `then`. Where reading the
/// gaps costs less than an access for each piece, it is a contiguous one. If neither pays, a stream is returned all the
/// same, so that its misses do not count as dense random reading.
fn strided(context: &AccessContext, then: Nanos, step: i64, run: u64) -> Option<Stream> {
    let (now, len) = (context.access.now, context.end - context.first);
    let stride = step.unsigned_abs();
    if stride <= len {
        return None;
    }
    let origin = back(context.first, step, run as i64 - 1)?;
    if (context.rules.bridges)(&context.device.cost, stride - len) {
        let span = stride * (run - 1) + len;
        let (origin, sign) = if step > 0 { (origin, 1) } else { (origin + len - 1, -1) };
        let stream = Stream::sparse(origin, sign, span, now).skipping(stride, share(len, stride));
        return Some(stream.waiting_since(then, span - stride));
    }
    Some(Stream::strided(origin, step, len, run, now).waiting_since(then, run - 1))
}
