//! Pressure stall information: how long tasks wait for memory, and what that leaves to read-ahead.

use std::fs;
use std::path::Path;

/// The machine's own.
pub(crate) const MACHINE: &str = "/proc/pressure/memory";

/// Percent of the time that some task waits for memory, up to which nothing is done: reclaim that
/// keeps up with a stream stays below.
const CALM_PERCENT: f64 = 10.0;

/// The share of the budget that the pressure told of in `file` leaves: all of it while calm, then
/// less the longer tasks wait. All of it, too, where the kernel does not tell.
pub(super) fn share_left(file: &Path) -> f64 {
    let text = fs::read_to_string(file).unwrap_or_default();
    some_avg10(&text).map_or(1.0, share)
}

fn share(percent: f64) -> f64 {
    (CALM_PERCENT / percent.max(CALM_PERCENT)).min(1.0)
}

/// Percent of the last ten seconds in which some task waited, from `some avg10=1.53 avg60=...`.
fn some_avg10(text: &str) -> Option<f64> {
    let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
    let percent = some.split(' ').find_map(|field| field.strip_prefix("avg10="))?;
    percent.parse().ok().filter(|percent: &f64| percent.is_finite())
}

#[cfg(any(test, fuzzing))]
pub(super) fn read_any(text: &str) {
    let left = some_avg10(text).map_or(1.0, share);
    assert!((0.0..=1.0).contains(&left), "{left} is left");
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "some avg10=40.00 avg60=3.10 avg300=0.84 total=10848418\n\
                        full avg10=1.00 avg60=2.87 avg300=0.79 total=10310487\n";

    #[test]
    fn the_last_ten_seconds_of_some_task_count() {
        assert_eq!(some_avg10(TEXT), Some(40.0));
        for damaged in ["", "full avg10=3.00", "some avg60=1.00", "some avg10=x", "some avg10=nan"]
        {
            assert_eq!(some_avg10(damaged), None, "{damaged:?}");
        }
    }

    #[test]
    fn pressure_takes_from_the_budget_and_no_pressure_or_none_known_takes_nothing() {
        assert_eq!(share(0.0), 1.0);
        assert_eq!(share(10.0), 1.0);
        assert_eq!(share(40.0), 0.25);
        assert_eq!(share(100.0), 0.1);
        assert_eq!(share_left(Path::new("/no/such/file")), 1.0);
    }
}
