//! What block devices were asked for.

use readahead::Nanos;

use crate::MAX_TIME;

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RequestOp {
    /// Data.
    Read,
    /// To keep data.
    Write,
    /// Anything else, such as to flush the device's cache, or to discard blocks.
    Other,
}

impl RequestOp {
    /// All kinds.
    pub const ALL: [RequestOp; 3] = [RequestOp::Read, RequestOp::Write, RequestOp::Other];

    /// The operation in lower case, as the Python package names it.
    pub fn name(self) -> &'static str {
        match self {
            RequestOp::Read => "read",
            RequestOp::Write => "write",
            RequestOp::Other => "other",
        }
    }
}

/// A request of a block device that it has completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// When the device's driver got it.
    pub at: Nanos,
    /// From then until it was complete.
    pub took: Nanos,
    /// Index into [`Trace::devices`](crate::Trace::devices).
    pub device: u32,
    /// What it asked for.
    pub op: RequestOp,
    /// How much it read or wrote, in bytes; 0 if it did neither.
    pub bytes: u32,
}

impl Request {
    /// Whether it can be in a trace.
    pub(crate) fn is_within_limits(&self) -> bool {
        self.at <= MAX_TIME && self.took <= MAX_TIME
    }
}
