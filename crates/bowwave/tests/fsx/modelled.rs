//! A file, and what must be in it.

use std::collections::{BTreeMap, VecDeque};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use rustix::fs::{Advice, FallocateFlags, copy_file_range, fadvise, fallocate};
use rustix::io::Errno;

use crate::mapped::mapped;
use crate::trial::Random;

const MOST_BYTES: u64 = 4 << 20;
const MOST_AT_ONCE: u64 = 64 << 10;
/// What a stream reads in a row, at most.
const MOST_STREAMED: u64 = 2 << 20;
const PAGE_BYTES: u64 = 4096;

/// The last operations are told where one fails.
const REMEMBERED: usize = 20;

/// What is written is a piece of this.
const NOISE_BYTES: u64 = 1 << 20;

/// A file that is closed.
pub(crate) struct Ended {
    path: PathBuf,
    model: Vec<u8>,
    /// How often each operation was done.
    pub(crate) done: BTreeMap<&'static str, u64>,
    story: String,
}

impl Ended {
    /// Fails if the file is not as it must be.
    pub(crate) fn is_as_modelled(&self) {
        let bytes = fs::read(&self.path).expect("it is there");
        assert_eq!(bytes.len(), self.model.len(), "in the end: {}", self.story);
        if let Some(at) = first_difference(&bytes, &self.model) {
            panic!("in the end: byte {at} is another one; {}", self.story);
        }
    }
}

/// Compares as a whole first, which is much faster.
fn first_difference(bytes: &[u8], expected: &[u8]) -> Option<usize> {
    let first = || bytes.iter().zip(expected).position(|(is, must)| is != must);
    if bytes == expected { None } else { first() }
}

type Operation = fn(&mut Modelled);

/// How often each comes.
const OPERATIONS: [(u64, &str, Operation); 12] = [
    (24, "read", Modelled::read),
    (20, "write", Modelled::write),
    (12, "mapped read", Modelled::read_mapped),
    (10, "mapped write", Modelled::write_mapped),
    (4, "truncate", Modelled::truncate),
    (4, "punch", Modelled::punch),
    (4, "zero", Modelled::zero),
    (3, "allocate", Modelled::allocate),
    (5, "copy", Modelled::copy),
    (6, "evict", Modelled::evict),
    (4, "open again", Modelled::open_again),
    (4, "stream", Modelled::stream),
];

pub(crate) struct Modelled {
    path: PathBuf,
    file: File,
    model: Vec<u8>,
    random: Random,
    noise: Vec<u8>,
    done: BTreeMap<&'static str, u64>,
    last: VecDeque<String>,
    /// A number for the next one.
    number: u64,
}

impl Modelled {
    pub(crate) fn new(path: PathBuf, seed: u64) -> Self {
        let file = File::options().read(true).write(true).create_new(true).open(&path);
        let mut random = Random(seed);
        let noise = random.noise(NOISE_BYTES as usize);
        Modelled {
            path,
            file: file.expect("room on the disk"),
            model: Vec::new(),
            random,
            noise,
            done: BTreeMap::new(),
            last: VecDeque::new(),
            number: 0,
        }
    }

    /// Does the next operation.
    pub(crate) fn operate(&mut self) {
        self.number += 1;
        let mut at = self.random.below(OPERATIONS.iter().map(|(weight, ..)| weight).sum());
        let (_, name, operation) = OPERATIONS
            .iter()
            .find(|(weight, ..)| at.checked_sub(*weight).map(|rest| at = rest).is_none())
            .expect("the last one at the latest");
        *self.done.entry(name).or_default() += 1;
        self.last.push_back(format!("{}. {name}", self.number));
        if self.last.len() > REMEMBERED {
            self.last.pop_front();
        }
        operation(self);
    }

    /// Closes the file.
    pub(crate) fn end(self) -> Ended {
        let story = self.story();
        Ended { path: self.path, model: self.model, done: self.done, story }
    }

    fn compare(&self, offset: u64, bytes: &[u8], how: &str) {
        let expected = &self.model[offset as usize..][..bytes.len()];
        if let Some(at) = first_difference(bytes, expected) {
            panic!("{how} at {offset}: byte {at} of them is another one; {}", self.story());
        }
    }

    fn story(&self) -> String {
        let last: Vec<&str> = self.last.iter().map(String::as_str).collect();
        format!("{}: {}", self.path.display(), last.join(", "))
    }

    /// Adds to the story of this operation.
    fn note(&mut self, what: std::fmt::Arguments) {
        if let Some(last) = self.last.back_mut() {
            last.push_str(&format!(" {what}"));
        }
    }

    /// A range of bytes that are there; `None` of an empty file.
    fn within(&mut self) -> Option<(u64, u64)> {
        let size = self.model.len() as u64;
        let offset = self.random.below(size.max(1));
        let bytes = (1 + self.random.below(MOST_AT_ONCE)).min(size.checked_sub(offset)?);
        self.note(format_args!("{bytes} at {offset}"));
        (bytes > 0).then_some((offset, bytes))
    }

    /// A range that may end behind the end of the file.
    fn anywhere(&mut self) -> (u64, u64) {
        // Most begin within the file, and some far behind its end, so that there are holes.
        let most = if self.random.below(8) == 0 { MOST_BYTES } else { self.model.len() as u64 + 1 };
        let offset = self.random.below(most.min(MOST_BYTES - 1));
        let bytes = (1 + self.random.below(MOST_AT_ONCE)).min(MOST_BYTES - offset);
        self.note(format_args!("{bytes} at {offset}"));
        (offset, bytes)
    }

