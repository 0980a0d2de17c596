//! The page table of a file: for each page its frame, or why it has none.
//!
//! The entry of a page that was never cached is 0. Zeroed memory takes no space on the host until it is written, so
//! unread parts of a file cost nothing. A look-up needs one access; a table in parts would need two.

use std::ops::Range;

use readahead::{Cause, Page};

use super::FrameId;

/// The page is not cached, and was not evicted so far.
const ABSENT: u32 = 0;

/// The page was evicted after it was used.
const USED: u32 = 1;

/// The page was evicted unused; one value for each cause, since eviction counts for the class that read the page.
const FIRST_UNUSED: u32 = 2;

/// The first frame; the others follow.
const FIRST_FRAME: u32 = FIRST_UNUSED + Cause::ALL.len() as u32;

/// How a page left the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Evicted {
    /// Read ahead and never used; the index of its cause.
    Unused { cause: u8 },
    /// Read and used, or written.
    Used,
}

/// Entries of a file's pages.
#[derive(Debug)]
pub(super) struct PageTable {
    entries: Vec<u32>,
}

impl PageTable {
    /// The table of a file that is not cached.
    pub(super) fn new(pages: u64) -> Self {
        // This way to create a vector requests zeroed memory without touching it.
        PageTable { entries: vec![ABSENT; pages as usize] }
    }

    pub(super) fn pages(&self) -> u64 {
        self.entries.len() as u64
    }

    /// The frame of a page, if it has one and the file has the page.
    #[inline]
    pub(super) fn frame(&self, page: Page) -> Option<FrameId> {
        self.entries.get(page as usize)?.checked_sub(FIRST_FRAME)
    }

    /// How an absent page left the cache, if it was cached before.
    pub(super) fn evicted(&self, page: Page) -> Option<Evicted> {
        match *self.entries.get(page as usize)? {
            USED => Some(Evicted::Used),
            entry @ FIRST_UNUSED..FIRST_FRAME => {
                Some(Evicted::Unused { cause: (entry - FIRST_UNUSED) as u8 })
            }
            _ => None,
        }
    }

    /// Gives a page of the file a frame.
    pub(super) fn enter(&mut self, page: Page, frame: FrameId) {
        self.entries[page as usize] = frame + FIRST_FRAME;
    }

    /// Takes a page's frame away.
    pub(super) fn evict(&mut self, page: Page, how: Evicted) {
        self.entries[page as usize] = match how {
            Evicted::Used => USED,
            Evicted::Unused { cause } => FIRST_UNUSED + u32::from(cause),
        };
    }

    /// The first page of a range that has a frame, and that frame.
    pub(super) fn first_frame_in(&self, range: Range<Page>) -> Option<(Page, FrameId)> {
        let entries = self.entries.get(..range.end.min(self.pages()) as usize)?;
        let entries = entries.get(range.start as usize..)?;
        let skipped = entries.iter().position(|entry| *entry >= FIRST_FRAME)?;
        Some((range.start + skipped as Page, entries[skipped] - FIRST_FRAME))
    }

    /// The frames of a range's pages, in their order.
    pub(super) fn frames_in(&self, range: Range<Page>) -> impl Iterator<Item = FrameId> {
        let end = (range.end as usize).min(self.entries.len());
        let start = (range.start as usize).min(end);
        self.entries[start..end].iter().filter_map(|entry| entry.checked_sub(FIRST_FRAME))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Resident memory of this process in bytes.
    #[cfg(target_os = "linux")]
    fn resident() -> u64 {
        let text = std::fs::read_to_string("/proc/self/statm").expect("it is there");
        let pages = text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
        pages.expect("a number") * 4096
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_file_takes_memory_only_where_it_was_ever_cached() {
        const TEBIBYTE: u64 = 1 << 28;
        let before = resident();
        let mut table = PageTable::new(TEBIBYTE);
        for (page, frame) in [(0, 7), (TEBIBYTE / 2, 8), (TEBIBYTE - 1, 9)] {
            table.enter(page, frame);
            assert_eq!(table.frame(page), Some(frame));
        }
        let grown = resident().saturating_sub(before);
        // Other tests run at the same time. A dense table would take 1 GiB.
        assert!(grown < 256 << 20, "{grown}");
    }

    #[test]
    fn a_range_has_the_frames_of_its_pages() {
        let mut table = PageTable::new(10);
        for (frame, page) in (0..).zip([0, 3, 4, 9]) {
            table.enter(page, frame);
        }
        table.evict(4, Evicted::Used);
        assert_eq!(table.first_frame_in(1..10), Some((3, 1)));
        assert_eq!(table.first_frame_in(4..10), Some((9, 3)));
        assert_eq!(table.first_frame_in(4..5), None);
        assert_eq!(table.first_frame_in(Page::MAX..Page::MAX), None);
        let frames = |range: Range<Page>| table.frames_in(range).collect::<Vec<_>>();
        assert_eq!(frames(0..Page::MAX), [0, 1, 3]);
        assert_eq!(frames(1..4), [1]);
        assert!(frames(10..Page::MAX).is_empty());
    }

    #[test]
    fn an_evicted_page_has_no_frame_and_beyond_the_end_there_is_nothing() {
        let mut table = PageTable::new(10);
        let unused = Cause::ALL.map(|cause| Evicted::Unused { cause: cause as u8 });
        for how in unused.into_iter().chain([Evicted::Used]) {
            table.enter(9, 0);
            assert_eq!((table.frame(9), table.evicted(9)), (Some(0), None));
            table.evict(9, how);
            assert_eq!((table.frame(9), table.evicted(9)), (None, Some(how)));
        }
        assert_eq!((table.frame(8), table.frame(Page::MAX)), (None, None));
        assert_eq!((table.evicted(8), table.evicted(10)), (None, None));
    }
}
