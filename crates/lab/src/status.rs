//! Counters of what a lab has served, and how well it kept time.

use derive_more::Sub;
use serde::{Deserialize, Serialize};

/// Counters since the lab came up; take [`Status::since`] for an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, Sub)]
pub struct Status {
    /// Reads served.
    pub reads: u64,
    /// Writes served.
    pub writes: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// How often the head was positioned; on other devices, requests that did not continue another.
    pub seeks: u64,
    /// Replies with a delay.
    pub timed: u64,
    /// Sum of their lateness, in microseconds.
    pub late_sum_us: f64,
    /// The largest lateness, in microseconds.
    pub late_max_us: f64,
    /// Microseconds that lateness may have added to the measured time.
    pub lost_us: f64,
    /// The variance that it may have added, in square microseconds.
    pub spread_us2: f64,
    /// Sum, over the requests with a delay, of the requests in flight when each came, itself included.
    pub depth_sum: u64,
    /// Most requests in flight.
    pub depth_max: u64,
    /// Requests with a [fault](crate::Fault).
    #[serde(default)]
    pub faults: u64,
}

impl Status {
    /// The counters since `earlier`. Maxima stay those since the lab came up.
    pub fn since(&self, earlier: &Status) -> Status {
        Status { late_max_us: self.late_max_us, depth_max: self.depth_max, ..*self - *earlier }
    }

    /// How late a reply was on average, in microseconds.
    pub fn late_mean_us(&self) -> f64 {
        if self.timed == 0 { 0.0 } else { self.late_sum_us / self.timed as f64 }
    }

    /// Requests in flight on average when a request came, itself included. Requests answered at once, while files were
    /// prepared, do not count.
    pub fn depth_mean(&self) -> f64 {
        if self.timed == 0 { 0.0 } else { self.depth_sum as f64 / self.timed as f64 }
    }

    /// The error of a time measured over this interval because replies were late, in microseconds: 95 % of times have a
    /// smaller one.
    pub fn error_us(&self) -> f64 {
        (self.lost_us + TWO_DEVIATIONS * self.spread_us2.max(0.0).sqrt()).max(0.0)
    }
}

/// 95 % of a normal distribution are within this many deviations.
const TWO_DEVIATIONS: f64 = 2.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_answered_at_once_makes_no_queue_shorter() {
        let prepared = Status { writes: 1000, ..Status::default() };
        assert_eq!(prepared.depth_mean(), 0.0);
        let read = Status { reads: 50, timed: 50, depth_sum: 400, ..prepared };
        assert_eq!(read.depth_mean(), 8.0);
    }

    #[test]
    fn the_error_is_that_of_the_interval() {
        let before = Status { lost_us: 5000.0, spread_us2: 1e6, ..Status::default() };
        let after = Status { lost_us: 5100.0, spread_us2: 1e6 + 400.0, ..before };
        assert_eq!(after.since(&before).error_us(), 140.0);
        assert_eq!(after.since(&after).error_us(), 0.0);
    }
}
