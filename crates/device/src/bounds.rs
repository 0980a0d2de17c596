//! Limits for the parameters of a device. They are wider than any device ever built, yet narrow
//! enough that times fit into nanoseconds and buffers into bytes.

use std::fmt::Display;
use std::ops::RangeInclusive;

/// Duration of one step in microseconds: up to a minute, longer than any driver's time-out.
pub(crate) const US: RangeInclusive<f64> = 0.0..=6e7;

/// MB/s: from one kilobyte to one terabyte per second.
pub(crate) const MB_S: RangeInclusive<f64> = 0.001..=1e6;

/// Revolutions per minute: one takes between 60 microseconds and a minute.
pub(crate) const RPM: RangeInclusive<f64> = 1.0..=1e6;

/// GB: from one kilobyte to one petabyte.
pub(crate) const GB: RangeInclusive<f64> = 1e-6..=1e6;

/// Size of a buffer or command in KiB: up to 16 GiB.
pub(crate) const KIB: RangeInclusive<u64> = 0..=1 << 24;

/// Requests at once: up to what an NVMe queue holds.
pub(crate) const DEPTH: RangeInclusive<usize> = 1..=1 << 16;

/// Fails if `value` is out of range. The error names the setting and its range.
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

/// Like [`within`], for an optional setting.
pub(crate) fn within_or_absent<T: PartialOrd + Display>(
    name: &str,
    value: Option<T>,
    allowed: RangeInclusive<T>,
) -> Result<(), String> {
    let checked = value.map_or(Ok(()), |value| within(name, value, allowed));
    checked.map_err(|reason| format!("{reason}, or absent"))
}
