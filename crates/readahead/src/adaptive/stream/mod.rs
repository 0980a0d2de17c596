//! A stream: a row of units at a signed step, read from its origin onwards.
//!
//! ```text
//!            origin             reader          mark            frontier
//!   unit        0 . . . . . . . . k . . . . . . . m . . . . . . . . f
//!               |<---- read ----->|<------------ asked ------------>|
//!   page of unit k = origin + k * step
//! ```
//!
//! Forward: `step = 1`; backward: `step = -1`; strided: units of `len` pages every `step` pages.
//! A window is asked for when the reader comes near the end of what was asked, as the mark tells.
//! A page that was asked for, arrived, and is absent when the reader comes has been evicted. The next windows are then
//! no larger than what survived.

mod asking;
mod rate;

use rate::Rate;

use super::access_context::AccessContext;
use super::allowance::Claim;
use super::kernel_window::KERNEL_WINDOW_PAGES;
use super::number::real;
use super::outlook::Outlook;
use super::pace::Pace;
use super::rules::Rule;
use super::run::Run;
use super::survival::Lengths;
use super::tail_exponent::{ANNOUNCED, LEAST_TAIL, LogLength};
use super::waits::Waits;
use super::window::{UnitCost, striding_pays};
use crate::access::{Access, Hint, Nanos, Page, Trigger, Via};
use crate::cache::Past;
use crate::plan::{Cause, Plan};
use crate::tally::Tally;

/// Requests of one stream may overtake each other by this much (threads, NFS servers).
const REORDERED_UNITS: u64 = 16;

/// A window has reached the page cache after this long. Before, a page of it may still be missing from when it was
/// read the last time.
const SETTLE_NS: Nanos = 20_000_000;

/// A reader has stopped if it stays away this many times as long as it takes to come to its mark. If the lengths of
/// pauses are as scale-free as those of runs, one reader in four still goes on.
const STOPPED_AFTER: f64 = 4.0;

/// Thrashing never shrinks a window below 16 KiB, the kernel's own smallest.
const SMALLEST_CAP_UNITS: u64 = 4;

/// A reader that passes at least this share of all pages may be alone. Of two that keep step, each passes half; the only
/// one passes all. This is halfway.
const ALONE_SHARE: f64 = 0.75;

/// Pages that a reader waits for.
#[derive(Clone, Copy, Debug)]
struct Awaited {
    since: Nanos,
    /// The unit that the reader came to then.
    from: u64,
    /// Units that one device access brings.
    each: u64,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Stream {
    origin: Page,
    step: i64,
    len: u64,
    /// Pages from one touch to the next, where the reader of a contiguous stream skips some.
    grain: u64,
    /// The share of the pages that it passes which its reader reads.
    read_share: f64,
    /// First unit not known to be read.
    reader: u64,
    /// The units of its last request: `[from, to)`.
    request: (u64, u64),
    /// The first unit of that request, or behind it, that was not asked for when it began.
    first_unasked: u64,
    /// The logarithm of `reader`. It is computed when `reader` changes, since the next decision begins with it.
    log_length: LogLength,
    /// First unit not asked for.
    frontier: u64,
    /// All that the file has in this direction is asked for.
    at_the_end: bool,
    /// Most units that survived between being asked for and being read.
    cap: u64,
    rate: Rate,
    /// An upper bound of its tail exponent, from how far other files were read; infinite if there is none.
    tail_exponent: f64,
    /// The last miss carried the advice to read sequentially.
    announced: bool,
    /// It began at the start of the file, and the end has not been seen.
    is_begun: bool,
    /// Its file is read in parts, of which this is one.
    is_part: bool,
    /// Of its run only the first miss was seen.
    is_guess: bool,
    /// The length at which its run counts as ended, in units, if its reader has stopped.
    ended: Option<u64>,
    /// What its reader waits for.
    awaited: Option<Awaited>,
    /// How long its reader has waited of late. The first access of its run does not count: that one moves the head in
    /// any case.
    own_waits: Waits,
    /// No other stream has passed a page since this one was last seen, and this one passes most of all pages.
    is_alone: bool,
    cause: Cause,
    asked_at: Nanos,
    pub(super) used_at: Nanos,
    /// Units a second while it still waited for each of them; 0 if that was not seen.
    waiting_rate: f64,
    /// Since when that is so, and the unit at which it was then; `None` once more was asked for.
    waits_since: Option<(Nanos, u64)>,
    /// When the reader was last seen to go on, and the unit.
    seen: (Nanos, u64),
    /// A reader that goes on should have been seen again by then; never, while its pace is not known.
    due_at: Nanos,
    /// Where the look-ahead mark stands, or the reader if there is none.
    mark: u64,
    /// Where the next window is due.
    due: u64,
    /// What all readers had passed when this one was last seen, in pages.
    seen_when_passed: u64,
    /// Units before this one do not count as ahead any more: its reader had stopped.
    given_up: u64,
    /// Its reader's share of all pages that are passed.
    pace: Pace,
}

impl Stream {
    /// A stream of neighbouring pages, forward (`step` 1) or backward (-1), whose first
    /// `run` pages from `origin` on are known to be read.
    pub(super) fn contiguous(origin: Page, step: i64, run: u64, cause: Cause, now: Nanos) -> Self {
        Self::new(origin, step, 1, run, cause, now)
    }

