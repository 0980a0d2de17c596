//! Bowwave's policy with limits that tests reach.

use readahead::adaptive::Limits;
use readahead::{Adaptive, Policy};

/// Bytes that [`adaptive`] may have read ahead of all its streams.
pub(crate) const AHEAD_BYTES: u64 = 16 << 20;

/// What a reader that is alone may have ahead.
pub(crate) const ALONE_BYTES: u64 = 2 * AHEAD_BYTES;

/// What all may have ahead together: what is asked for last, `own`, leaves `own + 4/5 (all - own)`
/// within what one may have alone.
pub(crate) const ALL_BYTES: u64 = ALONE_BYTES / 4 * 5;

/// Files followed: few, so that tests make the policy forget.
const FILES: usize = 16;

/// A policy that has seen nothing yet.
pub(crate) fn adaptive() -> Box<dyn Policy> {
    Box::new(Adaptive::new(Limits { files: FILES, ahead_bytes: AHEAD_BYTES, ..Limits::default() }))
}
