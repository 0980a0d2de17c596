//! Reading patterns: which files are read, in which order, and how.
//!
//! [`catalog`] has the table of patterns, [`order`] and `of_programs` the orders of reading. An order is a list of
//! reads, the same in every run. So the bytes that a pattern needs can be counted beforehand, and the bytes that it got
//! can be compared afterwards.

pub mod beside;
mod catalog;
mod of_programs;
pub mod order;

use std::collections::HashSet;

pub use catalog::PATTERNS;
pub use order::Read;

/// Bytes of a page.
pub const PAGE_BYTES: u64 = 4096;

/// Files that a pattern needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Files {
    /// Path below the device's folder; if there are several files, the start of it.
    pub name: &'static str,
    /// Number of files; several have a number after the name.
    pub count: u32,
    /// Bytes of each.
    pub bytes: u64,
    /// Files per folder; 0 if all are in one folder.
    pub per_folder: u32,
}

impl Files {
    /// One file.
    pub const fn one(name: &'static str, bytes: u64) -> Self {
        Files { name, count: 1, bytes, per_folder: 0 }
    }

    /// Paths below the device's folder.
    pub fn names(&self) -> Vec<String> {
        match self.count {
            1 => vec![self.name.to_owned()],
            count => (0..count).map(|number| self.nth(number)).collect(),
        }
    }

    fn nth(&self, number: u32) -> String {
        match self.per_folder {
            0 => format!("{}{number}", self.name),
            each => format!("{}/{}/file{number}", self.name, number / each),
        }
    }

    /// Bytes of all of them.
    pub fn total_bytes(&self) -> u64 {
        u64::from(self.count) * self.bytes
    }
}

/// How a pattern is carried out.
#[derive(Clone, Copy, Debug)]
pub enum Work {
    /// `pread` in this order, from the first file.
    Reads(fn() -> Vec<Read>),
    /// The same by several threads at once, each through a descriptor of its own.
    Threads(fn() -> Vec<Vec<Read>>),
    /// `pread` by a reader with only this many bytes of memory (a memory cgroup).
    Limited(fn() -> Vec<Read>, u64),
    /// The same through a mapping: one byte of each page.
    Mapped(fn() -> Vec<Read>),
    /// A program and its arguments, run in the device's folder. Its output is read and checksummed.
    Program(&'static [&'static str]),
    /// The same by a program that reads only this many bytes of its files.
    Part(&'static [&'static str], u64),
    /// `cp` of the first file into memory.
    Copy,
    /// `cp -r` of the folder of all files into memory.
    CopyTree,
    /// One `cat` for each file, all at once.
    Cats,
    /// A random reader of the first file beside sequential readers of the others.
    Beside,
    /// A random reader of the first file beside a program that walks through the others.
    BesideWalk(&'static [&'static str]),
}

/// The devices on which a pattern is part of the short selection, which runs without `--full`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InShort {
    /// On every device.
    Everywhere,
    /// On devices with a head to move.
    OnDisks,
    /// On all others.
    OffDisks,
    /// On none: other patterns show the same.
    Nowhere,
}

/// One pattern.
#[derive(Clone, Copy, Debug)]
pub struct Pattern {
    /// As the user types it.
    pub name: &'static str,
    /// In one line.
    pub definition: &'static str,
    /// What it reads.
    pub files: &'static [Files],
    /// How.
    pub work: Work,
    /// The devices on which it is part of the short selection.
    pub in_short: InShort,
}

impl Pattern {
    /// Whether the short selection has it on a device with (`true`) or without a head.
    pub fn is_in_short(&self, is_rotational: bool) -> bool {
        match self.in_short {
            InShort::Everywhere => true,
            InShort::OnDisks => is_rotational,
            InShort::OffDisks => !is_rotational,
            InShort::Nowhere => false,
        }
    }

    /// Bytes of the distinct pages that the pattern touches; `None` if it reads for a fixed time.
    pub fn bytes_needed(&self) -> Option<u64> {
        match self.work {
            Work::Reads(reads) | Work::Mapped(reads) | Work::Limited(reads, _) => {
                Some(distinct_pages(&reads()) * PAGE_BYTES)
            }
            Work::Threads(reads) => Some(distinct_pages(&reads().concat()) * PAGE_BYTES),
            Work::Program(_) | Work::Copy | Work::CopyTree | Work::Cats => {
                Some(self.files.iter().map(Files::total_bytes).sum())
            }
            Work::Part(_, bytes) => Some(bytes),
            Work::Beside | Work::BesideWalk(_) => None,
        }
    }

