//! `cfq-1`: complete fair queueing as first posted, in February 2003.
//!
//! ```text
//!   round-robin list                          dispatch list
//!   head: newest  [ p9: 40 60 ]  --lowest-->  [ 20 ] [ 40 ] [ 70 ]  --> device
//!                 [ p8: 10 ]
//!   tail: oldest  [ p1: 80 95 ]
//! ```
//!
//! * Each process with requests has a queue sorted by sector. There are no time slices, deadlines or
//!   idling. Reads and writes are treated alike.
//! * A new queue is inserted at the *head* of the list.
//! * An empty dispatch list is refilled. Each pass takes as many turns as there are queues; each turn
//!   moves the lowest request of the queue *at the head*. An empty queue leaves the list; any other
//!   stays in place. Passes repeat until at least `quantum` requests were moved or none is left.
//! * The dispatch list is almost sorted. A request below its first is inserted just before its
//!   *last*. For any other, the search from the end of the list stops at the first request not below
//!   it, and it is inserted before that one. Without one it is appended.
//!
//! So ten processes with two requests each are not served in turn. The ten turns of a refill drain
//! the five queues at the head; these processes submit again and return to the head. The published
//! table of ten parallel streams shows two groups of five.
//!
//! Requests merge only within the queue of their process (recalled from memory). The two requests
//! of one window together exceed the device's largest request and do not merge.

use std::collections::{HashMap, VecDeque};

use crate::request::{Command, Nanos, ProcessId, Request};
use crate::sorted::SortedQueue;
use crate::{Dispatch, Elevator};

/// The elevator.
#[derive(Debug)]
pub struct Cfq1 {
    queues: HashMap<ProcessId, SortedQueue>,
    /// Processes with requests, the newest at the head.
    round_robin: VecDeque<ProcessId>,
    dispatch_list: VecDeque<Command>,
    max_sectors: u32,
    quantum: usize,
    queued: usize,
}

impl Cfq1 {
    /// Least number of requests per refill, if there are that many: the value merged into the
    /// kernel, which fits the published table.
    pub const QUANTUM: usize = 4;

    /// With nothing queued. It merges requests into commands of up to `max_sectors`, the device's largest request, and
    /// moves at least `quantum` of them per refill.
    pub fn new(max_sectors: u32, quantum: usize) -> Self {
        Cfq1 {
            queues: HashMap::new(),
            round_robin: VecDeque::new(),
            dispatch_list: VecDeque::new(),
            max_sectors,
            quantum,
            queued: 0,
        }
    }

    /// Moves requests to the empty dispatch list, in passes over the queues.
    fn refill(&mut self) {
        let mut moved = 0;
        while moved == 0 || moved < self.quantum {
            if self.round_robin.is_empty() {
                return;
            }
            for _ in 0..self.round_robin.len() {
                let Some(command) = self.take_from_head() else {
                    return;
                };
                self.insert_for_dispatch(command);
                moved += 1;
            }
        }
    }

    /// Takes the lowest request of the queue at the head of the list.
    fn take_from_head(&mut self) -> Option<Command> {
        let process = *self.round_robin.front()?;
        let queue = self.queues.get_mut(&process)?;
        let lowest = queue.lowest()?;
        let taken = queue.remove(lowest)?;
        if queue.is_empty() {
            self.queues.remove(&process);
            self.round_robin.pop_front();
        }
        Some(taken.command)
    }

    fn insert_for_dispatch(&mut self, command: Command) {
        let list = &mut self.dispatch_list;
        let place = match list.front() {
            None => 0,
            Some(first) if command.start < first.start => list.len() - 1,
            Some(_) => list
                .iter()
                .rposition(|element| element.start >= command.start)
                .unwrap_or(list.len()),
        };
        list.insert(place, command);
    }
}

