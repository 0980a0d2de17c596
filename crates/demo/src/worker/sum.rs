//! Checksums to compare runs. They must be cheap, since the clock runs meanwhile.

/// Words of 8 bytes that are summed side by side, so that no addition waits for the previous one.
const LANES: usize = 8;

/// Spreads a word over all bits: the odd number nearest to 2^64 divided by the golden ratio.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Folds `bytes` into `sum`. The result depends on the position of each word in `bytes`.
pub(super) fn fold(sum: u64, bytes: &[u8]) -> u64 {
    let mut lanes = [sum; LANES];
    let blocks = bytes.chunks_exact(8 * LANES);
    let rest = blocks.remainder();
    for block in blocks {
        for (lane, word) in lanes.iter_mut().zip(block.chunks_exact(8)) {
            *lane = mix(*lane, u64::from_le_bytes(word.try_into().expect("8 bytes")));
        }
    }
    let rest = rest.iter().map(|byte| u64::from(*byte));
    lanes.into_iter().chain(rest).fold(1, mix)
}

fn mix(sum: u64, word: u64) -> u64 {
    (sum ^ word).wrapping_mul(SPREAD).rotate_left(29)
}

/// Adds `bytes` to `sum`. The result does not depend on how a stream is divided into calls.
pub(super) fn add(sum: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(sum, |sum, byte| sum.wrapping_add(u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_single_byte_counts() {
        let bytes: Vec<u8> = (0..200).collect();
        for at in 0..bytes.len() {
            let mut other = bytes.clone();
            other[at] ^= 1;
            assert_ne!(fold(7, &bytes), fold(7, &other), "byte {at}");
            assert_ne!(add(7, &bytes), add(7, &other), "byte {at}");
        }
    }

    #[test]
    fn order_counts_and_so_does_what_came_before() {
        let (one, other) = ([1u8; 64], [2u8; 64]);
        assert_ne!(fold(fold(0, &one), &other), fold(fold(0, &other), &one));
        assert_ne!(fold(1, &one), fold(2, &one));
    }

    #[test]
    fn a_stream_may_be_cut_anywhere() {
        let bytes: Vec<u8> = (0..100).collect();
        assert_eq!(add(add(0, &bytes[..33]), &bytes[33..]), add(0, &bytes));
    }
}
