//! A random reader beside sequential ones.

use std::time::Duration;

use super::PAGE_BYTES;
use super::order::next_random;

/// How long all of them read. Long enough for some eighty random reads where each waits 50 ms.
pub const LENGTH: Duration = Duration::from_secs(4);

/// What a sequential reader reads at once.
pub const STREAM_READ_BYTES: u64 = 64 << 10;

/// Any number serves; it only has to stay.
const SEED: u64 = 4711;

/// Where the random reader reads a page each, in a file of so many bytes: offsets, without end.
pub fn places(file_bytes: u64) -> impl Iterator<Item = u64> {
    let mut state = SEED;
    let pages = file_bytes / PAGE_BYTES;
    std::iter::repeat_with(move || next_random(&mut state) % pages * PAGE_BYTES)
}
