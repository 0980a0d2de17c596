//! What a stream asks for: how large its next window is, where its mark stands, and which pages that is.

use super::Stream;
use crate::access::{Nanos, Trigger, Via};
use crate::adaptive::access_context::AccessContext;
use crate::adaptive::allowance::{Claim, MIN_READ_AHEAD_PAGES};
use crate::adaptive::kernel_window::{KERNEL_WINDOW_PAGES, NARROW_PAGES};
use crate::adaptive::number::real;
use crate::adaptive::outlook::Outlook;
use crate::adaptive::rules::Rule;
use crate::adaptive::run::{Ahead, Run};
use crate::adaptive::survival::Lengths;
use crate::adaptive::tail_exponent::MOST_TAIL_OF_WINDOWS;
use crate::adaptive::waits::Waits;
use crate::adaptive::window::UnitCost;
use crate::cost::{AMPLE_STALLS, DeviceCost};
use crate::plan::{Cause, MARK_PAGES, Plan};
use crate::tally::Tally;

/// A mark spans a few pages, as a reader may skip one.
const SEEN_PAGES: u64 = 8;

/// A run is seen again each time it has grown by one part in this many: half a bin of a [curve](super::super::Curve).
const SEEN_SHARE: u64 = 8;

/// What it costs to change the kernel's window of an open file and to give it back, in seconds: each takes about 60 us,
/// and a few accesses must be reported before.
const CHANGE_S: f64 = 0.000_15;

/// A window also takes the rest of the file if that is less than one part in this many of the window ...
const SNAP_SHARE: u64 = 4;

/// ... plus this, the kernel's smallest window: so short a rest is not worth a device access.
const SNAP_PAGES: u64 = 4;

impl Stream {
    /// The rule's `window`, cut to what survives in memory. Asking for less than the kernel reads by itself is not
    /// worthwhile; a kernel window above the default, which somebody has set, does not count for that.
    fn wanted(&self, window: u64, context: &AccessContext) -> u64 {
        let has_floor = self.step == 1 && context.rules.have(Rule::Floor);
        let kernel = if has_floor { context.access.kernel_window } else { 0 };
        window.max(u64::from(kernel.min(KERNEL_WINDOW_PAGES))).min(self.cap)
    }

    /// What its next units cost. Where the head of a disk may be where this stream left it, an access costs what readers
    /// wait for it.
    fn cost_of_next(&self, context: &AccessContext, waits: &Waits) -> UnitCost {
        let cost = self.unit_cost(context);
        if context.rules.have(Rule::Waits) && self.may_stay(context) {
            cost.of_accesses(self.likely_wait(context, waits))
        } else {
            cost
        }
    }

    /// The share of an access that its reader is likely to wait for the next one, given the waits of all readers of the
    /// volume.
    fn likely_wait(&self, context: &AccessContext, waits: &Waits) -> f64 {
        if self.is_alone && context.rules.have(Rule::OwnWaits) {
            self.own_waits.next(false)
        } else {
            waits.next(self.is_begun)
        }
    }

