//! How and when a request will be served, as far as known in advance.

use super::buffer::Lap;
use crate::model::Nanos;

/// How a request will be served.
#[derive(Clone, Copy, Debug)]
pub(super) struct Service {
    pub(super) done_at: Nanos,
    /// Whether the head must be positioned.
    pub(super) is_positioned: bool,
    /// The track that is read on the way.
    pub(super) lap: Option<Lap>,
    /// The drive has read from here on while it waited for the request's first byte.
    pub(super) read_from: Option<u64>,
    /// All of it is in an earlier segment. The drive continues what it is doing.
    pub(super) is_kept: bool,
}

impl Service {
    pub(super) fn buffered(done_at: Nanos) -> Self {
        Service { done_at, is_positioned: false, lap: None, read_from: None, is_kept: false }
    }

    pub(super) fn positioned(done_at: Nanos) -> Self {
        Service { is_positioned: true, ..Service::buffered(done_at) }
    }
}
