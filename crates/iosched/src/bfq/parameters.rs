//! Parameters of BFQ.

use crate::request::{Nanos, Sector};

const MS: Nanos = 1_000_000;

/// The parameters.
#[derive(Clone, Copy, Debug)]
pub struct BfqParameters {
    /// Longest wait for the next request of the process in service.
    pub slice_idle: Nanos,
    /// Longest service, even if budget is left.
    pub timeout: Nanos,
    /// Age at which a request is served before others of its process.
    pub sync_expire: Nanos,
    /// Age at which an asynchronous write is served before others.
    pub async_expire: Nanos,
    /// Sectors that a process may transfer during a service: 8 MiB, the kernel's initial value
    /// before it has measured the device.
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
