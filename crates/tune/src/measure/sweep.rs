//! Measures throughput for all windows in rounds of short slices, so that drift affects all alike.
//!
//! ```text
//!   round 1, 2   4 8 16 32 ... 16384 KiB      all sizes whose slice fits the time
//!   then               64 ... 16384           from half the plateau's size upwards
//! ```

use std::time::{Duration, Instant};

use super::other_programs::OtherPrograms;
use super::sequential::{BEYOND_WINDOWS, LEAST_WINDOWS, Pace, RAMP_WINDOWS};
use super::stop::Stop;
use super::{MeasureError, Report};
use crate::choose::MOST_KB;
use crate::curve::{self, Point};

/// The smallest window to measure: one page.
const LEAST_KB: u64 = 4;

/// Rounds over all sizes.
const FULL_ROUNDS: u32 = 2;

/// The time is divided among this many rounds.
const ROUNDS: f64 = 3.0;

/// Sizes that take more than this share of the time are skipped, and so are all larger ones.
const MOST_SHARE: f64 = 0.14;

/// Of a slice, in seconds: long enough for the clock and the counters, short enough that drift affects all sizes alike.
const SHORTEST_SLICE_S: f64 = 0.04;
const LONGEST_SLICE_S: f64 = 1.0;

/// Windows that any slice reads, ramp included.
const WINDOWS: f64 = (RAMP_WINDOWS + LEAST_WINDOWS) as f64;

/// Windows read besides those timed: the ramp, and what the kernel reads ahead at the end.
const EXTRA_WINDOWS: u64 = RAMP_WINDOWS + BEYOND_WINDOWS;

/// A sequential reader waits for one request; the kernel reads another one ahead.
pub(super) const REQUESTS_AT_ONCE: usize = 2;

/// Wait for other programs at most for this share of the time.
const PATIENCE_SHARE: f64 = 0.1;

/// If figures for one size differ by more, other programs must have interfered. Used where counters
/// are missing.
const MOST_SPREAD: f64 = 0.2;

/// The figures of one window, in MB/s.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Figures {
    /// The window, in KiB.
    pub(super) kb: u64,
    undisturbed: Vec<f64>,
    disturbed: Vec<f64>,
}

impl Figures {
    fn mb_s(&self) -> Option<f64> {
        let figures = if self.undisturbed.is_empty() { &self.disturbed } else { &self.undisturbed };
        linux::median(figures.iter().copied())
    }

    pub(super) fn point(&self) -> Option<Point> {
        Some(Point { readahead_kb: self.kb, mb_s: self.mb_s()? })
    }

    /// Largest minus smallest figure, as a share of the median.
    fn spread(&self) -> f64 {
        let figures = &self.undisturbed;
        let least = figures.iter().copied().fold(f64::INFINITY, f64::min);
        let most = figures.iter().copied().fold(0.0, f64::max);
        linux::median(figures.iter().copied()).map_or(0.0, |median| (most - least) / median)
    }

    pub(super) fn is_disturbed(&self, others_are_counted: bool) -> bool {
        let only_disturbed = self.undisturbed.is_empty() && !self.disturbed.is_empty();
        only_disturbed || (!others_are_counted && self.spread() > MOST_SPREAD)
    }
}

/// What a sweep needs.
pub(super) struct Sweep<'a> {
    pub(super) others: &'a OtherPrograms,
    /// Median seconds of a random read.
    pub(super) latency_s: f64,
    /// For all sizes together.
    pub(super) time: Duration,
    pub(super) most_bytes: u64,
    pub(super) stop: &'a Stop,
}

/// The result of a sweep.
#[derive(Debug, Default)]
pub(super) struct Swept {
    pub(super) sizes: Vec<Figures>,
    /// Bytes read.
    pub(super) bytes: u64,
    /// Largest share of zero pages seen.
    pub(super) zero_share: f64,
    /// Whether the sweep waited for other programs.
    pub(super) waited: bool,
}

