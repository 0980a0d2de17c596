//! A queue of requests sorted by sector, also searchable by age and for merging.
//!
//! ```text
//!   by start    100      240      700 ...    the sweep: lowest, successor, predecessor
//!   by end          108      248      764    which command ends where a new request begins?
//!   by ticket     #2       #0       #1       arrival order; the smallest is the oldest
//! ```
//!
//! A ticket still identifies its command after requests merge with it. If a merge makes two
//! commands contiguous, they coalesce and keep the older ticket.

use std::collections::{BTreeMap, BTreeSet};

use crate::request::{Command, Nanos, ProcessId, Request, Sector};

/// Identifies a command in a queue. Smaller tickets are older.
pub(crate) type Ticket = u64;

/// A queued command.
#[derive(Debug)]
pub(crate) struct Queued {
    pub(crate) command: Command,
    /// When its first request arrived.
    pub(crate) arrived: Nanos,
    /// Whether a process waits for it.
    pub(crate) is_sync: bool,
}

/// The result of a merge.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Merged {
    pub(crate) into: Ticket,
    /// The ticket that disappeared, if two commands coalesced.
    pub(crate) absorbed: Option<Ticket>,
    /// The process whose command disappeared.
    pub(crate) lost_by: Option<ProcessId>,
}

/// The queue.
#[derive(Debug, Default)]
pub(crate) struct SortedQueue {
    by_ticket: BTreeMap<Ticket, Queued>,
    by_start: BTreeSet<(Sector, Ticket)>,
    by_end: BTreeSet<(Sector, Ticket)>,
    next_ticket: Ticket,
    requests: usize,
}

impl SortedQueue {
    /// Number of requests (not commands).
    pub(crate) fn requests(&self) -> usize {
        self.requests
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_ticket.is_empty()
    }

    pub(crate) fn get(&self, ticket: Ticket) -> Option<&Queued> {
        self.by_ticket.get(&ticket)
    }

    /// First sector of a command. The ticket must be valid.
    pub(crate) fn start(&self, ticket: Ticket) -> Sector {
        self.by_ticket[&ticket].command.start
    }

    /// The command that arrived first.
    pub(crate) fn oldest(&self) -> Option<Ticket> {
        self.by_ticket.first_key_value().map(|(&ticket, _)| ticket)
    }

    /// The oldest command, if it has waited for `age`.
    pub(crate) fn overdue(&self, now: Nanos, age: Nanos) -> Option<Ticket> {
        let (&ticket, queued) = self.by_ticket.first_key_value()?;
        (now >= queued.arrived.saturating_add(age)).then_some(ticket)
    }

    /// The command with the lowest sector.
    pub(crate) fn lowest(&self) -> Option<Ticket> {
        self.by_start.first().map(|&(_, ticket)| ticket)
    }

    /// The lowest command at `sector` or above.
    pub(crate) fn at_or_above(&self, sector: Sector) -> Option<Ticket> {
        self.by_start.range((sector, 0)..).next().map(|&(_, ticket)| ticket)
    }

    /// The highest command below `sector`.
    pub(crate) fn below(&self, sector: Sector) -> Option<Ticket> {
        self.by_start.range(..(sector, 0)).next_back().map(|&(_, ticket)| ticket)
    }

    /// The command after this one in order of sectors.
    pub(crate) fn successor(&self, ticket: Ticket) -> Option<Ticket> {
        let after = (self.start(ticket), ticket + 1);
        self.by_start.range(after..).next().map(|&(_, ticket)| ticket)
    }

    /// Queues a request as a command of its own.
    pub(crate) fn insert(&mut self, now: Nanos, request: &Request) -> Ticket {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.requests += 1;
        let command = Command::new(request);
        self.link(ticket, Queued { command, arrived: now, is_sync: request.is_sync });
        ticket
    }

    /// Merges a request with a contiguous command, at the back if possible.
    pub(crate) fn merge(&mut self, request: &Request, max_sectors: u32) -> Option<Merged> {
        let behind = self
            .ending_at(request.start)
            .find(|&(_, command)| command.takes_behind(request, max_sectors))
            .map(|(ticket, _)| ticket);
        let ticket = behind.or_else(|| {
            self.starting_at(request.end())
                .find(|&(_, command)| command.takes_in_front(request, max_sectors))
                .map(|(ticket, _)| ticket)
        })?;
        let mut queued = self.unlink(ticket)?;
        if behind.is_some() {
            queued.command.merge_behind(request);
        } else {
            queued.command.merge_in_front(request);
        }
        self.requests += 1;
        Some(self.relink(ticket, queued, max_sectors))
    }

