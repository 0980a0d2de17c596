//! The interface of all device models.

pub use readahead::Nanos;

/// A read or write. The models charge both alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The caller's identifier.
    pub id: u64,
    /// First byte on the device.
    pub offset: u64,
    /// Length in bytes.
    pub bytes: u64,
}

/// A request that the device has completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The id of the request.
    pub id: u64,
    /// When its last byte was transferred.
    pub at: Nanos,
}

/// Totals of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Requests completed.
    pub requests: u64,
    /// Bytes in these.
    pub bytes: u64,
    /// How often the head was positioned; for channels, the requests that did not continue another.
    pub seeks: u64,
}

/// A device in virtual time.
pub trait Model: Send {
    /// Submits a request. `now` never decreases from call to call.
    fn submit(&mut self, now: Nanos, request: Request);

    /// When something happens next: a request completes, or moves on within the device. `None` while idle.
    fn next_event(&self) -> Option<Nanos>;

    /// Advances time to `now` and appends completions in the order they occurred.
    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>);

    /// Requests submitted and not completed.
    fn in_flight(&self) -> usize;

    /// The totals so far.
    fn counters(&self) -> Counters;
}

/// Converts seconds to nanoseconds.
pub(crate) fn nanos(seconds: f64) -> Nanos {
    (seconds * 1e9).round() as Nanos
}
