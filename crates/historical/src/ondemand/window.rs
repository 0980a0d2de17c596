//! The window of one open file, and how it grows.

use readahead::Page;

use crate::kernel::{Chunk, initial_size};

/// One window: `[start, start + size)`, marked at `start + size - async_size`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Window {
    start: Page,
    size: u64,
    async_size: u64,
}

impl Window {
    /// The first window of a sequence. Pages beyond the request come after the mark.
    pub(super) fn begin(start: Page, request: u64, most: u64) -> Self {
        let size = initial_size(request, most);
        let async_size = if size > request { size - request } else { size };
        Window { start, size, async_size }
    }

    /// The first window of a sequence that left `seen` pages in the page cache. They count as one
    /// request, but no reader waits for them.
    pub(super) fn from_history(start: Page, seen: u64, most: u64) -> Self {
        let size = initial_size(seen, most);
        Window { start, size, async_size: size }
    }

    /// Like `from_history`, with the caution of 3.12: no more pages than seen, marked on the last.
    pub(super) fn from_history_cautiously(start: Page, seen: u64, most: u64) -> Self {
        Window { start, size: seen.min(most), async_size: 1 }
    }

    /// A window that begins at a hole, as the successor of a window of `size` pages.
    pub(super) fn after(size: u64, start: Page, most: u64) -> Self {
        let size = next_size(size, most);
        Window { start, size, async_size: size }
    }

    /// The window around a faulting page.
    pub(super) fn around(page: Page, size: u64, async_size: u64) -> Self {
        Window { start: page.saturating_sub(size / 2), size, async_size }
    }

    /// The next window.
    pub(super) fn next(&self, most: u64) -> Self {
        Self::after(self.size, self.end(), most)
    }

    /// Whether `page` is where a sequential reader requests the next window: on the mark or, if
    /// that was lost, at the end.
    pub(super) fn expects(&self, page: Page) -> bool {
        let mark = self.start.saturating_add(self.size.saturating_sub(self.async_size));
        page != 0 && (page == mark || page == self.end())
    }

    /// If its own reader is about to touch the mark, joins the next window to this one.
    pub(super) fn merge_own_mark(&mut self, reader: Page, most: u64) {
        if self.start != reader || self.async_size != self.size {
            return;
        }
        let more = next_size(self.size, most);
        if self.size.saturating_add(more) <= most {
            self.size += more;
            self.async_size = more;
        } else {
            self.size = most;
            self.async_size = most / 2;
        }
    }

    fn end(&self) -> Page {
        self.start.saturating_add(self.size)
    }

    pub(super) fn chunk(&self) -> Chunk {
        Chunk { start: self.start, pages: self.size, look_ahead: self.async_size }
    }
}

/// The next size: four times a small window, otherwise twice, at most `most`.
fn next_size(size: u64, most: u64) -> u64 {
    let grown = if size < most / 16 { 4 * size } else { 2 * size };
    grown.min(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(start: Page, size: u64, async_size: u64) -> Window {
        Window { start, size, async_size }
    }

    #[test]
    fn a_request_as_large_as_its_window_is_all_look_ahead() {
        assert_eq!(Window::begin(0, 1, 32), window(0, 4, 3));
        assert_eq!(Window::begin(0, 32, 32), window(0, 32, 32));
        assert_eq!(Window::begin(0, 100, 32), window(0, 32, 32));
    }

    #[test]
    fn a_window_marked_at_its_reader_takes_the_next_one_with_it() {
        let merged = |mut window: Window| {
            window.merge_own_mark(10, 32);
            window
        };
        assert_eq!(merged(window(10, 4, 4)), window(10, 12, 8));
        assert_eq!(merged(window(10, 16, 16)), window(10, 32, 16), "as far as the limit goes");
        assert_eq!(merged(window(10, 4, 3)), window(10, 4, 3));
        assert_eq!(merged(window(11, 4, 4)), window(11, 4, 4), "the mark is ahead of the reader");
    }

    #[test]
    fn the_next_window_is_due_at_the_mark_and_at_the_end() {
        let now = window(4, 8, 3);
        let due: Vec<_> = (0..20).filter(|page| now.expects(*page)).collect();
        assert_eq!(due, [9, 12]);
        assert!(!Window::default().expects(0));
    }
}
