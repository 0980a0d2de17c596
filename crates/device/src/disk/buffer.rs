//! The contents of the drive's buffer, and what the drive is reading into it.
//!
//! ```text
//!   segment: |-- last request --|-- read-ahead, grows at media rate, up to the limit --|
//!
//!   lap:     index |=== read second ===| arrival |=== read first ===| end of track
//!            a drive that reads whole tracks; afterwards it continues like a segment
//! ```

use std::ops::Range;

use super::spec::DiskSpec;
use super::surface::Surface;
use crate::model::Nanos;

/// A part of the disk in the drive's buffer, which the drive continues to fill.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    pub(super) start: u64,
    /// The end of what the host has requested. The drive reads ahead of it as far as the segment
    /// has room.
    pub(super) consumed: u64,
    /// The head passed this byte ...
    pub(super) media_from: u64,
    /// ... at this time, and has read on since, until the limit.
    pub(super) media_at: Nanos,
    /// The revolution that reads a whole track. `media_from` is then the end of the track.
    pub(super) lap: Option<Lap>,
}

/// One revolution over one track.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lap {
    /// First byte of the track that is in the buffer, or will be.
    pub(super) start: u64,
    /// End of the track.
    pub(super) end: u64,
    /// The head arrived at this time ...
    pub(super) at: Nanos,
    /// ... at this angle.
    pub(super) angle: Nanos,
}

impl Lap {
    /// When `from..to`, which is a part of the track, is in the buffer.
    fn ready(&self, surface: &Surface, from: u64, to: u64) -> Nanos {
        let turn = surface.turn;
        let first = (surface.angle(from) + turn - self.angle % turn) % turn;
        let last = first + surface.passing(from, to) as Nanos;
        self.at.saturating_add(last.min(turn))
    }

    /// The contents of the buffer at `now`: up to the track's end, and from its beginning on.
    fn held(&self, surface: &Surface, now: Nanos) -> [Range<u64>; 2] {
        let track = surface.track_start(surface.track(self.start));
        let elapsed = now.saturating_sub(self.at).min(surface.turn);
        let from = surface.reached(track, self.angle);
        let to = surface.reached(from, elapsed).min(self.end);
        let begun = elapsed.saturating_sub(surface.turn - self.angle);
        [from..to, track..surface.reached(track, begun).min(from)]
    }

    /// When the head first reaches the track's end.
    fn end_passes(&self, surface: &Surface) -> Nanos {
        self.at.saturating_add(surface.turn - self.angle)
    }

    /// When `from..to` is in the buffer, if it lies on the track or continues past its end in time.
    /// The drive finishes the track before it reads the next one, unless the host already wants
    /// that one.
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
    /// The segment after a request that began a lap and ended at `end`.
    pub(super) fn lapping(lap: Lap, end: u64, surface: &Surface) -> Self {
        Segment {
            start: lap.start,
            consumed: end.min(lap.end),
            media_from: lap.end,
            media_at: lap.end_passes(surface).saturating_add(surface.turn),
            lap: Some(lap),
        }
    }

    /// Whether all of `from..to` is in the buffer at `now`.
    pub(super) fn holds(&self, surface: &Surface, now: Nanos, from: u64, to: u64) -> bool {
        match self.lap {
            Some(lap) if to <= lap.end => lap.ready(surface, from, to) <= now,
            _ => from >= self.start && to <= self.media_from,
        }
    }

    /// Forgets the oldest data, so that what the host has requested since fits into `size`.
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
    /// Size of the buffer in bytes.
    pub(super) buffer: u64,
    look_ahead: Option<u64>,
    /// Size of the disk in bytes.
    size: u64,
}

impl ReadAhead {
    pub(super) fn new(spec: &DiskSpec, size: u64) -> Self {
        let look_ahead = spec.look_ahead_kib.map(|kib| kib * 1024);
        ReadAhead { buffer: spec.segment_kib * 1024, look_ahead, size }
    }

    /// Where the drive stops reading ahead: where the buffer is full, but at least half a buffer
    /// beyond what the host has requested. A `look_ahead` takes precedence.
    pub(super) fn limit(&self, segment: &Segment) -> u64 {
        let used = segment.consumed - segment.start;
        let room = self.look_ahead.unwrap_or(self.buffer.saturating_sub(used).max(self.buffer / 2));
        (segment.consumed + room).min(self.size).max(segment.media_from)
    }

    /// Ranges of bytes in the buffer at `now`.
    pub(super) fn held(&self, segment: &Segment, surface: &Surface, now: Nanos) -> [Range<u64>; 2] {
        match segment.lap {
            Some(lap) if now < lap.at.saturating_add(surface.turn) => lap.held(surface, now),
            _ => [segment.start..self.end(segment, surface, now), 0..0],
        }
    }

    /// The end of the segment at `now`. It grows at the media rate up to the limit.
    pub(super) fn end(&self, segment: &Segment, surface: &Surface, now: Nanos) -> u64 {
        let elapsed = now.saturating_sub(segment.media_at);
        surface.reached(segment.media_from, elapsed).min(self.limit(segment))
    }
}
