//! A stream at a steady pace: a player, a slow client.

use readahead::Nanos;

use crate::process::{Op, OpenFile, Script};

const SECOND: Nanos = 1_000_000_000;

/// Reads a file from its beginning, a piece each second.
pub struct Paced {
    open: OpenFile,
    bytes: u64,
    per_second: u64,
    at: u64,
    next_at: Nanos,
    has_slept: bool,
}

impl Paced {
    /// Of `bytes` bytes, from moment `start` on.
    pub fn new(open: OpenFile, bytes: u64, per_second: u64, start: Nanos) -> Self {
        Paced { open, bytes, per_second, at: 0, next_at: start, has_slept: true }
    }
}

impl Script for Paced {
    fn next(&mut self, _now: Nanos) -> Op {
        if self.at >= self.bytes {
            return Op::Exit;
        }
        self.has_slept = !self.has_slept;
        if self.has_slept {
            return Op::SleepUntil { at: self.next_at };
        }
        let at = self.at;
        self.at += self.per_second;
        self.next_at += SECOND;
        Op::Read { open: self.open, at, bytes: self.per_second.min(self.bytes - at) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_is_read_each_second() {
        let open = OpenFile(0);
        let mut script = Paced::new(open, 3000, 2000, SECOND);
        let ops: [Op; 4] = std::array::from_fn(|_| script.next(0));
        let read = |at, bytes| Op::Read { open, at, bytes };
        let sleep = Op::SleepUntil { at: 2 * SECOND };
        assert_eq!(ops, [read(0, 2000), sleep, read(2000, 1000), Op::Exit]);
    }
}
