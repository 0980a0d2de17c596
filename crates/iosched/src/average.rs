//! A decaying integer average, as the kernel keeps it.
//!
//! Each sample leaves seven eighths of the past. The average also keeps the weight of all samples,
//! in 256ths, so that the first ones count in full:
//!
//! ```text
//!   weight  <- (7 weight + 256) / 8          32, 60, 84, ... 249
//!   total   <- (7 total + 256 sample) / 8
//!   mean     = total / weight, rounded
//! ```

/// 1 in fixed point.
const ONE: u64 = 256;

/// The average.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Average {
    weight: u64,
    total: u64,
}

impl Average {
    pub(crate) fn add(&mut self, sample: u64) {
        self.weight = (7 * self.weight + ONE) / 8;
        self.total = (7 * self.total + ONE * sample) / 8;
    }

    /// Whether there are no samples yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.weight == 0
    }

    /// The weight of all samples, out of 256.
    pub(crate) fn weight(&self) -> u64 {
        self.weight
    }

    /// The mean, rounded; `None` without samples.
    pub(crate) fn mean(&self) -> Option<u64> {
        (self.total + self.weight / 2).checked_div(self.weight)
    }

    /// The mean as the kernel computes it for think times. It adds half of one whatever the weight,
    /// so the first samples are too large, the very first by four.
    pub(crate) fn high_mean(&self) -> Option<u64> {
        (self.total + ONE / 2).checked_div(self.weight)
    }
}

/// An average without the weight. It starts at zero and needs a few samples to rise.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SlowAverage {
    total: u64,
}

impl SlowAverage {
    pub(crate) fn add(&mut self, sample: u64) {
        self.total = (7 * self.total + ONE * sample) / 8;
    }

    pub(crate) fn mean(&self) -> u64 {
        self.total / ONE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_sample_is_the_mean() {
        let mut average = Average::default();
        assert_eq!(average.mean(), None);
        average.add(1000);
        assert_eq!((average.mean(), average.weight()), (Some(1000), 32));
        assert_eq!(average.high_mean(), Some(1004));
    }

    #[test]
    fn old_samples_fade() {
        let mut average = Average::default();
        average.add(1000);
        for _ in 0..40 {
            average.add(10);
        }
        assert!(average.mean().unwrap() < 20);
    }

    #[test]
    fn the_slow_one_rises_by_eighths() {
        let mut average = SlowAverage::default();
        average.add(80);
        assert_eq!(average.mean(), 10);
    }
}
