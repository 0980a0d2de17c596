//! The patterns: what is read, in which order, from which files.

use std::collections::HashSet;

/// Bytes in KiB and MiB.
const K: u64 = 1 << 10;
const M: u64 = 1 << 20;

/// One read: offset and bytes.
pub type Read = (u64, u64);

/// A file that a pattern needs, and its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DataFile {
    /// Path below the device's folder.
    pub name: &'static str,
    /// Bytes.
    pub bytes: u64,
}

const FILE_100: DataFile = DataFile { name: "f100", bytes: 100 * M };
const FILE_700: DataFile = DataFile { name: "f700", bytes: 700 * M };
const FILE_2G: DataFile = DataFile { name: "f2048", bytes: 2048 * M };
const TEXT_32: DataFile = DataFile { name: "text32", bytes: 32 * M };
const TREE: [DataFile; 2] =
    [DataFile { name: "tree/a", bytes: 50 * M }, DataFile { name: "tree/b", bytes: 50 * M }];
const CATS: [DataFile; 10] = [
    DataFile { name: "cat0", bytes: 20 * M },
    DataFile { name: "cat1", bytes: 20 * M },
    DataFile { name: "cat2", bytes: 20 * M },
    DataFile { name: "cat3", bytes: 20 * M },
    DataFile { name: "cat4", bytes: 20 * M },
    DataFile { name: "cat5", bytes: 20 * M },
    DataFile { name: "cat6", bytes: 20 * M },
    DataFile { name: "cat7", bytes: 20 * M },
    DataFile { name: "cat8", bytes: 20 * M },
    DataFile { name: "cat9", bytes: 20 * M },
];
const BESIDE: [DataFile; 5] = [
    FILE_700,
    DataFile { name: "stream0", bytes: 200 * M },
    DataFile { name: "stream1", bytes: 200 * M },
    DataFile { name: "stream2", bytes: 200 * M },
    DataFile { name: "stream3", bytes: 200 * M },
];

/// How a pattern is carried out.
#[derive(Clone, Copy, Debug)]
pub enum Work {
    /// `pread` in this order.
    Reads(fn() -> Vec<Read>),
    /// The same, through a mapping: one byte of each page.
    Mapped(fn() -> Vec<Read>),
    /// `Reads` in a memory cgroup of so many bytes.
    Limited(fn() -> Vec<Read>, u64),
    /// A program on the files; its output is read and summed up.
    Program(&'static [&'static str]),
    /// The same, but nobody looks at the output.
    Silent(&'static [&'static str]),
    /// One `cat` a file, all at once.
    Cats,
    /// A random reader of the first file beside sequential readers of the others.
    Beside,
}

/// One pattern.
#[derive(Clone, Copy, Debug)]
pub struct Pattern {
    /// As the user types it.
    pub name: &'static str,
    /// In one line.
    pub definition: &'static str,
    /// What it reads.
    pub files: &'static [DataFile],
    /// How.
    pub work: Work,
    /// Part of the two-minute selection.
    pub is_telling: bool,
}

impl Pattern {
    /// Bytes of the distinct pages that the pattern touches.
    pub fn bytes_needed(&self) -> u64 {
        match self.work {
            Work::Reads(reads) | Work::Mapped(reads) | Work::Limited(reads, _) => {
                let mut pages = HashSet::new();
                for (offset, bytes) in reads() {
                    pages.extend(offset / 4096..(offset + bytes).div_ceil(4096));
                }
                pages.len() as u64 * 4096
            }
            Work::Program(_) | Work::Silent(_) | Work::Cats | Work::Beside => {
                self.files.iter().map(|file| file.bytes).sum()
            }
        }
    }
}

macro_rules! pattern {
    ($name:literal, $telling:literal, $files:expr, $work:expr, $definition:literal) => {
        Pattern {
            name: $name,
            definition: $definition,
            files: $files,
            work: $work,
            is_telling: $telling,
        }
    };
}

