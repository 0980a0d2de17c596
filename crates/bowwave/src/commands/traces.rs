//! Reads the traces that commands are given.

use std::io::{self, Read};
use std::path::Path;

use anyhow::{Context, ensure};
use trace::{MAX_TRACE_BYTES, Record, Trace, TraceError};

use crate::print;

/// Reads a trace from a file, or from standard input if its name is -.
pub(crate) fn read(path: &Path) -> anyhow::Result<Trace> {
    let name = path.display();
    let cannot = || format!("cannot read the trace {name}");
    let mut text = Vec::new();
    // Read one byte more than permitted, to detect longer input without keeping it in memory.
    let most = MAX_TRACE_BYTES + 1;
    if path.as_os_str() == "-" {
        io::stdin().take(most).read_to_end(&mut text).with_context(cannot)?;
    } else {
        let file = std::fs::File::open(path).with_context(cannot)?;
        let bytes = file.metadata().with_context(cannot)?.len();
        if bytes > MAX_TRACE_BYTES {
            return Err(TraceError::TooLarge { bytes }).with_context(|| format!("{name}"));
        }
        file.take(most).read_to_end(&mut text).with_context(cannot)?;
    }
    ensure!(
        !recording::is_recording(&text),
        "{name} is a recording, not a trace; name it after --verify (or --show)"
    );
    Trace::parse(&text).with_context(|| format!("{name}"))
}

/// Warns about reads beyond the end of a file, which take no time. Programs do such reads, but the sizes in the trace may
/// also be wrong.
pub(crate) fn warn_of_reads_beyond_the_end(trace: &Trace) {
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
