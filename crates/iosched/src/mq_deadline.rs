//! `mq-deadline`: today's deadline.
//!
//! To dispatch one request:
//!
//! 1. While the batch has fewer than `fifo_batch` requests and a request lies at or above the last
//!    one in its direction, take that.
//! 2. Otherwise choose reads, unless there are none, or unless writes wait and reads were preferred
//!    `writes_starved` times.
//! 3. A new batch begins in that direction. It begins with the oldest request if that has expired
//!    *or no request lies above the last position*, and otherwise with the next one above.
//!
//! Unlike `deadline`, it looks up the next request by position when needed, so a request added
//! meanwhile counts, and a seek does not end a batch.
//!
//! Recalled from memory of 6.x kernels. Priority classes, zoned devices and the limit on
//! asynchronous requests are left out.

use crate::request::{Command, Direction, Nanos, Request, Sector};
use crate::sorted::{SortedQueue, Ticket};
use crate::{Dispatch, Elevator};

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
}

impl Default for MqDeadlineParameters {
    fn default() -> Self {
        MqDeadlineParameters {
            read_expire: 500_000_000,
            write_expire: 5_000_000_000,
            writes_starved: 2,
            fifo_batch: 16,
        }
    }
}

/// The elevator.
#[derive(Debug)]
pub struct MqDeadline {
    reads: Lane,
    writes: Lane,
    parameters: MqDeadlineParameters,
    max_sectors: u32,
    /// Direction of the last command.
    running: Direction,
    /// Requests of the batch so far.
    batch: u32,
    /// How often reads were preferred while writes waited.
    starved: u32,
}

/// The requests in one direction.
#[derive(Debug, Default)]
struct Lane {
    queue: SortedQueue,
    /// Where the last request served began.
    position: Sector,
}

impl Lane {
    /// The next of the sweep.
    fn next(&self) -> Option<Ticket> {
        self.queue.at_or_above(self.position)
    }
}

impl MqDeadline {
    /// With nothing queued. It merges requests into commands of up to `max_sectors`, the device's largest request.
    pub fn new(max_sectors: u32, parameters: MqDeadlineParameters) -> Self {
        MqDeadline {
            reads: Lane::default(),
            writes: Lane::default(),
            parameters,
            max_sectors,
            running: Direction::Read,
            batch: 0,
            starved: 0,
        }
    }

    fn lane(&mut self, direction: Direction) -> &mut Lane {
        match direction {
            Direction::Read => &mut self.reads,
            Direction::Write => &mut self.writes,
        }
    }

    /// Applies rule 2.
    fn choose_direction(&mut self) -> Direction {
        if self.reads.queue.is_empty() {
            self.starved = 0;
            return Direction::Write;
        }
        if !self.writes.queue.is_empty() {
            if self.starved >= self.parameters.writes_starved {
                self.starved = 0;
                return Direction::Write;
            }
            self.starved += 1;
        }
        Direction::Read
    }

    fn choose(&mut self, now: Nanos) -> Option<Command> {
        if self.queued() == 0 {
            return None;
        }
        let next = self.lane(self.running).next();
        if let Some(next) = next.filter(|_| self.batch < self.parameters.fifo_batch) {
            return self.serve(self.running, next);
        }
        let direction = self.choose_direction();
        let expire = match direction {
            Direction::Read => self.parameters.read_expire,
            Direction::Write => self.parameters.write_expire,
        };
        let lane = self.lane(direction);
        let first = lane
            .queue
            .overdue(now, expire)
            .or_else(|| lane.next())
            .or_else(|| lane.queue.oldest())?;
        self.batch = 0;
        self.serve(direction, first)
    }

    fn serve(&mut self, direction: Direction, ticket: Ticket) -> Option<Command> {
        let lane = self.lane(direction);
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
        let max_sectors = self.max_sectors;
        let queue = &mut self.lane(request.direction).queue;
        if queue.merge(&request, max_sectors).is_none() {
            queue.insert(now, &request);
        }
    }

    fn dispatch(&mut self, now: Nanos) -> Dispatch {
        self.choose(now).map_or(Dispatch::Empty, Dispatch::Command)
    }

    fn queued(&self) -> usize {
        self.reads.queue.requests() + self.writes.queue.requests()
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
}
