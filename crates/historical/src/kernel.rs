//! Shared by all policies that model a kernel: how a chunk is submitted, the size of the first one,
//! and what follows a cached run.
//!
//! ```text
//!        start                        start + pages - look_ahead     start + pages
//!          |--------------- read -----------------#----------------------|
//!                                                 `- PG_readahead mark
//! ```
//!
//! The absent pages are read, up to the end of the file. One is marked, unless it was cached
//! already (the kernel marks new pages only) or lies beyond the end of the file.

use readahead::Cause;
use readahead::Page;

use crate::access::Access;
use crate::plan::Plan;
use crate::view::KernelView;

/// Pages to read. The last `look_ahead` of them are read before they are needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chunk {
    pub(crate) start: Page,
    pub(crate) pages: u64,
    /// Distance between the mark and the chunk's end; 0 for no mark.
    pub(crate) look_ahead: u64,
}

impl Chunk {
    /// `pages` pages from `start` on, without a mark.
    pub(crate) fn unmarked(start: Page, pages: u64) -> Self {
        Chunk { start, pages, look_ahead: 0 }
    }

    /// Appends the chunk to `plan`.
    pub(crate) fn submit(
        self,
        access: &Access,
        cache: &dyn KernelView,
        cause: Cause,
        plan: &mut Plan,
    ) {
        plan.read(self.start, self.pages, access.file_pages, cause);
        let pages = self.pages.min(access.file_pages.saturating_sub(self.start));
        let Some(ahead) = self.pages.checked_sub(self.look_ahead) else {
            return;
        };
        if ahead < pages && !cache.is_cached(self.start + ahead) {
            plan.mark(self.start + ahead);
        }
    }
}

/// The first window for a request, since 2.6.17: the request rounded up to a power of two. A small
/// one is multiplied by four or two; a large one gets `most`.
pub(crate) fn initial_size(request: u64, most: u64) -> u64 {
    let rounded = request.next_power_of_two();
    if rounded <= most / 32 {
        4 * rounded
    } else if rounded <= most / 4 {
        2 * rounded
    } else {
        most
    }
}

/// The first absent page after `page`, within `most` pages.
pub(crate) fn next_hole(page: Page, most: u64, cache: &dyn KernelView) -> Option<Page> {
    let distance = 1 + cache.run_after(page.checked_add(1)?, most);
    if distance > most {
        return None;
    }
    page.checked_add(distance)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::miss;

    use readahead::{Action, CacheView, Mark};

    struct CachedFrom(Page);

    impl CacheView for CachedFrom {
        fn cached_in(&self, start: Page, pages: u64) -> u64 {
            (start + pages).saturating_sub(self.0.max(start))
        }
    }

    impl KernelView for CachedFrom {}

    fn access(page: Page, previous: Option<Page>, file_pages: u64) -> Access {
        Access { file_pages, ..miss(page, previous) }
    }

    fn actions(chunk: Chunk, file_pages: u64, cache: CachedFrom) -> Vec<Action> {
        let access = access(chunk.start, None, file_pages);
        let mut plan = Plan::new();
        chunk.submit(&access, &cache, Cause::Initial, &mut plan);
        plan.ahead().actions().to_vec()
    }

    fn read(start: Page, pages: u64) -> Action {
        Action::Read { start, pages, cause: Cause::Initial }
    }

    fn mark(page: Page) -> Action {
        Action::Mark(Mark { first: page, last: page })
    }

    const CHUNK: Chunk = Chunk { start: 10, pages: 8, look_ahead: 3 };

    #[test]
    fn a_chunk_is_read_and_marked_before_its_end() {
        let all = actions(CHUNK, 100, CachedFrom(50));
        assert_eq!(all, [read(10, 8), mark(15)]);
    }

    #[test]
    fn a_chunk_stops_at_the_end_of_the_file() {
        assert_eq!(
            actions(CHUNK, 16, CachedFrom(50)),
            [read(10, 6), mark(15)],
            "the mark's page is the file's last"
        );
        assert_eq!(actions(CHUNK, 15, CachedFrom(50)), [read(10, 5)]);
        assert_eq!(actions(CHUNK, 10, CachedFrom(50)), []);
        assert_eq!(actions(CHUNK, 0, CachedFrom(50)), []);
    }

    #[test]
    fn a_cached_page_gets_no_mark() {
        assert_eq!(actions(CHUNK, 100, CachedFrom(15)), [read(10, 8)]);
    }

    #[test]
    fn without_look_ahead_there_is_no_mark() {
        let chunk = Chunk::unmarked(10, 8);
        assert_eq!(actions(chunk, 100, CachedFrom(50)), [read(10, 8)]);
    }

    #[test]
    fn a_small_request_starts_with_several_times_its_size() {
        let sizes = |most| [1, 2, 3, 8, 9, 100].map(|request| initial_size(request, most));
        assert_eq!(sizes(32), [4, 4, 8, 16, 32, 32]);
        assert_eq!(sizes(256), [4, 8, 16, 32, 32, 256]);
    }
}
