//! `mq-deadline`: today's deadline.
//!
//! ```text
//!   class        reads and writes, sorted and by age     served when
//!   real time    [ ... ]                                 it has any
//!   best effort  [ ... ]                                 the one above has none, or it has waited
//!   idle         [ ... ]                                 the two above have none, or it has waited
//! ```
//!
//! Within a class:
//!
//! 1. While the batch has fewer than `fifo_batch` requests and a request lies at or above the last
//!    one in its direction, take that.
//! 2. Otherwise choose reads, unless there are none, or unless writes wait and reads were preferred
//!    `writes_starved` times.
//! 3. A new batch begins in that direction. It begins with the oldest request if that has expired
//!    *or no request lies above the last position*, and otherwise with the next one above.
//!
//! Unlike `deadline`, it looks up the next request by position when needed, so a request added
//! meanwhile counts, and a seek does not end a batch. A lower class goes first when its oldest
//! request has waited for `prio_aging_expire`.
//!
//! Recalled from memory of 6.x kernels. Requests carry no class here: [`MqDeadline::set_class`]
//! gives one to a process, otherwise it is best effort. Zoned devices and the limit on asynchronous
//! requests are left out.

use std::collections::HashMap;

use crate::request::{Command, Direction, Nanos, ProcessId, Request, Sector};
use crate::sorted::{SortedQueue, Ticket};
use crate::{Dispatch, Elevator};

/// Priority class of a process (`ionice -c`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Class {
    RealTime,
    #[default]
    BestEffort,
    Idle,
}

/// The parameters.
#[derive(Clone, Copy, Debug)]
pub struct MqDeadlineParameters {
    /// Age at which a read is served first: half a second.
    pub read_expire: Nanos,
    /// Age at which a write is served first: five seconds.
    pub write_expire: Nanos,
    /// How often reads are preferred while writes wait.
    pub writes_starved: u32,
    /// Requests per batch.
    pub fifo_batch: u32,
    /// Age at which a lower class is served before a higher one: ten seconds.
    pub prio_aging_expire: Nanos,
}

impl Default for MqDeadlineParameters {
    fn default() -> Self {
        MqDeadlineParameters {
            read_expire: 500_000_000,
            write_expire: 5_000_000_000,
            writes_starved: 2,
            fifo_batch: 16,
            prio_aging_expire: 10_000_000_000,
        }
    }
}

/// The elevator.
#[derive(Debug)]
pub struct MqDeadline {
    /// One per class, highest class first.
    levels: [Level; 3],
    classes: HashMap<ProcessId, Class>,
    parameters: MqDeadlineParameters,
    max_sectors: u32,
    running: Direction,
    batch: u32,
    starved: u32,
}

/// The requests of a class.
#[derive(Debug, Default)]
struct Level {
    reads: Lane,
    writes: Lane,
}

/// The requests of a class in one direction.
#[derive(Debug, Default)]
struct Lane {
    queue: SortedQueue,
    /// Where the last request served began.
    position: Sector,
}

impl Level {
    fn lane(&mut self, direction: Direction) -> &mut Lane {
        match direction {
            Direction::Read => &mut self.reads,
            Direction::Write => &mut self.writes,
        }
    }

    fn is_empty(&self) -> bool {
        self.reads.queue.is_empty() && self.writes.queue.is_empty()
    }

    fn has_waited(&self, now: Nanos, age: Nanos) -> bool {
        [&self.reads, &self.writes].iter().any(|lane| lane.queue.overdue(now, age).is_some())
    }
}

impl Lane {
    fn next(&self) -> Option<Ticket> {
        self.queue.at_or_above(self.position)
    }
}

impl MqDeadline {
    pub fn new(max_sectors: u32, parameters: MqDeadlineParameters) -> Self {
        MqDeadline {
            levels: Default::default(),
            classes: HashMap::new(),
            parameters,
            max_sectors,
            running: Direction::Read,
            batch: 0,
            starved: 0,
        }
    }

    /// Sets the class of all requests that a process adds from now on.
    pub fn set_class(&mut self, process: ProcessId, class: Class) {
        self.classes.insert(process, class);
    }

    /// The class to serve: one that has waited too long, or else the highest with requests.
    fn choose_level(&self, now: Nanos) -> Option<usize> {
        let highest = self.levels.iter().position(|level| !level.is_empty())?;
        let age = self.parameters.prio_aging_expire;
        let aged =
            (highest + 1..self.levels.len()).find(|&level| self.levels[level].has_waited(now, age));
        Some(aged.unwrap_or(highest))
    }

    /// Applies rule 2.
    fn choose_direction(&mut self, level: usize) -> Direction {
        let Level { reads, writes } = &self.levels[level];
        if reads.queue.is_empty() {
            self.starved = 0;
            return Direction::Write;
        }
        if !writes.queue.is_empty() {
            if self.starved >= self.parameters.writes_starved {
                self.starved = 0;
                return Direction::Write;
            }
            self.starved += 1;
        }
        Direction::Read
    }

