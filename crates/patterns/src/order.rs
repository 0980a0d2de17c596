//! Orders of reading: lists of (offset, bytes), the same in every run.

/// One read: offset and bytes.
pub type Read = (u64, u64);

/// Forward: `bytes` from `start` on, in reads of `each`.
pub fn forward(start: u64, bytes: u64, each: u64) -> Vec<Read> {
    (0..bytes / each).map(|i| (start + i * each, each)).collect()
}

/// Backward: the `bytes` before `end`, in reads of `each`.
pub fn backward(end: u64, bytes: u64, each: u64) -> Vec<Read> {
    (1..=bytes / each).map(|i| (end - i * each, each)).collect()
}

/// The first `each` of every `step`.
pub fn stride(bytes: u64, each: u64, step: u64) -> Vec<Read> {
    (0..bytes / step).map(|i| (i * step, each)).collect()
}

/// `count` forward streams that take turns; each has `bytes`, and they begin `apart`.
pub fn streams(count: u64, bytes: u64, apart: u64, each: u64) -> Vec<Read> {
    let turns = 0..bytes / each;
    turns.flat_map(|i| (0..count).map(move |stream| (stream * apart + i * each, each))).collect()
}

/// Two orders that take turns, as long as both have reads left.
pub fn in_turn(one: Vec<Read>, other: Vec<Read>) -> Vec<Read> {
    one.into_iter().zip(other).flat_map(|(a, b)| [a, b]).collect()
}

/// `count` aligned reads anywhere in `bytes`.
pub fn random(count: u64, each: u64, bytes: u64) -> Vec<Read> {
    let mut state = SEED;
    (0..count).map(|_| (next_random(&mut state) % (bytes / each) * each, each)).collect()
}

/// Any number will do, but it must stay the same.
const SEED: u64 = 20_260_821;

/// A linear congruential generator (Knuth's MMIX). Returns the upper half, whose bits are better.
pub fn next_random(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backward_reading_begins_at_the_end_and_ends_at_zero() {
        let reads = backward(40, 40, 10);
        assert_eq!(reads, [(30, 10), (20, 10), (10, 10), (0, 10)]);
        assert_eq!(backward(100, 20, 10), [(90, 10), (80, 10)]);
    }

    #[test]
    fn a_stride_leaves_gaps() {
        assert_eq!(stride(30, 4, 10), [(0, 4), (10, 4), (20, 4)]);
    }

    #[test]
    fn streams_take_turns() {
        assert_eq!(streams(2, 20, 50, 10), [(0, 10), (50, 10), (10, 10), (60, 10)]);
        let turns = in_turn(forward(0, 20, 10), backward(100, 20, 10));
        assert_eq!(turns, [(0, 10), (90, 10), (10, 10), (80, 10)]);
    }

    #[test]
    fn random_reading_is_the_same_every_time_and_goes_everywhere() {
        let reads = random(1000, 4096, 1 << 30);
        assert_eq!(reads, random(1000, 4096, 1 << 30));
        assert!(reads.iter().all(|(offset, bytes)| offset % 4096 == 0 && *bytes == 4096));
        let quarter = |n: u64| reads.iter().filter(|(offset, _)| offset >> 28 == n).count();
        assert!((0..4).all(|n| (200..300).contains(&quarter(n))));
    }
}
