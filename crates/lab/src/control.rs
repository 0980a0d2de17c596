//! The server's file `control`, which switches the delays off or on.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use crate::error::LabError;

const FAST: &[u8] = b"fast";
const TIMED: &[u8] = b"timed";

/// Switches the delays of the server at `fuse` off or on.
pub(crate) fn set_fast(fuse: &Path, is_fast: bool) -> Result<(), LabError> {
    let path = fuse.join("control");
    let word = if is_fast { FAST } else { TIMED };
    // Never create the file: without the server, it would be in the way.
    let opened = File::options().write(true).open(&path);
    opened.and_then(|mut control| control.write_all(word)).map_err(LabError::file(path))
}

/// Whether a written word switches the delays off; `None` if it is neither word.
pub(crate) fn word(data: &[u8]) -> Option<bool> {
    match data.trim_ascii() {
        FAST => Some(true),
        TIMED => Some(false),
        _ => None,
    }
}
