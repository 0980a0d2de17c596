//! Which descriptor of a process leads to a file.
//!
//! Servers have thousands of descriptors, and looking through them takes milliseconds: what one look
//! has found serves for a second.

use std::collections::HashMap;
use std::io;

use super::open::{descriptors_of, is_same_file};
use crate::observe::FileKey;
use crate::sys;

/// How long what was found serves.
const FRESH_NS: u64 = 1_000_000_000;

/// A process is looked through no more often than this.
const PAUSE_NS: u64 = 100_000_000;

struct Look {
    at: u64,
    by_inode: HashMap<u64, Vec<i32>>,
}

/// What the last looks have found.
#[derive(Default)]
pub(super) struct Descriptors {
    looks: HashMap<u32, Look>,
}

impl Descriptors {
    /// The one descriptor of the process that leads to the file, or one of its duplicates.
    ///
    /// # Errors
    /// If there is none, or several of different open files: nothing tells then which of them the file
    /// was read through.
    pub(super) fn sole(&mut self, tgid: u32, file: FileKey, now: u64) -> io::Result<i32> {
        self.looks.retain(|_, look| now.saturating_sub(look.at) < FRESH_NS);
        let known = self.looks.get(&tgid).map(|look| (look.at, look.leading_to(tgid, file)));
        let numbers = match known {
            Some((at, numbers)) if !numbers.is_empty() || now.saturating_sub(at) < PAUSE_NS => {
                numbers
            }
            _ => {
                let look = Look::through(tgid, now)?;
                let numbers = look.leading_to(tgid, file);
                self.looks.insert(tgid, look);
                numbers
            }
        };
        match numbers[..] {
            [number] => Ok(number),
            [number, ref others @ ..]
                if others.iter().all(|other| sys::is_one_open_file(tgid, number, *other)) =>
            {
                Ok(number)
            }
            [] => Err(io::ErrorKind::NotFound.into()),
            _ => Err(io::Error::other("several descriptors lead to the file")),
        }
    }
}

impl Look {
    fn through(tgid: u32, now: u64) -> io::Result<Self> {
        let mut by_inode: HashMap<u64, Vec<i32>> = HashMap::new();
        for (number, ino) in descriptors_of(tgid)? {
            by_inode.entry(ino).or_default().push(number);
        }
        Ok(Look { at: now, by_inode })
    }

    fn leading_to(&self, tgid: u32, file: FileKey) -> Vec<i32> {
        let numbers = self.by_inode.get(&file.ino).into_iter().flatten().copied();
        numbers.filter(|number| is_same_file(tgid, file, *number)).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::MetadataExt;

    use super::*;
    use crate::observe::DeviceNumber;

    #[test]
    fn one_descriptor_is_found_and_two_are_told_from_each_other_by_nothing() {
        let path = tempfile::NamedTempFile::new().expect("a file").into_temp_path();
        let file = File::open(&path).expect("it opens");
        let about = file.metadata().expect("metadata");
        let dev = about.dev();
        let dev = DeviceNumber { major: libc::major(dev), minor: libc::minor(dev) };
        let key = FileKey { dev, ino: about.ino() };
        let own = std::process::id();
        let mut descriptors = Descriptors::default();
        assert_eq!(descriptors.sole(own, key, 0).ok(), Some(file.as_raw_fd()));
        let again = File::open(&path).expect("it opens");
        assert!(descriptors.sole(own, key, FRESH_NS).is_err(), "two lead there");
        drop(again);
        let duplicate = file.try_clone().expect("it is duplicated");
        assert!(descriptors.sole(own, key, FRESH_NS + 1).is_ok(), "one open file");
        drop(duplicate);
        assert_eq!(descriptors.sole(own, key, 2 * FRESH_NS + 1).ok(), Some(file.as_raw_fd()));
        drop(file);
        assert!(descriptors.sole(own, key, 3 * FRESH_NS + 1).is_err(), "none leads there");
    }
}
