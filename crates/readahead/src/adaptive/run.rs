//! What a rule is told of a stream: how far its run has come.

use super::number::real;

/// How far a stream has come when its next window is sized, in units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Run {
    /// What the reader has proven.
    pub read: u64,
    /// What was asked for, from the origin on.
    pub asked: u64,
    /// The exponent `a` of the tail `P(run >= x) ~ x^-a`.
    pub tail_exponent: f64,
}

impl Run {
    /// Units of the next `window` that the reader is expected to use: the integral of `(x / r)^-a` over them.
    pub(super) fn expected(&self, window: u64) -> f64 {
        let run = self.read.max(1) as f64;
        let growth = 1.0 + window as f64 / run;
        let short = 1.0 - self.tail_exponent;
        let is_scale_free = short.abs() < 1e-6;
        run * if is_scale_free { growth.ln() } else { (growth.powf(short) - 1.0) / short }
    }

    /// A lower bound of [`expected`](Self::expected), without computing a power, which takes a fifth of the time of a
    /// decision. It is the value for `a = 1`, by `ln(1 + x) >= 2 x / (2 + x)`, less a hundredth, since a power near one
    /// is rounded. It is 0 if runs are shorter (`a > 1`), or if the window is too small beside its run to be computed.
    pub(super) fn expected_at_least(&self, window: u64) -> f64 {
        let (run, window) = (real(self.read.max(1)), real(window));
        if self.tail_exponent > 1.0 || window < 1e-6 * run {
            return 0.0;
        }
        0.99 * 2.0 * run * window / (2.0 * run + window)
    }
}

/// A stream's window when its mark is placed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ahead {
    /// The reader's units a second; infinite until known.
    pub rate: f64,
    /// Units of the window.
    pub window: u64,
    /// How far the stream had come when the window was sized.
    pub run: Run,
    /// The window is read in the reader's direction, so that its first unit arrives first.
    pub is_with_the_reader: bool,
    /// The file is being read from its start.
    pub is_begun: bool,
    /// Units that may be asked for.
    pub room: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shorter_runs_turn_out_the_less_of_a_window_is_used() {
        let run = |tail_exponent| Run { read: 100, asked: 100, tail_exponent };
        assert_eq!(run(1.0).expected(100).round(), 69.0, "r ln 2");
        assert_eq!(run(1.0 + 1e-5).expected(100).round(), 69.0, "without a jump");
        assert_eq!(run(2.0).expected(100), 50.0);
        assert!(run(8.0).expected(100) < 15.0, "hardly any goes on");
        assert!(run(1.0 / 64.0).expected(100) > 99.0, "nearly all do");
    }

    #[test]
    fn the_least_expected_is_never_more_than_what_is() {
        let powers = || (0..60).map(|exponent| 1 << exponent);
        let near_one = [2e-6, 1e-5, 1e-3].map(|less| 1.0 - less);
        let tail_exponents = || (1..=128).map(|n| f64::from(n) / 64.0).chain(near_one);
        for (read, window) in powers().flat_map(|read| powers().map(move |window| (read, window))) {
            for run in
                tail_exponents().map(|tail_exponent| Run { read, asked: read, tail_exponent })
            {
                let (least, expected) = (run.expected_at_least(window), run.expected(window));
                assert!(least <= expected, "{run:?}, {window}: {least}, {expected}");
            }
        }
        let run = Run { read: 100, asked: 100, tail_exponent: 1.0 };
        assert_eq!(run.expected_at_least(100).round(), 66.0, "of 69");
        assert_eq!(Run { tail_exponent: 1.1, ..run }.expected_at_least(100), 0.0);
    }
}