    /// Removes a command.
    pub(crate) fn remove(&mut self, ticket: Ticket) -> Option<Queued> {
        let queued = self.unlink(ticket)?;
        self.requests -= queued.command.requests.count();
        Some(queued)
    }

    /// Returns a grown command to the queue and coalesces it with a neighbour that became
    /// contiguous.
    fn relink(&mut self, ticket: Ticket, mut grown: Queued, max_sectors: u32) -> Merged {
        let after = self
            .starting_at(grown.command.end())
            .find(|&(_, command)| grown.command.takes_whole(command, max_sectors))
            .map(|(other, _)| other);
        let before = self
            .ending_at(grown.command.start)
            .find(|&(_, command)| command.takes_whole(&grown.command, max_sectors))
            .map(|(other, _)| other);
        let Some(other) = after.or(before) else {
            self.link(ticket, grown);
            return Merged { into: ticket, absorbed: None, lost_by: None };
        };
        let mut lost_by = None;
        if let Some(mut neighbour) = self.unlink(other) {
            let arrived = grown.arrived.min(neighbour.arrived);
            if after.is_none() {
                std::mem::swap(&mut grown, &mut neighbour);
            }
            grown.command.absorb(&neighbour.command);
            lost_by = Some(neighbour.command.process);
            grown.arrived = arrived;
        }
        let into = ticket.min(other);
        self.link(into, grown);
        Merged { into, absorbed: Some(ticket.max(other)), lost_by }
    }

    /// Enters a command into all three orders.
    fn link(&mut self, ticket: Ticket, queued: Queued) {
        self.by_start.insert((queued.command.start, ticket));
        self.by_end.insert((queued.command.end(), ticket));
        self.by_ticket.insert(ticket, queued);
    }

    /// Takes it out of them.
    fn unlink(&mut self, ticket: Ticket) -> Option<Queued> {
        let queued = self.by_ticket.remove(&ticket)?;
        self.by_start.remove(&(queued.command.start, ticket));
        self.by_end.remove(&(queued.command.end(), ticket));
        Some(queued)
    }

    fn starting_at(&self, sector: Sector) -> impl Iterator<Item = (Ticket, &Command)> {
        self.named(self.by_start.range((sector, 0)..=(sector, Ticket::MAX)))
    }

    fn ending_at(&self, sector: Sector) -> impl Iterator<Item = (Ticket, &Command)> {
        self.named(self.by_end.range((sector, 0)..=(sector, Ticket::MAX)))
    }

    fn named<'a>(
        &'a self,
        tickets: impl Iterator<Item = &'a (Sector, Ticket)>,
    ) -> impl Iterator<Item = (Ticket, &'a Command)> {
        tickets.map(|&(_, ticket)| (ticket, &self.by_ticket[&ticket].command))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::read;

    #[test]
    fn a_request_that_fills_a_gap_makes_one_command_of_three() {
        let mut queue = SortedQueue::default();
        queue.insert(5, &read(0, 0, 16, 8));
        queue.insert(9, &read(1, 0, 0, 8));
        let merged = queue.merge(&read(2, 0, 8, 8), 128).unwrap();
        assert_eq!((merged.into, merged.absorbed), (0, Some(1)));
        let queued = queue.remove(0).unwrap();
        assert_eq!((queued.command.start, queued.command.sectors, queued.arrived), (0, 24, 5));
        assert_eq!((queue.requests(), queue.is_empty()), (0, true));
    }

    #[test]
    fn a_ticket_outlives_a_merge_in_front() {
        let mut queue = SortedQueue::default();
        let ticket = queue.insert(0, &read(0, 0, 16, 8));
        queue.merge(&read(1, 0, 8, 8), 128);
        assert_eq!(queue.start(ticket), 8);
        assert_eq!(queue.at_or_above(9), None);
    }

    #[test]
    fn requests_at_the_same_sector_follow_each_other_by_age() {
        let mut queue = SortedQueue::default();
        let first = queue.insert(0, &read(0, 0, 16, 8));
        let second = queue.insert(0, &read(1, 0, 16, 8));
        assert_eq!(queue.successor(first), Some(second));
        assert_eq!(queue.successor(second), None);
    }
}
