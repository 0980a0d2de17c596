//! The dirty pages that wait to be written.

use std::collections::VecDeque;

use readahead::Page;

/// Dirty pages, and the processes that wait.
#[derive(Debug)]
pub(crate) struct Writeback {
    /// Dirty runs that nobody writes yet: file, first page, pages.
    pub(crate) queue: VecDeque<(u32, Page, u64)>,
    /// Pages of these.
    pub(crate) queued: u64,
    /// Transfers of the flusher in flight.
    pub(crate) writes: usize,
    /// Above this many dirty pages the flusher starts.
    pub(crate) background: u64,
    /// At this many dirty pages writers wait.
    pub(crate) limit: u64,
    /// Processes that wait for fewer dirty pages.
    pub(crate) throttled: Vec<u32>,
    /// Processes that wait for a frame, the longest waiting first.
    pub(crate) starved: VecDeque<u32>,
}

impl Writeback {
    pub(crate) fn new(memory_pages: u64) -> Self {
        Writeback {
            queue: VecDeque::new(),
            queued: 0,
            writes: 0,
            background: memory_pages / 10,
            limit: memory_pages * 4 / 10,
            throttled: Vec::new(),
            starved: VecDeque::new(),
        }
    }

    /// Queues a page that became dirty.
    pub(crate) fn add(&mut self, file: u32, page: Page) {
        self.queued += 1;
        if let Some((last_file, start, pages)) = self.queue.back_mut()
            && *last_file == file
            && *start + *pages == page
        {
            *pages += 1;
            return;
        }
        self.queue.push_back((file, page, 1));
    }
}
