//! Who copies.
//!
//! A disk with a head serves what somebody waits for before what can be written at any time. A copy that is
//! read ahead never leaves it without something to read: what it writes fills memory, and in the end pushes
//! out what others need. Read without look-ahead, it waits for each request, and the disk writes
//! meanwhile, which it has to do anyway. What is held up has to be the copy itself, though: who scans and
//! keeps a log beside it would wait for nothing.

/// Of what it reads and what it writes the smaller part is at least one in so many of the other: less would
/// be a result, a log or an index.
const LEAST_SHARE: u64 = 2;

/// Whether a process that has read so many pages of a file system's files, and written so many, copies.
pub fn is_copy(read_pages: u64, written_pages: u64) -> bool {
    let (less, more) = (read_pages.min(written_pages), read_pages.max(written_pages));
    less > 0 && more / LEAST_SHARE <= less
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_much_is_written_as_is_read_give_or_take_a_half() {
        assert!(is_copy(1000, 1000));
        assert!(is_copy(1000, 500) && !is_copy(1000, 499));
        assert!(is_copy(500, 1000) && !is_copy(499, 1000));
        assert!(
            !is_copy(1000, 0) && !is_copy(0, 1000) && !is_copy(0, 0),
            "it only reads, or writes"
        );
    }
}
