//! Pressure stall information: how long tasks wait for memory.

use std::fs;
use std::path::Path;

/// The whole machine's pressure.
pub const MACHINE: &str = "/proc/pressure/memory";

/// Percentage of the last ten seconds in which some task waited, according to `file`; `None` if the
/// kernel does not report it.
pub fn waiting_percent(file: &Path) -> Option<f64> {
    some_avg10(&fs::read_to_string(file).ok()?)
}

/// Parses `some avg10=1.53 avg60=...`.
fn some_avg10(text: &str) -> Option<f64> {
    let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
    let percent = some.split(' ').find_map(|field| field.strip_prefix("avg10="))?;
    percent.parse().ok().filter(|percent: &f64| percent.is_finite())
}

#[cfg(any(test, fuzzing))]
pub(crate) fn read_any(text: &str) {
    some_avg10(text);
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
    fn without_pressure_information_nothing_is_known() {
        assert_eq!(waiting_percent(Path::new("/no/such/file")), None);
    }
}
