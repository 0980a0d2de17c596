//! The patterns: those of the demonstration, scaled to a file of some MiB, and clustered reads.

use patterns::order::{Read, backward, forward, in_turn, streams, stride};

use super::anywhere::{clusters, random};

const K: u64 = 1 << 10;
const M: u64 = 1 << 20;

/// One pattern: the reads of each reader, with a file for each.
pub(super) struct Pattern {
    pub(super) name: &'static str,
    /// Bytes of each file.
    pub(super) file: u64,
    /// Through a mapping rather than by `read(2)`.
    pub(super) is_mapped: bool,
    /// The reads of each reader, in order.
    pub(super) readers: Vec<Vec<Read>>,
}

/// Every pattern, on files of `size` bytes and some that are larger.
pub(super) fn all(size: u64) -> Vec<Pattern> {
    let read = |name, reads| one(name, size, false, reads);
    let mapped = |name, file, reads| one(name, file, true, reads);
    let half = size / 2;
    let stage = |share: u64, each: u64| random(8 * (size / share / each), each, size);
    vec![
        read("seq-4k", forward(0, size, 4 * K)),
        read("seq-64k", forward(0, size, 64 * K)),
        read("backward-64k", backward(size, size, 64 * K)),
        read("backward-4k", backward(size, size / 4, 4 * K)),
        read("backward-20k", backward(half / 20_000 * 20_000, half / 20_000 * 20_000, 20_000)),
        read("stride-64k-256k", stride(size, 64 * K, 256 * K)),
        read("stride-4k-64k", stride(size, 4 * K, 64 * K)),
        one("stride-16k-1m", 8 * size, false, stride(8 * size, 16 * K, M)),
        read("stride-back-64k-256k", reversed(stride(size, 64 * K, 256 * K))),
        read("streams-2-4k", streams(2, half / 2, half, 4 * K)),
        read("streams-2-64k", streams(2, half / 2, half, 64 * K)),
        read("streams-16-4k", streams(16, size / 16, size / 16, 4 * K)),
        read("streams-16-64k", streams(16, size / 16, size / 16, 64 * K)),
        read(
            "forward-backward-64k",
            in_turn(forward(0, half / 2, 64 * K), backward(size, half / 2, 64 * K)),
        ),
        read("random-64k", stage(5, 64 * K)),
        read("random-4k", stage(40, 4 * K)),
        one("sparse-random-4k", 2048 * M, false, random(400, 4 * K, 2048 * M)),
        one("borderline-random-4k", 16 * size, false, random(400, 4 * K, 16 * size)),
        one("clustered-4k", 8 * size, false, clusters(40, 24, M, 4 * K, 8 * size)),
        Pattern {
            name: "cats-10",
            file: size / 10 / (64 * K) * (64 * K),
            is_mapped: false,
            readers: vec![forward(0, size / 10 / (64 * K) * (64 * K), 64 * K); 10],
        },
        mapped("mmap-seq", size, forward(0, size, 4 * K)),
        mapped("mmap-backward", size, backward(size, half, 4 * K)),
        mapped("mmap-random", 700 * M, random(300, 4 * K, 700 * M)),
    ]
}

fn one(name: &'static str, file: u64, is_mapped: bool, reads: Vec<Read>) -> Pattern {
    Pattern { name, file, is_mapped, readers: vec![reads] }
}

fn reversed(mut reads: Vec<Read>) -> Vec<Read> {
    reads.reverse();
    reads
}

impl Pattern {
    /// The pages that each reader touches, in order.
    pub(super) fn traces(&self) -> Vec<Vec<u64>> {
        let pages = |(at, bytes): &Read| at / 4096..(at + bytes).div_ceil(4096);
        self.readers.iter().map(|reads| reads.iter().flat_map(pages).collect()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_read_lies_inside_its_file() {
        for pattern in all(32 * M) {
            let mut reads = pattern.readers.iter().flatten();
            assert!(reads.all(|(at, bytes)| at + bytes <= pattern.file), "{}", pattern.name);
        }
    }
}
