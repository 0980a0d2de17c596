//! What the elevator knows about a process: how soon after a read it reads again, and how near.
//!
//! ```text
//!   read        done              next read
//!   |-----------|--- think time ---|--------
//!   [ 100..108 ]                   [ 108..116 ]     seek distance: 0 sectors
//! ```
//!
//! The first read of a process gives no sample. Second reads are also averaged over all processes,
//! to judge new ones. A probability records how often a process ended, or did not return, after its
//! first read.

use crate::average::{Average, SlowAverage};
use crate::request::{Nanos, Request, Sector};

/// A tick of 1 ms, the unit of think times.
pub(crate) const TICK: Nanos = 1_000_000;

/// Longer think times count as this, in ticks: a fiftieth of a second minus one tick.
const MOST_THINK_TICKS: u64 = 19;

/// Up to this weight (two samples), a process counts as new to the seek average.
const NEW_SEEK_WEIGHT: u64 = 60;

/// How far a seek may exceed four times the mean, in sectors, for a new process and for an old one.
const MOST_NEW_SEEK: Sector = 2 << 20;
const MOST_SEEK: Sector = 128 << 10;

/// Probability 1, in 256ths.
const CERTAIN: u64 = 256;

/// A process that has requests or a history.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Process {
    /// Queued commands whose first request is the process's.
    pub(crate) queued: u32,
    /// Such commands at the device.
    pub(crate) in_flight: u32,
    pub(crate) exited: bool,
    /// When a read last completed, or when another process read nearby.
    pub(crate) last_completion: Option<Nanos>,
    /// End of its last read.
    last_end: Option<Sector>,
    pub(crate) think_ticks: Average,
    pub(crate) seek: Average,
}

/// What processes do after their first read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Newcomers {
    pub(crate) think_ticks: SlowAverage,
    pub(crate) seek: SlowAverage,
    /// Probability that a process does not read again, in 256ths.
    pub(crate) exit_probability: u64,
}

impl Newcomers {
    /// A process ended before it read again, or a wait for it timed out.
    pub(crate) fn one_left(&mut self) {
        self.exit_probability = (7 * self.exit_probability + CERTAIN) / 8;
    }
}

impl Process {
    /// Whether it has no requests, neither queued nor at the device.
    pub(crate) fn is_idle(&self) -> bool {
        self.queued == 0 && self.in_flight == 0
    }

    /// Records a synchronous request. Call this before the request counts as queued.
    pub(crate) fn observe(&mut self, now: Nanos, request: &Request, newcomers: &mut Newcomers) {
        if let Some(last_end) = self.last_end {
            let thought = self
                .last_completion
                .filter(|_| self.is_idle())
                .map_or(0, |done| now.saturating_sub(done) / TICK);
            self.add_think_time(thought.min(MOST_THINK_TICKS), newcomers);
            self.add_seek(request.start.abs_diff(last_end), newcomers);
        }
        self.last_end = Some(request.end());
    }

    fn add_think_time(&mut self, ticks: u64, newcomers: &mut Newcomers) {
        if self.think_ticks.is_empty() {
            newcomers.think_ticks.add(ticks);
            newcomers.exit_probability = 7 * newcomers.exit_probability / 8;
        }
        self.think_ticks.add(ticks);
    }

    fn add_seek(&mut self, sectors: Sector, newcomers: &mut Newcomers) {
        let is_new = self.seek.weight() <= NEW_SEEK_WEIGHT;
        let margin = if is_new { MOST_NEW_SEEK } else { MOST_SEEK };
        let sectors = sectors.min(4 * self.seek.mean().unwrap_or(0) + margin);
        if self.seek.is_empty() {
            newcomers.seek.add(sectors);
        }
        self.seek.add(sectors);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{MS, read};

    fn observe(process: &mut Process, now: Nanos, start: Sector) -> Newcomers {
        let mut newcomers = Newcomers { exit_probability: CERTAIN, ..Newcomers::default() };
        process.observe(now, &read(0, 0, start, 8), &mut newcomers);
        process.last_completion = Some(now + 5 * MS);
        newcomers
    }

    #[test]
    fn the_first_read_gives_no_sample_and_the_second_one_for_newcomers_too() {
        let mut process = Process::default();
        assert_eq!(observe(&mut process, 0, 100).exit_probability, CERTAIN);
        assert!(process.think_ticks.is_empty());
        let newcomers = observe(&mut process, 8 * MS, 108 + 1600);
        assert_eq!((process.think_ticks.mean(), process.seek.mean()), (Some(3), Some(1600)));
        assert_eq!((newcomers.exit_probability, newcomers.seek.mean()), (224, 200));
    }

    #[test]
    fn a_process_with_requests_pending_does_not_think() {
        let mut process = Process::default();
        observe(&mut process, 0, 100);
        process.in_flight = 1;
        observe(&mut process, 15 * MS, 108);
        assert_eq!(process.think_ticks.mean(), Some(0));
    }

    #[test]
    fn long_think_times_and_far_seeks_are_limited() {
        let mut process = Process::default();
        observe(&mut process, 0, 0);
        observe(&mut process, 900 * MS, 1 << 40);
        assert_eq!(process.think_ticks.mean(), Some(MOST_THINK_TICKS));
        assert_eq!(process.seek.mean(), Some(MOST_NEW_SEEK));
    }
}
