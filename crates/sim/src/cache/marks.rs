//! Marks of the policy on top of the kernel. They belong to a file, and cover pages whether cached or not.
//!
//! As in the eBPF programs, a chunk of 128 KiB has at most one mark. A later mark replaces it, and a touched mark is
//! removed from all its chunks.

use readahead::{CHUNK_PAGES, Cause, Mark, Page};

use super::PageCache;

/// A mark of the policy on top of the kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UserMark {
    pub(crate) mark: Mark,
    /// The cause of the pages that were requested with it; `None` without such pages.
    pub(crate) cause: Option<Cause>,
}

/// The marks of one file, by chunk.
#[derive(Debug, Default)]
pub(super) struct Marks {
    chunks: Vec<(u64, UserMark)>,
}

impl Marks {
    fn set(&mut self, mark: UserMark) {
        let chunks = mark.mark.first / CHUNK_PAGES..=mark.mark.last / CHUNK_PAGES;
        self.chunks.retain(|(chunk, _)| !chunks.contains(chunk));
        self.chunks.extend(chunks.map(|chunk| (chunk, mark)));
    }

    #[inline]
    fn take(&mut self, page: Page) -> Option<UserMark> {
        let lies_on = |(chunk, UserMark { mark, .. }): &&(u64, UserMark)| {
            *chunk == page / CHUNK_PAGES && (mark.first..=mark.last).contains(&page)
        };
        let taken = self.chunks.iter().find(lies_on)?.1;
        self.chunks.retain(|(_, other)| other.mark != taken.mark);
        Some(taken)
    }
}

impl PageCache {
    /// Sets a mark of the policy on top of the kernel.
    pub(crate) fn set_mark(&mut self, file: u32, mark: Mark, cause: Option<Cause>) {
        self.files[file as usize].marks.set(UserMark { mark, cause });
    }

    /// Removes and returns the mark on a page, if there is one.
    #[inline]
    pub(crate) fn take_mark(&mut self, file: u32, page: Page) -> Option<UserMark> {
        self.files[file as usize].marks.take(page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(first: Page, last: Page) -> UserMark {
        UserMark { mark: Mark { first, last }, cause: None }
    }

    #[test]
    fn a_mark_takes_the_place_of_the_one_in_its_chunk() {
        let mut marks = Marks::default();
        marks.set(mark(8, 15));
        marks.set(mark(12, 19));
        assert!(marks.take(8).is_none());
        marks.set(mark(33, 40));
        assert_eq!(marks.take(12).map(|taken| taken.mark.last), Some(19));
        assert!(marks.take(13).is_none());
        assert!(marks.take(35).is_some());
    }

    #[test]
    fn a_mark_across_chunks_is_taken_once() {
        let mut marks = Marks::default();
        marks.set(mark(30, 37));
        assert!(marks.take(33).is_some());
        assert!(marks.take(31).is_none());
    }
}
