//! A decaying average in integers, as the kernel keeps them.
//!
//! Of the past seven eighths stay with every sample. The weight of what was seen so far is kept
//! beside it, in 256ths, so that the first samples count in full:
//!
//! ```text
//!   weight  <- (7 weight + 256) / 8          32, 60, 84, ... 249
//!   total   <- (7 total + 256 sample) / 8
//!   mean     = total / weight, rounded
//! ```

/// One in fixed point.
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

    /// Whether there is no sample yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.weight == 0
    }

    /// How much was seen, of 256.
    pub(crate) fn weight(&self) -> u64 {
        self.weight
    }

    /// The mean, rounded; `None` without samples.
    pub(crate) fn mean(&self) -> Option<u64> {
        (self.total + self.weight / 2).checked_div(self.weight)
    }

    /// The mean as the kernel takes it of think times: with half of one added whatever the weight,
    /// which makes the first samples too large, by four for the first.
    pub(crate) fn high_mean(&self) -> Option<u64> {
        (self.total + ONE / 2).checked_div(self.weight)
    }
}

/// The same without the weight: it begins at zero and takes a few samples to rise.
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
