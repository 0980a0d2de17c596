//! Runs to operations.

use super::MAX_OPERATIONS;
use super::item::Run;
use crate::Record;

/// The operations of all runs, and how many calls each stands for: 1, or a power of two where there are too many calls
/// for one trace.
pub(super) fn expand(runs: &[Run]) -> (Vec<Record>, u32) {
    let sum = |grouping| runs.iter().map(|run| pieces(run, grouping)).sum::<u64>();
    let mut grouping = 1;
    // The largest grouping makes each run one operation, and there is room for so many.
    while grouping < u32::MAX && sum(grouping) > MAX_OPERATIONS {
        grouping = grouping.saturating_mul(2);
    }
    let mut records = Vec::with_capacity(sum(grouping) as usize);
    for run in runs {
        let pieces = pieces(run, grouping);
        records.extend((0..pieces).map(|number| piece(run, number, pieces)));
    }
    (records, grouping)
}

/// How many operations a run becomes.
fn pieces(run: &Run, grouping: u32) -> u64 {
    run.calls.div_ceil(grouping).into()
}

/// One of so many equal parts.
fn piece(run: &Run, number: u64, pieces: u64) -> Record {
    let share =
        |all: u64, number: u64| (u128::from(all) * u128::from(number) / u128::from(pieces)) as u64;
    let all = run.record;
    let (begin, end) = (share(all.bytes, number), share(all.bytes, number + 1));
    Record {
        at: all.at + share(run.lasted, number),
        // Calls that waited are not merged.
        took: if pieces == 1 { all.took } else { 0 },
        offset: all.offset + begin,
        // There are more calls than bytes if they read the same page over and over.
        bytes: (end - begin).max(all.bytes.min(1)),
        ..all
    }
}
