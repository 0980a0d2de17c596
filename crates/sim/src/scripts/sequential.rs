//! Reads files from start to end: `dd` of one, `diff` of two.

use readahead::Nanos;

use crate::process::{Op, OpenFile, Script};

/// Reads a block of each file in turn, and computes a little after each.
pub struct Sequential {
    opens: Vec<OpenFile>,
    /// Of each file.
    bytes: u64,
    block: u64,
    /// CPU time of the program per block.
    user: Nanos,
    /// The file whose turn it is, and the place in it: that before which all files have been read.
    turn: usize,
    at: u64,
    computes_next: bool,
}

impl Sequential {
    /// Of one file of `bytes` bytes, in blocks of `block`.
    pub fn new(open: OpenFile, bytes: u64, block: u64, user: Nanos) -> Self {
        Self::side_by_side(&[open], bytes, block, user)
    }

    /// Of several files of `bytes` bytes each.
    pub fn side_by_side(opens: &[OpenFile], bytes: u64, block: u64, user: Nanos) -> Self {
        let opens = opens.to_vec();
        Sequential { opens, bytes, block, user, turn: 0, at: 0, computes_next: false }
    }
}

impl Script for Sequential {
    fn next(&mut self, _now: Nanos) -> Op {
        if self.computes_next {
            self.computes_next = false;
            return Op::Compute { ns: self.user };
        }
        if self.at >= self.bytes {
            return Op::Exit;
        }
        let (open, at) = (self.opens[self.turn], self.at);
        self.turn += 1;
        if self.turn == self.opens.len() {
            self.turn = 0;
            self.at += self.block;
        }
        self.computes_next = self.user > 0;
        Op::Read { open, at, bytes: self.block.min(self.bytes - at) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reads(mut script: Sequential) -> Vec<(OpenFile, u64, u64)> {
        let mut reads = Vec::new();
        loop {
            match script.next(0) {
                Op::Read { open, at, bytes } => reads.push((open, at, bytes)),
                Op::Exit => return reads,
                op => assert_eq!(op, Op::Compute { ns: 5 }),
            }
        }
    }

    #[test]
    fn a_file_is_read_to_its_last_byte() {
        let open = OpenFile(0);
        let script = Sequential::new(open, 10_000, 4096, 5);
        assert_eq!(reads(script), [(open, 0, 4096), (open, 4096, 4096), (open, 8192, 1808)]);
    }

    #[test]
    fn files_take_turns() {
        let [a, b] = [OpenFile(0), OpenFile(1)];
        let script = Sequential::side_by_side(&[a, b], 5000, 4096, 5);
        assert_eq!(reads(script), [(a, 0, 4096), (b, 0, 4096), (a, 4096, 904), (b, 4096, 904)]);
    }
}
