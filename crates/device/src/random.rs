//! Pseudo-random numbers that are the same every time: a hash of a seed and a position.

/// A number in [0, 1) at position `place` of the sequence `seed`, by splitmix64 (Steele, Lea, Flood
/// 2014).
pub(crate) fn unit(seed: u64, place: u64) -> f64 {
    (mixed(mixed(seed) ^ place) >> 11) as f64 / (1u64 << 53) as f64
}

fn mixed(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::unit;

    #[test]
    fn draws_are_spread_evenly_and_repeat() {
        let mean = (0..10_000).map(|place| unit(7, place)).sum::<f64>() / 10_000.0;
        assert!((mean - 0.5).abs() < 0.01, "{mean}");
        assert_eq!(unit(7, 1).to_bits(), unit(7, 1).to_bits());
        assert!(unit(7, 1) != unit(8, 1));
    }
}
