//! `linus`: the elevator of Linux 2.4.
//!
//! There is one list, kept sorted only by where requests are inserted. The head of the list goes to
//! the device. Each request starts with a number of *passovers*: how often others may still be
//! inserted before it.
//!
//! ```text
//!   active   head                                   tail
//!   [ 300 ]  [ 340 ] [ 700 ] | [ 20 ] [ 60 ]   <-- scan from here towards the head
//!        ^                   wrap
//!        slot for 316, if the active request counts as a neighbour (see below)
//! ```
//!
//! For each new request:
//!
//! 1. If the list is empty, append. Otherwise scan from the tail.
//! 2. A request without passovers left is a *barrier*. A request can still merge behind it, but the
//!    scan goes no further.
//! 3. The first slot found counts: between two ascending neighbours, or where the list wraps, above
//!    the one or below the other. There is no slot after the last element.
//! 4. If contiguous, in the same direction and small enough together, merge and stop. A front merge
//!    costs the element one passover.
//! 5. Every request behind the chosen place was passed: it pays 1 for a merge, `seek_cost` for an
//!    insertion.
//! 6. Without a slot, append. Neighbours that became contiguous coalesce and keep the smaller number
//!    of passovers.
//!
//! Time plays no part. A stream whose next window is inserted at the head continues until the
//! requests it passes have become barriers. Then each of those is served. Nothing is inserted behind
//! a barrier while it is active either, so all their streams queue up at the tail, behind the first
//! one. It continues again: one stream gets most of the disk until it ends.
//!
//! 2.4 passed on single buffers of 4 KiB: the first was inserted, the others merged one by one.
//! Here a request stays whole. Its first buffer decides; the others cost as much as merges. Add
//! single buffers to get the exact behaviour. No slot is behind a barrier, as in 2.4.20.
//!
//! *Assumption*: a request may be inserted directly behind the active one
//! ([`LinusParameters::after_active`]). Later 2.4 kernels stop the scan before the active request.
//! But ten parallel streams reach the published bandwidth only if a stream's next window can follow
//! the one being read.

use std::collections::VecDeque;

use crate::request::{Command, Direction, Nanos, Request, Sector};
use crate::{Dispatch, Elevator};

/// A buffer of 4 KiB, in sectors.
const BUFFER_SECTORS: u32 = 8;

/// The parameters.
#[derive(Clone, Copy, Debug)]
pub struct LinusParameters {
    /// Passovers of a read: 2048 (`elvtune -r`).
    pub read_passovers: i64,
    /// Passovers of a write: 8192 (`elvtune -w`).
    pub write_passovers: i64,
    /// Passovers that an insertion costs. A merge costs one.
    pub seek_cost: i64,
    /// Whether a request may be inserted directly behind the active one.
    pub after_active: bool,
}

impl Default for LinusParameters {
    fn default() -> Self {
        LinusParameters {
            read_passovers: 2048,
            write_passovers: 8192,
            seek_cost: 16,
            after_active: true,
        }
    }
}

/// The elevator.
#[derive(Debug)]
pub struct Linus {
    list: VecDeque<Element>,
    /// The last request dispatched, until it completes.
    active: Option<Element>,
    parameters: LinusParameters,
    max_sectors: u32,
    queued: usize,
}

/// An entry of the list.
#[derive(Clone, Debug)]
struct Element {
    command: Command,
    /// How often others may still be inserted before it; none at 0 and below.
    passovers: i64,
}

/// Where a request goes, by index in the list.
#[derive(Clone, Copy)]
enum Place {
    /// Merged behind this element.
    Behind(usize),
    /// Merged in front of it.
    InFrontOf(usize),
    /// Inserted as this element.
    Slot(usize),
}

impl Linus {
    /// With nothing queued. It merges requests into commands of up to `max_sectors`, the device's largest request.
    pub fn new(max_sectors: u32, parameters: LinusParameters) -> Self {
        Linus { list: VecDeque::new(), active: None, parameters, max_sectors, queued: 0 }
    }

