//! `noop`: arrival order with merging.
//!
//! ```text
//!   head  [ a ] [ b ] [ c ]  tail   <-- scan for a neighbour from here; if none, append
//!     |
//!     v  dispatch
//! ```
//!
//! A request merges with a contiguous one if both have the same direction and together are small
//! enough. The search starts at the tail of the list. Otherwise the request is appended.

use std::collections::VecDeque;

use crate::request::{Command, Nanos, Request};
use crate::{Dispatch, Elevator};

/// The elevator.
#[derive(Debug)]
pub struct Noop {
    list: VecDeque<Command>,
    max_sectors: u32,
    queued: usize,
}

impl Noop {
    /// With nothing queued. It merges requests into commands of up to `max_sectors`, the device's largest request.
    pub fn new(max_sectors: u32) -> Self {
        Noop { list: VecDeque::new(), max_sectors, queued: 0 }
    }
}

impl Elevator for Noop {
    fn name(&self) -> &'static str {
        "noop"
    }

    fn add(&mut self, _now: Nanos, request: Request) {
        self.queued += 1;
        for command in self.list.iter_mut().rev() {
            if command.takes_behind(&request, self.max_sectors) {
                return command.merge_behind(&request);
            }
            if command.takes_in_front(&request, self.max_sectors) {
                return command.merge_in_front(&request);
            }
        }
        self.list.push_back(Command::new(&request));
    }

    fn dispatch(&mut self, _now: Nanos) -> Dispatch {
        let Some(command) = self.list.pop_front() else {
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
    use crate::testing::{drain, read, take};

    #[test]
    fn requests_are_served_in_order_of_arrival() {
        let mut noop = Noop::new(128);
        for (id, start) in [(0, 500), (1, 100), (2, 300)] {
            noop.add(0, read(id, 0, start, 8));
        }
        assert_eq!(drain(&mut noop, 0), [500, 100, 300]);
    }

    #[test]
    fn contiguous_requests_merge_at_either_end() {
        let mut noop = Noop::new(128);
        noop.add(0, read(0, 0, 100, 8));
        noop.add(0, read(1, 0, 500, 8));
        noop.add(0, read(2, 0, 108, 8));
        noop.add(0, read(3, 0, 92, 8));
        let command = take(&mut noop, 0);
        assert_eq!((command.start, command.sectors), (92, 24));
        assert_eq!(noop.queued(), 1);
    }

    #[test]
    fn nothing_grows_beyond_the_largest_request() {
        let mut noop = Noop::new(12);
        noop.add(0, read(0, 0, 100, 8));
        noop.add(0, read(1, 0, 108, 8));
        assert_eq!(drain(&mut noop, 0), [100, 108]);
    }
}
