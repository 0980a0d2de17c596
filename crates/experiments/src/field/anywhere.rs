//! Random reads: lists of (offset, bytes), the same in every run.

use patterns::Read;
use sim::scripts::random::Random;

/// `count` aligned reads at random places of `bytes`.
pub(super) fn random(count: u64, each: u64, bytes: u64) -> Vec<Read> {
    let mut random = Random::new(SEED);
    (0..count).map(|_| (random.below(bytes / each) * each, each)).collect()
}

/// `clusters` random spans of `bytes`, each with `count` aligned reads at random places.
pub(super) fn clusters(clusters: u64, count: u64, span: u64, each: u64, bytes: u64) -> Vec<Read> {
    let mut random = Random::new(SEED);
    let mut reads = Vec::new();
    for _ in 0..clusters {
        let start = random.below(bytes / span) * span;
        reads.extend((0..count).map(|_| (start + random.below(span / each) * each, each)));
    }
    reads
}

/// Any number will do, but it must stay the same.
const SEED: u64 = 2006;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_reads_are_aligned_and_inside() {
        let reads =
            random(1000, 4096, 1 << 24).into_iter().chain(clusters(8, 9, 1 << 20, 4096, 1 << 24));
        assert!(reads.into_iter().all(|(at, bytes)| at % 4096 == 0 && at + bytes <= 1 << 24));
    }
}
