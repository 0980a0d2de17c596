//! Orders of reading: lists of (offset, bytes), the same in every run.

use super::random::Random;

/// One read: offset and bytes.
pub type Read = (u64, u64);

/// `bytes` from `start` on.
pub fn forward(start: u64, bytes: u64, each: u64) -> Vec<Read> {
    (0..bytes / each).map(|i| (start + i * each, each)).collect()
}

/// The `bytes` before `end`, from there downward.
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
    let mut random = Random::new(SEED);
    (0..count).map(|_| (random.below(bytes / each) * each, each)).collect()
}

/// `clusters` places in `bytes`, at each of which `count` aligned reads lie anywhere in `span`.
pub fn clusters(clusters: u64, count: u64, span: u64, each: u64, bytes: u64) -> Vec<Read> {
    let mut random = Random::new(SEED);
    let mut reads = Vec::new();
    for _ in 0..clusters {
        let start = random.below(bytes / span) * span;
        reads.extend((0..count).map(|_| (start + random.below(span / each) * each, each)));
    }
    reads
}

/// Any number serves; it only has to stay.
const SEED: u64 = 2006;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_begin_and_end_where_they_say() {
        assert_eq!(backward(40, 30, 10), [(30, 10), (20, 10), (10, 10)]);
        assert_eq!(stride(30, 4, 10), [(0, 4), (10, 4), (20, 4)]);
        assert_eq!(streams(2, 20, 50, 10), [(0, 10), (50, 10), (10, 10), (60, 10)]);
        assert_eq!(in_turn(forward(0, 10, 10), backward(100, 20, 10)), [(0, 10), (90, 10)]);
    }

    #[test]
    fn random_reads_are_aligned_and_inside() {
        let reads =
            random(1000, 4096, 1 << 24).into_iter().chain(clusters(8, 9, 1 << 20, 4096, 1 << 24));
        assert!(reads.into_iter().all(|(at, bytes)| at % 4096 == 0 && at + bytes <= 1 << 24));
    }
}
