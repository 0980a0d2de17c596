//! Bowwave's policy, with limits that tests reach.

use readahead::adaptive::Limits;
use readahead::{Adaptive, Policy};

/// Bytes that [`adaptive`] may have ahead of all its streams.
pub(crate) const AHEAD_BYTES: u64 = 16 << 20;

/// Bytes that a lone reader may have ahead.
pub(crate) const ALONE_BYTES: u64 = 2 * AHEAD_BYTES;

/// Bytes that all readers may have ahead together. A request keeps `own + 4/5 (all - own)` within what a lone reader
/// may have; `own` is what its reader has ahead. So `all` is largest where `own` is almost nothing.
pub(crate) const ALL_BYTES: u64 = ALONE_BYTES / 4 * 5;

/// Files followed: few, so that tests make the policy forget.
const FILES: usize = 16;

/// A new policy.
pub(crate) fn adaptive() -> Box<dyn Policy> {
    Box::new(Adaptive::new(Limits { files: FILES, ahead_bytes: AHEAD_BYTES, ..Limits::default() }))
}
