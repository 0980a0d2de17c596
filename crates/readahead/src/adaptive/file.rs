//! What is remembered of one file: its streams, and the recent misses that belong to none.
//!
//! A miss that no stream explains is an *orphan*. A stream begins when a miss lies beside a recent
//! orphan, when the file is read from its start, or when misses stand at equal distances.

use super::around::Around;
use super::habit::Habit;
use super::orphans::{ORPHANS, Orphan, Orphans};
use super::pace::Pace;
use super::stream::Stream;
use super::streams::{Slot, Streams};
use super::tail::Runs;
use super::{READ_SLACK_PAGES, Scene};
use crate::access::{Hint, Nanos, Page, Trigger, Via};
use crate::plan::Cause;
use crate::tally::Tally;

/// Where a miss is placed.
pub(super) enum Found<'a> {
    /// It belongs to this stream, known or just begun; how long the file's runs turn out, unless the
    /// stream is left alone.
    Stream(&'a mut Stream, Option<f64>),
    /// It belongs to none.
    Orphan,
}

#[derive(Debug)]
pub(super) struct FileState {
    streams: Streams,
    ended: Runs,
    around: Around,
    orphans: Orphans,
}

impl FileState {
    pub(super) fn new() -> Self {
        FileState {
            streams: Streams::new(),
            ended: Runs::default(),
            around: Around::new(),
            orphans: Orphans::new(),
        }
    }

    /// Finds the stream an access belongs to, begins one, or notes an orphan.
    ///
    /// What is contiguous comes first: the starts of parallel streams may stand at equal
    /// distances, and so look like a stride. For the same reason pieces of a strided stream are
    /// remembered like orphans.
    pub(super) fn place(
        &mut self,
        scene: &Scene,
        habit: &mut Habit,
        tally: &mut Tally,
    ) -> Found<'_> {
        if let Some(index) = self.streams.nearest(scene, Stream::is_contiguous) {
            return self.found(index, scene);
        }
        // What a known stream passes it counts itself.
        let pages = scene.end - scene.first;
        let passed = tally.passed_pages + pages;
        if let Some(stream) = self.beside_an_orphan(scene, self.slack(scene), passed) {
            tally.passed_pages = passed;
            return self.begun(stream, scene, tally);
        }
        if let Some(index) = self.streams.nearest(scene, |stream| !stream.is_contiguous()) {
            self.remember(scene, passed);
            return self.found(index, scene);
        }
        let begun = self.at_equal_distances(scene).or_else(|| at_the_start(scene, habit));
        tally.passed_pages = passed;
        self.remember(scene, passed);
        match begun {
            Some(stream) => self.begun(stream.at_pace(Pace::unknown(passed)), scene, tally),
            None => Found::Orphan,
        }
    }

    /// What the kernel's window shall be after a miss that belongs to no stream (`is_orphan`) or to one,
    /// where that is not what it is.
    pub(super) fn judge_read_around(&mut self, is_orphan: bool, scene: &Scene) -> Option<u32> {
        if scene.access.trigger != Trigger::Absent {
            return None;
        }
        if scene.access.via == Via::Read {
            return self.around.read(scene);
        }
        let is_near = |reach| {
            // The most recent one is this fault's own.
            let mut others = self.orphans.recent(ORPHANS).skip(1);
            others.any(|orphan| orphan.first.abs_diff(scene.first) <= reach)
        };
        let is_lone = is_orphan && !self.around.reach(scene).is_some_and(is_near);
        self.around.fault(is_lone, scene)
    }

    fn found(&mut self, slot: Slot, scene: &Scene) -> Found<'_> {
        let is_led = |stream: &mut Stream| stream.is_led(&scene.device.cost);
        let tail = self.streams.get_mut(slot).is_some_and(is_led).then(|| self.tail(scene));
        match self.streams.get_mut(slot) {
            Some(stream) => Found::Stream(stream, tail),
            None => Found::Orphan,
        }
    }

    /// The runs before it tell how long that of a new stream turns out.
    fn begun(&mut self, mut stream: Stream, scene: &Scene, tally: &mut Tally) -> Found<'_> {
        let tail = stream.is_led(&scene.device.cost).then(|| self.tail(scene));
        if stream.is_contiguous() {
            self.streams.each(|other| {
                other.shares_its_file();
                stream.shares_its_file();
            });
        }
        let ended = &mut self.ended;
        Found::Stream(self.streams.admit(stream, |forgotten| end(forgotten, ended, tally)), tail)
    }

    /// The exponent of how long runs of this file turn out: of those that are over, those whose
    /// readers have stopped, and those that go on.
    fn tail(&mut self, scene: &Scene) -> f64 {
        let now = scene.access.now;
        let mut runs = self.ended;
        self.streams.each(|stream| {
            runs.note(stream.log_length(), stream.has_stopped(now) && !stream.is_at_the_end());
        });
        runs.tail()
    }

    /// How far from an orphan an access that no contiguous stream explains may lie. The mark of a strided
    /// stream is none of the kernel's, whose windows would be between them.
    fn slack(&self, scene: &Scene) -> u64 {
        let is_ours = || self.streams.nearest(scene, |stream| stream.has_marked(scene)).is_some();
        let is_a_mark = scene.access.trigger == Trigger::Mark;
        if is_a_mark && is_ours() { READ_SLACK_PAGES } else { scene.slack }
    }

    /// Forward or backward: the access continues a recent orphan on either side, `slack` pages from it at
    /// most.
    fn beside_an_orphan(&self, scene: &Scene, slack: u64, passed: u64) -> Option<Stream> {
        let now = scene.access.now;
        let overlap = if scene.access.via == Via::Mmap { slack } else { 1 };
        // Faults and marks are spaced by the kernel's windows, which tells nothing of what is skipped.
        let tells = scene.access.via == Via::Read && scene.access.trigger == Trigger::Absent;
        let pages = scene.end - scene.first;
        let grain = |from: Page, to: Page| match to.saturating_sub(from) {
            gap if tells && gap > 0 => pages + gap,
            _ => 1,
        };
        // The end of one ahead of which the access lies, or the start of one behind which it does.
        let nearest = scene.first.saturating_sub(slack);
        if !self.orphans.may_be_within(nearest, scene.end.saturating_add(slack)) {
            return None;
        }
        self.orphans.recent(ORPHANS).find_map(|orphan| {
            let ahead = scene.first.saturating_add(overlap) >= orphan.end
                && scene.first > orphan.first
                && scene.first <= orphan.end.saturating_add(slack);
            if ahead {
                let run = scene.end - orphan.first;
                let stream = Stream::contiguous(orphan.first, 1, run, Cause::Context, now);
                let stream = stream.skipping(grain(orphan.end, scene.first));
                return Some(orphan.followed_by(stream, passed));
            }
            let behind = scene.end <= orphan.first.saturating_add(overlap)
                && scene.first < orphan.first
                && scene.end.saturating_add(slack) >= orphan.first;
            if behind {
                let run = orphan.end - scene.first;
                let stream = Stream::contiguous(orphan.end - 1, -1, run, Cause::Backward, now);
                let stream = stream.skipping(grain(scene.end, orphan.first));
                return Some(orphan.followed_by(stream, passed));
            }
            None
        })
    }

    /// Strided: three consecutive misses at one distance, or four among the recent ones.
    fn at_equal_distances(&self, scene: &Scene) -> Option<Stream> {
        if scene.access.via == Via::Mmap || scene.access.trigger == Trigger::Mark {
            return None;
        }
        let consecutive = self.orphans.recent(1).next()?;
        let step = step_between(consecutive, scene);
        if back(scene.first, step, 2).is_some_and(|page| self.orphans.hold(page, 2)) {
            return strided(scene, consecutive.at, step, 3);
        }
        self.orphans.recent(ORPHANS / 2).find_map(|orphan| {
            let step = step_between(orphan, scene);
            let before = |page: Page| page.wrapping_sub(step as u64);
            let (two, three) = (before(orphan.first), before(before(orphan.first)));
            if !self.orphans.may_be_at_both(two, three) {
                return None;
            }
            let is_orphan = |page| self.orphans.hold(page, ORPHANS);
            let two = is_orphan(back(scene.first, step, 2)?);
            let three = two && is_orphan(back(scene.first, step, 3)?);
            if three { strided(scene, orphan.at, step, 4) } else { None }
        })
    }

    fn remember(&mut self, scene: &Scene, passed: u64) {
        let (first, end, at) = (scene.first, scene.end, scene.access.now);
        self.orphans.note(Orphan { first, end, at, passed });
    }

    /// Ends the streams last used before `moment`.
    pub(super) fn forget_before(&mut self, moment: Nanos, tally: &mut Tally) {
        let ended = &mut self.ended;
        self.streams.forget_before(moment, |forgotten| end(forgotten, ended, tally));
    }

    /// Streams whose readers have stopped give up what is ahead of them; `round` pages passed by all
    /// readers are long enough for one whose pace is not known.
    pub(super) fn give_up_stopped(&mut self, now: Nanos, round: u64, tally: &mut Tally) {
        self.streams.each(|stream| stream.give_up_if_stopped(now, round, tally));
    }

    /// Ends all streams.
    pub(super) fn give_up(mut self, tally: &mut Tally) {
        self.forget_before(Nanos::MAX, tally);
    }
}

