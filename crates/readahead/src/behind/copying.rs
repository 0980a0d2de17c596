//! Recognises processes that copy.
//!
//! A disk with a head serves reads, which programs wait for, before writes, which can happen at any
//! time. If a copy's source is read ahead, the disk always has something to read. What the copy
//! writes then fills memory, and finally evicts pages that others need. Without look-ahead, the
//! copy waits for each read, and the disk writes meanwhile, as it must anyway. This should hold up
//! only real copies: a program that reads much and writes a log would wait for nothing.

/// The bytes that a copy reads and writes differ by at most this factor. Other programs write less (a result, a log, an
/// index).
const MOST_RATIO: u64 = 2;

/// Whether a process that has read `read_pages` and written `written_pages` pages of a file system's files is copying.
pub fn is_copy(read_pages: u64, written_pages: u64) -> bool {
    let (less, more) = (read_pages.min(written_pages), read_pages.max(written_pages));
    less > 0 && more / MOST_RATIO <= less
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_writes_of_a_copy_differ_by_a_factor_of_two_at_most() {
        assert!(is_copy(1000, 1000));
        assert!(is_copy(1000, 500) && !is_copy(1000, 499));
        assert!(is_copy(500, 1000) && !is_copy(499, 1000));
        assert!(
            !is_copy(1000, 0) && !is_copy(0, 1000) && !is_copy(0, 0),
            "it only reads, or writes"
        );
    }
}
