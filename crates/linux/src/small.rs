//! Reads files that people write.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

/// Files written by hand are much smaller: the catalogue's device files stay below a twentieth of
/// this.
const LARGEST_KIB: u64 = 64;

/// Reads `path`; `what` completes the error message ("a device is a small TOML file").
///
/// # Errors
/// If it cannot be opened or read, is larger than 64 KiB, or is no regular file: a device node or
/// pipe might never end.
pub fn read(path: &Path, what: &str) -> io::Result<Vec<u8>> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other(format!("it is not a regular file; {what}")));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(LARGEST_KIB * 1024 + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST_KIB * 1024 {
        return Err(io::Error::other(format!("it is larger than {LARGEST_KIB} KiB; {what}")));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_small_regular_files_are_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("file");
        let largest = vec![b'x'; LARGEST_KIB as usize * 1024];
        fs::write(&file, &largest).expect("written");
        assert_eq!(read(&file, "it is small").expect("it is small enough"), largest);
        fs::write(&file, [&largest[..], b"x"].concat()).expect("written");
        for (path, reason) in [
            (file.as_path(), "larger than 64 KiB; it is small"),
            (Path::new("/dev/zero"), "not a regular file; it is small"),
            (folder.path(), "not a regular file"),
        ] {
            let error = read(path, "it is small").unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }
}
