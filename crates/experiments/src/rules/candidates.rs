//! The shipped rules, and their alternatives.

use readahead::DeviceCost;
use readahead::adaptive::{Ahead, Rules, Run, UnitCost};

use super::workloads::{Workload, clusters, runs, sparse_runs};

/// The first window of doubling in pages: 16 KiB.
const FIRST_WINDOW: u64 = 4;

/// The last window of doubling in pages: 4 MiB.
const LARGEST_WINDOW: u64 = 1024;

/// The widest gap ever read: 1 MiB.
const WIDEST_GAP: u64 = 256;

/// One rule and its alternatives; the shipped one is the first.
pub(super) struct Contest {
    pub(super) rule: &'static str,
    pub(super) candidates: Vec<(&'static str, Rules)>,
    pub(super) workloads: fn(u64) -> Vec<Workload>,
}

/// The names of the columns.
pub(super) const COLUMNS: [&str; 4] = ["shipped", "a", "b", "c"];

pub(super) fn all() -> Vec<Contest> {
    let shipped = Rules::default();
    let window = |window| Rules { window, ..shipped };
    let gap = |bridges| Rules { bridges, ..shipped };
    let dense = |share_to_fill| Rules { share_to_fill, ..shipped };
    let mark = |look_ahead| Rules { look_ahead, ..shipped };
    vec![
        Contest {
            rule: "window",
            candidates: vec![
                ("sqrt(2 r L B / a)", shipped),
                ("doubling", window(doubling)),
                ("L B", window(|cost, _| fixed(cost, 1.0))),
                ("2 L B", window(|cost, _| fixed(cost, 2.0))),
            ],
            workloads: runs,
        },
        Contest {
            rule: "gap",
            candidates: vec![
                ("bridged if gap/B < L/Q", shipped),
                ("never", gap(|_, _| false)),
                ("always up to 1 MiB", gap(|_: &DeviceCost, pages| pages <= WIDEST_GAP)),
            ],
            workloads: sparse_runs,
        },
        Contest {
            rule: "dense",
            candidates: vec![
                ("filled at 1/ln(N/n) + 4/n", shipped),
                ("at the fourth miss", dense(|_, _| 0.0)),
                ("at twice the rest", dense(|_, _| 2.0)),
                ("at 1/4 + 4/n", dense(at_a_quarter)),
            ],
            workloads: clusters,
        },
        Contest {
            rule: "mark",
            candidates: vec![
                ("rate (L + w/B) before the end", shipped),
                ("half the window", mark(|_: &UnitCost, ahead: Ahead| ahead.window.div_ceil(2))),
                ("its first page", mark(|_: &UnitCost, ahead: Ahead| ahead.window)),
                ("none while a w > r", mark(after_proof)),
            ],
            workloads: runs,
        },
    ]
}

/// Windows of 4, 8, 16 ... pages: each is as large as all before it, plus the first.
fn doubling(_: &UnitCost, run: Run) -> u64 {
    (run.asked + FIRST_WINDOW).min(LARGEST_WINDOW)
}

/// Always as many pages as the device delivers during so many stalls.
fn fixed(cost: &UnitCost, stalls: f64) -> u64 {
    (stalls * cost.stall_units()).ceil() as u64
}

/// The shipped rule with a logarithm of always 4.
fn at_a_quarter(misses: u32, _requests_left: f64) -> f64 {
    0.25 + 4.0 / f64::from(misses)
}

/// Requesting a page earlier saves its transfer, `1/B`. It costs the window, `w/B`, if the run ends on that page, which
/// happens to one run in `r/a`. So it does not pay while `a w > r`.
fn after_proof(cost: &UnitCost, ahead: Ahead) -> u64 {
    let is_proven = ahead.run.tail_exponent * ahead.window as f64 <= ahead.run.read as f64;
    if is_proven { (Rules::default().look_ahead)(cost, ahead) } else { 0 }
}
