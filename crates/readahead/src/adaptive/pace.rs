//! How fast a reader is beside all others, counted in pages rather than in seconds.
//!
//! ```text
//!   passed by all    |--- the round before ---|--- this round ---->
//!   of that, by one       ==   ==      ==           ==    =          its share
//! ```

use super::number::real;

/// Pages that all readers have passed, and how many of them this one has.
#[derive(Clone, Copy, Debug, Default)]
struct Passed {
    all: f64,
    own: f64,
}

impl Passed {
    /// The same ratio in at most `round` pages.
    fn within(self, round: f64) -> Passed {
        if self.all <= round {
            self
        } else {
            Passed { all: round, own: self.own * (round / self.all) }
        }
    }
}

/// What one reader passes of all that is passed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    before: Passed,
    now: Passed,
    /// What all had passed in total when this one was last seen.
    seen: u64,
}

impl Pace {
    /// Of a reader that has just come, when all have passed `total`.
    pub(super) fn unknown(total: u64) -> Self {
        Pace { seen: total, ..Pace::default() }
    }

    /// Of one that has passed `own` while all passed `all`, up to `total`.
    pub(super) fn known(own: u64, all: u64, total: u64) -> Self {
        Pace {
            now: Passed { all: real(all.max(own)), own: real(own) },
            seen: total,
            ..Pace::default()
        }
    }

    /// It has passed `own` pages more, and all readers `total` since the start; a round has `round` pages. If others
    /// passed many rounds while it paused, they count as one, so that it does not seem slow for as long as it was away.
    pub(super) fn pass(&mut self, own: u64, total: u64, round: u64) {
        self.now.own += real(own);
        self.now.all += real(total.saturating_sub(self.seen));
        self.seen = total;
        let round = real(round.max(1));
        if self.now.all >= round {
            self.before = std::mem::take(&mut self.now).within(round);
        }
    }

    /// Its share of what was passed in this round and the one before, from 0 to 1; 1 while nothing is known.
    pub(super) fn share(&self) -> f64 {
        let all = self.before.all + self.now.all;
        if all == 0.0 { 1.0 } else { (self.before.own + self.now.own) / all }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_four_that_keep_step_has_a_quarter() {
        let mut pace = Pace::unknown(1000);
        assert_eq!(pace.share(), 1.0, "nothing is known");
        (1..=50).for_each(|turn| pace.pass(10, 1000 + 40 * turn, 300));
        assert_eq!(pace.share(), 0.25);
    }

    #[test]
    fn what_it_had_passed_before_it_was_known_counts() {
        assert_eq!(Pace::known(16, 256, 1000).share(), 1.0 / 16.0);
        assert_eq!(Pace::known(16, 3, 1000).share(), 1.0, "it was seen to pass more than all");
    }

    #[test]
    fn after_two_rounds_nothing_is_left_of_what_was() {
        let mut pace = Pace::known(100, 100, 100);
        pace.pass(0, 300, 200);
        assert!(pace.share() > 0.3, "{}", pace.share());
        pace.pass(0, 500, 200);
        assert_eq!(pace.share(), 0.0);
    }

    #[test]
    fn a_long_pause_counts_as_one_round() {
        let mut pace = Pace::unknown(0);
        (1..=50).for_each(|turn| pace.pass(10, 20 * turn, 200));
        pace.pass(10, 1_000_000, 200);
        assert!(pace.share() < 0.01, "{}", pace.share());
        (1..=5).for_each(|turn| pace.pass(10, 1_000_000 + 20 * turn, 200));
        assert!(pace.share() > 0.1, "half of half a round: {}", pace.share());
    }
}
