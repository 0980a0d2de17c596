//! Finds the descriptor through which a process uses a file.
//!
//! Servers hold thousands of descriptors, and listing them takes milliseconds. So a list is kept
//! for a while; without that, every change of a window would list them again.

use std::collections::HashMap;
use std::io;
use std::time::Instant;

use readahead::FileKey;

use crate::handles::{descriptors_of, is_same_file};
use crate::sys;

/// A list is kept for this many times the time it took to make, so listing takes at most a tenth of
/// the time. The program may open the file again meanwhile.
const SHARE: u64 = 10;

/// A failure to find the descriptor is kept at least this long. If it is outdated, the file merely
/// gets no window for a moment.
const PAUSE_NS: u64 = 100_000_000;

#[derive(Debug)]
struct Look {
    at: u64,
    took_ns: u64,
    by_inode: HashMap<u64, Vec<i32>>,
}

/// The descriptor lists that are still valid, by process.
#[derive(Debug, Default)]
pub struct Descriptors {
    looks: HashMap<u32, Look>,
}

impl Descriptors {
    /// The process's only descriptor of the file. Duplicates of it do not count.
    ///
    /// # Errors
    /// If the process has no descriptor of the file, or several different open files: then nothing
    /// tells which one it reads through.
    pub fn sole(&mut self, tgid: u32, file: FileKey, now: u64) -> io::Result<i32> {
        self.looks.retain(|_, look| now.saturating_sub(look.at) < look.serves_ns(true));
        if let Some(look) = self.looks.get(&tgid) {
            let found = look.sole(tgid, file);
            if now.saturating_sub(look.at) < look.serves_ns(found.is_err()) {
                return found;
            }
        }
        let look = Look::through(tgid, now)?;
        let found = look.sole(tgid, file);
        self.looks.insert(tgid, look);
        found
    }

    /// The descriptor through which a window was set, `number`, if it still refers to the file,
    /// even if other descriptors do too. Otherwise the only descriptor.
    ///
    /// # Errors
    /// As [`Descriptors::sole`].
    pub fn again(&mut self, tgid: u32, file: FileKey, number: i32, now: u64) -> io::Result<i32> {
        if is_same_file(tgid, file, number) { Ok(number) } else { self.sole(tgid, file, now) }
    }
}

impl Look {
    fn through(tgid: u32, now: u64) -> io::Result<Self> {
        let start = Instant::now();
        let mut by_inode: HashMap<u64, Vec<i32>> = HashMap::new();
        for (number, ino) in descriptors_of(tgid)? {
            by_inode.entry(ino).or_default().push(number);
        }
        Ok(Look { at: now, took_ns: start.elapsed().as_nanos() as u64, by_inode })
    }

    fn serves_ns(&self, is_refusal: bool) -> u64 {
        let serves = self.took_ns * SHARE;
        if is_refusal { serves.max(PAUSE_NS) } else { serves }
    }

    fn sole(&self, tgid: u32, file: FileKey) -> io::Result<i32> {
        let numbers = self.by_inode.get(&file.ino).into_iter().flatten().copied();
        let mut numbers = numbers.filter(|number| is_same_file(tgid, file, *number));
        let number = numbers.next().ok_or(io::ErrorKind::NotFound)?;
        if !numbers.all(|other| sys::is_one_open_file(tgid, number, other)) {
            return Err(io::Error::other("several descriptors lead to the file"));
        }
        Ok(number)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::MetadataExt;
    use std::path::Path;

    use super::*;
    use readahead::DeviceNumber;

    /// An open file and its key.
    fn open(path: &Path) -> (File, FileKey) {
        let file = File::open(path).expect("it opens");
        let about = file.metadata().expect("metadata");
        (file, FileKey { dev: DeviceNumber::from_stat(about.dev()), ino: about.ino() })
    }

    /// No list is valid for this long.
    const LONG_NS: u64 = 60_000_000_000;

    #[test]
    fn one_descriptor_is_found_and_two_are_ambiguous() {
        let path = tempfile::NamedTempFile::new().expect("a file").into_temp_path();
        let (file, key) = open(&path);
        let own = std::process::id();
        let mut descriptors = Descriptors::default();
        assert_eq!(descriptors.sole(own, key, 0).ok(), Some(file.as_raw_fd()));
        let again = File::open(&path).expect("it opens");
        assert!(descriptors.sole(own, key, LONG_NS).is_err(), "two lead there");
        drop(again);
        let duplicate = file.try_clone().expect("it is duplicated");
        assert!(descriptors.sole(own, key, 2 * LONG_NS).is_ok(), "one open file");
        drop(duplicate);
        assert_eq!(descriptors.sole(own, key, 3 * LONG_NS).ok(), Some(file.as_raw_fd()));
        drop(file);
        assert!(descriptors.sole(own, key, 4 * LONG_NS).is_err(), "none leads there");
    }

    #[test]
    fn a_file_opened_again_after_the_list_was_made_is_not_mistaken() {
        let path = tempfile::NamedTempFile::new().expect("a file").into_temp_path();
        let (file, key) = open(&path);
        let own = std::process::id();
        let mut descriptors = Descriptors::default();
        assert_eq!(descriptors.sole(own, key, 0).ok(), Some(file.as_raw_fd()));
        let _again = File::open(&path).expect("it opens");
        let later = descriptors.looks[&own].took_ns * SHARE;
        assert!(descriptors.sole(own, key, later).is_err());
    }

    #[test]
    fn a_window_is_restored_through_its_own_descriptor() {
        let path = tempfile::NamedTempFile::new().expect("a file").into_temp_path();
        let ((file, key), other) = (open(&path), File::open(&path).expect("it opens"));
        let (own, given) = (std::process::id(), file.as_raw_fd());
        let mut descriptors = Descriptors::default();
        assert!(descriptors.sole(own, key, 0).is_err());
        assert_eq!(descriptors.again(own, key, given, 0).ok(), Some(given));
        drop(file);
        let sole = descriptors.again(own, key, given, LONG_NS).ok();
        assert_eq!(sole, Some(other.as_raw_fd()), "the other one is left");
    }
}
