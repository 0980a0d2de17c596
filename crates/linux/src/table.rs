//! Reading tables of the kernel's, in which others have chosen names.

use std::fs;
use std::io;
use std::path::Path;

/// The text of `path`. A name in it that is no UTF-8 (a mount point, a mapped file, what a process calls
/// itself) is changed, and hides nothing else.
///
/// # Errors
/// That of reading it.
pub fn read(path: impl AsRef<Path>) -> io::Result<String> {
    let bytes = fs::read(path)?;
    Ok(String::from_utf8(bytes)
        .unwrap_or_else(|odd| String::from_utf8_lossy(odd.as_bytes()).into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_no_text_hides_nothing_else() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        fs::write(file.path(), b"/one\n/tw\xf6\n/three\n").expect("written");
        let text = read(file.path()).expect("it is there");
        assert_eq!(text.lines().collect::<Vec<_>>(), ["/one", "/tw\u{fffd}", "/three"]);
        assert!(read("/no/such/table").is_err());
    }
}
