//! What is known of a process: how soon it reads again after a read, and how near.
//!
//! ```text
//!   read        done              next read
//!   |-----------|--- think time ---|--------
//!   [ 100..108 ]                   [ 108..116 ]     seek distance: 0 sectors
//! ```
//!
//! The first read of a process gives no sample. What second reads showed is averaged over all
//! processes too, to judge those that are new; beside it stands how often a process ended, or did
//! not come back, after its first read.

use crate::average::{Average, SlowAverage};
use crate::request::{Nanos, Request, Sector};

/// A tick of 1 ms: think times are counted in ticks.
pub(crate) const TICK: Nanos = 1_000_000;

/// Longest think time that is counted, in ticks: a fiftieth of a second, less one.
const MOST_THINK_TICKS: u64 = 19;

/// Weight up to which a process counts as new to the seek average: two samples.
const NEW_SEEK_WEIGHT: u64 = 60;

/// What a seek may exceed four times the mean by, in sectors, for a new process and an old one.
const MOST_NEW_SEEK: Sector = 2 << 20;
const MOST_SEEK: Sector = 128 << 10;

/// Certainty, in 256ths.
const CERTAIN: u64 = 256;

/// A process with requests, or with a history.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Process {
    /// Commands queued that began with a request of its.
    pub(crate) queued: u32,
    /// The same with the device.
    pub(crate) in_flight: u32,
    pub(crate) exited: bool,
    /// When a read last completed, or another process came near.
    pub(crate) last_completion: Option<Nanos>,
    /// Where its last read ended.
    last_end: Option<Sector>,
    pub(crate) think_ticks: Average,
    pub(crate) seek: Average,
}

/// What processes do after their first read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Newcomers {
    pub(crate) think_ticks: SlowAverage,
    pub(crate) seek: SlowAverage,
    /// How likely one is not to read again, in 256ths.
    pub(crate) exit_probability: u64,
}

impl Newcomers {
    /// A process has ended, or was waited for in vain, before it read again.
    pub(crate) fn one_left(&mut self) {
        self.exit_probability = (7 * self.exit_probability + CERTAIN) / 8;
    }
}

impl Process {
    /// Nothing is queued and nothing with the device.
    pub(crate) fn is_idle(&self) -> bool {
        self.queued == 0 && self.in_flight == 0
    }

    /// A synchronous request has come; called before it is counted as queued.
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
    fn long_thinking_and_far_seeks_are_cut() {
        let mut process = Process::default();
        observe(&mut process, 0, 0);
        observe(&mut process, 900 * MS, 1 << 40);
        assert_eq!(process.think_ticks.mean(), Some(MOST_THINK_TICKS));
        assert_eq!(process.seek.mean(), Some(MOST_NEW_SEEK));
    }
}
