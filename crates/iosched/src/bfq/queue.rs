//! The requests of one process, its record of service, and whether idling for it pays.

use crate::average::Average;
use crate::request::{Nanos, Request, Sector};
use crate::sorted::SortedQueue;

/// Distance in sectors from which an access counts as a seek: 400 KiB.
const SEEK_SECTORS: Sector = 8 * 100;

/// A process is seeky if more than this many of its last 32 accesses were seeks.
const MOST_SEEKS: u32 = 19;

/// Longer think times count as this, in multiples of `slice_idle`.
const MOST_THINK_SLICES: Nanos = 2;

/// The queue.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    pub(crate) requests: SortedQueue,
    /// Virtual start and finish of the requested service.
    pub(crate) start: u64,
    pub(crate) finish: u64,
    /// Whether it competes: it has requests or is in service.
    pub(crate) is_busy: bool,
    pub(crate) in_flight: u32,
    pub(crate) exited: bool,
    pub(crate) last_completion: Option<Nanos>,
    /// End of its last request.
    last_end: Option<Sector>,
    /// One bit for each recent access, set if it was a seek.
    seeks: u32,
    /// Think times in nanoseconds.
    think: Average,
}

impl Queue {
    /// Records a request. Call this before it is queued.
    pub(crate) fn observe(&mut self, now: Nanos, request: &Request, slice_idle: Nanos) {
        if let Some(end) = self.last_end {
            let is_seek = request.start.abs_diff(end) > SEEK_SECTORS;
            self.seeks = self.seeks << 1 | u32::from(is_seek);
        }
        self.last_end = Some(request.end());
        if self.requests.is_empty()
            && self.in_flight == 0
            && let Some(done) = self.last_completion
        {
            let thought = now.saturating_sub(done);
            self.think.add(thought.min(MOST_THINK_SLICES * slice_idle));
        }
    }

    pub(crate) fn is_seeky(&self) -> bool {
        self.seeks.count_ones() > MOST_SEEKS
    }

    /// Whether the next request is likely to come soon and nearby.
    pub(crate) fn is_worth_idling(&self, slice_idle: Nanos) -> bool {
        let comes_soon = self.think.mean().is_none_or(|mean| mean <= slice_idle);
        !self.exited && !self.is_seeky() && comes_soon
    }

    pub(crate) fn completed(&mut self, now: Nanos) {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.last_completion = Some(now);
    }
}
