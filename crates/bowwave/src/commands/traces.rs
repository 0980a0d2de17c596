//! Reads the traces that commands are given.

use std::path::Path;

use trace::{Origin, Record, Trace};

use crate::print;

/// Reads a trace from a file, or from standard input if its name is -. Says what is odd about it.
pub(crate) fn read(path: &Path) -> anyhow::Result<Trace> {
    let trace = trace::open(path)?;
    trace.origin().into_iter().flat_map(Origin::notes).for_each(print::note);
    warn_of_reads_beyond_the_end(&trace);
    Ok(trace)
}

/// Warns about reads beyond the end of a file, which take no time. Programs do such reads, but the sizes in the trace may
/// also be wrong.
fn warn_of_reads_beyond_the_end(trace: &Trace) {
    let is_beyond = |record: &&Record| {
        let bytes = trace.files()[record.file as usize].bytes;
        record.op.has_place() && record.bytes > 0 && record.offset > bytes
    };
    let mut beyond = trace.records().iter().filter(is_beyond);
    let Some(first) = beyond.next() else { return };
    let (number, all) = (beyond.count() + 1, trace.records().len());
    let lies = if number == 1 {
        "lies beyond the end of its file"
    } else {
        "lie beyond the ends of their files"
    };
    let file = &trace.files()[first.file as usize];
    print::note(format_args!(
        "{number} of {all} operations {lies}, the first at byte {} of {:?}, which has {}; check the sizes in the trace",
        first.offset, file.name, file.bytes
    ));
}
