//! Reads and asynchronous writes in alternating batches.
//!
//! ```text
//!   |-- read batch, 500 ms --|drain|-- write batch, 125 ms or quota --|drain|-- read batch
//!                                                                           ^ the clock starts with
//!                                                                             its first completion
//! ```
//!
//! A batch ends only while requests of the other kind wait. The write quota adapts to how many
//! writes fit into their time. The time of a write batch ends when the first read after it
//! completes, since a disk may still be busy with writes that it has accepted.

use crate::request::Nanos;

/// Initial estimate of the time per write: ten ticks of 1 ms.
const FIRST_GUESS: Nanos = 10_000_000;

/// Whether a process waits for a request (synchronous) or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Sync,
    Async,
}

/// The current batch.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) kind: Kind,
    pub(crate) phase: Phase,
    /// When its time is up.
    expires: Nanos,
    /// How many more writes this write batch may have, and how many the next one will.
    writes_left: u32,
    quota: u32,
    /// The writes ran out before any read waited, so their time says nothing.
    uncontended: bool,
    read_expire: Nanos,
    write_expire: Nanos,
}

/// How far the batch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Waiting until the device has completed the last batch's commands.
    Draining,
    /// A read batch without a completed command yet: its clock has not started.
    Fresh,
    /// Its clock runs.
    Running,
}

impl Batch {
    pub(crate) fn new(read_expire: Nanos, write_expire: Nanos) -> Self {
        Batch {
            kind: Kind::Sync,
            phase: Phase::Running,
            expires: read_expire,
            writes_left: 0,
            quota: u32::try_from(write_expire / FIRST_GUESS).unwrap_or(u32::MAX).max(2),
            uncontended: false,
            read_expire,
            write_expire,
        }
    }

    pub(crate) fn is_over(&self, now: Nanos) -> bool {
        let out_of_quota = self.kind == Kind::Async && self.writes_left == 0;
        self.phase == Phase::Running && (now > self.expires || out_of_quota)
    }

    /// No writes wait, so the read batch may continue.
    pub(crate) fn extend(&mut self, now: Nanos) {
        self.expires = now.saturating_add(self.read_expire);
    }

    /// Chooses the kind of the next batch. If it changes, the device is drained first.
    pub(crate) fn switch(&mut self, kind: Kind) {
        if self.kind != kind {
            self.phase = Phase::Draining;
        }
        self.kind = kind;
        if kind == Kind::Async {
            self.writes_left = self.quota;
            self.uncontended = false;
        }
    }

    /// The device is drained: the batch starts.
    pub(crate) fn begin(&mut self, now: Nanos) {
        self.phase = match self.kind {
            Kind::Sync => Phase::Fresh,
            Kind::Async => {
                self.expires = now.saturating_add(self.write_expire);
                Phase::Running
            }
        };
    }

    /// No read waits; `writes_wait` tells whether writes do.
    pub(crate) fn no_reads(&mut self, writes_wait: bool) {
        if self.kind == Kind::Async && (self.writes_left == 0 || !writes_wait) {
            self.uncontended = true;
        }
    }

    pub(crate) fn dispatched(&mut self, kind: Kind) {
        if kind == Kind::Async {
            self.writes_left = self.writes_left.saturating_sub(1);
        }
    }

    pub(crate) fn completed(&mut self, now: Nanos, kind: Kind) {
        if self.phase == Phase::Fresh && kind == self.kind {
            self.learn_quota(now);
            self.phase = Phase::Running;
            self.extend(now);
        }
    }

    /// Adjusts the quota. The write batch really ends now.
    fn learn_quota(&mut self, now: Nanos) {
        let took = now.saturating_add(self.write_expire).saturating_sub(self.expires);
        if took > self.write_expire && !self.uncontended {
            let halve = took > 3 * self.write_expire;
            self.quota = if halve { self.quota / 2 } else { self.quota - 1 };
        } else if took < self.write_expire && self.writes_left == 0 {
            let double = self.write_expire > 3 * took;
            self.quota = self.quota.saturating_add(if double { self.quota } else { 1 });
        }
        self.quota = self.quota.max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::MS;

    /// The quota after a batch of `writes` writes that took `took`.
    fn quota_after(writes: u32, took: Nanos) -> u32 {
        let mut batch = Batch::new(500 * MS, 125 * MS);
        batch.switch(Kind::Async);
        batch.begin(1000 * MS);
        for _ in 0..writes {
            batch.dispatched(Kind::Async);
        }
        batch.switch(Kind::Sync);
        batch.begin(1000 * MS);
        batch.completed(1000 * MS + took, Kind::Sync);
        batch.quota
    }

    #[test]
    fn the_quota_of_writes_begins_with_a_tenth_of_their_time() {
        assert_eq!(Batch::new(500 * MS, 125 * MS).quota, 12);
    }

    #[test]
    fn the_quota_shrinks_when_writes_take_too_long() {
        assert_eq!(quota_after(12, 126 * MS), 11);
        assert_eq!(quota_after(12, 376 * MS), 6);
    }

    #[test]
    fn the_quota_grows_when_it_is_used_up_early() {
        assert_eq!(quota_after(12, 100 * MS), 13);
        assert_eq!(quota_after(12, 41 * MS), 24);
        assert_eq!(quota_after(5, 41 * MS), 12, "not used up");
    }

    #[test]
    fn the_clock_of_a_read_batch_starts_with_its_first_completion() {
        let mut batch = Batch::new(500 * MS, 125 * MS);
        batch.switch(Kind::Async);
        batch.begin(0);
        batch.switch(Kind::Sync);
        assert_eq!(batch.phase, Phase::Draining);
        batch.begin(10 * MS);
        assert!(!batch.is_over(5000 * MS));
        batch.completed(5000 * MS, Kind::Sync);
        assert!(!batch.is_over(5500 * MS));
        assert!(batch.is_over(5501 * MS));
    }
}
