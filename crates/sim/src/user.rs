//! A policy outside the kernel, on top of the kernel's own: it hears of misses and marks, and what
//! it asks for reaches the page cache a little later.

use std::collections::VecDeque;

use readahead::{Cause, Nanos, Page, Plan, Policy};

/// From an access to pages asked for: an event through a ring buffer and a system call.
pub const REACTION_NS: Nanos = 100_000;

/// A stream or region not read for so long is forgotten, as the live body does.
const IDLE_NS: Nanos = 10_000_000_000;

/// How often idle state is searched for.
const HOUSEKEEPING_NS: Nanos = 1_000_000_000;

/// A read that was decided and has not reached the page cache.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Due {
    pub(crate) at: Nanos,
    pub(crate) file: u32,
    pub(crate) open: u32,
    pub(crate) start: Page,
    pub(crate) pages: u64,
    pub(crate) cause: Cause,
}

/// The policy and what it has under way.
pub(crate) struct User {
    pub(crate) policy: Box<dyn Policy>,
    pub(crate) plan: Plan,
    /// In the order they fall due.
    due: VecDeque<Due>,
    reaction: Nanos,
    tidied: Nanos,
}

impl User {
    pub(crate) fn new(policy: Box<dyn Policy>, reaction: Nanos) -> Self {
        User { policy, plan: Plan::new(), due: VecDeque::new(), reaction, tidied: 0 }
    }

    /// Notes a read that was decided just now; it falls due when the reaction time has passed.
    pub(crate) fn decide(&mut self, due: Due) {
        self.due.push_back(Due { at: due.at + self.reaction, ..due });
    }

    /// When the next read falls due.
    pub(crate) fn next_event(&self) -> Option<Nanos> {
        self.due.front().map(|due| due.at)
    }

    /// Takes the next read that is due at `now`.
    pub(crate) fn take_due(&mut self, now: Nanos) -> Option<Due> {
        self.due.front().filter(|due| due.at <= now)?;
        self.due.pop_front()
    }

    /// Forgets what has been idle, now and then.
    pub(crate) fn tidy(&mut self, now: Nanos) {
        if now.saturating_sub(self.tidied) >= HOUSEKEEPING_NS {
            self.tidied = now;
            self.policy.forget_idle(now, IDLE_NS);
        }
    }
}