    /// The program that must be installed, if any.
    pub fn program(&self) -> Option<&'static str> {
        match self.work {
            Work::Program(words) | Work::Part(words, _) | Work::BesideWalk(words) => {
                words.first().copied()
            }
            Work::Copy | Work::CopyTree => Some("cp"),
            Work::Cats => Some("cat"),
            Work::Reads(_)
            | Work::Threads(_)
            | Work::Limited(..)
            | Work::Mapped(_)
            | Work::Beside => None,
        }
    }
}

/// The pattern of that name.
pub fn find(name: &str) -> Option<&'static Pattern> {
    PATTERNS.iter().find(|pattern| pattern.name == name)
}

fn distinct_pages(reads: &[Read]) -> u64 {
    let mut pages = HashSet::new();
    for &(offset, bytes) in reads {
        pages.extend(offset / PAGE_BYTES..(offset + bytes).div_ceil(PAGE_BYTES));
    }
    pages.len() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const M: u64 = 1 << 20;

    fn needed(name: &str) -> Option<u64> {
        find(name).and_then(Pattern::bytes_needed)
    }

    #[test]
    fn every_read_lies_inside_its_file() {
        for pattern in &PATTERNS {
            let reads = match pattern.work {
                Work::Reads(reads) | Work::Mapped(reads) | Work::Limited(reads, _) => reads(),
                Work::Threads(reads) => reads().concat(),
                _ => continue,
            };
            let size = pattern.files[0].bytes;
            assert!(reads.iter().all(|(o, b)| o + b <= size), "{}", pattern.name);
        }
    }

    #[test]
    fn names_are_unique_and_found() {
        let names: HashSet<_> = PATTERNS.iter().map(|pattern| pattern.name).collect();
        assert_eq!(names.len(), PATTERNS.len());
        assert!(names.iter().all(|name| find(name).is_some()));
    }

    #[test]
    fn files_of_one_name_are_the_same_in_all_patterns() {
        for one in PATTERNS.iter().flat_map(|pattern| pattern.files) {
            for other in PATTERNS.iter().flat_map(|pattern| pattern.files) {
                assert!(one.name != other.name || one == other, "{}", one.name);
            }
        }
    }

    #[test]
    fn bytes_needed_counts_each_page_once() {
        assert_eq!(needed("seq-4k"), Some(100 * M));
        assert_eq!(needed("stride-4k-64k"), Some(1600 * 4096));
        assert_eq!(needed("streams-16-4k"), Some(100 * M));
        assert_eq!(needed("cats-10"), Some(200 * M));
        let random = needed("random-4k").unwrap_or(0) as f64;
        assert!((0.17..0.19).contains(&(random / (100.0 * M as f64))), "1 - e^-0.2 of the file");
    }

    #[test]
    fn an_unaligned_read_needs_the_pages_at_both_of_its_ends() {
        assert_eq!(distinct_pages(&[(4095, 2)]), 2);
        assert_eq!(distinct_pages(&[(4096, 4096), (8191, 1)]), 1);
        assert_eq!(needed("backward-20k"), Some((12_000_000_u64.div_ceil(4096)) * 4096));
    }

    #[test]
    fn the_short_selection_is_part_of_the_whole_and_shorter() {
        for is_rotational in [false, true] {
            let short =
                PATTERNS.iter().filter(|pattern| pattern.is_in_short(is_rotational)).count();
            assert!((3..8).contains(&short), "{short}");
        }
    }

    /// Where a pattern runs in the short selection, in the words of docs/demo.md.
    fn in_words(pattern: &Pattern) -> &'static str {
        match pattern.in_short {
            InShort::Everywhere => "all",
            InShort::OnDisks => "disks",
            InShort::OffDisks => "not disks",
            InShort::Nowhere => "",
        }
    }

    #[test]
    fn the_docs_name_each_pattern_and_where_the_short_selection_has_it() {
        let docs = include_str!("../../../docs/demo.md");
        let (_, table) = docs.split_once("| pattern | what is read | default |").expect("a table");
        let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
        let mut named = 0;
        for row in rows {
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            let names: Vec<&str> =
                cells[1].split(", ").map(|name| name.trim_matches('`')).collect();
            let told = names.iter().map(|name| {
                let pattern = PATTERNS.iter().find(|pattern| pattern.name == *name);
                let words = in_words(pattern.unwrap_or_else(|| panic!("there is no {name}")));
                match names.len() {
                    1 => words.to_owned(),
                    _ if words.is_empty() => String::new(),
                    _ => format!("`{name}` {words}"),
                }
            });
            assert_eq!(cells[3], told.collect::<String>(), "{row}");
            named += names.len();
        }
        assert_eq!(named, PATTERNS.len(), "each pattern has its row");
    }
}