    /// A stream from the start of a file, whose tail exponent is at most `tail_exponent`.
    pub(super) fn initial(run: u64, tail_exponent: f64, now: Nanos) -> Self {
        Stream { tail_exponent, is_begun: true, ..Self::contiguous(0, 1, run, Cause::Initial, now) }
    }

    /// A contiguous stream whose reader was found to skip pages.
    pub(super) fn sparse(origin: Page, step: i64, run: u64, now: Nanos) -> Self {
        Self::new(origin, step, 1, run, Cause::Sparse, now)
    }

    /// This stream, whose reader touches only one page or piece every `grain` pages, and reads this share of all pages.
    pub(super) fn skipping(self, grain: u64, read_share: f64) -> Self {
        Stream { grain, read_share, ..self }
    }

    /// A stream of `run` pieces of `len` pages, `step` pages apart.
    pub(super) fn strided(origin: Page, step: i64, len: u64, run: u64, now: Nanos) -> Self {
        Self::new(origin, step, len, run, Cause::Stride, now)
    }

    fn new(origin: Page, step: i64, len: u64, run: u64, cause: Cause, now: Nanos) -> Self {
        Stream {
            origin,
            step,
            len,
            grain: 1,
            read_share: 1.0,
            reader: run,
            request: (0, 0),
            first_unasked: 0,
            log_length: LogLength::of(run),
            frontier: run,
            at_the_end: false,
            cap: u64::MAX,
            rate: Rate::default(),
            waiting_rate: 0.0,
            waits_since: None,
            tail_exponent: f64::INFINITY,
            announced: false,
            is_begun: false,
            is_part: false,
            is_guess: false,
            ended: None,
            awaited: None,
            own_waits: Waits::default(),
            is_alone: false,
            cause,
            asked_at: now,
            used_at: now,
            seen: (now, run),
            due_at: Nanos::MAX,
            mark: run,
            due: run,
            seen_when_passed: 0,
            given_up: 0,
            pace: Pace::default(),
        }
    }

    /// This stream, of whose run only the first miss was seen.
    pub(super) fn guessed(self) -> Self {
        Stream { is_guess: true, ..self }
    }

    /// Whether only the first miss of its run was seen.
    pub(super) fn is_guess(&self) -> bool {
        self.is_guess
    }

    /// Its reader went on. If the stream was a guess, it is one no more, and its step is returned.
    pub(super) fn confirm(&mut self) -> Option<i64> {
        std::mem::take(&mut self.is_guess).then_some(self.step)
    }

    /// From one unit to the next, in pages.
    pub(super) fn step(&self) -> i64 {
        self.step
    }

    /// This stream, whose reader was at unit `from` at `then`, and has waited for each unit since.
    pub(super) fn waiting_since(mut self, then: Nanos, from: u64) -> Self {
        self.waits_since = Some((then, from));
        self.note_waiting_rate(self.used_at);
        self
    }