impl Elevator for Cfq1 {
    fn name(&self) -> &'static str {
        "cfq-1"
    }

    fn add(&mut self, now: Nanos, request: Request) {
        self.queued += 1;
        let queue = self.queues.entry(request.process).or_default();
        if queue.merge(&request, self.max_sectors).is_some() {
            return;
        }
        if queue.is_empty() {
            self.round_robin.push_front(request.process);
        }
        queue.insert(now, &request);
    }

    fn dispatch(&mut self, _now: Nanos) -> Dispatch {
        if self.dispatch_list.is_empty() {
            self.refill();
        }
        let Some(command) = self.dispatch_list.pop_front() else {
            return Dispatch::Empty;
        };
        self.queued -= command.requests.count();
        Dispatch::Command(command)
    }

    fn queued(&self) -> usize {
        self.queued
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Sector;
    use crate::testing::{read, take};

    /// Processes 0, 1, ... with `each` requests. Process n reads from sector 1000 n on.
    fn with(processes: u32, each: u64, quantum: usize) -> Cfq1 {
        let mut cfq = Cfq1::new(128, quantum);
        for process in 0..processes {
            for nth in 0..each {
                let start = 1000 * Sector::from(process) + 100 * nth;
                cfq.add(0, read(0, process, start, 8));
            }
        }
        cfq
    }

    /// The processes whose requests one refill moved, in order of dispatch.
    fn refill(cfq: &mut Cfq1) -> Vec<u32> {
        let first = take(cfq, 0).process.0;
        let rest: Vec<u32> = cfq.dispatch_list.drain(..).map(|command| command.process.0).collect();
        [vec![first], rest].concat()
    }

    fn processes_of_refill(cfq: &mut Cfq1) -> Vec<u32> {
        let mut processes = refill(cfq);
        processes.sort_unstable();
        processes
    }

    #[test]
    fn ten_processes_with_two_requests_each_are_drained_five_at_a_time() {
        let mut cfq = with(10, 2, Cfq1::QUANTUM);
        assert_eq!(processes_of_refill(&mut cfq), [5, 5, 6, 6, 7, 7, 8, 8, 9, 9]);
    }

    #[test]
    fn a_drained_process_that_returns_is_at_the_head_again() {
        let mut cfq = with(10, 2, Cfq1::QUANTUM);
        refill(&mut cfq);
        for process in 5..10 {
            for start in [200, 300] {
                cfq.add(0, read(0, process, 1000 * Sector::from(process) + start, 8));
            }
        }
        assert_eq!(processes_of_refill(&mut cfq), [5, 5, 6, 6, 7, 7, 8, 8, 9, 9]);
    }

    #[test]
    fn ten_processes_with_one_request_each_are_all_drained() {
        let mut cfq = with(10, 1, Cfq1::QUANTUM);
        assert_eq!(processes_of_refill(&mut cfq), (0..10).collect::<Vec<_>>());
    }

    #[test]
    fn fewer_turns_than_the_quantum_are_repeated() {
        assert_eq!(refill(&mut with(1, 10, Cfq1::QUANTUM)).len(), 4);
        assert_eq!(refill(&mut with(1, 10, 8)).len(), 8);
        assert_eq!(refill(&mut with(3, 10, Cfq1::QUANTUM)).len(), 6);
        assert_eq!(refill(&mut with(1, 3, Cfq1::QUANTUM)).len(), 3);
    }

    #[test]
    fn a_queue_gives_its_lowest_request_first() {
        let mut cfq = Cfq1::new(128, 1);
        for start in [300, 100, 200] {
            cfq.add(0, read(0, 0, start, 8));
        }
        assert_eq!(take(&mut cfq, 0).start, 100);
    }

    #[test]
    fn the_dispatch_list_is_almost_sorted() {
        let mut cfq = Cfq1::new(128, 4);
        for start in [500, 700, 600, 800, 100, 50] {
            cfq.insert_for_dispatch(Command::new(&read(0, 0, start, 8)));
        }
        let order: Vec<Sector> = cfq.dispatch_list.iter().map(|command| command.start).collect();
        assert_eq!(
            order,
            [500, 600, 700, 100, 50, 800],
            "what is below the first goes before the last"
        );
    }
}
