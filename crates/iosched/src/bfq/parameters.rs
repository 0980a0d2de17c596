//! The knobs of BFQ.

use crate::request::{Nanos, Sector};

const MS: Nanos = 1_000_000;

/// What can be set.
#[derive(Clone, Copy, Debug)]
pub struct BfqParameters {
    /// Longest wait for the next request of the process in service.
    pub slice_idle: Nanos,
    /// Longest time in service, whatever is left of the budget.
    pub timeout: Nanos,
    /// Age at which a request goes before others of its process.
    pub sync_expire: Nanos,
    /// The same for asynchronous writes.
    pub async_expire: Nanos,
    /// Sectors that a process may transfer while it is in service: 8 MiB, what the kernel begins
    /// with before it has measured the device.
    pub budget: u32,
    /// How far back a seek may go within a sweep: 16 MiB.
    pub most_back: Sector,
}

impl Default for BfqParameters {
    fn default() -> Self {
        BfqParameters {
            slice_idle: 8 * MS,
            timeout: 125 * MS,
            sync_expire: 124 * MS,
            async_expire: 248 * MS,
            budget: 16 * 1024,
            most_back: 32 * 1024,
        }
    }
}
