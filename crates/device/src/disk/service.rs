//! How and when a request is served, as far as that is known before it is.

use super::buffer::Lap;
use crate::model::Nanos;

/// How a request is served.
#[derive(Clone, Copy, Debug)]
pub(super) struct Service {
    pub(super) done_at: Nanos,
    /// Whether the head has to be positioned.
    pub(super) is_positioned: bool,
    /// The track that is read on this occasion.
    pub(super) lap: Option<Lap>,
    /// From here on the drive has read while it waited for the request's first byte.
    pub(super) read_from: Option<u64>,
    /// All of it is in an earlier segment: the drive goes on with what it is at.
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
