//! The dirty pages that wait to be written.

use std::collections::VecDeque;

use readahead::Page;

/// What is dirty and who waits for it.
#[derive(Debug)]
pub(crate) struct Writeback {
    /// Dirty runs nobody writes yet: file, first page, pages.
    pub(crate) queue: VecDeque<(u32, Page, u64)>,
    /// Pages of these.
    pub(crate) queued: u64,
    /// Transfers the flusher has under way.
    pub(crate) writes: usize,
    /// Above so many dirty pages the flusher starts.
    pub(crate) background: u64,
    /// At so many dirty pages writers wait.
    pub(crate) limit: u64,
    /// Processes that wait until less is dirty.
    pub(crate) throttled: Vec<u32>,
    /// Processes that wait for a frame, the one that waits longest in front.
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
