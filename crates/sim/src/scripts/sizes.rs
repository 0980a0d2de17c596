//! The sizes of a tree's files, in the order in which a program reads them.

use serde::Deserialize;

use crate::scripts::random::Random;

/// A tree with log-normally distributed sizes, as surveys of file systems found them.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sizes {
    /// How many files there are.
    pub files: usize,
    /// Of all files together, in 10^6 bytes.
    pub total_mb: f64,
    /// Standard deviation of the sizes' natural logarithm.
    pub spread: f64,
}

impl Sizes {
    /// Bytes of each file; the same for the same tree.
    pub fn sizes(&self) -> Vec<u64> {
        let mut random = Random::new(self.files as u64);
        let weights: Vec<f64> =
            (0..self.files).map(|_| (self.spread * normal(&mut random)).exp()).collect();
        let scale = self.total_mb * 1e6 / weights.iter().sum::<f64>();
        weights.iter().map(|weight| (weight * scale).max(1.0) as u64).collect()
    }
}

/// A nearly normal number with mean 0 and deviation 1: the sum of twelve uniform numbers, less 6.
fn normal(random: &mut Random) -> f64 {
    const STEPS: u64 = 1 << 32;
    (0..12).map(|_| random.below(STEPS) as f64 / STEPS as f64).sum::<f64>() - 6.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_the_same_each_time_and_add_up() {
        let tree = Sizes { files: 1000, total_mb: 50.0, spread: 1.5 };
        let sizes = tree.sizes();
        assert_eq!(sizes, tree.sizes());
        assert!((49_990_000..=50_000_000).contains(&sizes.iter().sum::<u64>()));
    }

    #[test]
    fn most_files_are_small_and_a_few_large() {
        let mut sizes = Sizes { files: 1000, total_mb: 50.0, spread: 1.5 }.sizes();
        sizes.sort_unstable();
        // The median of a log-normal distribution is its mean divided by e^(spread^2 / 2).
        let median = 50_000.0 / 1.125f64.exp();
        assert!((sizes[500] as f64 / median - 1.0).abs() < 0.2, "{}", sizes[500]);
        assert!(sizes[999] > 1_000_000, "{}", sizes[999]);
    }
}