    /// Asks for the next window if it is time, of `room` pages at most; returns the pages asked for.
    pub(super) fn ask(
        &mut self,
        context: &AccessContext,
        room: u64,
        tail_exponent: f64,
        outlook: &Outlook,
        cause: Cause,
        plan: &mut Plan,
    ) -> u64 {
        let is_early = self.mark < self.due && self.reader < self.due;
        if is_early && context.access.trigger == Trigger::Mark {
            self.set_next_mark(self.due, &outlook.lengths, context, plan);
            return 0;
        }
        if let Some(unit) = self.near_the_end_of_the_request(context) {
            self.set_mark(unit, context, plan);
            return 0;
        }
        let last = self.units_in_file(context.access.file_pages);
        let cost = self.cost_of_next(context, outlook.waits);
        let expected = self.run(last, tail_exponent, context);
        let run =
            Run { tail_exponent: expected.tail_exponent.min(MOST_TAIL_OF_WINDOWS), ..expected };
        let window = self.bounded_by_the_request((context.rules.window)(&cost, run), context);
        let wanted = self.wanted(window, context);
        if self.kernel_does(&cost, window, context) || !self.pays(&cost, expected, wanted, context)
        {
            return 0;
        }
        let ahead = Ahead {
            rate: self.rate.most(),
            window: wanted,
            run,
            is_with_the_reader: self.step > 0,
            is_begun: self.is_begun && context.rules.have(Rule::Begun),
            room: self.units_of(room),
        };
        let look_ahead = (context.rules.look_ahead)(&cost, ahead);
        if self.frontier - self.reader > look_ahead {
            self.set_next_mark(self.frontier - look_ahead, &outlook.lengths, context, plan);
            return 0;
        }
        let fitting = self.fit(wanted, last, room, context, plan.spare());
        let window = self.cut(fitting, last, &cost, &outlook.lengths, context);
        if window == 0 && fitting > 0 {
            self.watch_the_frontier(&outlook.lengths, context, plan);
            return 0;
        }
        if window == 0 {
            self.watch_for_room(context, plan);
            self.watch_the_end(last, context, plan);
            return 0;
        }
        let is_cut = window < wanted.min(last - self.frontier);
        let earliest = self.earliest_mark(is_cut, &cost, context);
        self.read(self.frontier, window, context, cause, plan);
        self.move_frontier(window, last, context.access.now);
        if self.frontier < last {
            let mark = self.frontier.saturating_sub(look_ahead).max(earliest);
            self.set_next_mark(mark.min(self.frontier - 1), &outlook.lengths, context, plan);
        } else {
            self.watch_the_end(last, context, plan);
        }
        window * self.len
    }

    /// The next `window` units of the file's `last` have been asked for.
    fn move_frontier(&mut self, window: u64, last: u64, now: Nanos) {
        self.frontier += window;
        self.waits_since = None;
        self.at_the_end = self.frontier == last;
        self.asked_at = now;
        self.cap = self.cap.saturating_add((self.cap / 16).max(1));
    }

    /// The first unit at which the window after the one that is asked for now may be asked for; `is_cut` tells that
    /// this one is smaller than the rule asks. The reader finishes the last window before this one arrives. The next
    /// must be asked for then at the latest. Where accesses overlap, each step of the reader makes room for another
    /// window.
    fn earliest_mark(&self, is_cut: bool, cost: &UnitCost, context: &AccessContext) -> u64 {
        let ended = self.frontier.saturating_sub(1).max(self.reader);
        let waits_its_turn = cost.is_serial && !(is_cut && self.is_swept(context));
        if waits_its_turn { ended } else { ended.min(self.step_on()) }
    }

    /// The units of `window` up to where runs that come as far as this one are likely to end.
    fn cut(
        &self,
        window: u64,
        last: u64,
        cost: &UnitCost,
        lengths: &Lengths,
        context: &AccessContext,
    ) -> u64 {
        if window == 0 || !self.is_contiguous() || !context.rules.have(Rule::Ends) {
            return window;
        }
        let to = self.frontier + window;
        let requested = self.requested();
        lengths.cut(requested, self.frontier, to, cost.stall_units()).min(last) - self.frontier
    }

    /// The window, or only the rest of the request, if there is one that was not asked for. What is known of a request
    /// tells nothing of what comes after it.
    fn bounded_by_the_request(&self, window: u64, context: &AccessContext) -> u64 {
        let rest = self.requested().saturating_sub(self.frontier);
        if rest > 0 && context.rules.have(Rule::Request) { window.min(rest) } else { window }
    }

