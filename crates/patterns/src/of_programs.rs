//! Orders in which kinds of programs read: a player, a database, an archiver.

use super::order::{Read, backward, forward, next_random};

/// Bytes in a KiB and a MiB.
const K: u64 = 1 << 10;
const M: u64 = 1 << 20;

/// Bytes of each read of most of these programs.
const REQUEST: u64 = 64 * K;

/// A page of a database, and an archiver's read of a member's header.
const BLOCK: u64 = 4 * K;

/// Any number will do, but it must stay the same.
const SEED: u64 = 20_261_122;

/// Pseudo-random numbers, the same in every run.
struct Random(u64);

impl Random {
    /// A number in `(0, 1]`.
    fn share(&mut self) -> f64 {
        (next_random(&mut self.0) + 1) as f64 / (1u64 << 32) as f64
    }

    /// Any number below `end`.
    fn below(&mut self, end: u64) -> u64 {
        next_random(&mut self.0) % end
    }

    /// A number with equal chances for each doubling between `least` and `most`.
    fn of_any_size(&mut self, least: u64, most: u64) -> u64 {
        (least as f64 * (most as f64 / least as f64).powf(self.share())) as u64
    }

    fn shuffle<T>(&mut self, values: &mut [T]) {
        for index in (1..values.len()).rev() {
            values.swap(index, self.below(index as u64 + 1) as usize);
        }
    }
}

/// A media player: the header, the index of 1 MB at the end of the file, then 40 pieces of 1 MB at
/// random places.
pub(super) fn player(file: u64) -> Vec<Read> {
    let mut random = Random(SEED);
    let mut reads = vec![(0, REQUEST)];
    reads.extend(forward(file - M, M, REQUEST));
    for _ in 0..40 {
        reads.extend(forward(random.below(file - 2 * M), M, REQUEST));
    }
    reads
}

/// Look-ups in a database that has popular pages (Zipf's law, exponent 1): the page of rank `r` is
/// read `1/r` times as often as the first. Ranks are scattered over the file.
pub(super) fn lookups(count: u64, file: u64) -> Vec<Read> {
    let mut random = Random(SEED);
    let pages = file / BLOCK;
    let one = |_| {
        let rank = (pages as f64).powf(random.share()) as u64 - 1;
        (scatter(rank, pages) * BLOCK, BLOCK)
    };
    (0..count).map(one).collect()
}

/// A permutation of the numbers below `count`, which must not be a multiple of the prime.
fn scatter(number: u64, count: u64) -> u64 {
    const PRIME: u64 = 2_654_435_761;
    number * PRIME % count
}

/// A scan by an index: 8 KiB every 130 KB on average, ascending, with gaps of any length.
pub(super) fn sweep(file: u64) -> Vec<Read> {
    const EACH: u64 = 8 * K;
    const MEAN_GAP: f64 = 130_000.0 - EACH as f64;
    let mut random = Random(SEED);
    let mut reads = Vec::new();
    let mut at = 0;
    loop {
        // Exponential: each entry is equally likely to be the next, whatever came before.
        let gap = (-MEAN_GAP * random.share().ln()) as u64;
        at += gap / EACH * EACH;
        if at + EACH > file {
            return reads;
        }
        reads.push((at, EACH));
        at += EACH;
    }
}

/// A query over a table that is stored by columns: each of four threads reads ten column chunks of
/// 1 to 8 MB, in an order of its own.
pub(super) fn row_groups(file: u64) -> Vec<Vec<Read>> {
    const THREADS: usize = 4;
    const CHUNKS_OF_EACH: usize = 10;
    let mut random = Random(SEED);
    let mut chunks = Vec::new();
    let mut at = 0;
    loop {
        let bytes = (1 + random.below(8)) * M;
        if at + bytes > file {
            break;
        }
        chunks.push((at, bytes));
        at += bytes;
    }
    random.shuffle(&mut chunks);
    let read = |&(at, bytes): &Read| forward(at, bytes, REQUEST);
    let own = chunks.chunks_exact(CHUNKS_OF_EACH).take(THREADS);
    own.map(|chunks| chunks.iter().flat_map(read).collect()).collect()
}

/// 50 random members of an archive: the end of the file and the index of 1 MB before it, then of
/// each member the header and 8 to 256 KiB of data.
pub(super) fn archive_members(file: u64) -> Vec<Read> {
    let mut random = Random(SEED);
    let mut reads = backward(file, REQUEST, REQUEST);
    reads.extend(forward(file - M, M, REQUEST));
    for _ in 0..50 {
        let (start, bytes) = (random.below(file - 2 * M), random.of_any_size(8 * K, 256 * K));
        reads.push((start, BLOCK));
        let parts = (0..bytes).step_by(16 * K as usize);
        reads.extend(parts.map(|part| (start + BLOCK + part, (bytes - part).min(16 * K))));
    }
    reads
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn a_player_begins_at_both_ends_and_reads_40_pieces() {
        let reads = player(700 * M);
        assert_eq!(reads[..2], [(0, REQUEST), (699 * M, REQUEST)]);
        let jumps = reads.windows(2).filter(|two| two[0].0 + two[0].1 != two[1].0).count();
        assert_eq!(jumps, 41, "to the index, and to each piece");
        assert_eq!(reads.len() as u64 * REQUEST, 41 * M + REQUEST);
    }

    #[test]
    fn a_few_pages_are_looked_up_most_and_no_two_ranks_share_a_page() {
        let mut times = HashMap::new();
        lookups(1200, 500 * M).into_iter().for_each(|(at, _)| *times.entry(at).or_insert(0) += 1);
        let most = times.values().max().copied().unwrap_or(0);
        assert!((60..150).contains(&most), "1200 / ln(128,000) is 102: {most}");
        assert!(times.len() > 500, "{}", times.len());
        let mut places: Vec<u64> = (0..128_000).map(|rank| scatter(rank, 128_000)).collect();
        places.sort_unstable();
        places.dedup();
        assert_eq!(places.len(), 128_000);
    }

    #[test]
    fn a_sweep_goes_up_in_irregular_steps() {
        let reads = sweep(100 * M);
        let steps: Vec<u64> = reads.windows(2).map(|two| two[1].0 - two[0].0).collect();
        assert!(steps.iter().all(|step| *step >= 8 * K));
        let mean = steps.iter().sum::<u64>() / steps.len() as u64;
        assert!((115_000..145_000).contains(&mean), "{mean}");
        let short = steps.iter().filter(|step| **step < mean / 2).count();
        assert!(short > steps.len() / 4, "not a stride");
    }

    #[test]
    fn no_two_threads_read_the_same_chunk() {
        let threads = row_groups(700 * M);
        assert_eq!(threads.len(), 4);
        let mut reads: Vec<Read> = threads.into_iter().flatten().collect();
        let all = reads.len();
        reads.sort_unstable();
        reads.dedup();
        assert_eq!(reads.len(), all);
    }

    #[test]
    fn an_archive_is_read_by_its_index_and_then_member_by_member() {
        let reads = archive_members(700 * M);
        assert_eq!(reads[0], (700 * M - REQUEST, REQUEST));
        assert_eq!(reads.iter().filter(|(_, bytes)| *bytes == BLOCK).count(), 50);
        let total: u64 = reads.iter().map(|(_, bytes)| bytes).sum();
        assert!((3 * M..8 * M).contains(&total), "{total}");
    }
}
