//! What measuring brought, and what follows from it at once.

use super::scatter::Visit;
use crate::curve::Point;

/// What was measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// Throughput over windows; those that took too long are left out.
    pub curve: Vec<Point>,
    /// Windows whose figures others have spoilt.
    pub disturbed_kb: Vec<u64>,
    /// Whether the curve is of direct requests, as the window could not be set.
    pub is_estimate: bool,
    /// Single random reads; none where direct reads are impossible.
    pub visits: Vec<Visit>,
    /// Median seconds of reads without a gap between them.
    pub adjacent_s: Option<f64>,
    /// Random reads that overlap.
    pub concurrency: Option<usize>,
    /// Random reads a second with 32 at once, over those one at a time.
    pub queue_gain: Option<f64>,
    /// MB/s of large random reads, as many at once.
    pub overlapped_mb_s: Option<f64>,
    /// Whether a figure is spoilt.
    pub disturbed: bool,
    /// Whether others were waited for.
    pub waited: bool,
    /// Of what was read, the part that was nothing but zeros.
    pub zero_share: f64,
    /// Seconds it took.
    pub seconds: f64,
}

impl Measured {
    /// Seconds below which `part` of the random reads stayed.
    pub fn random_s(&self, part: f64) -> Option<f64> {
        let mut times: Vec<f64> = self.visits.iter().map(|visit| visit.seconds).collect();
        times.sort_by(f64::total_cmp);
        let index = ((times.len() as f64 * part) as usize).min(times.len().checked_sub(1)?);
        Some(times[index])
    }

    /// Whether a head has to move: reads that follow each other are much cheaper than others, and
    /// others do not overlap.
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
        let visit = |us: &f64| Visit { distance: 1 << 20, seconds: us * 1e-6 };
        Measured {
            visits: random_us.iter().map(visit).collect(),
            adjacent_s: Some(adjacent_us * 1e-6),
            concurrency: Some(concurrency),
            ..Measured::default()
        }
    }

    #[test]
    fn a_head_that_moves_shows_in_what_reads_cost() {
        assert!(measured(&[7000.0, 8000.0, 9000.0], 150.0, 1).is_positional());
        assert!(!measured(&[5000.0; 3], 5000.0, 32).is_positional(), "a network volume");
        assert!(!measured(&[5000.0; 3], 100.0, 32).is_positional(), "one that reads ahead itself");
        assert!(!measured(&[520.0; 3], 510.0, 1).is_positional(), "a stick");
    }

    #[test]
    fn percentiles_of_few_reads_are_of_those_there_are() {
        let measured = measured(&[3.0, 1.0, 2.0], 1.0, 1);
        assert_eq!(measured.random_s(0.5), Some(2e-6));
        assert_eq!(measured.random_s(0.99), Some(3e-6));
        assert_eq!(Measured { visits: Vec::new(), ..measured }.random_s(0.5), None);
    }
}
