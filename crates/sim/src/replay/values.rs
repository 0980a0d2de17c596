//! The values that users give for a replay, within their limits.

use readahead::PAGE_BYTES;

use crate::size::{self, SizeError};

/// Why a value cannot be simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    /// The memory is no size.
    #[error(transparent)]
    Size(#[from] SizeError),
    /// The memory is too small or too large.
    #[error("the memory has to be between 1M and 64G")]
    Memory,
    /// The window is no number.
    #[error("write KiB without a unit, for example 128")]
    NotKib,
    /// The window is too large, or not of whole pages.
    #[error("write a multiple of 4 (one page), up to 1048576")]
    Window,
}

/// Checks a size of the page cache in bytes.
///
/// # Errors
/// [`ValueError::Memory`].
pub fn memory_bytes(bytes: u64) -> Result<u64, ValueError> {
    let is_possible = (1 << 20..=64 << 30).contains(&bytes);
    is_possible.then_some(bytes).ok_or(ValueError::Memory)
}

/// Parses a size of the page cache, for example `1G`, into bytes.
///
/// # Errors
/// [`ValueError`].
pub fn memory(text: &str) -> Result<u64, ValueError> {
    memory_bytes(size::parse(text)?)
}

/// Checks a window in KiB: whole pages of 4 KiB, up to a GiB, as the kernel keeps it.
///
/// # Errors
/// [`ValueError::Window`].
pub fn readahead_kb(kib: u64) -> Result<u64, ValueError> {
    let is_window = kib <= 1 << 20 && kib.is_multiple_of(PAGE_BYTES >> 10);
    is_window.then_some(kib).ok_or(ValueError::Window)
}

/// Parses a window in KiB.
///
/// # Errors
/// [`ValueError`].
pub fn readahead(text: &str) -> Result<u64, ValueError> {
    readahead_kb(text.parse().map_err(|_| ValueError::NotKib)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_and_windows_have_limits() {
        assert_eq!((memory("1M"), memory("64G")), (Ok(1 << 20), Ok(64 << 30)));
        assert_eq!(
            (memory("1023K"), memory("65G")),
            (Err(ValueError::Memory), Err(ValueError::Memory))
        );
        assert_eq!(memory("much"), Err(ValueError::Size(SizeError::NotANumber)));
        assert_eq!((readahead("0"), readahead("1048576")), (Ok(0), Ok(1 << 20)));
        assert_eq!(
            (readahead("6"), readahead("1048580")),
            (Err(ValueError::Window), Err(ValueError::Window))
        );
        assert_eq!(readahead("128k"), Err(ValueError::NotKib));
    }
}
