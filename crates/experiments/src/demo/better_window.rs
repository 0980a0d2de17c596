//! Compares bowwave with the better of two static windows, pattern by pattern.

use patterns::Pattern;

use super::*;

/// The time of the better window divided by that of bowwave.
fn ratio(device: &str, pattern: &'static Pattern) -> f64 {
    let experiment = experiment().expect("it is valid");
    let seconds = |setting: &str| {
        let measured = Measured {
            device: device.into(),
            pattern: pattern.name.into(),
            setting: setting.into(),
            unit: Unit::Seconds,
            live: f64::NAN,
        };
        let setting = &experiment.workload.settings[setting];
        simulate(&experiment, &Cell { measured: &measured, pattern, setting }).expect("it runs")
    };
    let better = seconds("stock 128K").min(seconds("stock 4M"));
    better / seconds("bowwave")
}

fn pattern(name: &str) -> &'static Pattern {
    PATTERNS.iter().find(|pattern| pattern.name == name).expect("there is one")
}

#[test]
fn where_runs_have_typical_lengths_bowwave_is_as_fast_as_the_better_window() {
    for device in ["hdd", "net"] {
        for name in ["player", "row-groups", "archive-members"] {
            let ratio = ratio(device, pattern(name));
            assert!(ratio >= 0.97, "{device} {name}: {ratio:.3}");
        }
    }
}
