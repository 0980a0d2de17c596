//! The table of all patterns.

use super::of_programs::{archive_members, lookups, player, row_groups, sweep};
use super::order::{Read, backward, forward, in_turn, random, streams, stride};
use super::{Files, InShort, Pattern, Work};

/// Bytes in a KiB and a MiB.
const K: u64 = 1 << 10;
const M: u64 = 1 << 20;

const LARGE: Files = Files::one("f100", 100 * M);
const LARGER: Files = Files::one("f700", 700 * M);
const TABLE: Files = Files::one("f500", 500 * M);
const LARGEST: Files = Files::one("f2048", 2048 * M);
const TEXT: Files = Files::one("text", 4 * M);
const LONG_TEXT: Files = Files::one("text48", 48 * M);
const FOLDER: Files = Files::one("folder/file", 100 * M);
const TREE: Files = Files { name: "tree/file", count: 100, bytes: M, per_folder: 0 };
const CATS: Files = Files { name: "cat", count: 10, bytes: 20 * M, per_folder: 0 };
const STREAMS: Files = Files { name: "stream", count: 4, bytes: 200 * M, per_folder: 0 };
/// 2,500 small files in 50 folders, as in a source tree.
const SMALL: Files = Files { name: "small", count: 2500, bytes: 12 * K, per_folder: 50 };
/// A tree that takes bowwave some seconds beside another reader.
const MANY: Files = Files { name: "many", count: 10_000, ..SMALL };
/// A copy of `SMALL`.
const COPY: Files = Files { name: "small-copy", ..SMALL };

macro_rules! patterns {
    ($($name:literal, $in_short:ident, $files:expr, $work:expr, $definition:literal;)*) => {
        /// All patterns in the order of the table, the most interesting first.
        pub const PATTERNS: [Pattern; [$($name),*].len()] = [$(Pattern {
            name: $name,
            definition: $definition,
            files: &$files,
            work: $work,
            in_short: InShort::$in_short,
        }),*];
    };
}