/// All patterns, in the order of the table.
pub const PATTERNS: [Pattern; 28] = [
    pattern!(
        "seq-4k",
        false,
        &[FILE_100],
        Work::Reads(|| forward(0, 100 * M, 4 * K)),
        "100 MB read forward in 4 KiB reads"
    ),
    pattern!(
        "seq-64k",
        true,
        &[FILE_100],
        Work::Reads(|| forward(0, 100 * M, 64 * K)),
        "100 MB read forward in 64 KiB reads"
    ),
    pattern!(
        "backward-64k",
        true,
        &[FILE_100],
        Work::Reads(|| backward(20 * M, 64 * K)),
        "the last 20 MB of 100 read backward in 64 KiB reads"
    ),
    pattern!(
        "backward-4k",
        false,
        &[FILE_100],
        Work::Reads(|| backward(4 * M, 4 * K)),
        "the last 4 MB of 100 read backward in 4 KiB reads"
    ),
    pattern!(
        "backward-20k",
        false,
        &[FILE_100],
        Work::Reads(|| backward(12_000_000, 20_000)),
        "the last 12 MB of 100 read backward in reads of 20,000 bytes, not aligned"
    ),
    pattern!(
        "stride-64k-256k",
        false,
        &[FILE_100],
        Work::Reads(|| stride(100 * M, 64 * K, 256 * K)),
        "64 KiB of every 256 KiB over 100 MB"
    ),
    pattern!(
        "stride-4k-64k",
        false,
        &[FILE_100],
        Work::Reads(|| stride(100 * M, 4 * K, 64 * K)),
        "4 KiB of every 64 KiB over 100 MB"
    ),
    pattern!(
        "stride-16k-1m",
        false,
        &[FILE_700],
        Work::Reads(|| stride(700 * M, 16 * K, M)),
        "16 KiB of every MiB over 700 MB"
    ),
    pattern!(
        "stride-back",
        false,
        &[FILE_100],
        Work::Reads(|| { stride(100 * M, 64 * K, 256 * K).into_iter().rev().collect() }),
        "64 KiB of every 256 KiB over 100 MB, backward"
    ),
    pattern!(
        "streams-2-4k",
        false,
        &[FILE_100],
        Work::Reads(|| streams(2, 10 * M, 50 * M, 4 * K)),
        "2 streams of 10 MB, 50 MB apart, in turn on one descriptor, 4 KiB reads"
    ),
    pattern!(
        "streams-2-64k",
        false,
        &[FILE_100],
        Work::Reads(|| streams(2, 10 * M, 50 * M, 64 * K)),
        "the same in 64 KiB reads"
    ),
    pattern!(
        "streams-16-4k",
        true,
        &[FILE_100],
        Work::Reads(streams_16_4k),
        "16 streams of 6.25 MB in turn on one descriptor, 4 KiB reads"
    ),
    pattern!(
        "streams-16-64k",
        false,
        &[FILE_100],
        Work::Reads(|| streams(16, 100 * M / 16, 100 * M / 16, 64 * K)),
        "the same in 64 KiB reads"
    ),
    pattern!(
        "forward-backward",
        false,
        &[FILE_100],
        Work::Reads(forward_and_backward),
        "10 MB forward and 10 MB backward, in turn on one descriptor, 64 KiB reads"
    ),
    pattern!(
        "random-64k",
        true,
        &[FILE_100],
        Work::Reads(|| random(8 * 20 * M / (64 * K), 64 * K, 100 * M)),
        "8 stages of 20 MB in random aligned 64 KiB reads over 100 MB"
    ),
    pattern!(
        "random-4k",
        false,
        &[FILE_100],
        Work::Reads(|| random(8 * 5 * M / 2 / (4 * K), 4 * K, 100 * M)),
        "8 stages of 2.5 MB in random 4 KiB reads over 100 MB"
    ),
    pattern!(
        "sparse-random-4k",
        true,
        &[FILE_2G],
        Work::Reads(|| random(400, 4 * K, 2048 * M)),
        "400 random 4 KiB reads over 2 GB: nothing to gain"
    ),
    pattern!("cats-10", true, &CATS, Work::Cats, "ten parallel cats of 20 MB each"),
    pattern!(
        "mmap-seq",
        false,
        &[FILE_100],
        Work::Mapped(|| forward(0, 100 * M, 4 * K)),
        "100 MB mapped, touched page by page"
    ),
    pattern!(
        "mmap-backward",
        false,
        &[FILE_100],
        Work::Mapped(|| backward(40 * M, 4 * K)),
        "the last 40 MB of 100 mapped, touched backward"
    ),
    pattern!(
        "mmap-random",
        false,
        &[FILE_2G],
        Work::Mapped(|| random(300, 4 * K, 2048 * M)),
        "300 random pages of a mapped file of 2 GB: nothing to gain"
    ),
    pattern!("tac", true, &[TEXT_32], Work::Program(&["tac", "text32"]), "tac of a 32 MB text"),
    pattern!(
        "tar",
        false,
        &TREE,
        Work::Program(&["tar", "cf", "-", "tree"]),
        "tar of a folder of two files of 50 MB"
    ),
    pattern!(
        "grep",
        false,
        &TREE,
        Work::Program(&["grep", "-r", "no such words here", "tree"]),
        "grep -r over the same folder"
    ),
    pattern!(
        "cp",
        false,
        &[FILE_100],
        Work::Program(&["cp", "f100", "/dev/shm/bowwave-demo-copy"]),
        "cp of 100 MB into memory"
    ),
    pattern!(
        "python-mmap",
        false,
        &[FILE_100],
        Work::Program(&["python3", "-c", PYTHON_SCAN, "f100"]),
        "a python program that maps 100 MB and scans it"
    ),
    pattern!(
        "memory-32m",
        false,
        &[FILE_100],
        Work::Limited(streams_16_4k, 32 * M),
        "streams-16-4k with 32 MB of memory (a memory cgroup)"
    ),
    pattern!(
        "random-beside-4",
        true,
        &BESIDE,
        Work::Beside,
        "a random 4 KiB reader beside four streams: latency against throughput"
    ),
];

