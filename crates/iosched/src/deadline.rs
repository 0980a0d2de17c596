//! `deadline`: a one-way sweep in batches, with expiry by age (2.5, 2.6).
//!
//! ```text
//!   reads    sorted  [ 100 ]->[ 108 ]->[ 900 ]      by age  [ 900 ][ 100 ][ 108 ]
//!   writes   sorted  [ 300 ]                        by age  [ 300 ]
//!                        ^ next: the successor, as it was when the last one was dispatched
//! ```
//!
//! To dispatch one request:
//!
//! 1. If a *next* is cached and the batch has fewer than `fifo_batch` requests, take it. A next
//!    that is not contiguous with the last request ends the batch.
//! 2. Otherwise choose a direction. Choose reads, unless there are none, or unless writes wait and
//!    reads were preferred `writes_starved` times already.
//! 3. In that direction, take the oldest request if it has expired; this begins a batch. Otherwise
//!    take the cached next, which continues the sweep, or the lowest sector, which begins a batch.
//! 4. Cache the current successor as next.
//!
//! Rule 4 is why this elevator did not follow a stream. A request contiguous with the current one,
//! but added a tenth of a millisecond after its dispatch, waits for the next sweep.
//!
//! The order of the rules and the places where batches begin are recalled from memory of kernels
//! around 2.6.10. A variant of November 2002 that counted costs is not modelled.

use crate::request::{Command, Direction, Nanos, Request, Sector};
use crate::sorted::{SortedQueue, Ticket};
use crate::{Dispatch, Elevator};

/// The parameters.
#[derive(Clone, Copy, Debug)]
pub struct DeadlineParameters {
    /// Age at which a read is served first: half a second.
    pub read_expire: Nanos,
    /// Age at which a write is served first: five seconds.
    pub write_expire: Nanos,
    /// How often reads are preferred while writes wait.
    pub writes_starved: u32,
    /// Requests per batch.
    pub fifo_batch: u32,
}

impl Default for DeadlineParameters {
    fn default() -> Self {
        DeadlineParameters {
            read_expire: 500_000_000,
            write_expire: 5_000_000_000,
            writes_starved: 2,
            fifo_batch: 16,
        }
    }
}

/// The elevator.
#[derive(Debug)]
pub struct Deadline {
    reads: SortedQueue,
    writes: SortedQueue,
    parameters: DeadlineParameters,
    max_sectors: u32,
    /// Direction of the last command.
    running: Direction,
    /// Successor of the last command, in its direction.
    next: Option<Ticket>,
    /// End of the last command.
    last_end: Sector,
    /// Requests of the batch so far.
    batch: u32,
    /// How often reads were preferred while writes waited.
    starved: u32,
}

impl Deadline {
    /// With nothing queued. It merges requests into commands of up to `max_sectors`, the device's largest request.
    pub fn new(max_sectors: u32, parameters: DeadlineParameters) -> Self {
        Deadline {
            reads: SortedQueue::default(),
            writes: SortedQueue::default(),
            parameters,
            max_sectors,
            running: Direction::Read,
            next: None,
            last_end: 0,
            batch: 0,
            starved: 0,
        }
    }

    fn queue(&mut self, direction: Direction) -> &mut SortedQueue {
        match direction {
            Direction::Read => &mut self.reads,
            Direction::Write => &mut self.writes,
        }
    }

    /// Rule 1.
    fn next_of_batch(&mut self) -> Option<Ticket> {
        let next = self.next?;
        let running = self.running;
        if self.queue(running).start(next) != self.last_end {
            self.batch = self.parameters.fifo_batch;
        }
        (self.batch < self.parameters.fifo_batch).then_some(next)
    }

    /// Rule 2.
    fn choose_direction(&mut self) -> Option<Direction> {
        match (self.reads.is_empty(), self.writes.is_empty()) {
            (true, true) => None,
            (false, true) => Some(Direction::Read),
            (false, false) if self.starved < self.parameters.writes_starved => {
                self.starved += 1;
                Some(Direction::Read)
            }
            (_, false) => {
                self.starved = 0;
                Some(Direction::Write)
            }
        }
    }

