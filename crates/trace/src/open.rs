//! Opens traces: text or recorded.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use crate::error::{OpenError, RecordedError, TraceError};
use crate::{MAX_COMPONENTS, MAX_TRACE_BYTES, Trace, recorded};

/// Opens a trace: text (docs/trace.md), or what `bowwave record` has written. `-` is standard input.
///
/// # Errors
/// [`OpenError`], which names the file.
pub fn open(path: &Path) -> Result<Trace, OpenError> {
    let name = || path.display().to_string();
    let cannot = |cause| OpenError::Io { name: name(), cause };
    let outcome = if path.as_os_str() == "-" {
        read(io::stdin().lock())
    } else {
        let file = File::open(path).map_err(cannot)?;
        read(BufReader::new(file))
    };
    outcome.map_err(|problem| match problem {
        TraceError::Recorded(RecordedError::Io(kind)) => cannot(kind.into()),
        problem => OpenError::Trace { name: name(), problem },
    })
}

/// Reads a trace, text or recorded.
///
/// # Errors
/// [`TraceError`].
pub fn read(mut from: impl Read) -> Result<Trace, TraceError> {
    let mut start = Vec::new();
    let most = recorded::KIND.magic.len() as u64;
    from.by_ref().take(most).read_to_end(&mut start).map_err(RecordedError::from)?;
    let trace = if blocks::is_ours(&start) {
        recorded::read(&mut start.as_slice().chain(from))?
    } else {
        read_text(start, from)?
    };
    let components: usize = trace.files.iter().map(|file| file.name.matches('/').count()).sum();
    if components > MAX_COMPONENTS {
        return Err(TraceError::TooManyComponents);
    }
    Ok(trace)
}

/// Reads a trace that begins with `start`.
fn read_text(start: Vec<u8>, from: impl Read) -> Result<Trace, TraceError> {
    // One byte more than permitted, to detect longer input without keeping it in memory.
    let rest = MAX_TRACE_BYTES + 1 - start.len() as u64;
    let mut text = start;
    from.take(rest).read_to_end(&mut text).map_err(RecordedError::from)?;
    Trace::parse(&text)
}