impl Sweep<'_> {
    /// Measures each size with `pace(KiB, bytes wanted, slice)`, which returns `None` if there is nothing to read.
    pub(super) fn run(
        &self,
        mut pace: impl FnMut(u64, u64, Duration) -> Result<Option<Pace>, MeasureError>,
        report: &mut Report<'_>,
    ) -> Result<Swept, MeasureError> {
        let mut swept = Swept::default();
        let sizes = (0..).map(|n| LEAST_KB << n).take_while(|kb| *kb <= MOST_KB);
        swept.sizes = sizes
            .map(|kb| Figures { kb, undisturbed: Vec::new(), disturbed: Vec::new() })
            .collect();
        let began = Instant::now();
        let slices = ROUNDS * swept.sizes.len() as f64;
        let slice_s = (self.time.as_secs_f64() / slices).clamp(SHORTEST_SLICE_S, LONGEST_SLICE_S);
        let slice_bytes = self.most_bytes / slices as u64;
        let mut first = 0;
        for round in 0.. {
            let mut went_on = false;
            for index in first..swept.sizes.len() {
                let left_s = self.time.as_secs_f64() - began.elapsed().as_secs_f64();
                if self.stop.is_wanted() {
                    return Err(MeasureError::Stopped);
                }
                let (kb, mb_s) = self.expected(&swept.sizes, index);
                let window = kb * 1024;
                let window_s = window as f64 / (mb_s * 1e6);
                let wanted = ((slice_s * mb_s * 1e6) as u64).min(slice_bytes);
                let cost_s = slice_s.max(WINDOWS * window_s);
                let is_too_long = cost_s > self.time.as_secs_f64() * MOST_SHARE || cost_s > left_s;
                let is_first = index == 0 && round == 0;
                if (is_too_long && !is_first) || (index > 0 && swept.bytes > self.most_bytes) {
                    break;
                }
                let share = began.elapsed().as_secs_f64() / self.time.as_secs_f64();
                report.tell(share, &format!("window {kb} KiB"));
                let slice = Duration::from_secs_f64(slice_s);
                let mut waiting = || report.tell(share, "others use it: waiting");
                went_on |= self.one(&mut swept, index, (wanted, slice), &mut pace, &mut waiting)?;
            }
            let curve: Vec<Point> = swept.sizes.iter().filter_map(Figures::point).collect();
            if !went_on {
                break;
            }
            if round + 1 >= FULL_ROUNDS {
                let kb = curve::plateau(&curve, 0.0).map_or(0, |point| point.readahead_kb / 2);
                first = swept.sizes.iter().position(|size| size.kb >= kb).unwrap_or(0);
            }
        }
        Ok(swept)
    }

    /// The size, and its expected throughput: as measured before, or 20 % above the next smaller
    /// size.
    fn expected(&self, sizes: &[Figures], index: usize) -> (u64, f64) {
        let known = |index: usize| sizes.get(index).and_then(Figures::mb_s);
        let smallest = || LEAST_KB as f64 * 1024e-6 / self.latency_s.max(1e-6);
        let smaller = || index.checked_sub(1).and_then(known).map(|mb_s| mb_s * 1.2);
        (sizes[index].kb, known(index).or_else(smaller).unwrap_or_else(smallest))
    }

    /// Measures one size, again if other programs interfered. Returns whether there was something
    /// to read.
    fn one(
        &self,
        swept: &mut Swept,
        index: usize,
        (wanted, slice): (u64, Duration),
        pace: &mut impl FnMut(u64, u64, Duration) -> Result<Option<Pace>, MeasureError>,
        waiting: &mut impl FnMut(),
    ) -> Result<bool, MeasureError> {
        for is_again in [false, true] {
            let before = self.others.read();
            let began = Instant::now();
            let Some(found) = pace(swept.sizes[index].kb, wanted, slice)? else {
                return Ok(false);
            };
            let seconds = began.elapsed().as_secs_f64();
            // The ramp and the read-ahead at the end were read as well.
            swept.bytes += found.bytes + EXTRA_WINDOWS * swept.sizes[index].kb * 1024;
            swept.zero_share = swept.zero_share.max(found.zero_share);
            let size = &mut swept.sizes[index];
            let disturbance =
                self.others.disturbance(before, seconds, self.latency_s, REQUESTS_AT_ONCE);
            if disturbance.is_harmless() {
                size.undisturbed.push(found.mb_s());
                return Ok(true);
            }
            size.disturbed.push(found.mb_s());
            if !is_again {
                swept.waited = true;
                waiting();
                self.others.wait_for_silence(self.time.mul_f64(PATIENCE_SHARE), self.stop);
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sweep(
        time_ms: u64,
        pace: impl FnMut(u64, u64, Duration) -> Result<Option<Pace>, MeasureError>,
    ) -> Swept {
        let (others, stop) = (OtherPrograms::on(None), Stop::default());
        let sweep = Sweep {
            others: &others,
            latency_s: 1e-4,
            time: Duration::from_millis(time_ms),
            most_bytes: 1 << 30,
            stop: &stop,
        };
        sweep.run(pace, &mut Report::silent()).expect("nothing fails")
    }

    /// A device of 100 MB/s whose measurement takes no time.
    fn steady(kb: u64, _: u64, _: Duration) -> Result<Option<Pace>, MeasureError> {
        let bytes = kb * 4096;
        Ok(Some(Pace { bytes, seconds: bytes as f64 / 100e6, zero_share: 0.0 }))
    }

    #[test]
    fn every_size_is_measured_while_there_is_time() {
        let swept = sweep(4000, steady);
        let sizes: Vec<u64> =
            swept.sizes.iter().filter_map(Figures::point).map(|p| p.readahead_kb).collect();
        assert_eq!(sizes.first(), Some(&4));
        assert!(sizes.len() >= 8, "{sizes:?}");
        assert!(
            swept.sizes.iter().filter_map(Figures::point).all(|p| (p.mb_s - 100.0).abs() < 1e-6)
        );
    }

    #[test]
    fn a_slow_device_is_measured_as_far_as_the_time_goes() {
        // At 1 MB/s, six windows of 16 MiB would take a hundred seconds.
        let slow = |kb: u64, _: u64, _: Duration| {
            let bytes = kb * 4096;
            Ok(Some(Pace { bytes, seconds: bytes as f64 / 1e6, zero_share: 0.0 }))
        };
        let swept = sweep(8000, slow);
        let most = swept.sizes.iter().filter_map(Figures::point).map(|p| p.readahead_kb).max();
        assert!(most.is_some_and(|kb| (32..=256).contains(&kb)), "{most:?}");
    }

    #[test]
    fn a_flat_curve_ends_when_the_time_is_over() {
        // Many times the dozen slices of 40 ms that fit the time.
        const MOST_CALLS: u32 = 100;
        let mut calls = 0;
        let busy = |kb: u64, wanted: u64, slice: Duration| {
            calls += 1;
            let until = Instant::now() + slice;
            while Instant::now() < until {
                std::hint::spin_loop();
            }
            // Every size gives the same throughput, so the plateau begins at the first.
            if calls > MOST_CALLS { Ok(None) } else { steady(kb, wanted, slice) }
        };
        let swept = sweep(500, busy);
        assert!(calls < MOST_CALLS, "{calls}");
        assert!(swept.sizes[0].point().is_some());
    }

    #[test]
    fn without_counters_figures_that_disagree_are_disturbed() {
        let mut size = Figures { kb: 4, undisturbed: vec![100.0, 101.0], disturbed: vec![] };
        assert!(!size.is_disturbed(false));
        size.undisturbed.push(150.0);
        assert!(size.is_disturbed(false) && !size.is_disturbed(true));
        let only = Figures { kb: 4, undisturbed: vec![], disturbed: vec![100.0] };
        assert!(only.is_disturbed(true));
        assert_eq!(only.point().map(|p| p.mb_s), Some(100.0));
    }
}
