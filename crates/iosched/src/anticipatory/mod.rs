//! `anticipatory`: after a read, waits for the same process instead of seeking elsewhere.
//!
//! A program that reads synchronously has no request queued at the moment when its read completes.
//! An elevator that always keeps the device busy then moves the head to another process, every
//! time. Waiting for some milliseconds lets the next read arrive, right next to the last:
//!
//! ```text
//!   process 1   [ 100 ]    [ 108 ]    [ 116 ]      ... until the slice ends: the oldest has expired
//!                      ^^^^       ^^^^  waits
//!   process 2   [ 900 ] queued .............................. [ 900 ]
//! ```
//!
//! * **Sweep.** One way, with short seeks back. The next request is looked up anew every time, so
//!   that a request added meanwhile counts (`sweep`).
//! * **Batches.** Synchronous requests and asynchronous writes alternate (`batch`). At each switch,
//!   the device is drained. Read batches begin with the oldest read.
//! * **Expiry.** At most once per `read_expire`, the oldest request is served first if it is that
//!   old. So `read_expire` is the time slice of a stream.
//! * **Waiting.** In a read batch, a candidate `r` is dispatched at once if the last command was an
//!   asynchronous write, or if a wait has already ended for it. Otherwise the elevator waits
//!   (`wait`), unless one of these holds, checked in this order:
//!   1. `r` belongs to the process waited for.
//!   2. That process's read completed `antic_expire` ago.
//!   3. The process has exited.
//!   4. The process has other requests queued.
//!   5. `r` is a synchronous request near the head position at which the wait began. "Near" widens
//!      with time. The process's think time is counted from then on.
//!   6. The process usually thinks for longer than `antic_expire`. For a new process: new processes
//!      usually do, or most of them never read again.
//!   7. `r` is nearer than the process's usual seek.
//!
//!   The elevator checks all this again whenever a request is added.
//! * **Histories** of think times and seeks are decaying averages, for each process and for new
//!   processes (`process`).
//!
//! A process's exit ends a wait only when the next request is added or time is up, as in the
//! kernel. With command queueing, this elevator waits for the first of the process's commands to
//! complete; the kernel waited for the last. Commands at the device count as pending for think
//! times; the kernel counted those that the driver had not fetched. Without command queueing both
//! are the same.

mod batch;
mod lane;
mod parameters;
mod process;
#[cfg(test)]
mod tests;
mod wait;

use std::collections::BTreeMap;

use crate::request::{Command, Nanos, ProcessId, Request, RequestId};
use crate::sorted::Ticket;
use crate::{Dispatch, Elevator, UNTIL_COMPLETION};

use batch::{Batch, Kind, Phase};
use lane::{Added, Lane};
use process::{Newcomers, Process};
use wait::{Candidate, State, Wait};

pub use parameters::AnticipatoryParameters;

/// The elevator.
#[derive(Debug)]
pub struct Anticipatory {
    sync: Lane,
    asynchronous: Lane,
    batch: Batch,
    wait: Wait,
    processes: BTreeMap<ProcessId, Process>,
    newcomers: Newcomers,
    /// Commands at the device, by their first request.
    in_flight: Vec<(RequestId, Kind)>,
    parameters: AnticipatoryParameters,
    max_sectors: u32,
}

/// What to do when the device can take a command.
enum Choice {
    Serve(Kind, Ticket),
    Wait(Nanos),
}

impl Anticipatory {
    /// With nothing queued. It merges requests into commands of up to `max_sectors`, the device's largest request.
    pub fn new(max_sectors: u32, parameters: AnticipatoryParameters) -> Self {
        Anticipatory {
            sync: Lane::new(parameters.read_expire),
            asynchronous: Lane::new(parameters.write_expire),
            batch: Batch::new(parameters.read_batch_expire, parameters.write_batch_expire),
            wait: Wait::new(parameters.antic_expire),
            processes: BTreeMap::new(),
            newcomers: Newcomers::default(),
            in_flight: Vec::new(),
            parameters,
            max_sectors,
        }
    }

    fn lane(&mut self, kind: Kind) -> &mut Lane {
        match kind {
            Kind::Sync => &mut self.sync,
            Kind::Async => &mut self.asynchronous,
        }
    }

    fn candidate(&self, kind: Kind, ticket: Ticket) -> Option<Candidate> {
        let lane = if kind == Kind::Sync { &self.sync } else { &self.asynchronous };
        let command = &lane.queue().get(ticket)?.command;
        let is_sync = kind == Kind::Sync;
        Some(Candidate { process: command.process, start: command.start, is_sync })
    }

    /// Whether there is a reason to serve `candidate` instead of waiting.
    fn is_broken(&mut self, now: Nanos, candidate: Option<Candidate>) -> bool {
        let Some(process) = self.wait.process.and_then(|id| self.processes.get_mut(&id)) else {
            return true;
        };
        self.wait.is_broken(now, candidate, self.sync.head, process, &mut self.newcomers)
    }

    /// When the current wait ends, if there is one. Ends it if its time is up.
    fn waiting(&mut self, now: Nanos) -> Option<Nanos> {
        if !self.wait.is_on() {
            return None;
        }
        let until = self.wait.until();
        if now < until {
            return Some(until);
        }
        self.wait.state = State::Finished;
        let process = self.wait.process.and_then(|id| self.processes.get(&id));
        if process.is_some_and(|process| process.think_ticks.is_empty()) {
            self.newcomers.one_left();
        }
        None
    }

