//! Which operations waited, and how long.

use readahead::Nanos;
use trace::{Record, Trace};

/// What a call may take besides copying. A system call or a fault takes a few microseconds, under a tracer some
/// tens; flash answers after 60 or more.
pub const ALLOWED: Nanos = 50_000;

/// Bytes per nanosecond at which data are copied from memory at least.
pub const COPIED_PER_NS: u64 = 2;

/// What the durations of a trace are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durations {
    /// It has none of reads.
    Unknown,
    /// From each call to its return, as tracers of calls see them.
    OfCalls,
    /// Of waiting alone, as `bowwave record` measures it in the kernel. Who did not wait took no time.
    OfWaits,
}

impl Durations {
    /// Of this trace.
    pub(crate) fn of(trace: &Trace) -> Self {
        let is_timed_read =
            |record: &Record| record.op.is_read() && record.took > 0 && trace.has_bytes(record);
        match trace.origin() {
            Some(_) => Durations::OfWaits,
            None if trace.records().iter().any(is_timed_read) => Durations::OfCalls,
            None => Durations::Unknown,
        }
    }

    /// How long an operation waited that took so long for these bytes. Of a call that is what it took beyond copying
    /// them from memory, and `None` if that is no more than [`ALLOWED`], as they were in memory then.
    pub fn wait(self, took: Nanos, bytes: u64) -> Option<Nanos> {
        match self {
            Durations::Unknown => None,
            Durations::OfCalls => {
                let beyond = took.saturating_sub(bytes / COPIED_PER_NS);
                (beyond > ALLOWED).then_some(beyond)
            }
            Durations::OfWaits => (took > 0).then_some(took),
        }
    }
}

/// Of so many in ascending order, the place of the one that so many percent of them do not exceed.
pub(crate) fn rank(count: usize, percent: usize) -> usize {
    (count * percent).div_ceil(100).max(1) - 1
}

/// Some waits together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// How many.
    pub count: u64,
    /// Their sum, 584 years at most.
    pub total: Nanos,
    /// The wait that half of them do not exceed.
    pub median: Nanos,
    /// The wait that nine of ten do not exceed.
    pub p90: Nanos,
    /// The longest.
    pub longest: Nanos,
}

impl Waits {
    /// Of these waits, in ascending order. Their keys do not matter.
    pub(crate) fn of_sorted<K>(waits: &[(K, Nanos)]) -> Self {
        let at = |rank: usize| waits.get(rank).map_or(0, |(_, wait)| *wait);
        Waits {
            count: waits.len() as u64,
            total: waits.iter().fold(0, |sum, (_, wait)| wait.saturating_add(sum)),
            median: at(rank(waits.len(), 50)),
            p90: at(rank(waits.len(), 90)),
            longest: at(waits.len().saturating_sub(1)),
        }
    }

    /// The waits of each group, as `groups` numbers them.
    pub(crate) fn of_each(groups: usize, waits: impl Iterator<Item = (usize, Nanos)>) -> Vec<Self> {
        let mut waits: Vec<(usize, Nanos)> = waits.collect();
        waits.sort_unstable();
        let mut all = vec![Waits::default(); groups];
        for of_one in waits.chunk_by(|(one, _), (other, _)| one == other) {
            all[of_one[0].0] = Waits::of_sorted(of_one);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_copied_from_memory_does_not_wait() {
        let wait = |took, bytes| Durations::OfCalls.wait(took, bytes);
        assert_eq!(wait(0, 4096), None);
        assert_eq!(wait(50_000, 0), None, "a slow system call");
        assert_eq!(wait(574_288, 1 << 20), None, "a megabyte, copied slowly");
        assert_eq!(wait(80_000, 4096), Some(77_952), "flash");
        assert_eq!(wait(8_300_000, 65_536), Some(8_267_232), "a disk");
    }

    #[test]
    fn a_recorded_wait_is_all_of_its_time() {
        let wait = |took, bytes| Durations::OfWaits.wait(took, bytes);
        assert_eq!(wait(0, 1 << 30), None);
        assert_eq!(wait(1, 4096), Some(1));
        assert_eq!(wait(100_000, 131_072), Some(100_000), "a fast device");
    }

    #[test]
    fn waits_are_summed_by_group() {
        let waits = [(2, 7), (0, 5), (2, 3), (2, 100), (2, 4)];
        let of_each = Waits::of_each(3, waits.into_iter());
        assert_eq!(of_each[1], Waits::default());
        let one = Waits { count: 1, total: 5, median: 5, p90: 5, longest: 5 };
        assert_eq!(of_each[0], one);
        let four = Waits { count: 4, total: 114, median: 4, p90: 100, longest: 100 };
        assert_eq!(of_each[2], four);
    }
}