    /// The rate at which it has waited for each unit until now.
    fn note_waiting_rate(&mut self, now: Nanos) {
        if let Some((then, from)) = self.waits_since {
            let elapsed_s = now.saturating_sub(then) as f64 * 1e-9;
            self.waiting_rate = real(self.reader.saturating_sub(from)) / elapsed_s.max(1e-9);
        }
    }

    /// This stream, whose reader has this pace.
    pub(super) fn at_pace(self, pace: Pace) -> Self {
        Stream { pace, ..self }
    }

    /// Its file has another stream: it is read in parts.
    pub(super) fn shares_its_file(&mut self) {
        self.is_part = true;
    }

    /// Its reader's share of all pages that are passed, from 0 to 1.
    pub(super) fn share(&self) -> f64 {
        self.pace.share()
    }

    /// Units the reader has come along.
    pub(super) fn length(&self) -> u64 {
        self.reader
    }

    /// How far its reader has come, as the tail of runs counts it.
    pub(super) fn log_length(&self) -> LogLength {
        self.log_length
    }

    /// Whether all of the file in this direction was asked for.
    pub(super) fn is_at_the_end(&self) -> bool {
        self.at_the_end
    }

    /// Whether the reader has come from the start of a file to its end. True only once. Where the kernel reads ahead by
    /// itself, nothing shows the reader after the mark of its last window.
    pub(super) fn has_ended_a_file(&mut self, access: &Access) -> bool {
        let is_kernels = access.trigger == Trigger::Mark && self.frontier == self.reader;
        let unseen = if is_kernels { u64::from(access.kernel_window) } else { 0 };
        let has_ended = self.is_begun && self.reader + unseen >= access.file_pages;
        self.is_begun &= !has_ended;
        has_ended
    }

    /// Whether it reads every page, rather than pieces.
    pub(super) fn is_contiguous(&self) -> bool {
        self.step.unsigned_abs() == self.len
    }

    /// The units of this stream that its reader comes to with the pages `[first, end)`, as `[from, to)`; `None` if
    /// these cannot be its reader's. The reader of pieces begins with one, or reads the rest of one. Others seldom do.
    fn units(&self, first: Page, end: Page) -> Option<(u64, u64)> {
        let touched = self.touched(first, end)?;
        let may_be_its = self.is_contiguous() || {
            let from_origin = first.wrapping_sub(self.origin) as i64;
            let in_piece = from_origin.rem_euclid(self.step.abs()) as u64;
            in_piece == 0 || in_piece + (end - first) == self.len
        };
        may_be_its.then_some(touched)
    }

    /// The units that the pages `[first, end)` touch, as `[from, to)`; `None` where they lie before the origin, or
    /// begin between the pieces of a strided stream.
    fn touched(&self, first: Page, end: Page) -> Option<(u64, u64)> {
        let stride = self.step.unsigned_abs();
        let (near, far) = if self.step > 0 {
            (first.checked_sub(self.origin)?, end.checked_sub(self.origin + 1)?)
        } else {
            let top = self.origin + self.len;
            (top.checked_sub(end)?, top.checked_sub(first + 1)?)
        };
        if stride == 1 {
            return Some((near, far + 1));
        }
        if !self.is_contiguous() && near % stride >= self.len {
            return None;
        }
        Some((near / stride, far / stride + 1))
    }

    /// First page after the access, as far as the stream reaches.
    fn end_of(&self, context: &AccessContext) -> Page {
        if self.step > 0 { context.end } else { context.end.min(self.origin + self.len) }
    }

