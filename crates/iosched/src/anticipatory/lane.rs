//! The queued requests of one kind, sorted by sector and by age, and the head position they left.

use crate::request::{Nanos, ProcessId, Request, Sector};
use crate::sorted::{Queued, SortedQueue, Ticket};
use crate::sweep;

/// How far back a seek may go within a sweep: 512 MiB.
const MOST_BACK: Sector = 1024 * 1024;

/// Queued requests of one kind.
#[derive(Debug)]
pub(crate) struct Lane {
    queue: SortedQueue,
    /// End of the last command of this kind.
    pub(crate) head: Sector,
    /// When the age of the oldest was last looked at.
    last_check: Nanos,
    /// Age at which a command is served first, and the time between two such looks.
    expire: Nanos,
}

/// What happened to an added request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Added {
    Queued(Ticket),
    /// It was merged. If that coalesced two commands, `lost_by` is the process that lost one.
    Merged {
        lost_by: Option<ProcessId>,
    },
}

impl Lane {
    pub(crate) fn new(expire: Nanos) -> Self {
        Lane { queue: SortedQueue::default(), head: 0, last_check: 0, expire }
    }

    pub(crate) fn queue(&self) -> &SortedQueue {
        &self.queue
    }

    /// Queues a request and merges it if possible.
    pub(crate) fn add(&mut self, now: Nanos, request: &Request, max_sectors: u32) -> Added {
        match self.queue.merge(request, max_sectors) {
            Some(merged) => Added::Merged { lost_by: merged.lost_by },
            None => Added::Queued(self.queue.insert(now, request)),
        }
    }

    /// The next command of the sweep.
    pub(crate) fn next(&self) -> Option<Ticket> {
        sweep::next(&self.queue, self.head, MOST_BACK)
    }

    /// The oldest command if it has expired. Checked at most once per expiry time.
    pub(crate) fn overdue(&mut self, now: Nanos) -> Option<Ticket> {
        if now < self.last_check.saturating_add(self.expire) {
            return None;
        }
        self.last_check = now;
        self.queue.overdue(now, self.expire)
    }

    /// The oldest command, which begins a batch.
    pub(crate) fn oldest(&mut self, now: Nanos) -> Option<Ticket> {
        self.last_check = now;
        self.queue.oldest()
    }

    pub(crate) fn take(&mut self, ticket: Ticket) -> Option<Queued> {
        let queued = self.queue.remove(ticket)?;
        self.head = queued.command.end();
        Some(queued)
    }
}
