//! Where bytes are: on which track, at which angle, and how fast they pass the head.
//!
//! ```text
//!   rate |\                      media time of x = the time in which the head passes 0 .. x
//!        | \                     track of x      = media time div turn
//!        |  \___ inner           angle of x      = media time mod turn
//!        +------ offset
//! ```
//!
//! Tracks are laid out so that the next one follows without a gap.

use crate::model::{Nanos, nanos};

/// The tracks of a platter.
#[derive(Debug)]
pub(super) struct Surface {
    /// Duration of one revolution.
    pub(super) turn: Nanos,
    zones: Zones,
}

#[derive(Debug)]
enum Zones {
    /// All tracks hold the same number of bytes.
    One { bytes_per_ns: f64, track_bytes: u64 },
    /// The rate falls linearly from `outer` at 0 to `inner` at `capacity`, in bytes per nanosecond.
    Many { outer: f64, inner: f64, capacity: f64, turn_ns: f64 },
}

impl Surface {
    pub(super) fn uniform(media_mb_s: f64, turn_s: f64) -> Self {
        let track_bytes = (media_mb_s * 1e6 * turn_s) as u64;
        let zones = Zones::One { bytes_per_ns: media_mb_s * 1e-3, track_bytes };
        Surface { turn: nanos(turn_s), zones }
    }

    pub(super) fn zoned(outer_mb_s: f64, inner_mb_s: f64, capacity: f64, turn_s: f64) -> Self {
        let (outer, inner) = (outer_mb_s * 1e-3, inner_mb_s * 1e-3);
        let zones = Zones::Many { outer, inner, capacity, turn_ns: turn_s * 1e9 };
        Surface { turn: nanos(turn_s), zones }
    }

    /// Nanoseconds that the head needs to pass `from..to`.
    pub(super) fn passing(&self, from: u64, to: u64) -> f64 {
        match self.zones {
            Zones::One { bytes_per_ns, .. } => (to - from) as f64 / bytes_per_ns,
            Zones::Many { .. } => self.media_time(to) - self.media_time(from),
        }
    }

    /// The byte that the head reaches `elapsed` after `from`.
    pub(super) fn reached(&self, from: u64, elapsed: Nanos) -> u64 {
        match self.zones {
            Zones::One { bytes_per_ns, .. } => {
                from.saturating_add((elapsed as f64 * bytes_per_ns) as u64)
            }
            Zones::Many { .. } => {
                (self.at_media_time(self.media_time(from) + elapsed as f64) as u64).max(from)
            }
        }
    }

    pub(super) fn track(&self, offset: u64) -> u64 {
        match self.zones {
            Zones::One { track_bytes, .. } => offset / track_bytes,
            Zones::Many { turn_ns, .. } => (self.media_time(offset) / turn_ns) as u64,
        }
    }

    /// First byte of a track.
    pub(super) fn track_start(&self, track: u64) -> u64 {
        match self.zones {
            Zones::One { track_bytes, .. } => track.saturating_mul(track_bytes),
            Zones::Many { turn_ns, .. } => self.at_media_time(track as f64 * turn_ns).ceil() as u64,
        }
    }

    /// Angle of a byte, as time after the index mark.
    pub(super) fn angle(&self, offset: u64) -> Nanos {
        match self.zones {
            Zones::One { track_bytes, .. } => {
                let share = (offset % track_bytes) as f64 / track_bytes as f64;
                (share * self.turn as f64) as Nanos
            }
            Zones::Many { turn_ns, .. } => {
                ((self.media_time(offset) % turn_ns) as Nanos).min(self.turn - 1)
            }
        }
    }

    /// The integral of 1 / rate from 0 to `offset`, for a linearly falling rate.
    fn media_time(&self, offset: u64) -> f64 {
        match self.zones {
            Zones::One { bytes_per_ns, .. } => offset as f64 / bytes_per_ns,
            Zones::Many { outer, inner, capacity, .. } => {
                let slope = (outer - inner) / capacity;
                let beyond = (offset as f64 - capacity).max(0.0);
                let inside = (offset as f64).min(capacity);
                -(-slope * inside / outer).ln_1p() / slope + beyond / inner
            }
        }
    }

    fn at_media_time(&self, time: f64) -> f64 {
        match self.zones {
            Zones::One { bytes_per_ns, .. } => time * bytes_per_ns,
            Zones::Many { outer, inner, capacity, .. } => {
                let slope = (outer - inner) / capacity;
                let whole = (outer / inner).ln() / slope;
                let inside = -outer / slope * (-slope * time.min(whole)).exp_m1();
                inside + (time - whole).max(0.0) * inner
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TURN_S: f64 = 1.0 / 120.0;

    #[test]
    fn the_rate_falls_evenly_from_the_outer_to_the_inner_tracks() {
        let surface = Surface::zoned(78.0, 40.0, 250e9, TURN_S);
        let mb_s = |at: u64| 1e9 / surface.passing(at, at + 1_000_000);
        for (at, expected) in [(0, 78.0), (125_000_000_000, 59.0), (249_990_000_000, 40.0)] {
            assert!((mb_s(at) - expected).abs() < 0.01, "{} at {at}", mb_s(at));
        }
        assert!((mb_s(260_000_000_000) - 40.0).abs() < 0.01);
    }

    #[test]
    fn a_track_is_what_passes_in_one_turn_and_begins_at_the_index() {
        for surface in [Surface::uniform(78.0, TURN_S), Surface::zoned(78.0, 40.0, 250e9, TURN_S)] {
            for track in [0, 1, 2, 1000, 400_000] {
                let (start, end) = (surface.track_start(track), surface.track_start(track + 1));
                assert_eq!((surface.track(start), surface.track(end - 1)), (track, track));
                assert!(surface.angle(start) < 20, "{}", surface.angle(start));
                assert!(surface.angle(end - 1) > surface.turn - 40);
                assert!((surface.passing(start, end) - surface.turn as f64).abs() < 40.0);
                let (elapsed, end) = (surface.passing(start, end) as Nanos, end);
                assert!(end - surface.reached(start, elapsed) <= 1);
            }
        }
    }
}