    /// Rule 3.
    fn first_of_direction(&mut self, now: Nanos, direction: Direction) -> Option<Ticket> {
        let expire = match direction {
            Direction::Read => self.parameters.read_expire,
            Direction::Write => self.parameters.write_expire,
        };
        let next = self.next.filter(|_| direction == self.running);
        let queue = self.queue(direction);
        let overdue = queue.overdue(now, expire);
        if overdue.is_none() && next.is_some() {
            return next;
        }
        let first = overdue.or_else(|| queue.lowest());
        self.batch = 0;
        first
    }

    /// Rule 4.
    fn serve(&mut self, direction: Direction, ticket: Ticket) -> Option<Command> {
        let queue = self.queue(direction);
        let next = queue.successor(ticket);
        let command = queue.remove(ticket)?.command;
        self.running = direction;
        self.next = next;
        self.last_end = command.end();
        self.batch += 1;
        Some(command)
    }

    fn choose(&mut self, now: Nanos) -> Option<Command> {
        if let Some(next) = self.next_of_batch() {
            return self.serve(self.running, next);
        }
        let direction = self.choose_direction()?;
        let first = self.first_of_direction(now, direction)?;
        self.serve(direction, first)
    }
}

impl Elevator for Deadline {
    fn name(&self) -> &'static str {
        "deadline"
    }

    fn add(&mut self, now: Nanos, request: Request) {
        let max_sectors = self.max_sectors;
        let queue = self.queue(request.direction);
        let Some(merged) = queue.merge(&request, max_sectors) else {
            queue.insert(now, &request);
            return;
        };
        if request.direction == self.running && self.next == merged.absorbed && self.next.is_some()
        {
            self.next = Some(merged.into);
        }
    }

    fn dispatch(&mut self, now: Nanos) -> Dispatch {
        self.choose(now).map_or(Dispatch::Empty, Dispatch::Command)
    }

    fn queued(&self) -> usize {
        self.reads.requests() + self.writes.requests()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{MS, drain, read, serve, write};

    fn deadline() -> Deadline {
        Deadline::new(8, DeadlineParameters::default())
    }

    fn with_reads(starts: &[Sector]) -> Deadline {
        let mut deadline = deadline();
        for (id, &start) in (0..).zip(starts) {
            deadline.add(0, read(id, 0, start, 8));
        }
        deadline
    }

    #[test]
    fn it_sweeps_one_way_from_the_lowest() {
        assert_eq!(drain(&mut with_reads(&[500, 100, 300]), 0), [100, 300, 500]);
    }

    #[test]
    fn rule_4_a_contiguous_request_that_comes_late_is_not_noticed() {
        let mut deadline = with_reads(&[100, 300, 500]);
        assert_eq!(serve(&mut deadline, 0), 100);
        deadline.add(0, read(9, 0, 108, 8));
        assert_eq!(drain(&mut deadline, 0), [300, 500, 108]);
    }

    #[test]
    fn rule_2_writes_wait_for_two_batches_of_reads() {
        let mut deadline = with_reads(&[100, 300, 500]);
        deadline.add(0, write(9, 0, 200, 8));
        assert_eq!(drain(&mut deadline, 0), [100, 300, 200, 500]);
    }

    #[test]
    fn rule_1_a_contiguous_batch_is_not_interrupted_before_its_sixteen() {
        let starts: Vec<Sector> = (0..60).map(|nth| 8 * nth).collect();
        let mut deadline = with_reads(&starts);
        deadline.add(0, write(99, 0, 100_000, 8));
        let order = drain(&mut deadline, 0);
        // Sixteen; the check at the end finds that reads were preferred once more.
        let place = order.iter().position(|&start| start == 100_000);
        assert_eq!(place, Some(17));
    }

    #[test]
    fn rule_3_the_oldest_goes_first_once_it_has_expired() {
        let mut deadline = with_reads(&[900]);
        deadline.add(400 * MS, read(1, 0, 100, 8));
        deadline.add(400 * MS, read(2, 0, 300, 8));
        assert_eq!(serve(&mut deadline, 499 * MS), 100);
        assert_eq!(serve(&mut deadline, 500 * MS), 900);
        assert_eq!(serve(&mut deadline, 500 * MS), 300);
    }
}
