//! The account of a group of readers on one volume: what reading ahead has saved and cost, in seconds of the device,
//! and how much more it may cost.
//!
//! ```text
//!   first credit, 1 s ----.                          .--> a slice or a window: its price
//!   3 % of the time  -----+--> credit, 2 s at most --+
//!   a share of what is    |                          '<-- its price again, as far as it is used
//!   saved ----------------'
//! ```
//!
//! Each request is paid for at once, so it counts as lost until it is used. Nothing is requested beyond what the credit
//! pays for. So if prices and savings are right, losses exceed savings by no more than the first credit and 3 % of the
//! time (`docs/adaptive.md` says where they are not right).
//!
//! Each group of readers has accounts of its own: a memory cgroup with a limit, or else one user's processes in one
//! cgroup. No group spends the credit of another.

use serde::{Deserialize, Serialize};

use crate::access::Nanos;
use crate::cost::DeviceCost;
use crate::figures;

/// What may be lost on an unknown volume, in seconds. A disk reads 100 MB in this time.
const FIRST_CREDIT_S: f64 = 1.0;

/// The part of the credit that streams leave to regions, in seconds: a stream begins to save with its first window, a
/// region only when much of it is read.
const OF_REGIONS_S: f64 = 0.75;

/// The most that may be lost at once, in seconds, however much was saved before.
const MOST_CREDIT_S: f64 = 2.0;

/// Seconds by which the credit grows each second. Readers that lose all of it take `1 / (1 - 0.029) = 1.03` times as
/// long: 3 % more.
const SHARE_OF_TIME: f64 = 0.029;

/// The share of savings that may be lost again. The rest is a margin, since savings are overestimated: some pages that
/// count as used would have been in memory anyway.
const SHARE_OF_SAVED: f64 = 0.5;

/// The share of the credit that one request may spend, so that something is left for others.
const SHARE_AT_ONCE: f64 = 0.5;

figures! {
    /// What an account holds.
    #[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(default)] // an older bowwave may lack one
    pub struct Balance {
        /// Seconds that readers would have waited for the device, and did not.
        pub earned_s: f64 as Gauge,
        /// Seconds of the device that reading ahead took, less the transfer of pages that were used.
        pub spent_s: f64 as Gauge,
        /// Seconds that may still be spent on pages that may turn out to be of no use.
        pub credit_s: f64 as Gauge,
    }
}

impl Default for Balance {
    /// Of a new account.
    fn default() -> Self {
        Balance { earned_s: 0.0, spent_s: 0.0, credit_s: FIRST_CREDIT_S }
    }
}

/// The account of one group of readers on one volume.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Account {
    balance: Balance,
    /// The time up to which the credit has grown.
    counted_to: Nanos,
    /// When a slice of a region was last paid for.
    sliced_at: Nanos,
    /// When a miss of this group that belongs to no stream was last counted, in any file.
    missed_at: Nanos,
}

impl Account {
    /// What it holds now.
    pub fn balance(&self) -> Balance {
        self.balance
    }

    /// The sum of both accounts. Its credit is the smaller of the two.
    pub fn beside(self, other: Account) -> Account {
        let balance = Balance {
            earned_s: self.balance.earned_s + other.balance.earned_s,
            spent_s: self.balance.spent_s + other.balance.spent_s,
            credit_s: self.balance.credit_s.min(other.balance.credit_s),
        };
        Account {
            balance,
            counted_to: self.counted_to.max(other.counted_to),
            sliced_at: self.sliced_at.max(other.sliced_at),
            missed_at: self.missed_at.max(other.missed_at),
        }
    }

    /// Lets time pass until `now`. Time refills the credit up to its first value; credit above that stays.
    pub fn pass_time(&mut self, now: Nanos) {
        let elapsed_s = now.saturating_sub(self.counted_to) as f64 * 1e-9;
        self.counted_to = self.counted_to.max(now);
        if self.balance.credit_s < FIRST_CREDIT_S {
            self.balance.credit_s =
                (self.balance.credit_s + elapsed_s * SHARE_OF_TIME).min(FIRST_CREDIT_S);
        }
    }

    /// Pages of a region that may be requested at once.
    pub fn region_pages(&self, cost: &DeviceCost) -> u64 {
        pages(self.balance.credit_s, cost)
    }

    /// Pages that may be requested at once for a stream.
    pub fn stream_pages(&self, cost: &DeviceCost) -> u64 {
        pages(self.balance.credit_s - OF_REGIONS_S, cost)
    }

    /// Pays for a request that costs the device `seconds`.
    pub fn spend(&mut self, seconds: f64) {
        self.balance.spent_s += seconds;
        self.balance.credit_s -= seconds;
    }

