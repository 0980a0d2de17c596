//! Writing a file so that a full disk or a crash leaves the old one or the new one.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

/// Whether files can be written in a folder, which is made; nothing is left in it.
pub(crate) fn probe(folder: &Path) -> io::Result<()> {
    let probe = folder.join(format!("probe-{}", std::process::id()));
    fs::create_dir_all(folder)?;
    File::create(&probe)?;
    fs::remove_file(&probe)
}

/// Writes `text` to `path`, making its folder.
pub(crate) fn write(path: &Path, text: &str) -> io::Result<()> {
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    fs::create_dir_all(folder)?;
    let draft = path.with_extension(format!("new-{}", std::process::id()));
    let written = File::create(&draft).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&draft, path)
    });
    if written.is_err() {
        let _ = fs::remove_file(&draft);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_written_leaves_the_old_and_no_draft() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("new/file.toml");
        write(&path, "one").expect("written");
        write(&path, "two").expect("written again");
        assert_eq!(fs::read_to_string(&path).expect("there"), "two");
        probe(&folder.path().join("new")).expect("files can be written there");
        assert!(probe(&path).is_err(), "it is a file");
        // A folder in its place cannot be replaced.
        let taken = folder.path().join("new/taken.toml");
        fs::create_dir_all(taken.join("full")).expect("made");
        assert!(write(&taken, "x").is_err());
        assert_eq!(fs::read_dir(folder.path().join("new")).expect("there").count(), 2);
    }
}
