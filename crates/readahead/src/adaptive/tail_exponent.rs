//! How long runs of a file turn out: Hill's estimator, with a prior.
//!
//! Runs have the scale-free tail `P(run >= x) ~ x^-a`. For runs that have ended, `a` is estimated
//! by their number over the sum of the logarithms of their lengths; a run that goes on, or was
//! ended by the end of the file, has shown its length without showing an end, so it adds to the sum
//! only. The prior is worth six ended runs of `a = 1`: as likely to double as not.
//!
//! A run shorter than where the tail begins counts as an end without a length. Two misses that were neighbours by
//! chance are such a run and make `a` grow, so that no window pays where this happens often. The size of windows should
//! not follow that down, and takes `a` as 2 at most.

/// What the prior weighs, in runs.
const PRIOR_RUNS: f64 = 6.0;

/// Where the tail begins: the kernel's smallest window. A shorter run adds an end, and no length.
const SHORTEST_RUN: f64 = 4.0;

/// Even the most reliable reader may stop: eight windows of the prior are the most.
pub(super) const LEAST_TAIL: f64 = 1.0 / 64.0;

/// Even the least reliable may go on: one run in 256 doubles.
const MOST_TAIL: f64 = 8.0;

/// The most that `a` counts when a window is sized and its mark placed (the reason is above).
pub(super) const MOST_TAIL_OF_WINDOWS: f64 = 2.0;

/// A program that announces sequential reading nearly always reads to the end.
pub(super) const ANNOUNCED: f64 = 1.0 / 16.0;

/// Runs of one file.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Runs {
    ends: f64,
    log_lengths: f64,
}

impl Runs {
    /// Notes a run of this length, however short; `has_ended` unless it goes on, or the file's end ended it.
    pub(super) fn note(&mut self, length: LogLength, has_ended: bool) {
        self.ends += if has_ended { 1.0 } else { 0.0 };
        self.log_lengths += length.0;
    }

    /// The tail exponent.
    pub(super) fn tail_exponent(&self) -> f64 {
        let tail_exponent = (PRIOR_RUNS + self.ends) / (PRIOR_RUNS + self.log_lengths);
        tail_exponent.clamp(LEAST_TAIL, MOST_TAIL)
    }
}

/// What the length of a run adds to the sum: a logarithm. It takes as long as the rest of a decision's arithmetic, so a
/// stream keeps it until its run grows.
#[derive(Clone, Copy, Debug)]
pub(super) struct LogLength(f64);

impl LogLength {
    pub(super) fn of(units: u64) -> Self {
        LogLength((units as f64 / SHORTEST_RUN).max(1.0).ln())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(units: &[u64], have_ended: bool) -> Runs {
        let mut runs = Runs::default();
        units.iter().for_each(|units| runs.note(LogLength::of(*units), have_ended));
        runs
    }

    #[test]
    fn nothing_seen_is_the_scale_free_prior() {
        assert_eq!(Runs::default().tail_exponent(), 1.0);
        assert_eq!(runs(&[1, 4], false).tail_exponent(), 1.0);
    }

    #[test]
    fn runs_that_go_on_make_a_long_tail_and_runs_that_ended_early_a_short_one() {
        let sixteen = runs(&[256; 16], false).tail_exponent();
        assert!(sixteen < 0.1, "{sixteen}");
        let stopped = runs(&[256; 16], true).tail_exponent();
        assert!((0.2..0.4).contains(&stopped), "{stopped}");
        let short = runs(&[6; 60], true).tail_exponent();
        assert!(short > 1.9, "{short}");
    }

    #[test]
    fn many_ended_runs_of_a_known_tail_are_recovered() {
        // The quantiles of a Pareto distribution with a = 1.5 above the shortest run.
        let mut runs = Runs::default();
        for i in 1..1000u32 {
            let share = f64::from(i) / 1000.0;
            let units = (SHORTEST_RUN * share.powf(-1.0 / 1.5)).round() as u64;
            runs.note(LogLength::of(units), true);
        }
        let tail_exponent = runs.tail_exponent();
        assert!((1.3..1.7).contains(&tail_exponent), "{tail_exponent}");
    }
}