    /// How far the access lies from where this stream would go on, in pages; `None` if it cannot
    /// be this stream's.
    pub(super) fn distance(&self, context: &AccessContext) -> Option<u64> {
        let slack = if self.is_contiguous() { context.slack.max(self.grain) } else { 0 };
        let (from, requested) = self.units(context.first, self.end_of(context))?;
        if from > self.frontier.saturating_add(slack) {
            return None;
        }
        let is_a_mark = self.step == 1 && context.access.trigger == Trigger::Mark;
        if is_a_mark && requested == self.request.1 && from >= self.request.0 {
            // The reader is somewhere in its last request.
            return Some((from - self.request.0).min(from.abs_diff(self.reader)));
        }
        let to = if self.step == 1 { context.read_to - self.origin } else { requested };
        let reordered = REORDERED_UNITS.max(slack);
        let behind = self.reader.saturating_sub(to);
        if behind > reordered {
            return None;
        }
        Some(from.abs_diff(self.reader).saturating_mul(self.step.unsigned_abs()))
    }

    /// Whether its mark is what the access has touched.
    pub(super) fn has_marked(&self, context: &AccessContext) -> bool {
        let marked = |(from, to)| (from..to).contains(&self.mark);
        self.touched(context.first, context.end).is_some_and(marked)
    }

    /// The reader went on: notes it, and asks for the next window if it is time.
    pub(super) fn proceed(
        &mut self,
        context: &AccessContext,
        outlook: &mut Outlook,
        plan: &mut Plan,
        tally: &mut Tally,
    ) {
        let is_next = tally.passed_pages == self.seen_when_passed;
        self.is_alone = is_next && self.pace.share() >= ALONE_SHARE;
        let has_lost = self.has_lost(context);
        let Some((from, requested)) = self.units(context.first, self.end_of(context)) else {
            return;
        };
        let to = if self.step == 1 { context.read_to - self.origin } else { requested };
        // A later piece or mark of the same request does not begin another one.
        if requested != self.request.1 || from < self.request.0 {
            self.request = (from, requested);
            self.first_unasked = self.frontier;
        }
        // Marks carry no advice.
        if context.access.trigger == Trigger::Absent {
            self.announced = has_announced(context);
        }
        let absent = if self.step > 0 { from } else { to - 1 };
        self.note_wait(from, context, outlook.waits);
        let mut cause = self.cause;
        if has_lost {
            self.shrink(from, absent, tally);
            cause = Cause::Thrashed;
        }
        // Nothing was saved where a page is absent.
        let found = if context.access.trigger == Trigger::Absent { from } else { to };
        self.pass(found, to, context, &mut outlook.lengths, tally);
        self.frontier = self.frontier.max(self.reader);
        let is_waiting = self.frontier == self.reader;
        let mut asked = 0;
        if let Some(tail_exponent) = outlook.tail_exponent {
            let claim = Claim {
                own: self.ahead() * self.len,
                request: context.read_to - context.first,
                share: self.pace.share(),
            };
            let room = context.allowance.for_stream(claim, tally).min(self.paid_pages(context));
            asked = self.ask(context, room, tail_exponent, outlook, cause, plan);
            tally.asked_pages += asked;
        }
        if requested > to && self.frontier == self.reader {
            // The kernel reads the rest of the request by itself.
            self.pass(requested, requested, context, &mut outlook.lengths, tally);
            self.frontier = self.reader;
        }
        if is_waiting && !self.is_guess && self.awaited.is_none() {
            let window = if asked > 0 { asked } else { u64::from(context.access.kernel_window) };
            // A request is one access at least, also where it is longer than the kernel's window.
            let each = window.max(requested - from).max(1);
            self.awaited = Some(Awaited { since: context.access.now, from, each });
        }
        self.due_at = context.access.now.saturating_add(self.patience_ns(from, context));
        self.seen_when_passed = tally.passed_pages;
    }

    /// Its run has ended if its reader should have been seen again by now. Returns the length once, in units: the place
    /// where the reader would have been seen. `None` if the end of the file may have ended the run.
    pub(super) fn end_run(&mut self, now: Nanos) -> Option<u64> {
        let is_whole = self.is_contiguous() && !self.is_guess && !self.at_the_end;
        if self.ended.is_some() || !is_whole || !self.has_stopped(now) {
            return None;
        }
        self.awaited = None;
        self.ended = Some(self.mark.max(self.reader));
        self.ended
    }

