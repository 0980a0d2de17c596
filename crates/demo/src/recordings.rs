//! Where the runs under bowwave are recorded, one file each.

use std::path::{Path, PathBuf};

/// A folder for the recordings of a device's runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recordings<'a> {
    pub(crate) folder: &'a Path,
    pub(crate) device: &'a str,
}

impl Recordings<'_> {
    /// A file that does not exist yet: `DEVICE-PATTERN-1.bowrec`, and so on.
    pub(crate) fn next(&self, pattern: &str) -> PathBuf {
        // A device may be a path.
        let device = self.device.replace(['/', ':'], "_");
        let numbered = |run: u32| self.folder.join(format!("{device}-{pattern}-{run}.bowrec"));
        (1..).map(numbered).find(|path| !path.exists()).expect("a folder has fewer files")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_run_has_a_file_of_its_own_whatever_the_device_is_called() {
        let folder = tempfile::tempdir().expect("a folder");
        let recordings = Recordings { folder: folder.path(), device: "local:/srv" };
        let first = recordings.next("tac");
        assert_eq!(first, folder.path().join("local__srv-tac-1.bowrec"));
        std::fs::write(first, "").expect("written");
        assert_eq!(recordings.next("tac"), folder.path().join("local__srv-tac-2.bowrec"));
    }
}
