//! Who waited when.

use std::cmp::Reverse;

use readahead::Nanos;
use trace::Trace;

use crate::Analysis;

/// The number of intervals.
pub(crate) const INTERVALS: usize = 60;

/// Waits over time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeline {
    /// The length of an interval; the first one begins with the trace.
    pub interval: Nanos,
    /// The processes that waited longest, and at last all others together, each with its waits in each interval.
    pub rows: Vec<(Option<u32>, Vec<Nanos>)>,
}

/// The waits of the `most` processes that waited longest, and those of the others.
pub fn timeline(trace: &Trace, analysis: &Analysis, most: usize) -> Timeline {
    let (began, interval) = (analysis.span.0, interval(analysis));
    let waited = |process: &u32| analysis.processes[*process as usize].usage.waits.total;
    let mut processes: Vec<u32> =
        (0..trace.processes().len() as u32).filter(|process| waited(process) > 0).collect();
    processes.sort_by_key(|process| Reverse(waited(process)));
    let others = processes.split_off(processes.len().min(most));
    let mut row_of = vec![processes.len(); trace.processes().len()];
    for (row, process) in processes.iter().enumerate() {
        row_of[*process as usize] = row;
    }
    let mut rows = vec![vec![0; INTERVALS]; processes.len() + 1];
    for wait in &analysis.waits {
        let record = &trace.records()[wait.record];
        let end = record.at + record.took - began;
        let row = row_of[record.process as usize];
        spread(&mut rows[row], interval, end - wait.wait, end);
    }
    let mut names: Vec<Option<u32>> = processes.into_iter().map(Some).chain([None]).collect();
    if others.is_empty() {
        names.pop();
    }
    Timeline { interval, rows: names.into_iter().zip(rows).collect() }
}

/// The length of an interval.
pub(crate) fn interval(analysis: &Analysis) -> Nanos {
    (analysis.span.1 - analysis.span.0).div_ceil(INTERVALS as u64).max(1)
}

/// Adds the time from `start` to `end` to the intervals it lies in.
pub(crate) fn spread(intervals: &mut [Nanos], interval: Nanos, start: Nanos, end: Nanos) {
    let mut at = start;
    while at < end {
        let index = ((at / interval) as usize).min(intervals.len() - 1);
        let is_last = index + 1 == intervals.len();
        let until = if is_last { end } else { end.min((index as u64 + 1) * interval) };
        intervals[index] = intervals[index].saturating_add(until - at);
        at = until;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_counts_in_each_interval_it_lies_in() {
        let mut intervals = [0; 4];
        spread(&mut intervals, 10, 7, 23);
        spread(&mut intervals, 10, 23, 23);
        spread(&mut intervals, 10, 39, 41);
        assert_eq!(intervals, [3, 10, 3, 2]);
    }
}
