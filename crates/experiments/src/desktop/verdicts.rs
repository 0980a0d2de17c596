//! The claims about the table, and whether they hold.

use super::super::table::{Verdict, goes_the_same_way};
use super::Outcome;

/// Smaller changes are within the variation of such runs.
const LARGE_PERCENT: f64 = 5.0;

/// Judges the stock figures, and the signs of large changes.
pub(super) fn judge(outcomes: &[Outcome], within_percent: f64) -> Vec<Verdict> {
    let stock = outcomes.iter().filter_map(|outcome| is_stock_near(outcome, within_percent));
    let changes = outcomes.iter().filter_map(is_sign_right);
    let large = format!("the sign of each change above {LARGE_PERCENT} % is right");
    vec![
        Verdict::of_all(&format!("stock within {within_percent} %"), stock),
        Verdict::of_all(&large, changes),
    ]
}

fn is_stock_near(outcome: &Outcome, within_percent: f64) -> Option<(String, bool)> {
    let error = outcome.simulated[0] / outcome.row.stock_seconds? - 1.0;
    Some((outcome.row.name(), error.abs() * 100.0 <= within_percent))
}

fn is_sign_right(outcome: &Outcome) -> Option<(String, bool)> {
    let change = |stock: f64, adaptive: f64| (adaptive / stock - 1.0) * 100.0;
    let was = change(outcome.row.stock_seconds?, outcome.row.adaptive_seconds?);
    let is = change(outcome.simulated[0], outcome.simulated[1]);
    (was.abs() > LARGE_PERCENT).then(|| (outcome.row.name(), goes_the_same_way(was, is)))
}