/// A stream has ended: its run tells of those to come.
fn end(stream: Stream, ended: &mut Runs, tally: &mut Tally) {
    ended.note(stream.log_length(), !stream.is_at_the_end());
    stream.give_up(tally);
}

/// The start of a file, or any read by a program that announced a sequential one, begins a run.
fn at_the_start(scene: &Scene, habit: &mut Habit) -> Option<Stream> {
    let (run, now) = (scene.end - scene.first, scene.access.now);
    if scene.first == 0 {
        return Some(Stream::initial(run, habit.begin(scene.access.file_pages), now));
    }
    let announced = scene.access.hint == Hint::Sequential;
    announced.then(|| Stream::contiguous(scene.first, 1, run, Cause::Initial, now))
}

fn step_between(orphan: &Orphan, scene: &Scene) -> i64 {
    scene.first.wrapping_sub(orphan.first) as i64
}

/// The page `count` steps before `page`.
fn back(page: Page, step: i64, count: i64) -> Option<Page> {
    page.checked_add_signed(step.checked_mul(-count)?)
}

/// A strided stream of `run` pieces ending with the access, the piece before it read at `then`; a
/// plain one where reading the gaps costs less than visiting each piece. Where neither pays it is
/// known at least, lest its misses pass for dense random reading.
fn strided(scene: &Scene, then: Nanos, step: i64, run: u64) -> Option<Stream> {
    let (now, len) = (scene.access.now, scene.end - scene.first);
    let stride = step.unsigned_abs();
    if stride <= len {
        return None;
    }
    let origin = back(scene.first, step, run as i64 - 1)?;
    if (scene.rules.bridges)(&scene.device.cost, stride - len) {
        let span = stride * (run - 1) + len;
        let (origin, sign) = if step > 0 { (origin, 1) } else { (origin + len - 1, -1) };
        let stream = Stream::sparse(origin, sign, stride, span, now);
        return Some(stream.waiting_since(then, span - stride));
    }
    Some(Stream::strided(origin, step, len, run, now).waiting_since(then, run - 1))
}