    fn choose(&mut self, now: Nanos) -> Option<Command> {
        let level = self.choose_level(now)?;
        let next = self.levels[level].lane(self.running).next();
        if let Some(next) = next.filter(|_| self.batch < self.parameters.fifo_batch) {
            return self.serve(level, self.running, next);
        }
        let direction = self.choose_direction(level);
        let expire = match direction {
            Direction::Read => self.parameters.read_expire,
            Direction::Write => self.parameters.write_expire,
        };
        let lane = self.levels[level].lane(direction);
        let first = lane
            .queue
            .overdue(now, expire)
            .or_else(|| lane.next())
            .or_else(|| lane.queue.oldest())?;
        self.batch = 0;
        self.serve(level, direction, first)
    }

    fn serve(&mut self, level: usize, direction: Direction, ticket: Ticket) -> Option<Command> {
        let lane = self.levels[level].lane(direction);
        let command = lane.queue.remove(ticket)?.command;
        lane.position = command.start;
        self.running = direction;
        self.batch += 1;
        Some(command)
    }
}

impl Elevator for MqDeadline {
    fn name(&self) -> &'static str {
        "mq-deadline"
    }

    fn add(&mut self, now: Nanos, request: Request) {
        let class = self.classes.get(&request.process).copied().unwrap_or_default();
        let queue = &mut self.levels[class as usize].lane(request.direction).queue;
        if queue.merge(&request, self.max_sectors).is_none() {
            queue.insert(now, &request);
        }
    }

    fn dispatch(&mut self, now: Nanos) -> Dispatch {
        self.choose(now).map_or(Dispatch::Empty, Dispatch::Command)
    }

    fn exited(&mut self, _now: Nanos, process: ProcessId) {
        self.classes.remove(&process);
    }

    fn queued(&self) -> usize {
        let lanes = self.levels.iter().flat_map(|level| [&level.reads, &level.writes]);
        lanes.map(|lane| lane.queue.requests()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{MS, drain, read, serve, write};

    fn mq_deadline() -> MqDeadline {
        MqDeadline::new(8, MqDeadlineParameters::default())
    }

    #[test]
    fn rule_1_a_contiguous_request_that_comes_late_is_noticed() {
        let mut mq = mq_deadline();
        for (id, start) in [(0, 100), (1, 300)] {
            mq.add(0, read(id, 0, start, 8));
        }
        assert_eq!(serve(&mut mq, 0), 100);
        mq.add(0, read(9, 0, 108, 8));
        assert_eq!(drain(&mut mq, 0), [108, 300]);
    }

    #[test]
    fn rule_2_writes_wait_for_two_batches_of_reads() {
        let mut mq = mq_deadline();
        for nth in 0..100 {
            mq.add(0, read(nth, 0, 100 * nth, 8));
        }
        mq.add(0, write(900, 0, 50, 8));
        let order = drain(&mut mq, 0);
        assert_eq!(order.iter().position(|&start| start == 50), Some(48));
    }

    #[test]
    fn rule_3_after_the_highest_the_oldest_is_next() {
        let mut mq = mq_deadline();
        mq.add(0, read(0, 0, 900, 8));
        assert_eq!(serve(&mut mq, 0), 900);
        mq.add(0, read(1, 0, 500, 8));
        mq.add(0, read(2, 0, 100, 8));
        assert_eq!(drain(&mut mq, 0), [500, 100]);
    }

    #[test]
    fn rule_3_a_batch_begins_with_the_oldest_if_it_has_expired() {
        let mut mq = mq_deadline();
        mq.add(0, read(99, 0, 90_000, 8));
        for nth in 0..40 {
            mq.add(400 * MS, read(nth, 0, 100 * nth, 8));
        }
        let order = drain(&mut mq, 500 * MS);
        assert_eq!(order.iter().position(|&start| start == 90_000), Some(16));
    }

    #[test]
    fn a_lower_class_waits_until_it_has_aged() {
        let mut mq = mq_deadline();
        mq.set_class(ProcessId(1), Class::RealTime);
        mq.set_class(ProcessId(3), Class::Idle);
        mq.add(0, read(3, 3, 300, 8));
        mq.add(0, read(2, 2, 200, 8));
        mq.add(0, read(1, 1, 100, 8));
        mq.add(9 * MS, read(4, 1, 150, 8));
        assert_eq!(serve(&mut mq, 9_999 * MS), 100);
        assert_eq!(serve(&mut mq, 10_000 * MS), 200);
        assert_eq!(drain(&mut mq, 10_000 * MS), [300, 150]);
    }
}
