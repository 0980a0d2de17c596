//! How long runs of a file turn out: Hill's estimator, with a prior.
//!
//! Runs have the scale-free tail `P(run >= x) ~ x^-a`. For runs that have ended, `a` is estimated
//! by their number over the sum of the logarithms of their lengths; a run that goes on, or was
//! ended by the end of the file, has shown its length without showing an end, so it adds to the sum
//! only. The prior is worth six ended runs of `a = 1`: as likely to double as not.
//!
//! A run shorter than the shortest that the tail is taken of counts as an end without a length: two
//! misses that were neighbours by chance make `a` grow, so that where this happens often no window pays.
//! The size of windows is not to follow that down, and takes `a` as 2 at most.

/// What the prior weighs, in runs.
const PRIOR_RUNS: f64 = 6.0;

/// Where the tail begins: the kernel's smallest window. A shorter run adds an end, and no length.
const SHORTEST_RUN: f64 = 4.0;

/// Even the most reliable reader may stop: eight windows of the prior are the most.
pub(super) const LEAST_TAIL: f64 = 1.0 / 64.0;

/// Even the least reliable may go on: one run in 256 doubles.
const MOST_TAIL: f64 = 8.0;

/// What `a` is at most where a window is sized, and its mark placed.
pub(super) const MOST_TAIL_OF_WINDOWS: f64 = 2.0;

/// A program that announces sequential reading nearly always reads to the end.
pub(super) const ANNOUNCED: f64 = 1.0 / 16.0;

/// The runs of one file that are over.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EndedRuns {
    ends: f64,
    log_lengths: f64,
}

impl EndedRuns {
    /// Notes a run of `units`, however short; `by_itself` unless the file's end ended it.
    pub(super) fn note(&mut self, units: u64, by_itself: bool) {
        self.ends += if by_itself { 1.0 } else { 0.0 };
        self.log_lengths += log_length(units);
    }

    /// The tail exponent, given the lengths of the other runs so far, and whether their readers have
    /// stopped.
    pub(super) fn tail(&self, others: impl Iterator<Item = (u64, bool)>) -> f64 {
        let mut runs = *self;
        others.for_each(|(units, has_stopped)| runs.note(units, has_stopped));
        let tail = (PRIOR_RUNS + runs.ends) / (PRIOR_RUNS + runs.log_lengths);
        tail.clamp(LEAST_TAIL, MOST_TAIL)
    }
}

fn log_length(units: u64) -> f64 {
    (units as f64 / SHORTEST_RUN).max(1.0).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_seen_is_the_scale_free_prior() {
        assert_eq!(EndedRuns::default().tail(std::iter::empty()), 1.0);
        assert_eq!(EndedRuns::default().tail([(1, false), (4, false)].into_iter()), 1.0);
    }

    #[test]
    fn runs_that_go_on_make_a_long_tail_and_runs_that_ended_early_a_short_one() {
        let sixteen = EndedRuns::default().tail([(256, false); 16].into_iter());
        assert!(sixteen < 0.1, "{sixteen}");
        let stopped = EndedRuns::default().tail([(256, true); 16].into_iter());
        assert!((0.2..0.4).contains(&stopped), "{stopped}");
        let mut short = EndedRuns::default();
        (0..60).for_each(|_| short.note(6, true));
        let tail = short.tail(std::iter::empty());
        assert!(tail > 1.9, "{tail}");
    }

    #[test]
    fn many_ended_runs_of_a_known_tail_are_recovered() {
        // The quantiles of a Pareto distribution with a = 1.5 above the shortest run.
        let mut runs = EndedRuns::default();
        for i in 1..1000u32 {
            let share = f64::from(i) / 1000.0;
            runs.note((SHORTEST_RUN * share.powf(-1.0 / 1.5)).round() as u64, true);
        }
        let tail = runs.tail(std::iter::empty());
        assert!((1.3..1.7).contains(&tail), "{tail}");
    }
}