    /// Notes how long a forward reader that comes to unit `unit` has waited for accesses, beside the transfer.
    fn note_wait(&mut self, unit: u64, context: &AccessContext, waits: &mut Waits) {
        let Some(awaited) = self.awaited.filter(|_| self.may_stay(context)) else { return };
        let cost = &context.device.pages;
        let units = unit.saturating_sub(awaited.from);
        let elapsed_s = context.access.now.saturating_sub(awaited.since) as f64 * 1e-9;
        let waited_s = elapsed_s - real(units) * cost.unit_s;
        // Before it has passed all of them, a whole access tells enough.
        if units > 0 && (units >= awaited.each || waited_s >= cost.stall_s) {
            self.awaited = None;
            let accesses = (real(units) / real(awaited.each)).max(1.0);
            let waited = waited_s / accesses / cost.stall_s.max(f64::MIN_POSITIVE);
            waits.note(waited);
            if awaited.from > 0 {
                self.own_waits.note(waited);
            }
        }
    }

    /// Whether the head of a disk may be where this stream has left it. A device whose access costs less than the
    /// transfer of the kernel's window has no head that matters.
    fn may_stay(&self, context: &AccessContext) -> bool {
        let reads_all = self.step == 1 && self.grain == 1 && context.access.via == Via::Read;
        let cost = &context.device.pages;
        reads_all && cost.is_serial && cost.stall_units() > f64::from(KERNEL_WINDOW_PAGES)
    }

    /// How long the reader, now at unit `unit`, may stay away before it counts as stopped. The device has to transfer
    /// its request and what is ahead. Where its request was not asked for, each window of the kernel may cost an access.
    /// Then the reader has to come to its mark. Several times as long is allowed. At the rate at which it waited for
    /// each unit, once is enough.
    fn patience_ns(&self, unit: u64, context: &AccessContext) -> Nanos {
        let cost = self.unit_cost(context);
        let units = self.frontier.max(self.requested()).saturating_sub(unit);
        let unasked = self.reader.saturating_sub(unit.max(self.first_unasked));
        let accesses = unasked.div_ceil(u64::from(context.access.kernel_window.max(1))).max(1);
        let device_s = real(accesses) * cost.stall_s + real(units) * cost.unit_s;
        let waiting_rate = if context.rules.have(Rule::Pace) { self.waiting_rate } else { 0.0 };
        let rate = (self.rate.known() / STOPPED_AFTER).max(waiting_rate);
        ((STOPPED_AFTER * device_s + self.units_to_mark() / rate) * 1e9) as Nanos
    }

    /// Whether its reader should have been seen again by now.
    pub(super) fn has_stopped(&self, now: Nanos) -> bool {
        self.due_at < now
    }

    /// What is ahead of a reader that has stopped counts as read in vain. A reader whose pace is not known has stopped
    /// when all readers have passed `round` pages since it was seen. If it comes after all, these pages do not count as
    /// used.
    pub(super) fn give_up_if_stopped(&mut self, now: Nanos, round: u64, tally: &mut Tally) {
        let has_no_pace = self.due_at == Nanos::MAX;
        let is_round_over = self.seen_when_passed.saturating_add(round) < tally.passed_pages;
        if self.has_stopped(now) || (has_no_pace && is_round_over) {
            tally.wasted_pages += self.ahead() * self.len;
            self.given_up = self.frontier;
        }
    }

    /// Units to where the reader is seen next: its mark, or what is absent.
    fn units_to_mark(&self) -> f64 {
        let next = if self.mark > self.reader { self.mark } else { self.frontier };
        real((next - self.reader).max(1))
    }

    /// Units that were asked for, and neither used nor given up.
    fn ahead(&self) -> u64 {
        self.frontier.saturating_sub(self.reader.max(self.given_up))
    }

    /// Counts the pages that were asked for and that the reader passes up to unit `to`. Those before unit `found` have
    /// spared it waits. The others are absent, and were read in vain.
    fn count_used(&self, found: u64, to: u64, context: &AccessContext, tally: &mut Tally) {
        let counted = self.reader.max(self.given_up);
        let asked_before = |unit: u64| unit.min(self.frontier).saturating_sub(counted);
        let (found, passed) = (asked_before(found), asked_before(to));
        if passed == 0 {
            return;
        }
        tally.used_pages += found * self.len;
        tally.wasted_pages += (passed - found) * self.len;
        tally.stalls_saved += found.div_ceil(self.units_a_stall(context).max(1));
    }