    /// Applies rules 1 to 4.
    fn place(&self, request: &Request) -> Place {
        let mut slot = None;
        for (index, element) in self.list.iter().enumerate().rev() {
            let command = &element.command;
            if command.takes_behind(request, self.max_sectors) {
                return Place::Behind(index);
            }
            if element.passovers <= 0 {
                return Place::Slot(slot.unwrap_or(self.list.len()));
            }
            if slot.is_none() && self.is_between(request, command.start, index + 1) {
                slot = Some(index + 1);
            }
            if command.takes_in_front(request, self.max_sectors) {
                return Place::InFrontOf(index);
            }
        }
        let may_follow = |active: &&Element| self.parameters.after_active && active.passovers > 0;
        let active = self.active.as_ref().filter(may_follow);
        if slot.is_none() && active.is_some_and(|a| self.is_between(request, a.command.start, 0)) {
            slot = Some(0);
        }
        Place::Slot(slot.unwrap_or(self.list.len()))
    }

    /// Whether a request fits between an element that starts at `before` and its successor.
    fn is_between(&self, request: &Request, before: Sector, successor: usize) -> bool {
        let Some(after) = self.list.get(successor).map(|element| element.command.start) else {
            return false;
        };
        let above = request.start > before;
        let below = request.start < after;
        if before < after { above && below } else { above || below }
    }

    /// Charges passovers to all elements from `index` to the tail.
    fn charge(&mut self, index: usize, passovers: i64) {
        for element in self.list.range_mut(index..) {
            element.passovers -= passovers;
        }
    }

    /// Coalesces an element with its successor if they are contiguous.
    fn coalesce(&mut self, index: usize) {
        let (Some(element), Some(next)) = (self.list.get(index), self.list.get(index + 1)) else {
            return;
        };
        if !element.command.takes_whole(&next.command, self.max_sectors) {
            return;
        }
        if let Some(next) = self.list.remove(index + 1) {
            let element = &mut self.list[index];
            element.command.absorb(&next.command);
            element.passovers = element.passovers.min(next.passovers);
        }
    }
}

