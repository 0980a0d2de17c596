//! Opens files that other programs read. All files that lanes open are opened here.
//!
//! Opening a file makes whoever has a write lease on it give that up. So a file is asked about right before it is
//! opened. Somebody who takes a lease in the microsecond between both may lose it, as to any other program that opens
//! the file; bowwave does not wait for it.

use std::io;
use std::os::fd::OwnedFd;

use linux::handles::Reached;

/// Opens a file that nobody holds a write lease on.
///
/// # Errors
/// `EAGAIN` if somebody does, or if eBPF cannot tell.
pub(super) fn open(reached: &Reached) -> io::Result<OwnedFd> {
    match ebpf::open_file::look_at(reached) {
        Some(seen) if !seen.is_leased => reached.open(),
        _ => Err(io::ErrorKind::WouldBlock.into()),
    }
}
