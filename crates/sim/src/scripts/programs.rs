//! `dd`, `grep -r`, `diff -r` and a backward reader: their reads, and their computing in between.

use readahead::Nanos;
use serde::Deserialize;

use crate::process::{Op, OpenFile};

/// An open file and how much of it to read.
#[derive(Clone, Copy, Debug)]
pub struct Input {
    /// The open file.
    pub open: OpenFile,
    /// Bytes from its beginning on.
    pub bytes: u64,
}

/// How a program reads.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// KiB of one read.
    pub read_kb: u64,
    /// Computing time for each file (each pair of files for `diff`).
    #[serde(default)]
    pub file_us: f64,
    /// Computing time for each read of a backward reader.
    #[serde(default)]
    pub read_us: f64,
    /// Computing time for each byte (each pair of bytes for `diff`).
    #[serde(default)]
    pub byte_ns: f64,
}

impl Program {
    /// Pieces of a file as `(at, bytes)`.
    fn pieces(self, bytes: u64) -> impl DoubleEndedIterator<Item = (u64, u64)> + Send {
        let step = self.read_kb << 10;
        (0..bytes.div_ceil(step)).map(move |i| (i * step, step.min(bytes - i * step)))
    }

    fn opening(self) -> Op {
        Op::Compute { ns: (self.file_us * 1e3) as Nanos }
    }

    fn work(self, bytes: u64) -> Op {
        Op::Compute { ns: (self.byte_ns * bytes as f64) as Nanos }
    }

    /// Reads files one after the other, each from its start to its end.
    pub fn scan(self, inputs: Vec<Input>) -> impl Iterator<Item = Op> + Send {
        inputs.into_iter().flat_map(move |Input { open, bytes }| {
            let reads = self
                .pieces(bytes)
                .flat_map(move |(at, bytes)| [Op::Read { open, at, bytes }, self.work(bytes)]);
            std::iter::once(self.opening()).chain(reads)
        })
    }

    /// Reads two files of one size in turn, pair by pair.
    pub fn compare(self, pairs: Vec<[Input; 2]>) -> impl Iterator<Item = Op> + Send {
        pairs.into_iter().flat_map(move |[a, b]| {
            let reads = self.pieces(a.bytes).flat_map(move |(at, bytes)| {
                let read = |input: Input| Op::Read { open: input.open, at, bytes };
                [read(a), read(b), self.work(bytes)]
            });
            std::iter::once(self.opening()).chain(reads)
        })
    }

    /// Reads a file from its last piece to its first.
    pub fn backward(self, input: Input) -> impl Iterator<Item = Op> + Send {
        let open = input.open;
        let work = Op::Compute { ns: (self.read_us * 1e3) as Nanos };
        let reads = self.pieces(input.bytes).rev();
        reads.flat_map(move |(at, bytes)| [Op::Read { open, at, bytes }, work])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROGRAM: Program = Program { read_kb: 4, file_us: 1.0, read_us: 3.0, byte_ns: 2.0 };

    fn input(number: u32, bytes: u64) -> Input {
        Input { open: OpenFile(number), bytes }
    }

    fn read(number: u32, at: u64, bytes: u64) -> Op {
        Op::Read { open: OpenFile(number), at, bytes }
    }

    #[test]
    fn a_scan_reads_whole_files_in_turn() {
        let ops: Vec<_> = PROGRAM.scan(vec![input(0, 5000), input(1, 1)]).collect();
        let work = |bytes: u64| Op::Compute { ns: 2 * bytes };
        let open = Op::Compute { ns: 1000 };
        assert_eq!(
            ops,
            [
                open,
                read(0, 0, 4096),
                work(4096),
                read(0, 4096, 904),
                work(904),
                open,
                read(1, 0, 1),
                work(1)
            ]
        );
    }

    #[test]
    fn a_comparison_reads_two_files_piece_by_piece() {
        let ops = PROGRAM.compare(vec![[input(0, 5000), input(1, 5000)]]);
        let reads: Vec<_> = ops.filter(|op| matches!(op, Op::Read { .. })).collect();
        assert_eq!(
            reads,
            [read(0, 0, 4096), read(1, 0, 4096), read(0, 4096, 904), read(1, 4096, 904)]
        );
    }

    #[test]
    fn a_backward_reader_ends_at_the_start() {
        let ops: Vec<_> = PROGRAM.backward(input(0, 8192)).collect();
        let work = Op::Compute { ns: 3000 };
        assert_eq!(ops, [read(0, 4096, 4096), work, read(0, 0, 4096), work]);
    }
}
