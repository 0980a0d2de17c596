//! How densely a region must have been read at random before the rest of it is read.

/// The share of the cost of reading the rest of a region that its `misses` must have cost: `1/ln(N/n) + 4/n`, where the
/// rest holds `N` requests (`requests_left`). See [`super::region`] for the reasons.
pub(super) fn share_to_fill(misses: u32, requests_left: f64) -> f64 {
    let misses = f64::from(misses);
    1.0 / log_from_1_to_4(requests_left / misses) + 4.0 / misses
}

/// The natural logarithm, but at least 1 and at most 4. Most numbers lie outside that range: no logarithm is computed.
fn log_from_1_to_4(number: f64) -> f64 {
    match number {
        ..2.7 => 1.0,
        55.0.. => 4.0,
        _ => number.ln().clamp(1.0, 4.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fewer_misses_are_to_come_the_more_must_those_seen_have_cost() {
        assert_eq!(share_to_fill(16, 100_000.0), 0.5, "a quarter, and a quarter");
        assert_eq!(share_to_fill(16, 20.0), 1.25, "hardly any are to come");
        assert!(share_to_fill(4, 1e6) > share_to_fill(8, 1e6), "a chance cluster");
    }

    #[test]
    fn no_number_is_spared_a_logarithm_that_counts() {
        for number in (0..10_000).map(|n| f64::from(n) / 100.0).chain([1e300, f64::INFINITY]) {
            assert_eq!(log_from_1_to_4(number), number.ln().clamp(1.0, 4.0), "{number}");
        }
    }
}