    /// The same for a slice of a region.
    pub fn spend_on_slice(&mut self, seconds: f64) {
        self.sliced_at = self.counted_to;
        self.spend(seconds);
    }

    /// Seconds since a slice of a region was last paid for.
    pub fn since_slice_s(&self) -> f64 {
        self.counted_to.saturating_sub(self.sliced_at) as f64 * 1e-9
    }

    /// Counts a miss at `now`. Returns what a miss costs, in seconds: the time since the
    /// last one, but at most `latency_s`.
    pub fn miss(&mut self, now: Nanos, latency_s: f64) -> f64 {
        let since_s = now.saturating_sub(self.missed_at) as f64 * 1e-9;
        self.missed_at = self.missed_at.max(now);
        latency_s.min(since_s)
    }

    /// Requested pages were used. Gives back the price of their transfer, and credits a share of the `saved_s` of
    /// waiting that readers were spared.
    pub fn use_up(&mut self, price_s: f64, saved_s: f64) {
        self.balance.spent_s = (self.balance.spent_s - price_s).max(0.0);
        self.balance.earned_s += saved_s;
        let credit_s = self.balance.credit_s + price_s + saved_s * SHARE_OF_SAVED;
        self.balance.credit_s = credit_s.min(MOST_CREDIT_S);
    }
}

/// Pages that may be requested in one device access with this credit.
fn pages(credit_s: f64, cost: &DeviceCost) -> u64 {
    let transfer_s = credit_s * SHARE_AT_ONCE - cost.access_s();
    // A processor converts to a signed number in one instruction, to an unsigned one in several.
    ((transfer_s * cost.pages_a_second()) as i64).max(0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Nanos = 1_000_000_000;

    #[test]
    fn without_use_the_first_credit_is_all_that_is_lost() {
        let mut account = Account::default();
        let mut lost_s = 0.0;
        for _ in 0..1000 {
            let pages = account.region_pages(&DeviceCost::DISK);
            let price_s = DeviceCost::DISK.access_s() + pages as f64 * DeviceCost::DISK.page_s();
            if pages > 0 {
                account.spend(price_s);
                lost_s += price_s;
            }
        }
        assert!(lost_s <= FIRST_CREDIT_S && lost_s > 0.8 * FIRST_CREDIT_S, "{lost_s}");
        assert_eq!(account.region_pages(&DeviceCost::DISK), 0);
        assert!((account.balance.spent_s - lost_s).abs() < 1e-9);
    }

    #[test]
    fn what_is_lost_comes_back_at_three_percent_of_the_time_and_no_more_than_at_first() {
        let mut account = Account::default();
        account.pass_time(SECOND);
        account.spend(FIRST_CREDIT_S);
        account.pass_time(2 * SECOND);
        assert!((account.balance.credit_s - SHARE_OF_TIME).abs() < 1e-9, "{account:?}");
        account.pass_time(SECOND);
        assert!((account.balance.credit_s - SHARE_OF_TIME).abs() < 1e-9, "time does not go back");
        account.pass_time(1000 * SECOND);
        assert_eq!(account.balance.credit_s, FIRST_CREDIT_S);
    }

    #[test]
    fn the_time_since_a_slice_is_counted_from_the_last_one_and_not_from_other_requests() {
        let mut account = Account::default();
        account.pass_time(SECOND);
        account.spend_on_slice(0.1);
        account.pass_time(3 * SECOND);
        account.spend(0.1);
        assert_eq!(account.since_slice_s(), 2.0);
    }

    #[test]
    fn a_miss_costs_what_its_reader_has_waited_and_no_more_than_an_access() {
        let mut account = Account::default();
        assert_eq!(account.miss(SECOND, 0.007), 0.007, "the first one");
        assert!((account.miss(SECOND + 2_000_000, 0.007) - 0.002).abs() < 1e-12);
        assert_eq!(account.miss(2 * SECOND, 0.007), 0.007, "the reader has paused");
    }

    #[test]
    fn what_is_used_costs_nothing_and_half_of_what_it_saves_may_be_spent() {
        let mut account = Account::default();
        account.spend(0.1);
        account.use_up(0.1, 0.2);
        assert!((account.balance.credit_s - FIRST_CREDIT_S - 0.1).abs() < 1e-9);
        assert!(account.balance.spent_s < 1e-9);
        assert_eq!(account.balance.earned_s, 0.2);
        account.use_up(0.0, 1000.0);
        assert_eq!(account.balance.credit_s, MOST_CREDIT_S, "never more is lost at once");
        account.pass_time(1000 * SECOND);
        assert_eq!(account.balance.credit_s, MOST_CREDIT_S);
    }
}
