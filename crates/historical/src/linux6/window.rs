//! The window of one open file, and how it grows.

use readahead::Page;

use super::folios::Folios;
use crate::kernel::{Chunk, initial_size};

/// Difference in folio order between a window and the next.
const ORDER_STEP: u32 = 2;

/// One window: `[start, start + size)`, marked at `start + size - async_size`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Window {
    start: Page,
    size: u64,
    async_size: u64,
    /// log2 of the pages per folio.
    order: u32,
}

impl Window {
    /// The first window of a sequence, at most `most` pages.
    pub(super) fn begin(start: Page, request: u64, most: u64) -> Self {
        let size = initial_size(request, most);
        let beyond = size.saturating_sub(request);
        Window { start, size, async_size: if beyond > 0 { beyond } else { size / 2 }, order: 0 }
    }

    /// The first window of a sequence known from the page cache. It is cautious: its mark is on its
    /// last page.
    pub(super) fn from_history(start: Page, size: u64) -> Self {
        Window { start, size, async_size: 1, order: 0 }
    }

    /// The window around a faulting page.
    pub(super) fn around(page: Page, size: u64) -> Self {
        Window { start: page.saturating_sub(size / 2), size, async_size: size / 4, order: 0 }
    }

    /// The page that carries the mark.
    pub(super) fn mark(&self) -> Page {
        self.start.saturating_add(self.size.saturating_sub(self.async_size))
    }

    /// Moves on to the next window, which is larger.
    pub(super) fn advance(&mut self, most: u64) {
        self.start = self.start.saturating_add(self.size);
        self.size = self.size.max(next_size(self.size, most));
    }

    /// Restarts at `start`, as the successor of a window of `size` pages.
    pub(super) fn restart(&mut self, start: Page, size: u64, most: u64) {
        self.start = start;
        self.size = next_size(size, most);
    }

    /// Raises the folio order and aligns the window's end to it, so that the next window starts
    /// with a whole folio. The whole window is then ahead of its reader.
    pub(super) fn align_end(&mut self, most: u64) {
        self.order += ORDER_STEP;
        let order = self.order.min(most.trailing_zeros());
        let end = self.start.saturating_add(self.size);
        let aligned = end >> order << order;
        if aligned > self.start {
            self.size = aligned - self.start;
        }
        self.async_size = self.size;
    }

    /// log2 of the pages of its largest folios.
    pub(super) fn order(&self) -> u32 {
        self.order
    }

    /// Lowers the folio order to what the window and the file system allow.
    pub(super) fn limit_order(&mut self, largest: u32) {
        let whole = self.size.checked_ilog2().unwrap_or(0);
        self.order = self.order.min(largest).min(whole);
    }

    /// Notes in which folios the window is read.
    pub(super) fn note(&self, file_pages: u64, folios: &mut Folios) {
        folios.note(self.start, self.size, self.order, file_pages);
    }

    pub(super) fn chunk(&self) -> Chunk {
        Chunk { start: self.start, pages: self.size, look_ahead: self.async_size }
    }
}

/// The next size: four times a small window, twice a medium one, at most `most`.
fn next_size(size: u64, most: u64) -> u64 {
    if size < most / 16 {
        4 * size
    } else if size <= most / 2 {
        2 * size
    } else {
        most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(start: Page, size: u64, async_size: u64, order: u32) -> Window {
        Window { start, size, async_size, order }
    }

    #[test]
    fn windows_grow_by_four_then_by_two_up_to_the_limit() {
        let ramp = |most| {
            let mut size = 1;
            std::iter::from_fn(move || {
                size = next_size(size, most);
                Some(size)
            })
        };
        assert_eq!(ramp(32).take(6).collect::<Vec<_>>(), [4, 8, 16, 32, 32, 32]);
        let large: Vec<_> = ramp(2048).take(7).collect();
        assert_eq!(large, [4, 16, 64, 256, 512, 1024, 2048]);
        let odd: Vec<_> = ramp(100).take(6).collect();
        assert_eq!(odd, [4, 16, 32, 64, 100, 100], "never above the limit");
    }

    #[test]
    fn the_mark_of_a_first_window_is_where_its_request_ends() {
        assert_eq!(Window::begin(7, 1, 32).mark(), 8);
        let full = Window::begin(0, 32, 32);
        assert_eq!(full.mark(), 16, "nothing beyond the request: halfway");
    }

    /// From the tracepoints of a 6.18 kernel with a window limit of 2048 pages.
    #[test]
    fn an_end_is_aligned_to_folios_of_the_next_order() {
        let mut now = window(0, 4, 3, 0);
        let mut seen = Vec::new();
        for _ in 0..4 {
            now.advance(2048);
            now.align_end(2048);
            now.limit_order(9);
            seen.push(now);
        }
        let kernels = [
            window(4, 16, 16, 2),
            window(20, 60, 60, 4),
            window(80, 240, 240, 6),
            window(320, 448, 448, 8),
        ];
        assert_eq!(seen, kernels);
    }

    #[test]
    fn an_end_that_cannot_be_aligned_is_left() {
        let mut small = window(1006, 2, 2, 2);
        small.align_end(2048);
        assert_eq!(small.size, 2);
        small.limit_order(9);
        assert_eq!(small.order, 1, "no folio is larger than its window");
    }

    #[test]
    fn alignment_does_not_exceed_the_limits_lowest_bit() {
        let mut odd = window(0, 48, 48, 6);
        odd.align_end(48);
        assert_eq!(odd.size, 48, "48 is a multiple of 16, not of 256");
    }
}
