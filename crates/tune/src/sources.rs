//! What can be read to measure a device: its node, or large files on it.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A device or file that can be read to measure the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// A device node or a file.
    pub path: PathBuf,
    /// Its size in bytes.
    pub bytes: u64,
}

/// Smaller files cannot hold a window worth timing.
pub(crate) const LEAST_BYTES: u64 = 256 << 10;

/// As much as a sweep reads by default (4 GiB), if each has 64 MiB.
const MOST_FILES: usize = 64;

/// Limit of the search, so that the user does not wait for it.
const MOST_TIME: Duration = Duration::from_secs(2);

/// For file systems without a readable device: the largest readable files below `folder` on file system `dev`.
pub(crate) fn largest(folder: &Path, dev: u64) -> Vec<Source> {
    let until = Instant::now() + MOST_TIME;
    let mut folders = vec![folder.to_path_buf()];
    let mut found: Vec<Source> = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if Instant::now() > until {
                folders.clear();
                break;
            }
            let Ok(about) = entry.metadata() else { continue };
            if about.dev() != dev {
                continue;
            }
            if about.is_dir() {
                folders.push(entry.path());
            } else if about.is_file() && about.len() >= LEAST_BYTES {
                found.push(Source { path: entry.path(), bytes: about.len() });
            }
        }
    }
    found.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.path.cmp(&b.path)));
    found.into_iter().filter(|source| is_readable(&source.path)).take(MOST_FILES).collect()
}

fn is_readable(path: &Path) -> bool {
    fs::File::open(path).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_files_come_first_and_small_ones_are_left_out() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("below")).expect("made");
        for (name, kib) in [("a", 300), ("below/b", 900), ("c", 10)] {
            fs::write(folder.path().join(name), vec![0; kib << 10]).expect("written");
        }
        let dev = folder.path().metadata().expect("it is there").dev();
        let found = largest(folder.path(), dev);
        let sizes: Vec<u64> = found.iter().map(|source| source.bytes >> 10).collect();
        assert_eq!(sizes, [900, 300]);
    }
}