    /// Goes on with the batch, or begins the next one.
    fn choose(&mut self, now: Nanos) -> Option<Choice> {
        let reads = !self.sync.queue().is_empty();
        let writes = !self.asynchronous.queue().is_empty();
        if !reads {
            self.batch.no_reads(writes);
        }
        if self.batch.phase == Phase::Draining {
            return self.begin_batch(now);
        }
        let is_over = reads && writes && self.batch.is_over(now);
        if !is_over && let Some(choice) = self.go_on(now, writes) {
            return Some(choice);
        }
        let to_reads = reads && (!writes || self.batch.kind == Kind::Async);
        self.batch.switch(if to_reads { Kind::Sync } else { Kind::Async });
        self.begin_batch(now)
    }

    /// The next command of the batch, or a wait for it.
    fn go_on(&mut self, now: Nanos, writes: bool) -> Option<Choice> {
        let kind = self.batch.kind;
        let next = self.lane(kind).next();
        if kind == Kind::Sync && self.parameters.antic_expire > 0 {
            if let Some(overdue) = self.sync.overdue(now) {
                return Some(Choice::Serve(kind, overdue));
            }
            let candidate = next.and_then(|ticket| self.candidate(kind, ticket));
            let may_wait = self.wait.process.is_some() && self.wait.state != State::Finished;
            if may_wait && !self.is_broken(now, candidate) {
                return Some(Choice::Wait(self.wait.start()));
            }
        }
        let next = next?;
        if kind == Kind::Sync && !writes {
            self.batch.extend(now);
        }
        let overdue = self.lane(kind).overdue(now);
        Some(Choice::Serve(kind, overdue.unwrap_or(next)))
    }

    /// The first command of a batch, once the device has been drained.
    fn begin_batch(&mut self, now: Nanos) -> Option<Choice> {
        if self.batch.phase == Phase::Draining {
            if !self.in_flight.is_empty() {
                return Some(Choice::Wait(UNTIL_COMPLETION));
            }
            self.batch.begin(now);
        }
        let kind = self.batch.kind;
        let lane = self.lane(kind);
        let first = match kind {
            Kind::Sync => lane.oldest(now),
            Kind::Async => lane.overdue(now).or_else(|| lane.next()),
        };
        first.map(|ticket| Choice::Serve(kind, ticket))
    }

    fn serve(&mut self, kind: Kind, ticket: Ticket) -> Option<Command> {
        let command = self.lane(kind).take(ticket)?.command;
        self.batch.dispatched(kind);
        let before = self.wait.process;
        self.wait.dispatched(&command, kind == Kind::Sync);
        self.in_flight.push((command.requests.first(), kind));
        let process = self.processes.entry(command.process).or_default();
        process.queued = process.queued.saturating_sub(1);
        process.in_flight += 1;
        if let Some(before) = before {
            self.forget_if_gone(before);
        }
        Some(command)
    }

    /// Forgets a process that has exited and has no requests left.
    fn forget_if_gone(&mut self, id: ProcessId) {
        let is_gone = self.processes.get(&id).is_some_and(|p| p.exited && p.is_idle());
        if is_gone && self.wait.process != Some(id) {
            self.processes.remove(&id);
        }
    }
}

impl Elevator for Anticipatory {
    fn name(&self) -> &'static str {
        "anticipatory"
    }

    fn add(&mut self, now: Nanos, request: Request) {
        let kind = if request.is_sync { Kind::Sync } else { Kind::Async };
        let max_sectors = self.max_sectors;
        let ticket = match self.lane(kind).add(now, &request, max_sectors) {
            Added::Queued(ticket) => ticket,
            Added::Merged { lost_by } => {
                if let Some(process) = lost_by.and_then(|id| self.processes.get_mut(&id)) {
                    process.queued = process.queued.saturating_sub(1);
                }
                return;
            }
        };
        let process = self.processes.entry(request.process).or_default();
        if request.is_sync {
            process.observe(now, &request, &mut self.newcomers);
        }
        process.queued += 1;
        if self.wait.is_on() {
            let candidate = self.candidate(kind, ticket);
            if self.is_broken(now, candidate) {
                self.wait.state = State::Finished;
            }
        }
    }

    fn dispatch(&mut self, now: Nanos) -> Dispatch {
        if self.queued() == 0 {
            self.batch.no_reads(false);
            return Dispatch::Empty;
        }
        if let Some(until) = self.waiting(now) {
            return Dispatch::WaitUntil(until);
        }
        match self.choose(now) {
            Some(Choice::Wait(until)) => Dispatch::WaitUntil(until),
            Some(Choice::Serve(kind, ticket)) => {
                self.serve(kind, ticket).map_or(Dispatch::Empty, Dispatch::Command)
            }
            None => Dispatch::Empty,
        }
    }

    fn completed(&mut self, now: Nanos, command: &Command) {
        let first = command.requests.first();
        let Some(place) = self.in_flight.iter().position(|&(id, _)| id == first) else {
            return;
        };
        let (_, kind) = self.in_flight.swap_remove(place);
        self.batch.completed(now, kind);
        self.wait.completed(now, command);
        if let Some(process) = self.processes.get_mut(&command.process) {
            process.in_flight = process.in_flight.saturating_sub(1);
            if kind == Kind::Sync {
                process.last_completion = Some(now);
            }
        }
        self.forget_if_gone(command.process);
    }

    fn exited(&mut self, _now: Nanos, process: ProcessId) {
        if let Some(known) = self.processes.get_mut(&process) {
            known.exited = true;
        }
        self.forget_if_gone(process);
    }

    fn queued(&self) -> usize {
        self.sync.queue().requests() + self.asynchronous.queue().requests()
    }
}