    /// What is written next.
    fn content(&mut self, bytes: u64) -> Vec<u8> {
        let from = self.random.below(NOISE_BYTES - bytes) as usize;
        self.noise[from..from + bytes as usize].to_vec()
    }

    fn put(&mut self, offset: u64, content: &[u8]) {
        let end = offset as usize + content.len();
        if end > self.model.len() {
            self.model.resize(end, 0);
        }
        self.model[offset as usize..end].copy_from_slice(content);
    }

    fn read(&mut self) {
        let Some((offset, bytes)) = self.within() else { return };
        let mut part = vec![0; bytes as usize];
        self.file.read_exact_at(&mut part, offset).expect("read");
        self.compare(offset, &part, "read");
    }

    fn write(&mut self) {
        let (offset, bytes) = self.anywhere();
        let content = self.content(bytes);
        self.file.write_all_at(&content, offset).expect("room on the disk");
        self.put(offset, &content);
    }

    fn read_mapped(&mut self) {
        let Some((offset, bytes)) = self.within() else { return };
        let begin = offset / PAGE_BYTES * PAGE_BYTES;
        let map = mapped(&self.file, begin, (offset + bytes - begin) as usize);
        self.compare(begin, &map, "read through a mapping");
    }

    fn write_mapped(&mut self) {
        let Some((offset, bytes)) = self.within() else { return };
        let begin = offset / PAGE_BYTES * PAGE_BYTES;
        let content = self.content(bytes);
        let mut map = mapped(&self.file, begin, (offset + bytes - begin) as usize);
        map[(offset - begin) as usize..].copy_from_slice(&content);
        if self.random.below(4) == 0 {
            map.flush().expect("written");
        }
        drop(map);
        self.put(offset, &content);
    }

    fn truncate(&mut self) {
        // Mostly by a little: a file that was cut short holds no stream.
        let size = self.model.len() as u64;
        let bytes = match self.random.below(8) {
            0 => self.random.below(MOST_BYTES),
            1..4 => size.saturating_sub(self.random.below(MOST_AT_ONCE)),
            _ => (size + self.random.below(MOST_AT_ONCE)).min(MOST_BYTES),
        };
        self.note(format_args!("to {bytes}"));
        self.file.set_len(bytes).expect("truncated");
        self.model.resize(bytes as usize, 0);
    }

    fn punch(&mut self) {
        let Some((offset, bytes)) = self.within() else { return };
        let how = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        if self.fallocate(how, offset, bytes) {
            self.put(offset, &vec![0; bytes as usize]);
        }
    }

    fn zero(&mut self) {
        let (offset, bytes) = self.anywhere();
        if self.fallocate(FallocateFlags::ZERO_RANGE, offset, bytes) {
            self.put(offset, &vec![0; bytes as usize]);
        }
    }

    fn allocate(&mut self) {
        let (offset, bytes) = self.anywhere();
        if self.fallocate(FallocateFlags::empty(), offset, bytes) {
            let end = (offset + bytes) as usize;
            self.model.resize(end.max(self.model.len()), 0);
        }
    }

    /// Whether this file system can.
    fn fallocate(&mut self, how: FallocateFlags, offset: u64, bytes: u64) -> bool {
        match fallocate(&self.file, how, offset, bytes) {
            Ok(()) => true,
            Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {
                *self.done.entry("not supported").or_default() += 1;
                false
            }
            Err(error) => panic!("fallocate: {error}; {}", self.story()),
        }
    }

    /// Copies a part of the file to another place in it.
    fn copy(&mut self) {
        let Some((from, bytes)) = self.within() else { return };
        let to = self.random.below(MOST_BYTES - bytes);
        self.note(format_args!("to {to}"));
        if to.abs_diff(from) < bytes {
            // The kernel refuses ranges that overlap.
            return;
        }
        let content = self.model[from as usize..][..bytes as usize].to_vec();
        let (mut read, mut written) = (from, to);
        while read < from + bytes {
            let rest = (from + bytes - read) as usize;
            let (source, target) = (Some(&mut read), Some(&mut written));
            match copy_file_range(&self.file, source, &self.file, target, rest) {
                Ok(0) => panic!("nothing was copied; {}", self.story()),
                Ok(_) => {}
                Err(error) => panic!("copy_file_range: {error}; {}", self.story()),
            }
        }
        self.put(to, &content);
    }

    /// Has everything written to the disk, and what is cached dropped.
    fn evict(&mut self) {
        self.file.sync_data().expect("written");
        fadvise(&self.file, 0, None, Advice::DontNeed).expect("advised");
    }

    fn open_again(&mut self) {
        let file = File::options().read(true).write(true).open(&self.path);
        self.file = file.expect("it is there");
        let size = self.file.metadata().expect("metadata").len();
        assert_eq!(size, self.model.len() as u64, "{}", self.story());
    }

    /// Reads a long range in a row: forward, backward, or each second part.
    fn stream(&mut self) {
        let (size, each) = (self.model.len() as u64, 1 << (12 + self.random.below(5)));
        let begin = self.random.below(size / 2 + 1) / each * each;
        let count = (size - begin).min(MOST_STREAMED) / each;
        let order = self.random.below(4);
        self.note(format_args!("{count} x {each} at {begin}, order {order}"));
        let mut part = vec![0; each as usize];
        for at in 0..count {
            let number = match order {
                0 => count - 1 - at,
                1 if at % 2 == 1 => continue,
                _ => at,
            };
            let offset = begin + number * each;
            self.file.read_exact_at(&mut part, offset).expect("read");
            self.compare(offset, &part, "read in a row");
        }
    }
}
