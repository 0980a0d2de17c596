//! How much a test tries, from which seed, and random numbers.

// Each test program uses a part of it.
#![allow(dead_code)]

use std::sync::atomic::{AtomicBool, Ordering};

/// `long` with BOWWAVE_TORTURE=1 (`make torture`), else `short`; or the number in that variable.
pub(crate) fn number(variable: &str, short: u64, long: u64) -> u64 {
    let otherwise = if is_long() { long } else { short };
    std::env::var(variable).map_or(otherwise, |text| {
        text.parse().unwrap_or_else(|_| panic!("{variable}={text} is no number"))
    })
}

/// Whether this is a part of `make torture`.
pub(crate) fn is_long() -> bool {
    std::env::var_os("BOWWAVE_TORTURE").is_some_and(|it| it == "1")
}

/// The number in BOWWAVE_SEED, else always the same.
pub(crate) fn seed() -> u64 {
    let seed = number("BOWWAVE_SEED", 1, 1);
    println!("seed {seed}; BOWWAVE_SEED={seed} repeats it");
    seed
}

/// Sets the flag when it is dropped, also if the test fails: threads of a scope that read until then would keep the
/// test from ending.
pub(crate) struct Over<'a>(pub &'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A linear congruential generator (Knuth's MMIX).
pub(crate) struct Random(pub u64);

impl Random {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 32) % bound
    }

    /// Bytes that no file system can compress.
    pub(crate) fn noise(&mut self, bytes: usize) -> Vec<u8> {
        let words = (0..bytes.div_ceil(4)).flat_map(|_| (self.below(1 << 32) as u32).to_le_bytes());
        words.take(bytes).collect()
    }
}
