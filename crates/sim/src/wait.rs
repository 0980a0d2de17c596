//! Waiting: for a transfer, for less to be dirty, for a frame; and who is woken when.
//!
//! A frame can be had when a page on its way has arrived or was written, or when one that was kept for
//! its reader has been used. One process is woken for each: if all of them looked again each time,
//! thousands would do so in vain for the one that finds it.

use readahead::Nanos;

use crate::block::NOBODY;
use crate::machine::Machine;

impl Machine {
    /// Too much is dirty.
    pub(crate) fn wait_for_writeback(&mut self, now: Nanos, number: u32) {
        self.processes[number as usize].waits_since = now;
        self.writeback.throttled.push(number);
        self.flush(now);
        self.block.dispatch(now);
    }

    /// No frame is free: all are on their way, dirty or kept for their readers.
    pub(crate) fn wait_for_memory(&mut self, now: Nanos, number: u32) {
        self.processes[number as usize].waits_since = now;
        self.writeback.starved.push_back(number);
        self.flush(now);
        self.block.dispatch(now);
    }

    /// Those who wait for a transfer, `first` and the chain behind it, go on.
    pub(crate) fn wake_waiters(&mut self, now: Nanos, first: u32) {
        let mut waiter = first;
        while waiter != NOBODY {
            let process = &mut self.processes[waiter as usize];
            let next = std::mem::replace(&mut process.next_waiter, NOBODY);
            self.wake(now, waiter);
            waiter = next;
        }
    }

    /// Less is dirty: whoever waits for that goes on.
    pub(crate) fn let_write(&mut self, now: Nanos) {
        for number in std::mem::take(&mut self.writeback.throttled) {
            self.wake(now, number);
        }
    }

    /// So many frames can be had: as many of those who wait for one look again, who wait longest.
    pub(crate) fn feed(&mut self, now: Nanos, frames: u64) {
        for _ in 0..frames {
            let Some(number) = self.writeback.starved.pop_front() else { return };
            self.wake(now, number);
        }
    }

    /// A page was used or written to. While nothing is on its way, that alone tells those who wait for a
    /// frame that there may be one: the page's own, or one that its reader did not need after all. Tells
    /// whether one of them was woken.
    #[inline]
    pub(crate) fn feed_if_idle(&mut self, now: Nanos) -> bool {
        if self.writeback.starved.is_empty() || !self.is_idle() {
            return false;
        }
        self.cache.look_again();
        self.feed(now, 1);
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
