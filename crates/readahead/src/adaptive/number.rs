//! Counts as floating-point numbers.

/// A count, at most `i64::MAX`, as a number. A processor converts a signed integer in one instruction, an unsigned one
/// in several.
pub(super) fn real(units: u64) -> f64 {
    units.min(i64::MAX as u64) as i64 as f64
}
