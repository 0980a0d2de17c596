//! A random reader beside sequential ones.

use std::time::Duration;

use super::PAGE_BYTES;
use super::order::next_random;

/// How long all of them read: long enough for about 80 random reads of 50 ms each.
pub const LENGTH: Duration = Duration::from_secs(4);

/// Bytes of each read of a sequential reader.
pub const STREAM_READ_BYTES: u64 = 64 << 10;

/// Any number will do, but it must stay the same.
const SEED: u64 = 4711;

/// Endless offsets at which the random reader reads one page each, in a file of `file_bytes`.
pub fn places(file_bytes: u64) -> impl Iterator<Item = u64> {
    let mut state = SEED;
    let pages = file_bytes / PAGE_BYTES;
    std::iter::repeat_with(move || next_random(&mut state) % pages * PAGE_BYTES)
}
