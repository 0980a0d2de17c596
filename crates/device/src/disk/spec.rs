//! The parameters of a disk.

use std::ops::RangeInclusive;

use readahead::DeviceCost;
use serde::{Deserialize, Serialize};

use super::surface::Surface;
use crate::bounds::{self, within, within_or_absent};

/// Parameters of [`Disk`](super::Disk).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskSpec {
    /// Revolutions per minute.
    pub rpm: f64,
    /// Media rate in MB/s; that of the outermost track if there is an `inner_mb_s`.
    pub media_mb_s: f64,
    /// Media rate of the innermost track in MB/s. The rate falls linearly with the offset, because
    /// inner tracks are shorter. If absent, the rate is the same everywhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inner_mb_s: Option<f64>,
    /// Rate between drive and host in MB/s. Every byte passes the bus, even from the buffer. If
    /// absent, the bus is never the bottleneck.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bus_mb_s: Option<f64>,
    /// Microseconds that controller and bus need per request.
    pub command_us: f64,
    /// Microseconds of the shortest seek.
    pub settle_us: f64,
    /// Additional microseconds of a seek over the whole capacity.
    pub full_stroke_us: f64,
    /// Capacity over which the seek curve extends, in GB.
    pub capacity_gb: f64,
    /// Size of the track buffer in KiB.
    pub segment_kib: u64,
    /// Number of places whose last data the buffer keeps.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub segments: usize,
    /// How far the drive reads ahead, in KiB. If absent, it fills the buffer, with at least half of
    /// it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub look_ahead_kib: Option<u64>,
    /// Whether the drive reads a whole track from wherever the head arrives. Backward reads then
    /// cost one revolution per track, not per request.
    #[serde(default)]
    pub reads_whole_tracks: bool,
    /// Whether the angle after a seek is random. True angles can resonate with a regular load. On a
    /// real disk, whose speed drifts, such resonance does not last.
    #[serde(default)]
    pub random_rotation: bool,
    /// Seed of the random angles.
    #[serde(default)]
    pub seed: u64,
    /// Number of requests that the drive chooses from.
    pub queue_depth: usize,
    /// Milliseconds of positioning time that a request is credited per millisecond of waiting.
    pub ageing: f64,
}

fn one() -> usize {
    1
}

fn is_one(segments: &usize) -> bool {
    *segments == 1
}

impl DiskSpec {
    pub(crate) fn check(&self) -> Result<(), String> {
        /// Real drives divide their buffer into some tens of segments.
        const MOST_SEGMENTS: usize = 1024;
        /// From almost no influence of age to almost nothing else.
        const AGEING: RangeInclusive<f64> = 1e-6..=1e6;
        within("rpm", self.rpm, bounds::RPM)?;
        within("media_mb_s", self.media_mb_s, bounds::MB_S)?;
        within_or_absent("inner_mb_s", self.inner_mb_s, bounds::MB_S)?;
        within_or_absent("bus_mb_s", self.bus_mb_s, bounds::MB_S)?;
        within("command_us", self.command_us, bounds::US)?;
        within("settle_us", self.settle_us, bounds::US)?;
        within("full_stroke_us", self.full_stroke_us, bounds::US)?;
        within("capacity_gb", self.capacity_gb, bounds::GB)?;
        within("segment_kib", self.segment_kib, bounds::KIB)?;
        within("segments", self.segments, 1..=MOST_SEGMENTS)?;
        within_or_absent("look_ahead_kib", self.look_ahead_kib, bounds::KIB)?;
        within("queue_depth", self.queue_depth, bounds::DEPTH)?;
        within("ageing", self.ageing, AGEING)?;
        self.check_tracks()
    }

    fn check_tracks(&self) -> Result<(), String> {
        const SECTOR: f64 = 512.0;
        let inner = self.inner_mb_s.unwrap_or(self.media_mb_s);
        if inner > self.media_mb_s {
            return Err("inner_mb_s must not be above media_mb_s".into());
        }
        if inner * 1e6 * self.turn_s() < SECTOR {
            return Err("rpm is too high: less than a sector passes in one turn".into());
        }
        let track_kib = self.media_mb_s * 1e6 * self.turn_s() / 1024.0;
        if self.reads_whole_tracks && (self.segment_kib as f64) < track_kib {
            return Err(format!(
                "segment_kib must hold a track of {track_kib:.0} KiB for reads_whole_tracks"
            ));
        }
        Ok(())
    }

    /// A device access costs a command, a seek over a tenth of the capacity and half a revolution.
    pub(crate) fn cost(&self) -> DeviceCost {
        let seek_s = (self.settle_us + self.full_stroke_us * 0.1f64.sqrt()) * 1e-6;
        DeviceCost {
            latency_s: self.command_us * 1e-6 + seek_s + self.turn_s() / 2.0,
            bandwidth: self.media_mb_s.min(self.bus_mb_s.unwrap_or(f64::INFINITY)) * 1e6,
            concurrency: 1.0,
        }
    }

    pub(super) fn surface(&self) -> Surface {
        let inner = self.inner_mb_s.unwrap_or(self.media_mb_s);
        if inner < self.media_mb_s {
            Surface::zoned(self.media_mb_s, inner, self.capacity_gb * 1e9, self.turn_s())
        } else {
            Surface::uniform(self.media_mb_s, self.turn_s())
        }
    }

    fn turn_s(&self) -> f64 {
        60.0 / self.rpm
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_options_are_refused_with_a_reason() {
        let spec = || crate::load("st3250820a").expect("in the catalogue").disk.expect("a disk");
        let refused = |spec: DiskSpec, word: &str| {
            let reason = spec.check().expect_err(word);
            assert!(reason.contains(word), "{reason}");
        };
        refused(
            DiskSpec { inner_mb_s: Some(0.0), ..spec() },
            "inner_mb_s must be 0.001 to 1000000, or absent",
        );
        refused(DiskSpec { inner_mb_s: Some(90.0), ..spec() }, "not be above media_mb_s");
        refused(DiskSpec { bus_mb_s: Some(f64::NAN), ..spec() }, "bus_mb_s");
        refused(DiskSpec { segment_kib: 512, ..spec() }, "hold a track of 636 KiB");
        refused(DiskSpec { rpm: 1e9, ..spec() }, "rpm must be 1 to 1000000");
        let slow = DiskSpec { rpm: 1e6, media_mb_s: 1.0, inner_mb_s: None, ..spec() };
        refused(slow, "rpm is too high");
    }
}