    /// The unit that the reader must have come to before more is asked for, if it is in a long request of which a part
    /// was not asked for. The kernel reads that in pieces. On a disk, what is asked for beyond it would come between
    /// them.
    fn near_the_end_of_the_request(&self, context: &AccessContext) -> Option<u64> {
        let is_in_progress = self.step == 1 && !context.access.is_over();
        let is_the_kernels = is_in_progress && self.first_unasked < self.request.1;
        let is_read_in_pieces = is_the_kernels && context.device.pages.is_serial;
        let unit = self.request.1.saturating_sub(SEEN_PAGES);
        // The kernel reads at least a window at once, so it has nearly all of the rest then.
        let window = context.access.kernel_window.max(KERNEL_WINDOW_PAGES);
        let is_far = self.origin + unit >= context.first + u64::from(window);
        (is_read_in_pieces && is_far && context.rules.have(Rule::Request)).then_some(unit)
    }

    /// Nothing more is asked for before the run gets past what was asked for. A mark on the last unit tells that.
    fn watch_the_frontier(&mut self, lengths: &Lengths, context: &AccessContext, plan: &mut Plan) {
        if self.reader + 1 < self.frontier {
            self.set_next_mark(self.frontier - 1, lengths, context, plan);
        }
    }

    /// The next window is due when the reader comes to unit `due`. If runs of this file have ended before, a nearer
    /// mark is set: the ends of runs are known only as precisely as their readers are seen.
    fn set_next_mark(
        &mut self,
        due: u64,
        lengths: &Lengths,
        context: &AccessContext,
        plan: &mut Plan,
    ) {
        let seen = self.reader + (self.reader / SEEN_SHARE).max(SEEN_PAGES);
        let is_near = lengths.have_ends() && context.rules.have(Rule::Sight);
        self.set_mark(if is_near { due.min(seen) } else { due }, context, plan);
        self.due = due;
    }

    /// Whether a disk reads small windows as fast as large ones: those of a backward reader that wait together
    /// are sorted and read in one sweep.
    fn is_swept(&self, context: &AccessContext) -> bool {
        self.step < 0 && context.access.via == Via::Read && context.rules.have(Rule::Sweep)
    }

    /// The unit at which the reader has used as much of what is ahead as is worth asking for.
    fn step_on(&self) -> u64 {
        self.reader + MIN_READ_AHEAD_PAGES.div_ceil(self.len)
    }

    /// There is no room now. A mark tells when the reader has used some of what is ahead: then there may be.
    fn watch_for_room(&mut self, context: &AccessContext, plan: &mut Plan) {
        let may_come = context.rules.have(Rule::Room) && self.step_on() < self.frontier;
        if self.mark <= self.reader && may_come {
            self.set_mark(self.step_on(), context, plan);
        }
    }

    /// Whether the kernel would read ahead by itself here, so that what is asked for takes the place of that. It does
    /// not recognise a reader that skips pages.
    pub(in crate::adaptive) fn kernel_reads_ahead(&self, context: &AccessContext) -> bool {
        match context.access.via {
            Via::Mmap => context.access.kernel_window > NARROW_PAGES,
            Via::Read => self.step == 1 && self.grain == 1,
        }
    }

    /// Whether a window is expected to save its reader more than it costs: the stalls for units that are used, against
    /// the device access and the transfer of the others. Two misses that are neighbours by chance look like the start
    /// of a run. Where that happens often, runs are short, little is used, and no window pays. What the kernel would
    /// read by itself always does.
    fn pays(&self, cost: &UnitCost, run: Run, window: u64, context: &AccessContext) -> bool {
        if self.kernel_reads_ahead(context) || !context.rules.have(Rule::Pays) {
            return true;
        }
        let (units, read_share) = (real(self.units_a_stall(context).max(1)), self.read_share());
        let stall_s = self.stall_s(context);
        let access_s = context.device.cost.access_s();
        let pays_with = |passed: f64| {
            let in_vain = real(window) - passed * read_share;
            passed / units * stall_s >= access_s + in_vain * cost.unit_s
        };
        pays_with(run.expected_at_least(window)) || pays_with(run.expected(window))
    }

