//! Why bowwave cannot see reads.

use readahead::PAGE_BYTES;

use crate::kernel::is_locked_down;

/// Why nothing can be observed.
#[derive(Debug, thiserror::Error)]
pub enum ObserveError {
    /// The binary has no eBPF part.
    #[error(
        "this bowwave was built without eBPF and cannot see reads; \
         rebuild with clang and libelf installed (make setup)"
    )]
    NotBuilt,
    /// Events number processes differently than this process does.
    #[error(
        "bowwave is in a container with process numbers of its own, but the kernel's events have the host's; \
         start bowwave on the host, or the container with the host's numbers (--pid=host)"
    )]
    InContainer,
    /// The kernel's pages are not 4 KiB.
    #[error(
        "this machine's pages are {0} bytes, but bowwave works with pages of 4096 only; boot a kernel with 4 KiB pages"
    )]
    PageSize(u64),
    /// These commands know the numbers of system calls on one architecture.
    #[error("bowwave {0} works on x86-64 only; bowwave status shows what a running bowwave does")]
    Architecture(&'static str),
    /// The kernel does not report such accesses.
    #[error(
        "this kernel does not report all reads: its tracepoint {0} is missing, which Linux 6.12 has; \
         make a trace with strace instead (docs/trace.md)"
    )]
    Tracepoint(&'static str),
    /// The kernel forbids tracing.
    #[error(
        "the kernel is locked down (confidentiality) and lets no program look into it; \
         boot without lockdown=confidentiality"
    )]
    LockedDown,
    /// The kernel refused the programs.
    #[error(
        "the kernel refused bowwave's eBPF programs: {0}; `bowwave doctor` shows what is missing"
    )]
    Refused(String),
    /// Fetching events or updating maps failed later on.
    #[error("the eBPF programs stopped answering: {0}")]
    Lost(String),
}

/// Whether eBPF programs can tell this process about the machine's reads.
pub(crate) fn check_machine() -> Result<(), ObserveError> {
    if !linux::process::sees_all() {
        return Err(ObserveError::InContainer);
    }
    check_page_size(linux::sys::page_bytes())?;
    if is_locked_down() { Err(ObserveError::LockedDown) } else { Ok(()) }
}

fn check_page_size(bytes: u64) -> Result<(), ObserveError> {
    if bytes == PAGE_BYTES { Ok(()) } else { Err(ObserveError::PageSize(bytes)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_other_than_4_kib_are_refused_in_a_sentence() {
        assert!(check_page_size(4096).is_ok());
        let refused = check_page_size(65536).expect_err("64 KiB, as some arm64 kernels have");
        assert!(refused.to_string().contains("65536 bytes"));
    }
}
