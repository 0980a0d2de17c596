//! `base-2.5.61`: behaves like the reference kernel in the comparison of February 2003.
//!
//! ```text
//!   process 1   [ a1 ] [ a2 ]        turns:  a1 b1 c1 a2 b2 ...
//!   process 2   [ b1 ] [ b2 ]
//!   process 3   [ c1 ]
//! ```
//!
//! Processes strictly take turns with *one request* each, in order of arrival. A request merges behind the last one of
//! its process, as under any elevator, but the two of a window exceed the device's largest request together.
//!
//! This is inferred from measurements, not from source code. 2.5.61 with the patches of its time
//! ("hacks" against writes that starve reads) served ten parallel streams equally. Each window of
//! 128 KiB, which its disk split into two requests, cost two full seeks. Plain deadline and arrival
//! order both keep those two requests together and would have been almost twice as fast. What in
//! the patches separated them is unknown.

use std::collections::{HashMap, VecDeque};

use crate::request::{Command, Nanos, ProcessId, Request};
use crate::{Dispatch, Elevator};

/// The elevator.
#[derive(Debug)]
pub struct Base2561 {
    queues: HashMap<ProcessId, VecDeque<Command>>,
    /// Processes with requests, in the order of their turns.
    turns: VecDeque<ProcessId>,
    max_sectors: u32,
    queued: usize,
}

impl Base2561 {
    /// With nothing queued. It merges requests into commands of up to `max_sectors`, the device's largest request.
    pub fn new(max_sectors: u32) -> Self {
        Base2561 { queues: HashMap::new(), turns: VecDeque::new(), max_sectors, queued: 0 }
    }
}

impl Elevator for Base2561 {
    fn name(&self) -> &'static str {
        "base-2.5.61"
    }

    fn add(&mut self, _now: Nanos, request: Request) {
        self.queued += 1;
        let queue = self.queues.entry(request.process).or_default();
        let last = queue.back_mut().filter(|last| last.takes_behind(&request, self.max_sectors));
        if let Some(last) = last {
            return last.merge_behind(&request);
        }
        if queue.is_empty() {
            self.turns.push_back(request.process);
        }
        queue.push_back(Command::new(&request));
    }

    fn dispatch(&mut self, _now: Nanos) -> Dispatch {
        while let Some(process) = self.turns.pop_front() {
            let Some(queue) = self.queues.get_mut(&process) else {
                continue;
            };
            let Some(command) = queue.pop_front() else {
                continue;
            };
            if queue.is_empty() {
                self.queues.remove(&process);
            } else {
                self.turns.push_back(process);
            }
            self.queued -= command.requests.count();
            return Dispatch::Command(command);
        }
        Dispatch::Empty
    }

    fn queued(&self) -> usize {
        self.queued
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{drain, read};

    #[test]
    fn each_process_has_one_request_a_turn_even_if_its_next_is_contiguous() {
        let mut base = Base2561::new(8);
        for (id, process, start) in
            [(0, 1, 100), (1, 1, 108), (2, 2, 900), (3, 2, 908), (4, 3, 500)]
        {
            base.add(0, read(id, process, start, 8));
        }
        assert_eq!(drain(&mut base, 0), [100, 900, 500, 108, 908]);
    }

    #[test]
    fn a_request_merges_behind_the_last_of_its_process_if_they_are_small_enough_together() {
        let mut base = Base2561::new(16);
        for (id, process, start) in [(0, 1, 100), (1, 2, 900), (2, 1, 108), (3, 1, 116)] {
            base.add(0, read(id, process, start, 8));
        }
        assert_eq!(base.queued(), 4);
        assert_eq!(drain(&mut base, 0), [100, 900, 116]);
        assert_eq!(base.queued(), 0);
    }

    #[test]
    fn a_returning_process_queues_behind_the_others() {
        let mut base = Base2561::new(8);
        base.add(0, read(0, 1, 100, 8));
        base.add(0, read(1, 2, 500, 8));
        base.dispatch(0);
        base.add(0, read(2, 1, 108, 8));
        assert_eq!(drain(&mut base, 0), [500, 108]);
    }
}
