//! Lateness on purpose, to test how the lab copes with a busy machine.

use device::Nanos;

/// Average lateness of nine wakes in ten, and of the tenth: a long tail. Both in mean latenesses, so that
/// 0.9 * USUAL + 0.1 * TAIL is 1.
const USUAL: f64 = 0.7;
const TAIL: f64 = 3.7;

/// How late a thread wakes.
#[derive(Clone, Debug)]
pub(crate) struct Injected {
    mean_us: f64,
    random: Random,
}

impl Injected {
    /// Late by `mean_us` microseconds on average; 0 for none.
    pub(crate) fn new(mean_us: f64, seed: u64) -> Self {
        Injected { mean_us, random: Random(seed) }
    }

    /// Lateness of the next wake, in nanoseconds.
    pub(crate) fn next(&mut self) -> Nanos {
        let part = if self.random.unit() < 0.9 { USUAL } else { TAIL };
        let exponential = -(1.0 - self.random.unit()).ln();
        (exponential * part * self.mean_us * 1e3) as Nanos
    }
}

/// Pseudo-random numbers, the same in every run (a linear congruential generator, Knuth's MMIX).
#[derive(Clone, Debug)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// A number in `[0, 1)`.
    pub(crate) fn unit(&mut self) -> f64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as f64 / (1u64 << 31) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wakes_are_late_by_the_mean_with_a_long_tail() {
        let mut injected = Injected::new(400.0, 1);
        let wakes: Vec<Nanos> = (0..100_000).map(|_| injected.next()).collect();
        let mean_us = wakes.iter().sum::<Nanos>() as f64 * 1e-3 / wakes.len() as f64;
        assert!((mean_us - 400.0).abs() < 12.0, "{mean_us}");
        assert!(wakes.iter().max().is_some_and(|latest| *latest > 4_000_000));
    }

    #[test]
    fn nothing_is_injected_unless_asked_for() {
        let mut injected = Injected::new(0.0, 1);
        assert!((0..1000).all(|_| injected.next() == 0));
    }
}
