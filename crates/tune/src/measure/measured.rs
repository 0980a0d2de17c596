//! The results of a measurement.

use super::scatter::RandomRead;
use crate::curve::Point;

/// What was measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// Throughput by window, without windows that took too long.
    pub curve: Vec<Point>,
    /// Windows whose figures other programs spoilt.
    pub disturbed_kb: Vec<u64>,
    /// Whether the curve was estimated from direct requests because the window could not be set.
    pub is_estimate: bool,
    /// Single random reads; empty if direct reads are impossible.
    pub random_reads: Vec<RandomRead>,
    /// Median seconds of a read that follows the one before without a gap.
    pub adjacent_s: Option<f64>,
    /// How many random reads the device serves at once.
    pub concurrency: Option<usize>,
    /// Rate of random reads with 32 at once, relative to one at a time.
    pub queue_gain: Option<f64>,
    /// MB/s of large random reads, `concurrency` at once.
    pub overlapped_mb_s: Option<f64>,
    /// Whether other programs spoilt a figure.
    pub disturbed: bool,
    /// Whether the measurement waited for other programs.
    pub waited: bool,
    /// Share of the time that the measurement waited for a processor.
    pub wait_share: f64,
    /// Share of the read pages that were all zeros.
    pub zero_share: f64,
    /// Duration in seconds.
    pub seconds: f64,
}

impl Measured {
    /// The quantile `part` of the random reads, in seconds.
    pub fn random_s(&self, part: f64) -> Option<f64> {
        let mut times: Vec<f64> = self.random_reads.iter().map(|read| read.seconds).collect();
        times.sort_by(f64::total_cmp);
        let index = ((times.len() as f64 * part) as usize).min(times.len().checked_sub(1)?);
        Some(times[index])
    }

    /// Whether the device has a head that must move: adjacent reads are much cheaper than others,
    /// and random reads do not overlap.
    pub fn is_positional(&self) -> bool {
        const MUCH_CHEAPER: f64 = 4.0;
        let Some((adjacent, random)) = self.adjacent_s.zip(self.random_s(0.5)) else {
            return false;
        };
        random > MUCH_CHEAPER * adjacent && self.concurrency.is_none_or(|at_once| at_once <= 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(random_us: &[f64], adjacent_us: f64, concurrency: usize) -> Measured {
        let read = |us: &f64| RandomRead { distance: 1 << 20, seconds: us * 1e-6 };
        Measured {
            random_reads: random_us.iter().map(read).collect(),
            adjacent_s: Some(adjacent_us * 1e-6),
            concurrency: Some(concurrency),
            ..Measured::default()
        }
    }

    #[test]
    fn a_moving_head_shows_in_the_cost_of_reads() {
        assert!(measured(&[7000.0, 8000.0, 9000.0], 150.0, 1).is_positional());
        assert!(!measured(&[5000.0; 3], 5000.0, 32).is_positional(), "a network volume");
        assert!(!measured(&[5000.0; 3], 100.0, 32).is_positional(), "one that reads ahead itself");
        assert!(!measured(&[520.0; 3], 510.0, 1).is_positional(), "a stick");
    }

    #[test]
    fn percentiles_of_few_reads_use_the_reads_there_are() {
        let measured = measured(&[3.0, 1.0, 2.0], 1.0, 1);
        assert_eq!(measured.random_s(0.5), Some(2e-6));
        assert_eq!(measured.random_s(0.99), Some(3e-6));
        assert_eq!(Measured { random_reads: Vec::new(), ..measured }.random_s(0.5), None);
    }
}
