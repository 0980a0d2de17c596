//! What every device model does.

pub use readahead::Nanos;

/// One read or write; the models charge both alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The caller's name for it.
    pub id: u64,
    /// First byte on the device.
    pub offset: u64,
    /// Bytes.
    pub bytes: u64,
}

/// A request that the device has served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The request's id.
    pub id: u64,
    /// When its last byte had been transferred.
    pub at: Nanos,
}

/// What a device has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Requests served.
    pub requests: u64,
    /// Bytes of these.
    pub bytes: u64,
    /// Times the head had to be positioned; for channels, requests that did not continue another.
    pub seeks: u64,
}

/// A device in virtual time.
pub trait Model: Send {
    /// Hands over a request; `now` never decreases from call to call.
    fn submit(&mut self, now: Nanos, request: Request);

    /// When something will next complete; `None` while idle.
    fn next_event(&self) -> Option<Nanos>;

    /// Lets time pass until `now`, appending what has completed in the order it did.
    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>);

    /// Requests handed over and not completed.
    fn in_flight(&self) -> usize;

    /// Totals so far.
    fn counters(&self) -> Counters;
}

/// Seconds as nanoseconds.
pub(crate) fn nanos(seconds: f64) -> Nanos {
    (seconds * 1e9).round() as Nanos
}
