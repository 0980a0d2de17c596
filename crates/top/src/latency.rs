//! How long threads have waited, in bins that double.

/// The number of bins, as in count.h.
pub const BINS: usize = 32;

/// The upper end of the first bin, in microseconds. Each next one is twice as high.
const FIRST_US: f64 = 2.0;

/// Stalls by their latency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Latencies {
    /// The sum of all latencies.
    pub ns: u64,
    /// The number of stalls below 2 µs, then of those below 4 µs, 8 µs and so on.
    pub bins: [u64; BINS],
}

impl Latencies {
    /// The number of stalls.
    pub fn count(&self) -> u64 {
        self.bins.iter().sum()
    }

    /// The latency that this percentage of the stalls does not exceed, in milliseconds. The true value is in the same
    /// bin, so it is at least half as much, and at most twice. `None` without stalls.
    pub fn percentile_ms(&self, percent: u64) -> Option<f64> {
        let rank = (u128::from(self.count()) * u128::from(percent)).div_ceil(100).max(1) as u64;
        let mut below = 0;
        for (bin, count) in self.bins.iter().enumerate() {
            if below + count >= rank {
                let end_us = FIRST_US * f64::powi(2.0, bin as i32);
                let begin_us = if bin == 0 { 0.0 } else { end_us / 2.0 };
                let within = (rank - below) as f64 / *count as f64;
                return Some((begin_us + within * (end_us - begin_us)) * 1e-3);
            }
            below += count;
        }
        None
    }

    /// What was added since `before`. If there are fewer stalls now, the table has forgotten this entry meanwhile.
    pub(crate) fn since(&self, before: &Latencies) -> Latencies {
        let has_shrunk = self.bins.iter().zip(before.bins).any(|(now, before)| *now < before);
        if has_shrunk {
            return *self;
        }
        let mut since = *self;
        // While a wait ends, it may count twice, or not at all.
        since.ns = since.ns.saturating_sub(before.ns);
        since.bins.iter_mut().zip(before.bins).for_each(|(now, before)| *now -= before);
        since
    }

    pub(crate) fn add(&mut self, other: &Latencies) {
        self.ns += other.ns;
        self.bins.iter_mut().zip(other.bins).for_each(|(sum, more)| *sum += more);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// As the eBPF program chooses it.
    fn bin_of(us: u64) -> usize {
        (us.max(1).ilog2() as usize).min(BINS - 1)
    }

    proptest! {
        #[test]
        fn a_percentile_is_in_the_bin_of_the_true_one(
            mut us in prop::collection::vec(0u64..4_000_000_000, 1..200),
            percent in 1u64..=100,
        ) {
            let mut latencies = Latencies::default();
            for us in &us {
                latencies.bins[bin_of(*us)] += 1;
            }
            us.sort_unstable();
            let rank = (us.len() as u64 * percent).div_ceil(100).max(1);
            let bin = bin_of(us[rank as usize - 1]);
            let told_us = latencies.percentile_ms(percent).expect("stalls") * 1e3;
            let end = FIRST_US * f64::powi(2.0, bin as i32);
            let begin = if bin == 0 { 0.0 } else { end / 2.0 };
            prop_assert!(begin <= told_us && told_us <= end, "{told_us} not in {begin} to {end}");
        }
    }

    #[test]
    fn without_stalls_there_is_no_latency() {
        assert_eq!(Latencies::default().percentile_ms(50), None);
    }
}
