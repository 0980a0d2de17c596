//! What a lab has served, and how well it kept time.

use serde::{Deserialize, Serialize};

/// A reply later than this on average makes a run's figures worthless: a twentieth of the shortest
/// wait worth modelling, and twice what an idle machine shows.
pub const MOST_LATE_MEAN_US: f64 = 100.0;

/// Counters since the lab came up; take [`Status::since`] for an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Reads served.
    pub reads: u64,
    /// Writes served.
    pub writes: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Times the head was positioned; for other devices, requests that did not continue another.
    pub seeks: u64,
    /// Requests whose reply was timed.
    pub timed: u64,
    /// Their lateness, summed.
    pub late_sum_us: f64,
    /// The latest reply.
    pub late_max_us: f64,
    /// Requests in flight when each request came that took its time, summed.
    pub depth_sum: u64,
    /// Most requests in flight.
    pub depth_max: u64,
}

impl Status {
    /// What happened since `earlier`; the maxima stay those since the lab came up.
    pub fn since(&self, earlier: &Status) -> Status {
        Status {
            reads: self.reads - earlier.reads,
            writes: self.writes - earlier.writes,
            bytes_read: self.bytes_read - earlier.bytes_read,
            bytes_written: self.bytes_written - earlier.bytes_written,
            seeks: self.seeks - earlier.seeks,
            timed: self.timed - earlier.timed,
            late_sum_us: self.late_sum_us - earlier.late_sum_us,
            late_max_us: self.late_max_us,
            depth_sum: self.depth_sum - earlier.depth_sum,
            depth_max: self.depth_max,
        }
    }

    /// How late a reply was on average, in microseconds.
    pub fn late_mean_us(&self) -> f64 {
        if self.timed == 0 { 0.0 } else { self.late_sum_us / self.timed as f64 }
    }

    /// Requests in flight on average, as each request found them; those that were answered at once, while
    /// files were prepared, found none and do not count.
    pub fn depth_mean(&self) -> f64 {
        if self.timed == 0 { 0.0 } else { self.depth_sum as f64 / self.timed as f64 }
    }

    /// Why figures taken over this interval must not be reported, if so.
    pub fn rejection(&self) -> Option<String> {
        let late = self.late_mean_us();
        (late > MOST_LATE_MEAN_US).then(|| {
            format!("replies were {late:.0} us late on average, more than {MOST_LATE_MEAN_US:.0} us: the machine was busy")
        })
    }
}

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
    fn an_interval_is_rejected_when_replies_were_too_late() {
        let before = Status { timed: 10, late_sum_us: 5000.0, ..Status::default() };
        let on_time = Status { timed: 110, late_sum_us: 9000.0, ..before };
        assert_eq!(on_time.since(&before).rejection(), None);
        let late = Status { timed: 110, late_sum_us: 16_000.0, ..before };
        assert!(late.since(&before).rejection().is_some_and(|reason| reason.contains("110 us")));
    }
}
