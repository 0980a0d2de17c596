//! Maps values to positions on an axis and places the ticks.

use sim::Axis;

/// Approximate maximum of ticks on an axis.
const TICKS: f64 = 6.0;

/// An axis with its range, linear or logarithmic.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    low: f64,
    high: f64,
    is_log: bool,
}

impl Scale {
    /// An axis with room for all values; values that it cannot show are left out.
    pub(crate) fn new(axis: &Axis, values: impl Iterator<Item = f64>) -> Self {
        let is_log = axis.is_log;
        let valid = values.filter(|value| value.is_finite() && (!is_log || *value > 0.0));
        let (low, high) = valid.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (low.min(value), high.max(value))
        });
        let scale = |low, high| Scale { low, high, is_log };
        match (low <= high, is_log) {
            (false, false) => scale(0.0, 1.0),
            (false, true) => scale(1.0, 10.0),
            (true, true) => {
                let (low, high) = (power_below(low), power_above(high));
                scale(low, if high > low { high } else { low * 2.0 })
            }
            // Amounts start at zero, so that heights are proportional.
            (true, false) => {
                let (low, high) = (low.min(0.0), high.max(0.0));
                if high == low { scale(0.0, 1.0) } else { scale(low, high + (high - low) * 0.04) }
            }
        }
    }

    /// A linear axis from 0 to `high`, without room above.
    pub(crate) fn up_to(high: f64) -> Self {
        let high = if high.is_finite() && high > 0.0 { high } else { 1.0 };
        Scale { low: 0.0, high, is_log: false }
    }

    /// Position of a value from 0 to 1; `None` if it is not on the axis.
    pub(crate) fn place(&self, value: f64) -> Option<f64> {
        let of = |value: f64| if self.is_log { value.log2() } else { value };
        let place = (of(value) - of(self.low)) / (of(self.high) - of(self.low));
        (place.is_finite() && (-1e-9..=1.0 + 1e-9).contains(&place)).then_some(place)
    }

    /// Round values along the axis.
    pub(crate) fn ticks(&self) -> Vec<f64> {
        if self.is_log {
            let powers = (self.high / self.low).log2().round().max(1.0);
            let step = (powers / TICKS).ceil();
            let count = (powers / step).floor() as i32;
            return (0..=count).map(|i| self.low * (step * f64::from(i)).exp2()).collect();
        }
        let rough = (self.high - self.low) / TICKS;
        let power = 10f64.powf(rough.log10().floor());
        let rounds = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power);
        let step = rounds.into_iter().find(|step| *step >= rough).unwrap_or(rounds[3]);
        let first = (self.low / step).ceil() as i64;
        let last = (self.high / step).floor() as i64;
        (first..=last).take(2 * TICKS as usize).map(|i| i as f64 * step).collect()
    }
}

fn power_below(value: f64) -> f64 {
    value.log2().floor().exp2()
}

fn power_above(value: f64) -> f64 {
    value.log2().ceil().exp2()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round() {
        let scale = Scale::new(&Axis::linear("s"), [3.0, 47.0].into_iter());
        assert_eq!(scale.ticks(), [0.0, 10.0, 20.0, 30.0, 40.0]);
        let scale = Scale::new(&Axis::log("KiB"), [5.0, 1000.0].into_iter());
        assert_eq!(scale.ticks(), [4.0, 16.0, 64.0, 256.0, 1024.0]);
    }

    #[test]
    fn positions_span_the_whole_axis() {
        let scale = Scale::new(&Axis::log("KiB"), [4.0, 64.0].into_iter());
        assert_eq!(
            [4.0, 16.0, 64.0, 0.0].map(|v| scale.place(v)),
            [Some(0.0), Some(0.5), Some(1.0), None]
        );
    }

    #[test]
    fn an_axis_can_be_made_of_no_values_or_odd_ones() {
        for values in [vec![], vec![f64::NAN], vec![0.0], vec![-3.0], vec![1e300, 1e-300]] {
            for axis in [Axis::linear("x"), Axis::log("x")] {
                let scale = Scale::new(&axis, values.iter().copied());
                assert!(!scale.ticks().is_empty(), "{axis:?} {values:?}");
                assert!(values.iter().all(|v| scale.place(*v).is_none_or(|p| p.is_finite())));
            }
        }
    }
}
