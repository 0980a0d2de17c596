//! Reads the traces that commands are given.

use std::path::Path;

use trace::Trace;

use crate::print;

/// Reads a trace from a file, or from standard input if its name is -. Says what is odd about it.
pub(crate) fn read(path: &Path) -> anyhow::Result<Trace> {
    let trace = trace::open(path)?;
    trace.notes().into_iter().for_each(print::note);
    Ok(trace)
}
