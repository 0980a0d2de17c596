//! Ranges that overlap, of which each part counts once.

/// For each key, how much its ranges cover, in the order of the keys. A range is a key, a start and an end.
pub fn covered<K: Ord + Copy>(mut ranges: Vec<(K, u64, u64)>) -> Vec<(K, u64)> {
    ranges.sort_unstable();
    let mut sums: Vec<(K, u64)> = Vec::new();
    let mut covered_to = 0;
    for (key, start, end) in ranges {
        if sums.last().is_none_or(|(last, _)| *last != key) {
            sums.push((key, 0));
            covered_to = 0;
        }
        if let Some((_, sum)) = sums.last_mut() {
            *sum += end.saturating_sub(start.max(covered_to));
        }
        covered_to = covered_to.max(end);
    }
    sums
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn each_unit_counts_once_for_its_key(
            ranges in prop::collection::vec((0..3u32, 0..40u64, 0..10u64), 0..30)
        ) {
            let ranges: Vec<_> = ranges.into_iter().map(|(key, at, n)| (key, at, at + n)).collect();
            let mut units: BTreeSet<(u32, u64)> = BTreeSet::new();
            for (key, start, end) in &ranges {
                units.extend((*start..*end).map(|unit| (*key, unit)));
            }
            for (key, sum) in covered(ranges) {
                let of_key = units.range((key, 0)..(key + 1, 0)).count();
                prop_assert_eq!(sum, of_key as u64);
                units.retain(|(other, _)| *other != key);
            }
            prop_assert!(units.is_empty(), "a key is missing");
        }
    }
}
