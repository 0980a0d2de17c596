//! How many pages may be ahead of readers, and how streams share them.
//!
//! ```text
//!   memory   |------- a quarter: the budget -------|------- as much again -------|---- ... ----|
//!   alone    |<------------------- one reader of read(2) ----------------------->|
//!   several  |<------- own ------->|<------- what others have ahead, or 4/5 of it --->|
//!            |<- twice its share ->|     once half of the budget is out
//! ```
//!
//! The kernel evicts a page once as many newer pages have come as memory holds. Before a lone reader
//! reaches its page, only its own pages come. Half of memory is then as safe as a quarter, and twice as
//! fast where a device access takes long. Where the budget is ample for the device, more would gain
//! nothing and evict the pages of other files.
//!
//! As many pages come as all readers pass. A reader that passes the share `s` of them keeps what it has
//! ahead up to `s` times what memory holds. It may have twice that share: it may have been held back, and
//! a window that is asked for when the last one is used up is half used on average. It may always have
//! the minimum read-ahead, as a reader with a tiny share would otherwise wait for each request and get an
//! even smaller share. While less than half of the budget is out, no reader is in another's way.
//!
//! Readers that go on ask for as much as they use. A reader that comes when all is taken would wait
//! until another one stops. So a reader below its share counts four fifths of what others have ahead,
//! and finds a fifth free.

use super::device::Device;
use super::kernel_window::KERNEL_WINDOW_PAGES;
use super::rules::{Rule, Rules};
use crate::access::Via;
use crate::tally::Tally;

/// Twice the kernel's default window: less is not worth asking for.
pub(super) const MIN_READ_AHEAD_PAGES: u64 = 2 * KERNEL_WINDOW_PAGES as u64;

/// A reader that is alone may have this many times the budget ahead: half of memory, as the budget is a quarter.
const ALONE: u64 = 2;

/// A reader below its share counts what others have ahead less by one part in this many.
const NEWCOMERS_SHARE: u64 = 5;

/// A reader may have this many times its share of what may be ahead (the reasons are above).
const OF_ITS_SHARE: f64 = 2.0;

/// Windows that a stream has ahead at most: the one that is being read, and the next.
const WINDOWS_OUT: u64 = 2;

/// What a stream that asks for pages has already, and how fast its reader is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claim {
    /// Pages it has ahead.
    pub(super) own: u64,
    /// Pages of the current access. The reader passes them before those that are ahead.
    pub(super) request: u64,
    /// Its reader's share of all pages that readers pass, from 0 to 1.
    pub(super) share: f64,
}

/// What one plan may ask for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Allowance {
    /// Pages that may be ahead of all readers together.
    pub(super) budget: u64,
    /// The most pages of one window: what the body has room for, and at most the limit of a plan.
    pub(super) window: u64,
    /// Pages of a contiguous stream that the readers' account pays for at once.
    pub(super) stream_credit: u64,
    /// Pages of anything that the account pays for at once.
    pub(super) credit: u64,
    /// The access comes through a mapping. The kernel scans mapped pages twice before it evicts them, so that they
    /// take twice the memory: a reader alone gets no more than the budget.
    pub(super) is_mapped: bool,
    /// Pages of a window that takes much longer to transfer than to access; 0 to grant a reader alone no more than the
    /// budget.
    pub(super) ample: u64,
    /// The device serves one access at a time. Where accesses overlap, a stream has at most two windows ahead.
    pub(super) is_serial: bool,
    /// A reader below its share counts less of what others have ahead.
    pub(super) favours_newcomers: bool,
    /// A reader may have at most twice its share ahead.
    pub(super) is_shared: bool,
}

impl Allowance {
    /// What depends on the device and the way of reading only: nothing is allowed yet.
    pub(super) fn on(device: &Device, via: Via, rules: &Rules) -> Self {
        Allowance {
            is_mapped: via == Via::Mmap,
            ample: if rules.have(Rule::Alone) { device.ample_pages } else { 0 },
            is_serial: device.pages.is_serial || !rules.have(Rule::WindowsOut),
            favours_newcomers: rules.have(Rule::Newcomers),
            is_shared: rules.have(Rule::Shares),
            ..Allowance::default()
        }
    }

    /// Pages of a region that may be asked for now.
    pub(super) fn for_region(&self, tally: &Tally) -> u64 {
        self.most().saturating_sub(tally.ahead_pages()).min(self.window)
    }

    /// The budget with which all readers together have at most `all` pages ahead. One reader alone has at most twice
    /// the budget. The last to come counts four fifths of what others have towards that, so all reach 5/4 of it.
    pub(super) fn budget_within(all: u64) -> u64 {
        all / (ALONE * NEWCOMERS_SHARE) * (NEWCOMERS_SHARE - 1)
    }

    /// Pages that may be ahead of a reader that is alone.
    fn most(&self) -> u64 {
        let ample = if self.is_mapped { 0 } else { WINDOWS_OUT.saturating_mul(self.ample) };
        self.budget.max(ample.min(self.budget.saturating_mul(ALONE)))
    }

