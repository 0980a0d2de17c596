//! What the table of copies was to show, and whether it does.

use super::{Record, Row};
use crate::Verdict;
use crate::table::goes_the_same_way;

/// How far stock's figures may be off, and how far a change against stock.
const STOCK_WITHIN: f64 = 0.15;
const CHANGE_WITHIN_POINTS: f64 = 15.0;

pub(super) fn judge(rows: &[Row]) -> Vec<Verdict> {
    let loads = ["single", "parallel grep+dd+diff", "pc 128K stock"];
    let stock = format!("elapsed and system seconds of stock within {:.0} %", STOCK_WITHIN * 100.0);
    let stock = Verdict::of_all(&stock, rows.iter().flat_map(stock_rows));
    let mut verdicts = Vec::new();
    let mut changes = Vec::new();
    for block in ["4k", "32k"] {
        for policy in ["adaptive-100", "adaptive-102"] {
            let dd = |policy| find(rows, ["single", block, "dd hugefile", policy]);
            changes.extend(judge_change(&format!("dd {block} {policy}"), dd("stock"), dd(policy)));
            for process in ["grep", "dd", "diff"] {
                let of = |policy| find(rows, [loads[1], block, process, policy]);
                let name = format!("{process} of three, {block} {policy}");
                changes.extend(judge_change(&name, of("stock"), of(policy)));
            }
        }
        let waits = |policy| {
            let row = find(rows, ["single", block, "dd hugefile", policy]);
            row.map_or(0, |row| row.outcome.stalls)
        };
        let [stock, early, late] = ["stock", "adaptive-100", "adaptive-102"].map(waits);
        let claim =
            format!("dd {block}: fewest waits with adaptive-102, then stock, then adaptive-100");
        verdicts.push(Verdict::new(claim, late < stock && stock < early));
    }
    let early = "pc 2M early adaptive (ratio 90; next readahead at 1/4 left)";
    for process in [
        "dd single (733589504 bytes)",
        "dd beside diff (731596800 bytes)",
        "other process beside it",
    ] {
        let stock = find(rows, [loads[2], "32k", process, "stock"]);
        let adaptive = find(rows, [early, "32k", process, "adaptive-90"]);
        changes.extend(judge_change(&format!("pc {process}, 2M for 128K"), stock, adaptive));
    }
    let claim = format!(
        "elapsed changes against stock have the right sign and are within {CHANGE_WITHIN_POINTS} points"
    );
    [stock, Verdict::of_all(&claim, changes)].into_iter().chain(verdicts).collect()
}

/// A row by load, block, workload and policy.
fn find<'a>(rows: &'a [Row], [load, block, workload, policy]: [&str; 4]) -> Option<&'a Row> {
    rows.iter().find(|Row { record, .. }| {
        let Record { load: l, block: b, workload: w, policy: p, .. } = record;
        [l.as_str(), b, w, p] == [load, block, workload, policy]
    })
}

/// Whether elapsed and system time come out, if it is a row of stock's.
fn stock_rows(row: &Row) -> Vec<(String, bool)> {
    let times = row.values().into_iter().take(2).filter(|_| row.is_stock());
    let judged = times.filter_map(|(what, _, was, is)| {
        let Record { load, block, workload, .. } = &row.record;
        Some((format!("{load} {block} {workload} {what}"), (is / was? - 1.0).abs() <= STOCK_WITHIN))
    });
    judged.collect()
}

/// Whether the change of elapsed time against stock has the right sign and is about as large.
fn judge_change(name: &str, stock: Option<&Row>, policy: Option<&Row>) -> Option<(String, bool)> {
    let (stock, policy) = (stock?, policy?);
    let was = (policy.record.real_seconds / stock.record.real_seconds - 1.0) * 100.0;
    let is = (policy.real() / stock.real() - 1.0) * 100.0;
    let holds = goes_the_same_way(was, is) && (was - is).abs() <= CHANGE_WITHIN_POINTS;
    Some((name.to_owned(), holds))
}
