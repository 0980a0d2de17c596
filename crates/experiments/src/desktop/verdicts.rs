//! The claims about the table, and whether they hold.

use super::super::table::{Verdict, goes_the_same_way};
use super::Outcome;

/// Smaller changes are within the variation of such runs.
const LARGE_PERCENT: f64 = 5.0;

/// Judges every row: its stock figure, and the sign of a large change.
pub(super) fn judge(outcomes: &[Outcome], within_percent: f64) -> Vec<Verdict> {
    let stock = outcomes.iter().filter_map(|outcome| judge_stock(outcome, within_percent));
    let changes = outcomes.iter().filter_map(judge_change);
    stock.chain(changes).collect()
}

fn judge_stock(outcome: &Outcome, within_percent: f64) -> Option<Verdict> {
    let (was, is) = (outcome.row.stock_seconds?, outcome.simulated[0]);
    let error = (is / was - 1.0) * 100.0;
    let name = outcome.row.name();
    let claim =
        format!("{name}: stock {is:.2} s for {was:.2} s ({error:+.0} %, {within_percent} allowed)");
    Some(Verdict::new(claim, error.abs() <= within_percent))
}

fn judge_change(outcome: &Outcome) -> Option<Verdict> {
    let change = |stock: f64, adaptive: f64| (adaptive / stock - 1.0) * 100.0;
    let was = change(outcome.row.stock_seconds?, outcome.row.adaptive_seconds?);
    let is = change(outcome.simulated[0], outcome.simulated[1]);
    let name = outcome.row.name();
    let claim =
        format!("{name}: adaptive changes it by {is:+.1} % for {was:+.1} %, the sign right");
    (was.abs() > LARGE_PERCENT).then(|| Verdict::new(claim, goes_the_same_way(was, is)))
}