    /// All is asked for. A mark on the last unit tells whether it was used, for the accounting.
    fn watch_the_end(&mut self, last: u64, context: &AccessContext, plan: &mut Plan) {
        if self.frontier == last && self.reader < last {
            self.set_mark(last - 1, context, plan);
        }
    }

    /// Pages of the window in which the kernel should read this stream ahead, where it does so before user space could.
    /// `None` if its own is as good, or if a change is not worth its price.
    ///
    /// A run is expected to go on for as long as it has lasted, and each window of the kernel costs its reader an
    /// access. What the kernel has read beyond a run's end is lost, so a run must be twice as long as the window.
    pub(in crate::adaptive) fn wider_window(
        &self,
        context: &AccessContext,
        tally: &Tally,
    ) -> Option<u32> {
        let is_the_kernels =
            context.device.cost.outpaces_user_space() && self.kernel_reads_ahead(context);
        let survives = self.cap == u64::MAX && context.access.via == Via::Read;
        if !is_the_kernels || !survives || self.is_guess || !context.rules.have(Rule::Wider) {
            return None;
        }
        let own = u64::from(context.access.kernel_window.max(1));
        let rest = self.units_in_file(context.access.file_pages).saturating_sub(self.reader);
        let saved_s = real(self.reader.min(rest) / own) * context.device.cost.latency_s;
        let claim = Claim { own: 0, request: own, share: self.pace.share() };
        let most = context.device.ample_pages.min(context.allowance.for_stream(claim, tally));
        let most = most.min(self.paid_pages(context));
        let pages = most.min(self.reader / 2);
        // Each change has its price, so there are few.
        let least = if pages == most { 2 * own } else { 4 * own };
        if pages < least || saved_s < CHANGE_S { None } else { u32::try_from(pages).ok() }
    }

    /// Whether a plain forward stream is left to the kernel: its window is as large as the rule asks,
    /// and so large that its device accesses hardly count.
    fn kernel_does(&self, cost: &UnitCost, window: u64, context: &AccessContext) -> bool {
        let kernel_window = u64::from(context.access.kernel_window);
        let is_ample = f64::from(context.access.kernel_window) >= AMPLE_STALLS * cost.stall_units();
        let is_as_asked = is_ample && kernel_window >= window;
        let survives = self.cap == u64::MAX && context.access.via == Via::Read;
        let is_left = context.rules.have(Rule::LeftToKernel);
        self.step == 1 && is_as_asked && survives && is_left
    }

    /// Units of the window, cut to the file and to the room there is, or stretched to the file's end if little would be
    /// left. What two windows can read is halved, so that no small rest remains. If there is room for less than the
    /// minimum read-ahead, nothing is asked for: its access costs as much as that of a whole window, and the kernel
    /// does better by itself.
    fn fit(&self, wanted: u64, last: u64, room: u64, context: &AccessContext, spare: usize) -> u64 {
        let left = last.saturating_sub(self.frontier);
        let requests = if self.is_contiguous() { u64::MAX } else { spare.saturating_sub(1) as u64 };
        let most = self.units_of(room).min(requests);
        let rest = wanted / SNAP_SHARE + SNAP_PAGES;
        let snap = wanted + if context.rules.have(Rule::Rest) { rest } else { 0 };
        let asked = if left <= snap && self.cap == u64::MAX {
            left
        } else {
            self.rounded(wanted.min(left), context).min(left).min(self.cap)
        };
        if asked <= most {
            return asked;
        }
        if most * self.len < MIN_READ_AHEAD_PAGES {
            return 0;
        }
        if left <= 2 * most { left.div_ceil(2) } else { most }
    }