patterns! {
    "backward-64k", Everywhere, [LARGE], Work::Reads(|| backward(100 * M, 20 * M, 64 * K)),
    "the last 20 of 100 MB backward in 64 KiB reads";

    "stride-64k-256k", OffDisks, [LARGE], Work::Reads(|| stride(100 * M, 64 * K, 256 * K)),
    "64 KiB of every 256 KiB over 100 MB";

    "tac", Nowhere, [TEXT], Work::Program(&["tac", "text"]),
    "tac of a text of 4 MB";

    "grep", OffDisks, [FOLDER], Work::Program(&["grep", "-r", "no such words here", "folder"]),
    "grep -r over a folder with one file of 100 MB";

    "memory-32m", Nowhere, [LARGE], Work::Limited(streams_16_4k, 32 * M),
    "streams-16-4k by a reader that has 32 MB of memory";

    "streams-16-4k", OnDisks, [LARGE], Work::Reads(streams_16_4k),
    "16 streams of 6.25 MB in turn on one descriptor, 4 KiB reads";

    "cats-10", Nowhere, [CATS], Work::Cats,
    "ten parallel cats of a file of 20 MB each";

    "random-beside-4", Nowhere, [LARGEST, STREAMS], Work::Beside,
    "a random 4 KiB reader beside four 64 KiB streams: latency against throughput";

    "random-64k", Nowhere, [LARGE], Work::Reads(|| random(8 * 20 * M / (64 * K), 64 * K, 100 * M)),
    "8 x 20 MB in random aligned 64 KiB reads over 100 MB";

    "seq-64k", OnDisks, [LARGE], Work::Reads(|| forward(0, 100 * M, 64 * K)),
    "100 MB forward in 64 KiB reads";

    "sparse-random-4k", Nowhere, [LARGEST], Work::Reads(|| random(400, 4 * K, 2048 * M)),
    "400 random 4 KiB reads over 2 GB: nothing to gain";

    "seq-4k", Nowhere, [LARGE], Work::Reads(|| forward(0, 100 * M, 4 * K)),
    "100 MB forward in 4 KiB reads";

    "backward-4k", Nowhere, [LARGE], Work::Reads(|| backward(100 * M, 4 * M, 4 * K)),
    "the last 4 of 100 MB backward in 4 KiB reads";

    "backward-20k", Nowhere, [LARGE], Work::Reads(|| backward(12_000_000, 12_000_000, 20_000)),
    "the first 12 of 100 MB backward in reads of 20,000 bytes, unaligned";

    "stride-4k-64k", Nowhere, [LARGE], Work::Reads(|| stride(100 * M, 4 * K, 64 * K)),
    "4 KiB of every 64 KiB over 100 MB";

    "stride-16k-1m", Nowhere, [LARGER], Work::Reads(|| stride(700 * M, 16 * K, M)),
    "16 KiB of every MiB over 700 MB";

    "stride-back-64k-256k", Nowhere, [LARGE], Work::Reads(stride_back),
    "64 KiB of every 256 KiB over 100 MB, backward";

    "streams-2-4k", Nowhere, [LARGE], Work::Reads(|| streams(2, 10 * M, 50 * M, 4 * K)),
    "2 streams of 10 MB, 50 MB apart, in turn on one descriptor, 4 KiB reads";

    "streams-2-64k", Nowhere, [LARGE], Work::Reads(|| streams(2, 10 * M, 50 * M, 64 * K)),
    "the same in 64 KiB reads";

    "streams-16-64k", Nowhere, [LARGE],
    Work::Reads(|| streams(16, 100 * M / 16, 100 * M / 16, 64 * K)),
    "the same in 64 KiB reads";

    "forward-backward-64k", Nowhere, [LARGE], Work::Reads(forward_and_backward),
    "10 MB forward and 10 MB backward, in turn on one descriptor, 64 KiB reads";

    "random-4k", Nowhere, [LARGE], Work::Reads(|| random(8 * 5 * M / 2 / (4 * K), 4 * K, 100 * M)),
    "8 x 2.5 MB in random aligned 4 KiB reads over 100 MB";

    "mmap-seq", Nowhere, [LARGE], Work::Mapped(|| forward(0, 100 * M, 4 * K)),
    "100 MB mapped, touched page by page";

    "mmap-backward", Nowhere, [LARGE], Work::Mapped(|| backward(100 * M, 40 * M, 4 * K)),
    "the last 40 of 100 MB mapped, touched page by page backward";

    "mmap-random", Nowhere, [LARGER], Work::Mapped(|| random(300, 4 * K, 700 * M)),
    "300 random pages of 700 MB mapped: nothing to gain";

    "tac-48m", Nowhere, [LONG_TEXT], Work::Program(&["tac", "text48"]),
    "tac of a text of 48 MB";

    "tar", Nowhere, [FOLDER], Work::Program(&["tar", "cf", "-", "folder"]),
    "tar of a folder with one file of 100 MB";

    "tar-many", Nowhere, [TREE], Work::Program(&["tar", "cf", "-", "tree"]),
    "tar of a folder with 100 files of 1 MB";

    "grep-many", Nowhere, [TREE], Work::Program(&["grep", "-r", "no such words here", "tree"]),
    "grep -r over a folder with 100 files of 1 MB";

    "grep-tree", OffDisks, [SMALL], Work::Program(&["grep", "-r", "no such words here", "small"]),
    "grep -r over 2,500 files of 12 KiB in 50 folders";

    "tar-tree", Nowhere, [SMALL], Work::Program(&["tar", "cf", "-", "small"]),
    "tar of the same";

    "cp-tree", Nowhere, [SMALL], Work::CopyTree,
    "cp -r of the same into memory";

    "rg-tree", Nowhere, [SMALL],
    Work::Program(&["rg", "--no-ignore", "--text", "--count-matches", "a", "small"]),
    "rg over the same";

    "git-grep", Nowhere, [SMALL],
    Work::Program(&["git", "grep", "--no-index", "--count", "a", "small"]),
    "git grep over the same, with its threads";

    "rsync-tree", Nowhere, [SMALL, COPY],
    Work::Program(&["rsync", "-rn", "--checksum", "small/", "small-copy/"]),
    "rsync --checksum of two such trees that are the same";

    "diff-trees", Nowhere, [SMALL, COPY], Work::Program(&["diff", "-r", "small", "small-copy"]),
    "diff -r of the two";

    "train-shuffled", Nowhere, [SMALL], Work::Program(&["python3", "-c", PYTHON_SHUFFLED]),
    "the 2,500 files in random order, by 4 processes";

    "find-first", Nowhere, [SMALL],
    Work::Part(&["find", "small", "-name", "file1700", "-print", "-quit"], 0),
    "find of one name in that tree: nothing to gain";

    "three-then-stop", Nowhere, [SMALL],
    Work::Part(&["cat", "small/7/file350", "small/7/file351", "small/7/file352"], 36 * K),
    "three files of a folder, and no more: nothing to gain";

    "heads-only", Nowhere, [TREE], Work::Part(&["sh", "-c", "head -qc 4096 tree/*"], 400 * K),
    "the first 4 KiB of 100 files of 1 MB";

    "cp", Nowhere, [LARGE], Work::Copy,
    "cp of 100 MB into memory";

    "sha256sum", Nowhere, [LARGE], Work::Program(&["sha256sum", "f100"]),
    "sha256sum of 100 MB";

    "python-mmap", Nowhere, [LARGE], Work::Program(&["python3", "-c", PYTHON_SCAN, "f100"]),
    "a python program that maps 100 MB and looks at each page";

    "one-read", Nowhere, [LARGE], Work::Reads(|| forward(0, 100 * M, 100 * M)),
    "100 MB in one read";

    "player", Nowhere, [LARGER], Work::Reads(|| player(700 * M)),
    "40 pieces of 1 MB at random places of 700 MB, after the index at its end, 64 KiB reads";

    "lookups-stop", Nowhere, [TABLE], Work::Reads(|| lookups(1200, 500 * M)),
    "1,200 look-ups of 4 KiB in 500 MB, some pages more popular (Zipf), and no more: little to gain";

    "sweep", Nowhere, [LARGE], Work::Reads(|| sweep(100 * M)),
    "8 KiB every 130 KB on average over 100 MB, in irregular steps";

    "row-groups", Nowhere, [LARGER], Work::Threads(|| row_groups(700 * M)),
    "4 threads that each read ten parts of 1 to 8 MB of 700 MB, 64 KiB reads";

    "archive-members", Nowhere, [LARGER], Work::Reads(|| archive_members(700 * M)),
    "50 random members of an archive of 700 MB, 8 to 256 KiB each, after its index";

    "random-beside-walk", Nowhere, [LARGEST, MANY],
    Work::BesideWalk(&["grep", "-r", "no such words here", "many"]),
    "a random 4 KiB reader beside grep -r over 10,000 files of 12 KiB: latency against throughput";
}

const PYTHON_SCAN: &str = "\
import mmap, sys
f = open(sys.argv[1], 'rb')
m = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)
print(sum(m[i] for i in range(0, len(m), 4096)))";

const PYTHON_SHUFFLED: &str = "\
import glob, os, random, sys
files = sorted(glob.glob('small/*/*'))
random.Random(1).shuffle(files)
for n in range(4):
    if os.fork() == 0:
        for name in files[n::4]:
            open(name, 'rb').read()
        os._exit(0)
sys.exit(any([os.wait()[1] for n in range(4)]))";

fn stride_back() -> Vec<Read> {
    stride(100 * M, 64 * K, 256 * K).into_iter().rev().collect()
}

fn streams_16_4k() -> Vec<Read> {
    streams(16, 100 * M / 16, 100 * M / 16, 4 * K)
}

fn forward_and_backward() -> Vec<Read> {
    in_turn(forward(0, 10 * M, 64 * K), backward(100 * M, 10 * M, 64 * K))
}
