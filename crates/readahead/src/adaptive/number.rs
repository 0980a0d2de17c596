//! Counts of units as numbers to reckon with.

/// Units, `i64::MAX` at most, as a number.
pub(super) fn real(units: u64) -> f64 {
    units.min(i64::MAX as u64) as i64 as f64
}
