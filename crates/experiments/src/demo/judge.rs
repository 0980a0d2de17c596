//! The claims about the table.

use std::collections::BTreeMap;

use crate::table::{Figure, Kind, Verdict, median};

/// The largest median of the errors of simulated figures, as shares of the live ones.
const MOST_IN_THE_MEDIAN: f64 = 0.10;

/// The largest single error.
const MOST: f64 = 0.25;

/// Settings count as equal if their live figures differ by less than this share.
const SAME: f64 = 0.05;

/// Most figures that a verdict names.
const NAMED: usize = 12;

pub(super) fn judge(figures: &[Figure]) -> Vec<Verdict> {
    let mut of_devices: BTreeMap<&str, Vec<&Figure>> = BTreeMap::new();
    // Each setting separately: errors of the stock kernel say little about bowwave's.
    let mut of_settings: BTreeMap<(&str, &str), Vec<&Figure>> = BTreeMap::new();
    for figure in figures {
        let device = figure.row.split(' ').next().unwrap_or_default();
        of_devices.entry(device).or_default().push(figure);
        if figure.kind != Kind::Calibrated {
            of_settings.entry((device, &figure.policy)).or_default().push(figure);
        }
    }
    let medians = of_settings
        .iter()
        .map(|((device, setting), figures)| median_error(&format!("{device} {setting}"), figures));
    let of_device = |(device, figures): (&&str, &Vec<&Figure>)| {
        [worst_errors(device, figures), winners(device, figures)]
    };
    medians.chain(of_devices.iter().flat_map(of_device)).collect()
}

fn error(figure: &Figure) -> f64 {
    figure.error().map_or(f64::INFINITY, f64::abs)
}

fn median_error(place: &str, figures: &[&Figure]) -> Verdict {
    let median = median(figures.iter().map(|figure| error(figure)));
    let claim = format!(
        "{place}: median error at most {:.0} % (it is {:.1} %)",
        MOST_IN_THE_MEDIAN * 100.0,
        median * 100.0
    );
    Verdict::new(claim, median <= MOST_IN_THE_MEDIAN)
}

fn worst_errors(device: &str, figures: &[&Figure]) -> Verdict {
    let mut off: Vec<(f64, String)> = figures
        .iter()
        .map(|figure| (error(figure), format!("{} {}", figure.row, figure.policy)))
        .collect();
    off.sort_by(|a, b| b.0.total_cmp(&a.0));
    let worst = off.first().map_or(0.0, |(error, _)| *error);
    off.retain(|(error, _)| *error > MOST);
    let claim = format!("{device}: no error above {:.0} %", MOST * 100.0);
    let claim = match off.is_empty() {
        true => format!("{claim} (worst {:.1} %)", worst * 100.0),
        false => format!("{claim}: {} of {} fail; {}", off.len(), figures.len(), named(&off)),
    };
    Verdict::new(claim, worst <= MOST)
}

fn named(off: &[(f64, String)]) -> String {
    let name = |(error, name): &(f64, String)| format!("{name} {:.0} %", error * 100.0);
    off.iter().take(NAMED).map(name).collect::<Vec<_>>().join(", ")
}

/// Claims that the setting which is best in the simulator is the best live, or as good.
fn winners(device: &str, figures: &[&Figure]) -> Verdict {
    let mut rows: BTreeMap<&str, Vec<&Figure>> = BTreeMap::new();
    for figure in figures {
        rows.entry(&figure.row).or_default().push(figure);
    }
    let others: Vec<&str> =
        rows.iter().filter(|(_, row)| !is_same_winner(row)).map(|(name, _)| *name).collect();
    let claim = format!(
        "{device}: the winner is the same wherever live figures differ by more than {:.0} %",
        SAME * 100.0
    );
    let claim = match others.is_empty() {
        true => format!("{claim}, in all {} rows", rows.len()),
        false => {
            format!("{claim}: {} of {} rows fail; {}", others.len(), rows.len(), others.join(", "))
        }
    };
    Verdict::new(claim, others.is_empty())
}

fn is_same_winner(row: &[&Figure]) -> bool {
    // For times and latencies, less is better.
    let badness =
        |figure: &Figure, value: f64| if figure.unit == "MB/s" { 1.0 / value } else { value };
    let live = |figure: &Figure| badness(figure, figure.published.unwrap_or(f64::NAN));
    let best_live = row.iter().map(|figure| live(figure)).fold(f64::INFINITY, f64::min);
    let winner =
        row.iter().min_by(|a, b| badness(a, a.simulated).total_cmp(&badness(b, b.simulated)));
    winner.is_some_and(|winner| live(winner) <= best_live * (1.0 + SAME))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(unit: &'static str, live: f64, simulated: f64) -> Figure {
        Figure {
            row: "net a-pattern".into(),
            policy: "bowwave".into(),
            unit,
            published: Some(live),
            simulated,
            kind: Kind::Prediction,
        }
    }

    fn hold(figures: &[Figure]) -> Vec<bool> {
        judge(figures).iter().map(|verdict| verdict.holds).collect()
    }

    #[test]
    fn errors_are_those_of_the_median_and_of_the_worst() {
        let good = figure("s", 1.0, 1.05);
        assert_eq!(hold(&[good.clone(), good.clone(), figure("s", 1.0, 1.24)]), [true, true, true]);
        assert_eq!(hold(&[good.clone(), good.clone(), figure("s", 1.0, 1.3)]), [true, false, true]);
        assert_eq!(
            hold(&[good, figure("s", 1.0, 0.8), figure("s", 1.0, 0.8)]),
            [false, true, true]
        );
        assert!(!hold(&[figure("s", 1.0, f64::NAN)])[1]);
    }

    #[test]
    fn another_winner_is_one_that_is_worse_live_by_more_than_a_twentieth() {
        let winner = |unit, live: [f64; 2]| {
            is_same_winner(&[&figure(unit, live[0], 1.0), &figure(unit, live[1], 1.1)])
        };
        assert!(winner("s", [1.0, 1.2]) && winner("s", [1.04, 1.0]));
        assert!(!winner("s", [1.06, 1.0]));
        assert!(winner("MB/s", [1.0, 1.04]) && !winner("MB/s", [1.2, 1.0]));
    }
}
