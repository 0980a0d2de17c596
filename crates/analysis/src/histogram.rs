//! How large reads are, and how long waits: bins of powers of two.

use readahead::Nanos;
use trace::Trace;

use crate::Analysis;

/// Reads of a size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SizeBin {
    /// The smallest size; the largest one is a byte below twice that.
    pub from_bytes: u64,
    /// How many reads have such a size.
    pub reads: u64,
    /// How many of them waited.
    pub waited: u64,
}

/// Waits of a length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LengthBin {
    /// The shortest; the longest one is shorter than twice that.
    pub from: Nanos,
    /// How many waits have such a length.
    pub waits: u64,
    /// Their sum.
    pub total: Nanos,
}

/// Reads by the bytes they asked for, from the smallest to the largest.
pub fn read_sizes(trace: &Trace, analysis: &Analysis) -> Vec<SizeBin> {
    let mut bins = [SizeBin::default(); 64];
    let reads = trace.records().iter().filter(|record| record.op.is_read());
    for record in reads.filter(|record| trace.has_bytes(record)) {
        bins[record.bytes.ilog2() as usize].reads += 1;
    }
    for wait in &analysis.waits {
        bins[trace.records()[wait.record].bytes.ilog2() as usize].waited += 1;
    }
    bins.iter_mut().enumerate().for_each(|(power, bin)| bin.from_bytes = 1 << power);
    used(&bins, |bin| bin.reads > 0)
}

/// Waits by their length, from the shortest to the longest.
pub fn wait_lengths(analysis: &Analysis) -> Vec<LengthBin> {
    let mut bins = [LengthBin::default(); 64];
    for wait in &analysis.waits {
        let bin = &mut bins[wait.wait.max(1).ilog2() as usize];
        bin.waits += 1;
        bin.total = bin.total.saturating_add(wait.wait);
    }
    bins.iter_mut().enumerate().for_each(|(power, bin)| bin.from = 1 << power);
    used(&bins, |bin| bin.waits > 0)
}

/// From the first bin that has something to the last one.
fn used<B: Copy>(bins: &[B], has_something: impl Fn(&B) -> bool) -> Vec<B> {
    let first = bins.iter().position(&has_something);
    let last = bins.iter().rposition(&has_something);
    let range = first.zip(last).map(|(first, last)| bins[first..=last].to_vec());
    range.unwrap_or_default()
}