    /// Units that a reader gets for each wait without us: the kernel's window if it reads forward, half of it by
    /// read-around, otherwise its request with the pages that it skips before the next.
    fn units_a_stall(&self, context: &AccessContext) -> u64 {
        let window = u64::from(context.access.kernel_window);
        match (context.access.via, self.step) {
            (Via::Mmap, _) => window / 2,
            (Via::Read, 1) if self.grain == 1 => window,
            (Via::Read, 1 | -1) => u64::from(context.access.request).max(self.grain),
            (Via::Read, _) => 1,
        }
    }

    /// Seconds that its reader waits each time without us: what it has waited, but at most an access. To a near place,
    /// it is less.
    pub(super) fn stall_s(&self, context: &AccessContext) -> f64 {
        let cost = &context.device.cost;
        if self.waiting_rate == 0.0
            || self.kernel_reads_ahead(context)
            || !context.has_near_places()
        {
            return cost.latency_s;
        }
        cost.latency_s.min(real(self.units_a_stall(context).max(1)) / self.waiting_rate)
    }

    /// The share of the pages it passes that its reader reads; it skips the others.
    pub(super) fn read_share(&self) -> f64 {
        self.read_share
    }

    /// The stream ends: what its reader has not come to was read in vain.
    pub(super) fn give_up(self, tally: &mut Tally) {
        tally.wasted_pages += self.ahead() * self.len;
    }

    /// The reader comes to unit `to`. It has found all units before `found` in memory.
    fn pass(
        &mut self,
        found: u64,
        to: u64,
        context: &AccessContext,
        lengths: &mut Lengths,
        tally: &mut Tally,
    ) {
        let passed = to.saturating_sub(self.reader) * self.len;
        tally.passed_pages += passed;
        self.pace.pass(passed, tally.passed_pages, context.allowance.budget);
        self.count_used(found, to, context, tally);
        self.advance(to, context.access.now, lengths);
    }

    fn advance(&mut self, to: u64, now: Nanos, lengths: &mut Lengths) {
        self.used_at = now;
        if let Some(length) = self.ended.take() {
            lengths.resume(length);
        }
        if to <= self.reader {
            return;
        }
        if self.is_contiguous() {
            lengths.pass(self.reader, to);
        }
        self.reader = to;
        self.note_waiting_rate(now);
        self.log_length = LogLength::of(to);
        let (then, unit) = self.seen;
        let elapsed = now.saturating_sub(then);
        if elapsed > 0 && to > unit {
            self.rate.note(to - unit, elapsed);
            self.seen = (now, to);
        }
    }

    /// Whether the access finds a page evicted that was asked for here, and that its reader has not come to.
    pub(super) fn has_lost(&self, context: &AccessContext) -> bool {
        let Some(unit) = self.first_unit(context) else { return false };
        let is_settled = context.access.now.saturating_sub(self.asked_at) > SETTLE_NS;
        context.access.trigger == Trigger::Absent
            && is_settled
            && context.cache.past() != Past::Unknown
            && (self.reader..self.frontier).contains(&unit)
    }

    /// The unit that the access comes to first.
    fn first_unit(&self, context: &AccessContext) -> Option<u64> {
        let (from, to) = self.units(context.first, self.end_of(context))?;
        Some(if self.step > 0 { from } else { to - 1 })
    }

    /// The reader, which now comes to unit `from`, found unit `absent` evicted. So less survives than was ahead of it:
    /// no more windows of that size. What was asked for beyond `from` counts as read in vain.
    fn shrink(&mut self, from: u64, absent: u64, tally: &mut Tally) {
        let ahead = self.frontier - absent;
        let found = from.clamp(self.reader, self.frontier);
        tally.wasted_pages +=
            (self.frontier - found.max(self.given_up).min(self.frontier)) * self.len;
        self.cap = self.cap.min(ahead / 4 * 3).max(SMALLEST_CAP_UNITS);
        self.frontier = found;
        self.given_up = self.given_up.min(found);
        self.awaited = None;
    }

