//! What the drive holds in its buffer, and what it is reading into it.
//!
//! ```text
//!   segment: |-- last request --|-- read-ahead, grows at media rate, up to the limit --|
//!
//!   lap:     index |=== read second ===| arrival |=== read first ===| end of track
//!            a drive that reads whole tracks; afterwards it goes on as a segment does
//! ```

use std::ops::Range;

use super::spec::DiskSpec;
use super::surface::Surface;
use crate::model::Nanos;

/// What the drive holds in its buffer and reads on into.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    pub(super) start: u64,
    /// Up to here the host has asked; the drive reads on for what the segment has room for.
    pub(super) consumed: u64,
    /// The media passed this byte ...
    pub(super) media_from: u64,
    /// ... at this moment, reading on ever since until the limit.
    pub(super) media_at: Nanos,
    /// The turn in which all of a track is read; `media_from` is then the track's end.
    pub(super) lap: Option<Lap>,
}

/// One turn over one track.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lap {
    /// First byte of the track that is (or will be) in the buffer.
    pub(super) start: u64,
    /// End of the track.
    pub(super) end: u64,
    /// The head arrived then ...
    pub(super) at: Nanos,
    /// ... at this angle.
    pub(super) angle: Nanos,
}

impl Lap {
    /// When `from..to`, a part of the track, is in the buffer.
    fn ready(&self, surface: &Surface, from: u64, to: u64) -> Nanos {
        let turn = surface.turn;
        let first = (surface.angle(from) + turn - self.angle % turn) % turn;
        let last = first + surface.passing(from, to) as Nanos;
        self.at.saturating_add(last.min(turn))
    }

    /// What is in the buffer at `now`: up to the track's end, and from its beginning on.
    fn held(&self, surface: &Surface, now: Nanos) -> [Range<u64>; 2] {
        let track = surface.track_start(surface.track(self.start));
        let elapsed = now.saturating_sub(self.at).min(surface.turn);
        let from = surface.reached(track, self.angle);
        let to = surface.reached(from, elapsed).min(self.end);
        let begun = elapsed.saturating_sub(surface.turn - self.angle);
        [from..to, track..surface.reached(track, begun).min(from)]
    }

    /// When the head first comes to the track's end.
    fn end_passes(&self, surface: &Surface) -> Nanos {
        self.at.saturating_add(surface.turn - self.angle)
    }

    /// When `from..to` is in the buffer, if it is on the track or runs past its end in time: the
    /// drive completes the track before the next one, unless the host wants that one already.
    pub(super) fn serves(
        &self,
        surface: &Surface,
        now: Nanos,
        from: u64,
        to: u64,
    ) -> Option<Nanos> {
        if !(self.start..=self.end).contains(&from) {
            return None;
        }
        if to <= self.end {
            return Some(self.ready(surface, from, to));
        }
        let end_passes = self.end_passes(surface);
        let begins_after_arrival = from == self.end || surface.angle(from) >= self.angle;
        (now <= end_passes && begins_after_arrival)
            .then(|| end_passes.saturating_add(surface.passing(self.end, to) as Nanos))
    }
}

impl Segment {
    /// What a request that ended at `end` leaves if it began a lap.
    pub(super) fn lapping(lap: Lap, end: u64, surface: &Surface) -> Self {
        Segment {
            start: lap.start,
            consumed: end.min(lap.end),
            media_from: lap.end,
            media_at: lap.end_passes(surface).saturating_add(surface.turn),
            lap: Some(lap),
        }
    }

    /// Whether all of `from..to` is in the buffer by now.
    pub(super) fn holds(&self, surface: &Surface, now: Nanos, from: u64, to: u64) -> bool {
        match self.lap {
            Some(lap) if to <= lap.end => lap.ready(surface, from, to) <= now,
            _ => from >= self.start && to <= self.media_from,
        }
    }

    /// Forgets what has no room beside what the host has asked for since.
    pub(super) fn trim(&mut self, size: u64) {
        self.start = self.start.max(self.consumed.saturating_sub(size));
        if let Some(lap) = &mut self.lap {
            lap.start = lap.start.max(self.start);
        }
    }
}

/// How far a drive reads ahead.
#[derive(Debug)]
pub(super) struct ReadAhead {
    /// Bytes of the buffer.
    pub(super) buffer: u64,
    look_ahead: Option<u64>,
    /// Bytes of the disk.
    size: u64,
}

impl ReadAhead {
    pub(super) fn new(spec: &DiskSpec, size: u64) -> Self {
        let look_ahead = spec.look_ahead_kib.map(|kib| kib * 1024);
        ReadAhead { buffer: spec.segment_kib * 1024, look_ahead, size }
    }

    /// How far the drive reads: what the segment has room for, half of it at least.
    pub(super) fn limit(&self, segment: &Segment) -> u64 {
        let used = segment.consumed - segment.start;
        let room = self.look_ahead.unwrap_or(self.buffer.saturating_sub(used).max(self.buffer / 2));
        (segment.consumed + room).min(self.size).max(segment.media_from)
    }

    /// Runs of bytes that are in the buffer at `now`.
    pub(super) fn held(&self, segment: &Segment, surface: &Surface, now: Nanos) -> [Range<u64>; 2] {
        match segment.lap {
            Some(lap) if now < lap.at.saturating_add(surface.turn) => lap.held(surface, now),
            _ => [segment.start..self.end(segment, surface, now), 0..0],
        }
    }

    /// The media's end of the segment at `now`: it grows at media rate up to the limit.
    pub(super) fn end(&self, segment: &Segment, surface: &Surface, now: Nanos) -> u64 {
        let elapsed = now.saturating_sub(segment.media_at);
        surface.reached(segment.media_from, elapsed).min(self.limit(segment))
    }
}