const PYTHON_SCAN: &str = "\
import mmap, sys
f = open(sys.argv[1], 'rb')
m = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)
print(sum(m[i] for i in range(0, len(m), 4096)))";

/// The pattern of that name.
pub fn find(name: &str) -> Option<&'static Pattern> {
    PATTERNS.iter().find(|pattern| pattern.name == name)
}

fn forward(start: u64, bytes: u64, each: u64) -> Vec<Read> {
    (0..bytes / each).map(|i| (start + i * each, each)).collect()
}

/// From the end of the 100 MB file.
fn backward(bytes: u64, each: u64) -> Vec<Read> {
    (1..=bytes / each).map(|i| (100 * M - i * each, each)).collect()
}

fn stride(bytes: u64, each: u64, step: u64) -> Vec<Read> {
    (0..bytes / step).map(|i| (i * step, each)).collect()
}

fn streams(count: u64, bytes: u64, apart: u64, each: u64) -> Vec<Read> {
    let turns = 0..bytes / each;
    turns.flat_map(|i| (0..count).map(move |stream| (stream * apart + i * each, each))).collect()
}

fn streams_16_4k() -> Vec<Read> {
    streams(16, 100 * M / 16, 100 * M / 16, 4 * K)
}

fn forward_and_backward() -> Vec<Read> {
    let pairs = forward(0, 10 * M, 64 * K).into_iter().zip(backward(10 * M, 64 * K));
    pairs.flat_map(|(ahead, behind)| [ahead, behind]).collect()
}

/// Aligned reads, the same in every run.
fn random(count: u64, each: u64, bytes: u64) -> Vec<Read> {
    let mut state = 20_260_821u64;
    (0..count).map(|_| (next_random(&mut state) % (bytes / each) * each, each)).collect()
}

/// A linear congruential generator (Knuth's MMIX), its better upper half.
pub(crate) fn next_random(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_read_lies_inside_its_file() {
        for pattern in &PATTERNS {
            if let Work::Reads(reads) | Work::Mapped(reads) | Work::Limited(reads, _) = pattern.work
            {
                let size = pattern.files[0].bytes;
                assert!(reads().iter().all(|(o, b)| o + b <= size), "{}", pattern.name);
            }
        }
    }

    #[test]
    fn names_are_unique_and_found() {
        let names: HashSet<_> = PATTERNS.iter().map(|pattern| pattern.name).collect();
        assert_eq!(names.len(), PATTERNS.len());
        assert!(names.iter().all(|name| find(name).is_some()));
    }

    #[test]
    fn bytes_needed_counts_each_page_once() {
        let needed = |name| find(name).map(Pattern::bytes_needed);
        assert_eq!(needed("seq-4k"), Some(100 * M));
        assert_eq!(needed("stride-4k-64k"), Some(1600 * 4 * K));
        assert_eq!(needed("streams-16-4k"), Some(100 * M));
        let random = needed("random-4k").unwrap_or(0) as f64;
        assert!((0.17..0.19).contains(&(random / (100.0 * M as f64))), "1 - e^-0.2 of the file");
    }

    #[test]
    fn backward_reading_ends_where_it_should() {
        assert_eq!(backward(4 * M, 4 * K).last(), Some(&(96 * M, 4 * K)));
        assert_eq!(forward_and_backward()[..2], [(0, 64 * K), (100 * M - 64 * K, 64 * K)]);
    }
}
