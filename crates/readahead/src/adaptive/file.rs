//! What is remembered of one file: its streams, and the recent misses that belong to none.
//!
//! A miss that no stream explains is an *orphan*. A stream begins when a miss lies beside a recent
//! orphan, when the file is read from its start, or when misses stand at equal distances.

use crate::access::{Hint, Nanos, Page, Trigger, Via};
use crate::plan::Cause;
use crate::tally::Tally;

use super::Scene;
use super::around::Around;
use super::habit::Habit;
use super::pace::Pace;
use super::stream::Stream;
use super::tail::EndedRuns;

/// Streams followed in one file; more than a program interleaves on one descriptor.
const STREAMS: usize = 32;

/// Orphans remembered: each stream of a full set may have missed once before its second miss.
const ORPHANS: usize = 64;

/// Where a miss is placed.
pub(super) enum Found<'a> {
    /// It belongs to this stream, known or just begun; how long the file's runs turn out.
    Stream(&'a mut Stream, f64),
    /// It belongs to none.
    Orphan,
}

#[derive(Clone, Copy, Debug)]
struct Orphan {
    first: Page,
    end: Page,
    /// When it was read.
    at: Nanos,
    /// What all readers had passed by then, in pages.
    passed: u64,
}

impl Orphan {
    /// A stream that began with it, when all readers have passed so many pages.
    fn followed_by(&self, stream: Stream, passed: u64) -> Stream {
        let pages = self.end - self.first;
        let own = stream.length().saturating_sub(pages);
        let pace = Pace::known(own, passed.saturating_sub(self.passed), passed);
        stream.waiting_since(self.at, pages).at_pace(pace)
    }
}

#[derive(Debug)]
pub(super) struct FileState {
    streams: [Option<Stream>; STREAMS],
    /// A bit for each slot of `streams` that is taken: most files have one stream.
    taken: u32,
    ended: EndedRuns,
    around: Around,
    /// A ring of the most recent; `orphaned % ORPHANS` is the next to be overwritten.
    orphans: [Orphan; ORPHANS],
    /// Orphans noted so far.
    orphaned: u64,
}

impl FileState {
    pub(super) fn new() -> Self {
        FileState {
            streams: [None; STREAMS],
            taken: 0,
            ended: EndedRuns::default(),
            around: Around::new(),
            orphans: [Orphan { first: 0, end: 0, at: 0, passed: 0 }; ORPHANS],
            orphaned: 0,
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
        let tail = self.tail(scene.access.now);
        if let Some(index) = self.nearest(scene, Stream::is_contiguous) {
            return self.found(index, tail);
        }
        // What a known stream passes it counts itself.
        let pages = scene.end - scene.first;
        let passed = tally.passed_pages + pages;
        if let Some(stream) = self.beside_an_orphan(scene, passed) {
            tally.passed_pages = passed;
            return Found::Stream(self.admit(stream, tally), tail);
        }
        if let Some(index) = self.nearest(scene, |stream| !stream.is_contiguous()) {
            self.remember(scene, passed);
            return self.found(index, tail);
        }
        let begun = self.at_equal_distances(scene).or_else(|| at_the_start(scene, habit));
        tally.passed_pages = passed;
        self.remember(scene, passed);
        match begun {
            Some(stream) => {
                Found::Stream(self.admit(stream.at_pace(Pace::unknown(passed)), tally), tail)
            }
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
            let mut others = self.recent(ORPHANS).skip(1);
            others.any(|orphan| orphan.first.abs_diff(scene.first) <= reach)
        };
        let is_lone = is_orphan && !self.around.reach(scene).is_some_and(is_near);
        self.around.fault(is_lone, scene)
    }

    /// The exponent of how long runs of this file turn out: of those that are over, those whose
    /// readers have stopped, and those that go on.
    fn tail(&self, now: Nanos) -> f64 {
        let has_ended = |stream: &Stream| stream.has_stopped(now) && !stream.is_at_the_end();
        self.ended.tail(self.streams().map(|(_, stream)| (stream.length(), has_ended(stream))))
    }

    fn found(&mut self, index: usize, tail: f64) -> Found<'_> {
        match &mut self.streams[index] {
            Some(stream) => Found::Stream(stream, tail),
            None => Found::Orphan,
        }
    }

    /// The stream of a kind that the access continues most closely.
    fn nearest(&self, scene: &Scene, kind: impl Fn(&Stream) -> bool) -> Option<usize> {
        let of_a_kind = self.streams().filter(|(_, stream)| kind(stream));
        let distances = of_a_kind
            .filter_map(|(index, stream)| stream.distance(scene).map(|distance| (distance, index)));
        distances.min().map(|(_, index)| index)
    }

