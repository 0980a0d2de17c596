//! What the processor's work costs.

use readahead::Nanos;

/// Nanoseconds of CPU for each kind of work; all zero unless set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuCosts {
    /// Of a system call, entering and leaving.
    pub call: Nanos,
    /// Of looking up and copying one page of 4 KiB.
    pub page: Nanos,
    /// Of writing one page.
    pub page_write: Nanos,
    /// Of one page fault.
    pub fault: Nanos,
    /// Of bringing one folio into the cache, before it is asked of the device.
    pub fill: Nanos,
    /// Of one decision of a kernel's policy.
    pub decision: Nanos,
    /// From a transfer's completion until a process that waits for it runs.
    pub wake: Nanos,
}