    /// A window of about `units` units that ends at a round page. The parts in which programs read a file mostly end at
    /// a multiple of some power of two; what is asked for beyond is read in vain. Of the two powers of two around
    /// `units`, the nearer one is taken, measured by the number of windows that the file then takes.
    fn rounded(&self, units: u64, context: &AccessContext) -> u64 {
        let reads_all = self.step == 1 && self.grain == 1 && context.rules.have(Rule::RoundEnds);
        if !reads_all || !self.is_part {
            return units;
        }
        let above = units.next_power_of_two();
        let round = if units / 2 > above / 3 { above } else { above / 2 }.max(1);
        let to_next = round - (self.origin + self.frontier) % round;
        // A short rest goes with what comes after it.
        if to_next < round / 4 { to_next + round } else { to_next }
    }

    fn read(&self, from: u64, units: u64, context: &AccessContext, cause: Cause, plan: &mut Plan) {
        if self.is_contiguous() {
            self.read_contiguous(from, units, context, cause, plan);
        } else {
            self.read_pieces(from, units, context, cause, plan);
        }
    }

    /// A request brings its pages in ascending order, so a backward reader waits for the last of them. Where accesses
    /// overlap, its window goes out in parts, nearest first, each twice as long as the one before. The reader goes on
    /// when the first has arrived, and the next window is then requested while the rest is on its way.
    fn read_contiguous(
        &self,
        from: u64,
        units: u64,
        context: &AccessContext,
        cause: Cause,
        plan: &mut Plan,
    ) {
        let cost = &context.device.cost;
        let in_parts = self.step < 0 && !cost.is_serial();
        let mut part = if in_parts { shortest_part(cost) } else { units };
        let (mut from, end) = (from, from + units);
        while from < end {
            // No rest is shorter than what a request is worth.
            let to = if end - from < 2 * part { end } else { from + part };
            self.read_part(from, to, context, cause, plan);
            (from, part) = (to, part.saturating_mul(2));
        }
    }

    fn read_part(
        &self,
        from: u64,
        to: u64,
        context: &AccessContext,
        cause: Cause,
        plan: &mut Plan,
    ) {
        let file_pages = context.access.file_pages;
        let ends = (self.page(from, file_pages), self.page(to - 1, file_pages));
        if let (Some(a), Some(b)) = ends {
            plan.read(a.min(b), a.abs_diff(b) + 1, cause);
        }
    }

    /// Pieces go out nearest first where accesses overlap, and in ascending order on a disk, which then passes over
    /// them in one sweep.
    fn read_pieces(
        &self,
        from: u64,
        units: u64,
        context: &AccessContext,
        cause: Cause,
        plan: &mut Plan,
    ) {
        let file_pages = context.access.file_pages;
        let nearest_first = self.step > 0 || !context.device.cost.is_serial();
        let (first, step) =
            if nearest_first { (from, self.step) } else { (from + units - 1, -self.step) };
        // The file has a page of each unit: the window was cut to it.
        let Some(first_page) = self.page(first, file_pages) else { return };
        let piece = |number: u64| {
            let start = first_page.wrapping_add_signed(number as i64 * step);
            (start, self.len.min(file_pages.saturating_sub(start)))
        };
        plan.read_each((0..units).map(piece), cause);
    }

    fn set_mark(&mut self, unit: u64, context: &AccessContext, plan: &mut Plan) {
        let file_pages = context.access.file_pages;
        let Some(page) = self.page(unit, file_pages) else {
            return;
        };
        self.mark = unit;
        self.due = unit;
        let pages = if self.is_contiguous() { SEEN_PAGES.max(self.grain) } else { self.len };
        // The reader comes to the near end of a long mark first.
        let pages = pages.min(MARK_PAGES);
        let (first, last) = if self.step == -1 {
            (page.saturating_sub(pages - 1), page)
        } else {
            (page, (page + pages - 1).min(file_pages - 1))
        };
        plan.mark(first, last);
    }
}

/// The smallest part of a window that is worth a request of its own: its transfer takes as long as an access costs.
fn shortest_part(cost: &DeviceCost) -> u64 {
    cost.access_pages().max(MIN_READ_AHEAD_PAGES)
}
