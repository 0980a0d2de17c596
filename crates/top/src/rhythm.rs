//! When accesses to cached pages are seen.
//!
//! To see a cached read costs the reader about 0.15 µs. A read of 4 KiB takes 0.4 µs on a fast processor. So a program
//! that makes very many of them is watched for a part of each second only.

use std::time::Duration;

/// The programs are switched on once in each period.
const PERIOD: Duration = Duration::from_secs(1);

/// Accesses are seen for at least this long in each period; then their number is looked at.
const FIRST: Duration = Duration::from_millis(10);

/// While they are seen, their number is looked at this often.
const SLICE: Duration = Duration::from_millis(20);

/// What seeing an access costs, on the machine of docs/top.md.
const COST_S: f64 = 150e-9;

/// The share of a processor's time that seeing may cost. Waking up late costs some more.
const BUDGET: f64 = 0.01;

/// Whether accesses are to be seen now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Whether they are.
    pub is_on: bool,
    /// Ask again at this time.
    pub until: Duration,
}

/// Decides when accesses to cached pages are seen: always, if no processor has more than 65,000 of them per second.
#[derive(Debug)]
pub struct Rhythm {
    /// When this period began. All times count from the same moment.
    began: Duration,
    /// The numbers of accesses by processor when it began.
    counted: Vec<u64>,
    /// Whether accesses are to be seen.
    is_on: bool,
    /// The next step begins a new period.
    is_due: bool,
    /// For how long accesses were seen since [`take_seen`](Self::take_seen), up to the moment `now`.
    seen_for: Duration,
    now: Duration,
}

impl Rhythm {
    /// Begins at `now`, with accesses seen and these numbers of accesses by processor.
    pub fn new(now: Duration, counted: &[u64]) -> Self {
        let counted = counted.to_vec();
        Rhythm { began: now, counted, is_on: true, is_due: false, now, seen_for: Duration::ZERO }
    }

    /// What to do at `now`.
    pub fn step(&mut self, now: Duration, counted: &[u64]) -> Step {
        self.pass(now);
        let elapsed = now.saturating_sub(self.began);
        if self.is_due || elapsed >= PERIOD {
            self.began = now;
            self.counted = counted.to_vec();
            (self.is_on, self.is_due) = (true, false);
            return Step { is_on: true, until: now + FIRST };
        }
        let longest = self.longest(elapsed, counted);
        self.is_on &= elapsed < longest;
        let end = self.began + PERIOD;
        let until = if self.is_on { end.min(self.began + longest).min(now + SLICE) } else { end };
        Step { is_on: self.is_on, until }
    }

    /// For how long accesses were seen since the last call. The next step begins a new period, so that they are seen in
    /// each interval.
    pub fn take_seen(&mut self, now: Duration) -> Duration {
        self.pass(now);
        self.is_due = true;
        std::mem::take(&mut self.seen_for)
    }

    /// Lets the time go on to `now`.
    fn pass(&mut self, now: Duration) {
        if self.is_on {
            self.seen_for += now.saturating_sub(self.now);
        }
        self.now = now;
    }

    /// How long accesses may be seen in this period, if the busiest processor goes on as since its beginning.
    fn longest(&self, elapsed: Duration, counted: &[u64]) -> Duration {
        if elapsed < FIRST {
            return FIRST;
        }
        let most = counted
            .iter()
            .zip(&self.counted)
            .map(|(now, before)| now.saturating_sub(*before))
            .max();
        let rate = most.unwrap_or(0) as f64 / elapsed.as_secs_f64();
        let seconds = BUDGET * PERIOD.as_secs_f64() / (rate * COST_S);
        Duration::from_secs_f64(seconds.clamp(FIRST.as_secs_f64(), PERIOD.as_secs_f64()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Seconds seen, of `seconds`, at this rate on one processor. A processor makes its accesses also while they are
    /// not seen, but the programs count only those that they see.
    fn seen_s(rate: f64, seconds: u64) -> f64 {
        let (mut now, mut count, mut seen) = (Duration::ZERO, 0.0, 0.0);
        let mut rhythm = Rhythm::new(now, &[0, 0]);
        while now < Duration::from_secs(seconds) {
            let step = rhythm.step(now, &[3, count as u64]);
            let passes = (step.until - now).as_secs_f64();
            assert!(passes > 0.0, "time goes on");
            if step.is_on {
                count += rate * passes;
                seen += passes;
            }
            now = step.until;
        }
        let told = rhythm.take_seen(now).as_secs_f64();
        assert!((told - seen).abs() < 1e-6, "{told} for {seen}");
        seen
    }

    proptest! {
        #[test]
        fn up_to_sixty_five_thousand_accesses_a_second_all_are_seen(rate in 0.0..65_000.0) {
            prop_assert!((seen_s(rate, 10) - 10.0).abs() < 0.1);
        }

        #[test]
        fn however_many_there_are_seeing_them_costs_little_and_some_are_seen(rate in 0.0..5e6) {
            let seen = seen_s(rate, 10);
            // In each of the ten periods.
            let least = FIRST.as_secs_f64();
            let most = (BUDGET / (rate * COST_S)).clamp(least, 1.0);
            prop_assert!(seen >= 10.0 * least * 0.99, "{seen} s");
            prop_assert!(seen <= 10.0 * most * 1.05 + SLICE.as_secs_f64(), "{seen} s of {most}");
        }
    }
}