    /// First page of `unit`, if the file has it.
    fn page(&self, unit: u64, file_pages: u64) -> Option<Page> {
        let offset = i64::try_from(unit).ok()?.checked_mul(self.step)?;
        let page = self.origin.checked_add_signed(offset)?;
        (page < file_pages).then_some(page)
    }

    /// Units the file holds from the origin on.
    fn units_in_file(&self, file_pages: u64) -> u64 {
        let stride = self.step.unsigned_abs();
        let pages = if self.step > 0 {
            file_pages.saturating_sub(self.origin)
        } else {
            self.origin.saturating_add(1)
        };
        // A division takes as long as the rest of this function, and most steps are one page.
        if stride == 1 { pages } else { pages.div_ceil(stride) }
    }

    /// Whole units in `pages`.
    fn units_of(&self, pages: u64) -> u64 {
        if self.len == 1 { pages } else { pages / self.len }
    }

    /// Whether reading this stream ahead can save anything on this device.
    pub(super) fn can_gain(&self, context: &AccessContext) -> bool {
        let cost = &context.device.cost;
        self.is_contiguous() || striding_pays(cost, self.step, self.stall_s(context))
    }

    /// Whether anything is asked for it: not if nothing is saved, and not for a plain forward stream on a device that
    /// answers before we could.
    pub(super) fn is_led(&self, context: &AccessContext) -> bool {
        let is_too_late = || self.step == 1 && context.device.cost.outpaces_user_space();
        self.can_gain(context) && !is_too_late()
    }

    /// Pages that the readers' account pays for at once. A piece also costs the gap to the next one, or an access.
    /// Pieces at equal distances are less likely to be chance than two neighbours, so they leave no credit to regions.
    fn paid_pages(&self, context: &AccessContext) -> u64 {
        if self.is_contiguous() {
            return context.allowance.stream_credit;
        }
        let cost = &context.device.cost;
        let pages_s = real(self.len) * cost.page_s();
        let piece_s = match context.device.pages.is_serial {
            true => self.unit_cost(context).unit_s,
            false => cost.access_s() + pages_s,
        };
        (real(context.allowance.credit) * pages_s / piece_s) as u64
    }

    fn unit_cost(&self, context: &AccessContext) -> UnitCost {
        if self.is_contiguous() {
            context.device.pages
        } else {
            UnitCost::pieces(&context.device.cost, self.len, self.step.unsigned_abs())
        }
    }

    /// Units that its reader is known to read: those up to the end of its request.
    fn requested(&self) -> u64 {
        if self.step == 1 { self.reader.max(self.request.1) } else { self.reader }
    }

    /// How far its run has come, for what is to be expected of it. A request proves all of its pages until they are
    /// asked for. Then it proves as many as the kernel's usual window holds at most: its length does not tell that
    /// another one follows.
    fn proven(&self, context: &AccessContext) -> u64 {
        let requested = self.requested();
        if self.step == 1 && requested <= self.frontier && context.rules.have(Rule::Request) {
            requested.min(self.request.0 + u64::from(KERNEL_WINDOW_PAGES))
        } else {
            requested
        }
    }

    /// How far it has come, of `last` units in the file. A program that announced sequential reading counts as if it
    /// had proven its whole file.
    fn run(&self, last: u64, tail_exponent: f64, context: &AccessContext) -> Run {
        let (read, tail_exponent) = if self.announced && self.step == 1 {
            (last, tail_exponent.min(ANNOUNCED))
        } else {
            let tail_exponent = tail_exponent.min(self.tail_exponent).max(LEAST_TAIL);
            (self.proven(context), tail_exponent)
        };
        Run { read, asked: self.frontier, tail_exponent }
    }
}

/// Whether the program has announced sequential reading.
pub(super) fn has_announced(context: &AccessContext) -> bool {
    context.access.hint == Hint::Sequential && context.rules.have(Rule::Announced)
}
