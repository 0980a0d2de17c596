//! How fast a reader is, in units a second: the highest of its last few rates, as it may have been held back.

use crate::adaptive::number::real;

/// Intervals over which the rate is taken; at first the reader waits for each window.
const RATES: usize = 4;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rate {
    /// Units a second between the last events, the most recent first; zero until known.
    rates: [f64; RATES],
    fastest: f64,
}

impl Rate {
    /// The reader took `elapsed_ns` for `units` units; neither is 0.
    pub(super) fn note(&mut self, units: u64, elapsed_ns: u64) {
        let [last, before, earlier, _] = self.rates;
        self.rates = [real(units) * 1e9 / real(elapsed_ns), last, before, earlier];
        let faster = |a, b| if b > a { b } else { a };
        self.fastest = self.rates.iter().copied().fold(0.0, faster);
    }

    /// The highest rate so far, in units a second; 0 if none is known.
    pub(super) fn known(&self) -> f64 {
        self.fastest
    }

    /// The highest rate to expect, in units a second: infinite until enough rates are known.
    pub(super) fn most(&self) -> f64 {
        if self.rates[RATES - 1] > 0.0 { self.fastest } else { f64::INFINITY }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_is_as_fast_as_it_was_of_late() {
        let mut rate = Rate::default();
        assert_eq!((rate.known(), rate.most()), (0.0, f64::INFINITY));
        rate.note(10, 1_000_000_000);
        assert_eq!((rate.known(), rate.most()), (10.0, f64::INFINITY));
        (0..3).for_each(|_| rate.note(3, 1_000_000_000));
        assert_eq!((rate.known(), rate.most()), (10.0, 10.0));
        rate.note(2, 1_000_000_000);
        assert_eq!(rate.most(), 3.0);
    }
}
