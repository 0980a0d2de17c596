//! What the figures of a device may be: wider than anything ever built, and narrow enough that waits and
//! transfers are nanoseconds that can be counted, and buffers bytes.

use std::fmt::Display;
use std::ops::RangeInclusive;

/// Microseconds of one step: a minute, which is beyond the time-outs of any driver.
pub(crate) const US: RangeInclusive<f64> = 0.0..=6e7;

/// MB/s: from a kilobyte a second to a terabyte.
pub(crate) const MB_S: RangeInclusive<f64> = 0.001..=1e6;

/// Revolutions a minute: a turn takes a minute at most, and 60 microseconds at least.
pub(crate) const RPM: RangeInclusive<f64> = 1.0..=1e6;

/// GB: from a kilobyte to a petabyte.
pub(crate) const GB: RangeInclusive<f64> = 1e-6..=1e6;

/// KiB of a buffer or of a command: 16 GiB at most.
pub(crate) const KIB: RangeInclusive<u64> = 0..=1 << 24;

/// Requests at once: as many as an NVMe queue holds.
pub(crate) const DEPTH: RangeInclusive<usize> = 1..=1 << 16;

/// An error that names the setting and what it may be, unless `value` is allowed.
pub(crate) fn within<T: PartialOrd + Display>(
    name: &str,
    value: T,
    allowed: RangeInclusive<T>,
) -> Result<(), String> {
    if allowed.contains(&value) {
        return Ok(());
    }
    Err(format!("{name} must be {} to {}", allowed.start(), allowed.end()))
}

/// As [`within`], of a setting that may be absent.
pub(crate) fn within_or_absent<T: PartialOrd + Display>(
    name: &str,
    value: Option<T>,
    allowed: RangeInclusive<T>,
) -> Result<(), String> {
    let checked = value.map_or(Ok(()), |value| within(name, value, allowed));
    checked.map_err(|reason| format!("{reason}, or absent"))
}
