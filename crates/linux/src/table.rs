//! Reads kernel tables that contain names chosen by others.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// What the status of a process fits in, in bytes. Longer tables take more calls.
const MOST_STATUS_BYTES: usize = 4096;

/// Reads `path` as text. In a name that is not UTF-8 (of a mount point, mapped file or process),
/// only the invalid bytes are replaced; the rest of the table stays.
///
/// # Errors
/// If it cannot be read.
pub fn read(path: impl AsRef<Path>) -> io::Result<String> {
    // The kernel gives no size for such a file. A buffer that starts small would take a system call for each doubling.
    let mut bytes = Vec::with_capacity(MOST_STATUS_BYTES);
    File::open(path)?.read_to_end(&mut bytes)?;
    Ok(String::from_utf8(bytes)
        .unwrap_or_else(|odd| String::from_utf8_lossy(odd.as_bytes()).into()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_name_that_is_not_utf8_hides_no_other_line() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        fs::write(file.path(), b"/one\n/tw\xf6\n/three\n").expect("written");
        let text = read(file.path()).expect("it is there");
        assert_eq!(text.lines().collect::<Vec<_>>(), ["/one", "/tw\u{fffd}", "/three"]);
        assert!(read("/no/such/table").is_err());
    }
}
