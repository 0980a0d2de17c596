//! The requests of one kind: sorted, by age, and where the head last left them.

use crate::request::{Nanos, ProcessId, Request, Sector};
use crate::sorted::{Queued, SortedQueue, Ticket};
use crate::sweep;

/// How far back a seek may go within a sweep: 512 MiB.
const MOST_BACK: Sector = 1024 * 1024;

/// The requests.
#[derive(Debug)]
pub(crate) struct Lane {
    queue: SortedQueue,
    /// End of the last command of this kind.
    pub(crate) head: Sector,
    last_check: Nanos,
    expire: Nanos,
}

/// What became of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Added {
    Queued(Ticket),
    /// Perhaps two commands were coalesced by it, one of them of process `lost_by`.
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

    /// Queues a request, merged if possible.
    pub(crate) fn add(&mut self, now: Nanos, request: &Request, max_sectors: u32) -> Added {
        match self.queue.merge(request, max_sectors) {
            Some(merged) => Added::Merged { lost_by: merged.lost_by },
            None => Added::Queued(self.queue.insert(now, request)),
        }
    }

    /// The next of the sweep, as of now.
    pub(crate) fn next(&self) -> Option<Ticket> {
        sweep::next(&self.queue, self.head, MOST_BACK)
    }

    /// The oldest if it has expired; looked at no more often than requests expire.
    pub(crate) fn overdue(&mut self, now: Nanos) -> Option<Ticket> {
        if now < self.last_check.saturating_add(self.expire) {
            return None;
        }
        self.last_check = now;
        self.queue.overdue(now, self.expire)
    }

    /// The oldest, to begin a batch with.
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