impl Elevator for Linus {
    fn name(&self) -> &'static str {
        "linus"
    }

    fn add(&mut self, _now: Nanos, request: Request) {
        self.queued += 1;
        let buffers = i64::from(request.sectors.div_ceil(BUFFER_SECTORS).max(1));
        match self.place(&request) {
            Place::Behind(index) => {
                self.list[index].command.merge_behind(&request);
                self.charge(index + 1, buffers);
                self.coalesce(index);
            }
            Place::InFrontOf(index) => {
                self.list[index].command.merge_in_front(&request);
                self.list[index].passovers -= buffers;
                self.charge(index + 1, buffers);
                if let Some(before) = index.checked_sub(1) {
                    self.coalesce(before);
                }
            }
            Place::Slot(index) => {
                let passovers = match request.direction {
                    Direction::Read => self.parameters.read_passovers,
                    Direction::Write => self.parameters.write_passovers,
                };
                self.charge(index, self.parameters.seek_cost + buffers - 1);
                self.list.insert(index, Element { command: Command::new(&request), passovers });
            }
        }
    }

    fn dispatch(&mut self, _now: Nanos) -> Dispatch {
        let Some(element) = self.list.pop_front() else {
            return Dispatch::Empty;
        };
        let command = element.command.clone();
        self.queued -= command.requests.count();
        self.active = Some(element);
        Dispatch::Command(command)
    }

    fn completed(&mut self, _now: Nanos, command: &Command) {
        if self.active.as_ref().is_some_and(|active| active.command == *command) {
            self.active = None;
        }
    }

    fn queued(&self) -> usize {
        self.queued
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{drain, read, take, write};

    fn with(starts: &[Sector]) -> Linus {
        let mut linus = Linus::new(128, LinusParameters::default());
        for (id, &start) in (0..).zip(starts) {
            linus.add(0, read(id, 0, start, 8));
        }
        linus
    }

    fn passovers(linus: &Linus) -> Vec<i64> {
        linus.list.iter().map(|element| element.passovers).collect()
    }

    #[test]
    fn rule_2_nothing_passes_a_barrier_though_it_may_be_back_merged_with() {
        let mut linus = with(&[100, 500, 900]);
        linus.list[1].passovers = 0;
        linus.add(0, read(8, 0, 300, 8));
        linus.add(0, read(9, 0, 508, 8));
        assert_eq!(linus.list[1].command.sectors, 16);
        assert_eq!(drain(&mut linus, 0), [100, 500, 900, 300]);
    }

    #[test]
    fn rule_2_in_front_of_a_barrier_nothing_is_merged() {
        let mut linus = with(&[100, 500, 900]);
        linus.list[1].passovers = -1;
        linus.add(0, read(9, 0, 492, 8));
        assert_eq!(drain(&mut linus, 0), [100, 500, 900, 492]);
    }

    #[test]
    fn rule_3_a_request_is_inserted_between_ascending_neighbours() {
        let mut linus = with(&[100, 500]);
        linus.add(0, read(9, 0, 300, 8));
        assert_eq!(drain(&mut linus, 0), [100, 300, 500]);
    }

    #[test]
    fn rule_3_the_list_wraps_above_the_highest_and_below_the_lowest() {
        let mut linus = with(&[500, 100, 200]);
        linus.add(0, read(8, 0, 900, 8));
        linus.add(0, read(9, 0, 50, 8));
        assert_eq!(drain(&mut linus, 0), [500, 900, 50, 100, 200]);
    }

    #[test]
    fn rule_3_after_the_last_element_there_is_no_slot_but_rule_6_appends() {
        assert_eq!(drain(&mut with(&[100, 500, 50]), 0), [100, 500, 50]);
    }

    #[test]
    fn rule_4_a_front_merge_costs_the_element_a_passover_for_each_buffer() {
        let mut linus = with(&[100, 500]);
        linus.add(0, read(9, 0, 484, 16));
        assert_eq!(passovers(&linus), [2048, 2046]);
    }

    #[test]
    fn rule_4_reads_do_not_merge_with_writes() {
        let mut linus = with(&[100]);
        linus.add(0, write(9, 0, 108, 8));
        assert_eq!(passovers(&linus), [2048, 8192]);
    }

    #[test]
    fn rule_5_those_behind_pay_sixteen_for_an_insertion_and_one_for_a_merge() {
        let mut linus = with(&[100, 500, 900]);
        linus.add(0, read(8, 0, 300, 8));
        assert_eq!(passovers(&linus), [2048, 2048, 2032, 2032]);
        linus.add(0, read(9, 0, 308, 8));
        assert_eq!(passovers(&linus), [2048, 2048, 2031, 2031]);
    }

    #[test]
    fn rule_5_a_window_of_31_buffers_costs_16_and_30() {
        let mut linus = Linus::new(255, LinusParameters::default());
        linus.add(0, read(0, 0, 100, 8));
        linus.add(0, read(1, 0, 9000, 8));
        linus.add(0, read(2, 0, 300, 31 * 8));
        assert_eq!(passovers(&linus), [2048, 2048, 2048 - 16 - 30]);
    }

    #[test]
    fn rule_6_neighbours_that_meet_are_coalesced_with_the_smaller_passovers() {
        let mut linus = with(&[100, 116]);
        linus.list[1].passovers = 7;
        linus.add(0, read(9, 0, 108, 8));
        assert_eq!(linus.list.len(), 1);
        assert!(linus.list[0].passovers <= 7);
        assert_eq!(linus.list[0].command.sectors, 24);
    }

    #[test]
    fn rule_2_nothing_is_inserted_behind_an_active_request_that_was_a_barrier() {
        let mut linus = with(&[100, 500, 900]);
        linus.list[0].passovers = 0;
        take(&mut linus, 0);
        linus.add(0, read(9, 0, 108, 8));
        assert_eq!(drain(&mut linus, 0), [500, 900, 108]);
    }

    #[test]
    fn a_stream_that_was_first_goes_on_after_the_others_had_their_turn() {
        let parameters = LinusParameters { read_passovers: 32, ..LinusParameters::default() };
        let mut linus = Linus::new(8, parameters);
        for (id, start) in [(0, 100), (1, 500), (2, 900)] {
            linus.add(0, read(id, 0, start, 8));
        }
        let mut order = Vec::new();
        for id in 3..13 {
            let start = take(&mut linus, 0).start;
            order.push(start / 400);
            linus.add(0, read(id, 0, start + 8, 8));
        }
        assert_eq!(order, [0, 0, 0, 1, 2, 0, 0, 0, 1, 2]);
    }

    #[test]
    fn assumption_a_window_may_follow_the_active_request() {
        for (after_active, order) in [(true, [108, 500, 900]), (false, [500, 900, 108])] {
            let parameters = LinusParameters { after_active, ..LinusParameters::default() };
            let mut linus = Linus::new(128, parameters);
            for (id, start) in [(0, 100), (1, 500), (2, 900)] {
                linus.add(0, read(id, 0, start, 8));
            }
            take(&mut linus, 0);
            linus.add(0, read(9, 0, 108, 8));
            assert_eq!(drain(&mut linus, 0), order);
        }
    }
}
