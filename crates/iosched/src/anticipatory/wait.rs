//! Decides whether to wait for the process that has just read.
//!
//! ```text
//!              dispatch of a read                       dispatch of anything
//!   Off <---------------------------------------------------------+
//!    | a candidate of someone else                                |
//!    |                                                            |
//!    +--> ForCompletion --read completes--> ForRequest            |
//!    |         |                              |  time is up       |
//!    |         +--------- broken -------------+----------> Finished
//!    +---- the read has completed --------> ForRequest
//! ```

use crate::request::{Command, Nanos, ProcessId, Sector};

use super::process::{Newcomers, Process, TICK};

/// Distance in sectors that counts as near right after a read: 32 KiB.
const NEAR: Sector = 64;

/// Ticks after a read during which nearness widens. After them, everything is near.
const WIDENING_TICKS: u64 = 20;

/// Probability one half, in 256ths.
const EVEN: u64 = 128;

/// How far the wait is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// There is none.
    Off,
    /// The process's read is still at the device.
    ForCompletion,
    /// It has completed, and the next one may come.
    ForRequest,
    /// In vain, or no longer needed: the next candidate is served.
    Finished,
}

/// What to dispatch instead of waiting.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    pub(crate) process: ProcessId,
    pub(crate) start: Sector,
    pub(crate) is_sync: bool,
}

/// The wait, and what it is for.
#[derive(Debug)]
pub(crate) struct Wait {
    pub(crate) state: State,
    /// The process served last, unless with an asynchronous write.
    pub(crate) process: Option<ProcessId>,
    /// When the read of that process has completed.
    completed: Option<Nanos>,
    antic_expire: Nanos,
}

impl Wait {
    pub(crate) fn new(antic_expire: Nanos) -> Self {
        Wait { state: State::Off, process: None, completed: None, antic_expire }
    }

    pub(crate) fn is_on(&self) -> bool {
        matches!(self.state, State::ForCompletion | State::ForRequest)
    }

    /// Begins a wait. Returns when it ends.
    pub(crate) fn start(&mut self) -> Nanos {
        self.state =
            if self.completed.is_some() { State::ForRequest } else { State::ForCompletion };
        self.until()
    }

    /// The latest end of the wait.
    pub(crate) fn until(&self) -> Nanos {
        self.completed.map_or(crate::UNTIL_COMPLETION, |at| at.saturating_add(self.antic_expire))
    }

    pub(crate) fn dispatched(&mut self, command: &Command, is_sync: bool) {
        self.state = State::Off;
        self.process = is_sync.then_some(command.process);
        self.completed = None;
    }

    pub(crate) fn completed(&mut self, now: Nanos, command: &Command) {
        // Any command of the process counts, the last or an earlier one. A wait that has begun is
        // not prolonged.
        if self.process == Some(command.process) && self.state != State::ForRequest {
            self.completed = Some(now);
            if self.state == State::ForCompletion {
                self.state = State::ForRequest;
            }
        }
    }

    /// Whether there is a reason to serve `candidate` instead of waiting for the process.
    pub(crate) fn is_broken(
        &self,
        now: Nanos,
        candidate: Option<Candidate>,
        head: Sector,
        process: &mut Process,
        newcomers: &mut Newcomers,
    ) -> bool {
        if candidate.is_some_and(|candidate| Some(candidate.process) == self.process) {
            return true;
        }
        if now >= self.until() {
            return true;
        }
        if process.exited {
            if process.think_ticks.is_empty() {
                newcomers.one_left();
            }
            return true;
        }
        if process.queued > 0 {
            return true;
        }
        if candidate.is_some_and(|r| r.is_sync && self.is_close(now, head, r.start)) {
            process.last_completion = Some(now);
            return true;
        }
        let longest = self.antic_expire / TICK;
        let thinks_long = match process.think_ticks.high_mean() {
            Some(mean) => mean > longest,
            None => newcomers.think_ticks.mean() > longest || newcomers.exit_probability > EVEN,
        };
        let usual_seek = process.seek.mean().unwrap_or(newcomers.seek.mean());
        thinks_long || candidate.is_some_and(|r| r.start.abs_diff(head) < usual_seek)
    }

    /// Whether a sector is near the head. Nearness widens as the wait goes on.
    fn is_close(&self, now: Nanos, head: Sector, sector: Sector) -> bool {
        let ticks = self.completed.map_or(0, |at| now.saturating_sub(at) / TICK);
        let near = match ticks {
            0..=1 => NEAR,
            2..=WIDENING_TICKS if ticks <= self.antic_expire / TICK => NEAR << (ticks - 1),
            _ => return true,
        };
        (head.saturating_sub(near / 2)..=head.saturating_add(near)).contains(&sector)
    }
}