    /// Pages that a stream with this claim may ask for now. `tally` tells what is ahead of all readers.
    pub(super) fn for_stream(&self, claim: Claim, tally: &Tally) -> u64 {
        let own = claim.own;
        let share = self.most() as f64 * claim.share;
        let others = tally.ahead_pages().saturating_sub(own);
        let held = own + claim.request;
        let is_behind = (held as f64) < share;
        let is_favoured = is_behind && self.favours_newcomers;
        let counted = if is_favoured { others - others / NEWCOMERS_SHARE } else { others };
        let left = self.most().saturating_sub(own + counted);
        // A reader that gets nothing waits for each request. It passes less and less, and its share shrinks further.
        let minimum = MIN_READ_AHEAD_PAGES.saturating_sub(own);
        let fair = ((share * OF_ITS_SHARE) as u64).saturating_sub(held).max(minimum);
        // While little is ahead, nobody is in another's way, and a reader may exceed its share.
        let unclaimed = (self.budget / 2).saturating_sub(tally.ahead_pages());
        let windows = if self.is_serial {
            self.window
        } else {
            self.window.saturating_mul(WINDOWS_OUT).saturating_sub(own)
        };
        let fair = if self.is_shared { fair.max(unclaimed) } else { u64::MAX };
        left.min(fair).min(self.window).min(windows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A network volume that streams 610 pages during one device access: two such windows are more than most
    /// budgets here.
    const AMPLE: u64 = 4882;

    fn room(window: u64) -> Allowance {
        Allowance {
            budget: 1000,
            window,
            ample: AMPLE,
            favours_newcomers: true,
            is_shared: true,
            ..Allowance::default()
        }
    }

    /// It passes as much as each of the others.
    fn one_of(readers: u64, own: u64) -> Claim {
        Claim { own, request: 16, share: 1.0 / readers as f64 }
    }

    /// It passes all that is passed.
    fn alone(own: u64) -> Claim {
        Claim { own, request: 1, share: 1.0 }
    }

    fn ahead(pages: u64) -> Tally {
        Tally { asked_pages: pages, ..Tally::default() }
    }

    #[test]
    fn a_reader_alone_has_twice_the_budget_and_one_that_comes_later_a_fifth_of_that() {
        let room = room(u64::MAX);
        assert_eq!(room.for_stream(alone(0), &ahead(0)), 2000);
        assert_eq!(room.for_stream(alone(1500), &ahead(1500)), 500);
        assert_eq!(room.for_stream(alone(0), &ahead(2000)), 400);
        assert_eq!(room.for_stream(alone(400), &ahead(2400)), 0);
        assert_eq!(room.for_stream(alone(1600), &ahead(2000)), 80, "it makes room as it reads on");
    }

    #[test]
    fn a_reader_alone_has_no_more_than_the_budget_where_that_is_ample() {
        let pages = |budget| Allowance { budget, ..room(u64::MAX) }.for_stream(alone(0), &ahead(0));
        assert_eq!(pages(4_000), 8_000);
        assert_eq!(pages(6_000), 2 * AMPLE);
        assert_eq!(pages(100_000), 100_000);
    }

    #[test]
    fn one_of_many_has_twice_its_share_once_half_of_the_budget_is_out() {
        let room = room(u64::MAX);
        assert_eq!(room.for_stream(one_of(10, 0), &ahead(0)), 500);
        assert_eq!(room.for_stream(one_of(10, 0), &ahead(500)), 384);
        assert_eq!(room.for_stream(one_of(10, 300), &ahead(800)), 84);
        assert_eq!(room.for_stream(one_of(10, 400), &ahead(900)), 0);
    }

    #[test]
    fn who_has_less_than_its_share_finds_room_when_others_have_taken_all() {
        let room = room(u64::MAX);
        assert_eq!(room.for_stream(one_of(10, 200), &ahead(2000)), 0, "it has its share");
        assert_eq!(room.for_stream(one_of(10, 0), &ahead(2000)), 384);
    }

    #[test]
    fn who_waits_for_each_request_finds_a_minimum_as_long_as_there_is_room() {
        let slow = |own| Claim { own, request: 1, share: 1e-3 };
        let room = room(u64::MAX);
        assert_eq!(room.for_stream(slow(0), &ahead(600)), MIN_READ_AHEAD_PAGES);
        assert_eq!(room.for_stream(slow(MIN_READ_AHEAD_PAGES), &ahead(600)), 0, "it has one");
        assert_eq!(room.for_stream(slow(0), &ahead(2500)), 0, "all is out");
    }

    #[test]
    fn readers_in_step_all_find_room_and_together_take_no_more_than_there_is() {
        const ALL: u64 = 20_000;
        let room = Allowance { budget: Allowance::budget_within(ALL), ..room(u64::MAX) };
        for readers in [1, 2, 5, 20] {
            let mut windows = vec![0; readers as usize];
            let mut out = 0;
            // Each uses half of what it has, and asks for as much as it may.
            for _ in 0..20 {
                for own in &mut windows {
                    out -= *own - *own / 2;
                    *own /= 2;
                    let more = room.for_stream(one_of(readers, *own), &ahead(out));
                    (*own, out) = (*own + more, out + more);
                    assert!(out <= ALL, "{readers}: {out}");
                }
            }
            let least = windows.iter().min().expect("there is one");
            assert!(*least > ALL / readers / 4, "{windows:?}");
        }
    }

    #[test]
    fn what_is_mapped_stays_and_leaves_the_budget() {
        let mapped = Allowance { is_mapped: true, ..room(u64::MAX) };
        assert_eq!(mapped.for_stream(alone(600), &ahead(600)), 400);
    }

    #[test]
    fn a_stream_has_two_of_the_bodys_windows_out() {
        let room = room(100);
        assert_eq!(room.for_stream(alone(0), &ahead(0)), 100);
        assert_eq!(room.for_stream(alone(150), &ahead(150)), 50);
        assert_eq!(room.for_stream(alone(200), &ahead(200)), 0);
        let disk = Allowance { is_serial: true, ..room };
        assert_eq!(disk.for_stream(alone(200), &ahead(200)), 100);
    }

    #[test]
    fn a_region_is_filled_with_what_is_left() {
        assert_eq!(room(500).for_region(&ahead(0)), 500);
        assert_eq!(room(u64::MAX).for_region(&ahead(1900)), 100);
        assert_eq!(room(u64::MAX).for_region(&ahead(2500)), 0);
    }
}
