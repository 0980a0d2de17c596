//! What the drive's buffer still holds from earlier places, if it has several segments.

use std::collections::VecDeque;
use std::ops::Range;

/// Ranges of bytes, most recently left first.
#[derive(Debug)]
pub(super) struct Kept {
    runs: VecDeque<Range<u64>>,
    most: usize,
}

impl Kept {
    /// Keeps up to `most` ranges.
    pub(super) fn new(most: usize) -> Self {
        Kept { runs: VecDeque::with_capacity(most), most }
    }

    /// Keeps a range. It replaces the one that was left longest ago.
    pub(super) fn keep(&mut self, run: Range<u64>) {
        if self.most == 0 || run.is_empty() {
            return;
        }
        self.runs.truncate(self.most - 1);
        self.runs.push_front(run);
    }

    /// Whether all of `from..to` is in one range.
    pub(super) fn holds(&self, from: u64, to: u64) -> bool {
        self.runs.iter().any(|run| run.start <= from && to <= run.end)
    }

    /// Where the end of `from..to` that a range holds begins; `to` if no range holds any.
    pub(super) fn end_of(&self, from: u64, to: u64) -> u64 {
        let tails = self.runs.iter().filter(|run| run.contains(&(to - 1)));
        tails.map(|run| run.start.max(from)).min().unwrap_or(to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_run_left_longest_ago_is_forgotten_first() {
        let mut kept = Kept::new(2);
        [0..10, 20..30, 40..50].into_iter().for_each(|run| kept.keep(run));
        assert!(!kept.holds(0, 10) && kept.holds(20, 30) && kept.holds(41, 49));
        assert!(!kept.holds(25, 31));
    }

    #[test]
    fn the_end_of_a_request_may_be_held() {
        let mut kept = Kept::new(1);
        kept.keep(20..30);
        assert_eq!([kept.end_of(10, 25), kept.end_of(10, 31), kept.end_of(22, 30)], [20, 31, 22]);
    }

    #[test]
    fn without_room_nothing_is_kept() {
        let mut kept = Kept::new(0);
        kept.keep(0..10);
        assert!(!kept.holds(0, 1));
    }
}
