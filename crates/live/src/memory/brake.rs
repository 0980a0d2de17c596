//! What memory pressure leaves to read-ahead.

use std::path::Path;

use linux::psi;

/// Percent of the time that some task waits for memory, up to which nothing is done: reclaim that
/// keeps up with a stream stays below.
const CALM_PERCENT: f64 = 10.0;

/// The share of the budget that the pressure told of in `file` leaves: all of it while calm, then
/// less the longer tasks wait. All of it, too, where the kernel does not tell.
pub(super) fn share_left(file: &Path) -> f64 {
    psi::waiting_percent(file).map_or(1.0, share)
}

fn share(percent: f64) -> f64 {
    (CALM_PERCENT / percent.max(CALM_PERCENT)).min(1.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn pressure_takes_from_the_budget_and_no_pressure_or_none_known_takes_nothing() {
        assert_eq!(share(0.0), 1.0);
        assert_eq!(share(10.0), 1.0);
        assert_eq!(share(40.0), 0.25);
        assert_eq!(share(100.0), 0.1);
        assert_eq!(share_left(Path::new("/no/such/file")), 1.0);
    }

    proptest! {
        #[test]
        fn some_share_is_left_whatever_the_pressure(percent in prop::num::f64::NORMAL) {
            let left = share(percent);
            prop_assert!((0.0..=1.0).contains(&left), "{left} is left");
        }
    }
}
