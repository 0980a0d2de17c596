//! What of a file is in the page cache, for those who must not disturb it.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;

use crate::sys;

/// Pages of `[start, start + pages)` that are cached or being read.
///
/// # Errors
/// `ENOSYS` before Linux 6.5, `EPERM` where the caller may not write to the file.
pub fn pages_of(file: &File, start: u64, pages: u64) -> io::Result<u64> {
    sys::cached_pages(file.as_fd(), start, pages)
}

/// Pages of `[start, start + pages)` that were reclaimed for want of memory, or because they were cold,
/// and not read since. Those that a program dropped leave no such trace.
///
/// # Errors
/// As [`pages_of`].
pub fn reclaimed_of(file: &File, start: u64, pages: u64) -> io::Result<u64> {
    sys::evicted_pages(file.as_fd(), start, pages)
}
