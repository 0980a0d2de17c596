//! Waiting for a transfer, for fewer dirty pages, or for a frame; and waking processes.
//!
//! A frame becomes available when a page in flight arrives or was written, or when a page that was kept for its reader
//! has been used. Each frame wakes one process. If all woke each time, thousands would search in vain for the one that
//! finds it.

use readahead::Nanos;

use crate::block::NO_WAITER;
use crate::machine::Machine;

impl Machine {
    /// Makes a process wait because too many pages are dirty.
    pub(crate) fn wait_for_writeback(&mut self, now: Nanos, number: u32) {
        self.processes[number as usize].waits_since = now;
        self.writeback.throttled.push(number);
        self.flush(now);
        self.block.dispatch(now);
    }

    /// Makes a process wait because no frame is free: all are in flight, dirty or kept for their readers.
    pub(crate) fn wait_for_memory(&mut self, now: Nanos, number: u32) {
        self.processes[number as usize].waits_since = now;
        self.writeback.starved.push_back(number);
        self.flush(now);
        self.block.dispatch(now);
    }

    /// Wakes the processes that wait for a transfer: `first`, and the chain behind it.
    pub(crate) fn wake_waiters(&mut self, now: Nanos, first: u32) {
        let mut waiter = first;
        while waiter != NO_WAITER {
            let process = &mut self.processes[waiter as usize];
            let next = std::mem::replace(&mut process.next_waiter, NO_WAITER);
            self.wake(now, waiter);
            waiter = next;
        }
    }

    /// Wakes writers because fewer pages are dirty.
    pub(crate) fn wake_writers(&mut self, now: Nanos) {
        for number in std::mem::take(&mut self.writeback.throttled) {
            self.wake(now, number);
        }
    }

    /// `frames` are available: wakes as many of the processes that wait for one, the longest waiting first.
    pub(crate) fn wake_for_frames(&mut self, now: Nanos, frames: u64) {
        for _ in 0..frames {
            let Some(number) = self.writeback.starved.pop_front() else { return };
            self.wake(now, number);
        }
    }

    /// A page was used or written. While nothing is in flight, only this shows that a frame may be available: that of
    /// the page, or one that its reader did not need after all. Returns whether a process was woken.
    #[inline]
    pub(crate) fn feed_if_idle(&mut self, now: Nanos) -> bool {
        if self.writeback.starved.is_empty() || !self.is_idle() {
            return false;
        }
        self.cache.retry_reclaim();
        self.wake_for_frames(now, 1);
        true
    }

    /// Whether no transfer is queued or under way.
    fn is_idle(&self) -> bool {
        self.block.reads() == 0 && self.writeback.writes == 0
    }

    fn wake(&mut self, now: Nanos, number: u32) {
        let process = &mut self.processes[number as usize];
        process.outcome.stalled += now - process.waits_since;
        process.outcome.stalls += 1;
        self.wake_at(now + self.cpu.wake, number);
    }
}