    /// The streams there are, with their slots.
    fn streams(&self) -> impl Iterator<Item = (usize, &Stream)> {
        let mut left = self.taken;
        std::iter::from_fn(move || {
            let slot = left.trailing_zeros() as usize;
            left &= left.wrapping_sub(1);
            self.streams.get(slot)?.as_ref().map(|stream| (slot, stream))
        })
    }

    /// Forward or backward: the access continues a recent orphan on either side.
    fn beside_an_orphan(&self, scene: &Scene, passed: u64) -> Option<Stream> {
        let slack = scene.slack();
        let now = scene.access.now;
        self.recent(ORPHANS).find_map(|orphan| {
            let overlap = if scene.access.via == Via::Mmap { slack } else { 1 };
            let ahead = scene.first.saturating_add(overlap) >= orphan.end
                && scene.first > orphan.first
                && scene.first <= orphan.end.saturating_add(slack);
            if ahead {
                let run = scene.end - orphan.first;
                let stream = Stream::contiguous(orphan.first, 1, run, Cause::Context, now);
                return Some(orphan.followed_by(stream, passed));
            }
            let behind = scene.end <= orphan.first.saturating_add(overlap)
                && scene.first < orphan.first
                && scene.end.saturating_add(slack) >= orphan.first;
            if behind {
                let run = orphan.end - scene.first;
                let stream = Stream::contiguous(orphan.end - 1, -1, run, Cause::Backward, now);
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
        let consecutive = self.recent(1).next()?;
        let step = step_between(consecutive, scene);
        if back(scene.first, step, 2).is_some_and(|page| self.is_orphan(page, 2)) {
            return strided(scene, consecutive.at, step, 3);
        }
        self.recent(ORPHANS / 2).find_map(|orphan| {
            let step = step_between(orphan, scene);
            let two = self.is_orphan(back(scene.first, step, 2)?, ORPHANS);
            let three = self.is_orphan(back(scene.first, step, 3)?, ORPHANS);
            if two && three { strided(scene, orphan.at, step, 4) } else { None }
        })
    }

    fn recent(&self, most: usize) -> impl Iterator<Item = Orphan> + '_ {
        let known = self.orphaned.min(ORPHANS.min(most) as u64);
        (1..=known).map(|age| self.orphans[slot(self.orphaned - age)])
    }

    fn is_orphan(&self, first: Page, most: usize) -> bool {
        self.recent(most).any(|orphan| orphan.first == first)
    }

    fn remember(&mut self, scene: &Scene, passed: u64) {
        self.orphans[slot(self.orphaned)] =
            Orphan { first: scene.first, end: scene.end, at: scene.access.now, passed };
        self.orphaned += 1;
    }

    /// Gives a new stream a place, that of the one used longest ago if need be.
    fn admit(&mut self, stream: Stream, tally: &mut Tally) -> &mut Stream {
        let age = |i: &usize| self.streams[*i].as_ref().map_or(0, |s| s.used_at.saturating_add(1));
        let oldest = (0..STREAMS).min_by_key(age).unwrap_or(0);
        if let Some(forgotten) = self.streams[oldest].take() {
            self.ended.note(forgotten.length(), !forgotten.is_at_the_end());
            forgotten.give_up(tally);
        }
        self.taken |= 1 << oldest;
        self.streams[oldest].insert(stream)
    }

    /// Ends the streams last used before `moment`.
    pub(super) fn forget_before(&mut self, moment: Nanos, tally: &mut Tally) {
        for (index, slot) in self.streams.iter_mut().enumerate() {
            if let Some(forgotten) = slot.take_if(|stream| stream.used_at < moment) {
                self.taken &= !(1 << index);
                self.ended.note(forgotten.length(), !forgotten.is_at_the_end());
                forgotten.give_up(tally);
            }
        }
    }

    /// Streams whose readers have stopped give up what is ahead of them; `round` pages passed by all
    /// readers are long enough for one whose pace is not known.
    pub(super) fn give_up_stopped(&mut self, now: Nanos, round: u64, tally: &mut Tally) {
        for stream in self.streams.iter_mut().flatten() {
            stream.give_up_if_stopped(now, round, tally);
        }
    }

    /// Ends all streams.
    pub(super) fn give_up(mut self, tally: &mut Tally) {
        self.forget_before(Nanos::MAX, tally);
    }
}

/// The ring's slot of the n-th orphan.
fn slot(n: u64) -> usize {
    (n % ORPHANS as u64) as usize
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

fn step_between(orphan: Orphan, scene: &Scene) -> i64 {
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
    if (scene.rules.bridges)(&scene.cost, stride - len) {
        let span = stride * (run - 1) + len;
        let (origin, sign) = if step > 0 { (origin, 1) } else { (origin + len - 1, -1) };
        let stream = Stream::sparse(origin, sign, stride, span, now);
        return Some(stream.waiting_since(then, span - stride));
    }
    Some(Stream::strided(origin, step, len, run, now).waiting_since(then, run - 1))
}
