//! Today's kernel (Linux 6.16 and later): one window per open file, two triggers.
//!
//! ```text
//!                 |<----- async size ------|
//!     |-------------------#----------------|
//!     ^start              ^mark            ^start + size
//! ```
//!
//! When the reader touches the mark, the next window is submitted, so that it arrives while the
//! rest of this one is read.
//!
//! *Sync*: the page was absent.
//! - At the start of a file, for a request larger than the window, or next to the page read before:
//!   start a new window here, sized by the request.
//! - Otherwise *context*: if more pages than the request are cached just before this one, they are
//!   the trace of a sequence. The window is as long as that history, with its mark on the last page.
//! - Otherwise this is a random read: read only the request and keep the window.
//!
//! *Async*: the page carried the mark.
//! - Where the window expects it: submit the next window, two or four times as large.
//! - Elsewhere (several readers share the open file): the window starts at the next hole.
//! - In both cases, the window's end is aligned to its folios, which grow by two orders from window
//!   to window, and its mark is on its first page.
//!
//! Page faults read *around* the page until a hundred more of them have missed than found their
//! page; see [`Linux6::on_fault`].
//!
//! Sizes, alignment and order were compared with the tracepoints of a 6.18 kernel. Huge-page
//! advice, executable mappings and cgroup throttling are left out, since accesses do not tell about
//! them. Folios matter only for window sizes. Inside a large folio, the kernel finds the next hole
//! up to a folio too late; this is not modelled either.

mod window;

use readahead::Cause;
use readahead::Table;
use readahead::{Hint, Nanos, OpenFileId, Page, Via};
use window::Window;

use crate::access::{Access, Trigger};
use crate::faults::{ExcessMisses, FAULT_MISSES};
use crate::kernel::{Chunk, next_hole};
use crate::plan::Plan;
use crate::policy::KernelPolicy;
use crate::view::KernelView;

/// The excess of misses stops growing here.
const MOST_FAULT_MISSES: u64 = 10 * FAULT_MISSES;

/// If a program announced random reading, its requests are read in pieces of 2 MiB.
const FORCED_PIECE_PAGES: u64 = 512;

/// Order of the largest folio, a huge page of 2 MiB.
const LARGEST_FOLIO_ORDER: u32 = 9;

/// Largest request of most block devices (`max_sectors_kb`), 1280 KiB. The kernel also uses it as
/// the optimal one (`io_pages`).
const LARGEST_REQUEST_PAGES: u32 = 320;

/// Today's kernel policy.
#[derive(Debug)]
pub struct Linux6 {
    open_files: Table<OpenFileId, State>,
    largest_request_pages: u32,
    largest_folio_order: u32,
}

/// Read-ahead state of one open file.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    window: Window,
    faults: ExcessMisses,
}

impl Linux6 {
    /// A policy that tracks at least `open_files` open files, for a device with requests of up to
    /// 1280 KiB and a file system with large folios.
    pub fn new(open_files: usize) -> Self {
        Linux6 {
            open_files: Table::new(open_files),
            largest_request_pages: LARGEST_REQUEST_PAGES,
            largest_folio_order: LARGEST_FOLIO_ORDER,
        }
    }

    /// Sets the device's largest request in pages (`max_sectors_kb`). A read larger than the window
    /// is read ahead up to this size.
    pub fn with_largest_request(mut self, pages: u32) -> Self {
        self.largest_request_pages = pages;
        self
    }

    /// Sets the file system's largest folio to `2^order` pages; 0 for single pages only.
    pub fn with_largest_folio(mut self, order: u32) -> Self {
        self.largest_folio_order = order.min(LARGEST_FOLIO_ORDER);
        self
    }

    /// Largest window in pages for a request of `request` pages.
    fn most_pages(&self, access: &Access, request: u64) -> u64 {
        let window = u64::from(access.kernel_window);
        let largest = u64::from(self.largest_request_pages);
        if request > window && largest > window { request.min(largest) } else { window }
    }

    fn state(&mut self, access: &Access) -> &mut State {
        self.open_files.get_or_insert_with(access.open_file, access.now, State::default, drop)
    }

    /// Handles an absent page.
    fn sync(&mut self, access: &Access, request: u64, cache: &dyn KernelView, plan: &mut Plan) {
        if access.kernel_window == 0 {
            return forced(access, 1, plan);
        }
        if access.hint == Hint::Random {
            let most = access.kernel_window.max(self.largest_request_pages);
            return forced(access, request.min(u64::from(most)), plan);
        }
        let most = self.most_pages(access, request);
        let (window, cause) = if access.page == 0 || request > most || is_next(access) {
            (Window::begin(access.page, request, most), Cause::Initial)
        } else if let Some(pages) = pages_from_context(access.page, request, most, cache) {
            (Window::from_history(access.page, pages), Cause::Context)
        } else {
            let chunk = Chunk::unmarked(access.page, request);
            return chunk.submit(access, cache, Cause::Random, plan);
        };
        self.submit(access, window, cause, cache, plan);
    }

    /// Handles a marked page.
    fn r#async(&mut self, access: &Access, request: u64, cache: &dyn KernelView, plan: &mut Plan) {
        if access.kernel_window == 0 {
            return;
        }
        let most = self.most_pages(access, request);
        let mut window = self.state(access).window;
        let cause = if access.page == window.mark() {
            window.advance(most);
            Cause::Sequential
        } else {
            let Some(hole) = next_hole(access.page, most, cache) else {
                return;
            };
            let seen = hole - access.page + request;
            window.restart(hole, seen, most);
            Cause::Context
        };
        window.align_end(most);
        self.submit(access, window, cause, cache, plan);
    }

    fn submit(
        &mut self,
        access: &Access,
        mut window: Window,
        cause: Cause,
        cache: &dyn KernelView,
        plan: &mut Plan,
    ) {
        window.limit_order(self.largest_folio_order);
        self.state(access).window = window;
        window.chunk().submit(access, cache, cause, plan);
    }

    /// Handles a page fault. With sequential advice, it counts as a request of a whole window.
    /// Otherwise a window *around* the page is read, with a mark a quarter before its end, in case
    /// the faults are a scan after all.
    fn on_fault(&mut self, access: &Access, cache: &dyn KernelView, plan: &mut Plan) {
        if access.hint == Hint::Random || access.kernel_window == 0 {
            return;
        }
        let request = u64::from(access.kernel_window);
        if access.trigger == Trigger::Mark {
            self.state(access).faults.count(access, -1, MOST_FAULT_MISSES);
            return self.r#async(access, request, cache, plan);
        }
        if access.hint == Hint::Sequential {
            return self.sync(access, request, cache, plan);
        }
        let misses = self.state(access).faults.count(access, 1, MOST_FAULT_MISSES);
        if misses <= FAULT_MISSES {
            let around = Window::around(access.page, request);
            self.submit(access, around, Cause::Initial, cache, plan);
        }
    }
}

impl KernelPolicy for Linux6 {
    fn name(&self) -> &'static str {
        "linux-6"
    }

    fn on_access(&mut self, access: &Access, cache: &dyn KernelView, plan: &mut Plan) {
        if access.page >= access.file_pages || access.trigger == Trigger::Call {
            return;
        }
        let request = u64::from(access.request.max(1));
        match (access.via, access.trigger) {
            (Via::Mmap, _) => self.on_fault(access, cache, plan),
            (Via::Read, Trigger::Mark) => self.r#async(access, request, cache, plan),
            (Via::Read, _) => self.sync(access, request, cache, plan),
        }
    }

    fn copy_state(&mut self, from: OpenFileId, to: OpenFileId, now: Nanos) {
        self.open_files.copy(&from, to, now, State::default);
    }

    fn forget_idle(&mut self, now: Nanos, idle: Nanos) {
        self.open_files.forget_before(now.saturating_sub(idle), drop);
    }
}

/// Whether a page follows the last read. The kernel remembers where the last `read(2)` ended; for
/// whole pages that is the page after the last one. It accepts that page, the one after it, and the
/// last page itself. Faults do not update that position.
fn is_next(access: &Access) -> bool {
    let Some(previous) = access.previous.filter(|_| access.via == Via::Read) else {
        return false;
    };
    access.page.wrapping_sub(previous) <= 2
}

/// Window size in pages from the history of cached pages before `page`. Returns `None` if the
/// history is no longer than the request: a random read leaves that, too.
fn pages_from_context(page: Page, request: u64, most: u64, cache: &dyn KernelView) -> Option<u64> {
    let history = cache.run_before(page, most);
    if history <= request {
        return None;
    }
    let from_the_start = history == page;
    let proven = if from_the_start { 2 * history } else { history };
    Some((proven + request).min(most))
}

/// Reads exactly the request, without a window.
fn forced(access: &Access, pages: u64, plan: &mut Plan) {
    let end = access.file_pages.min(access.page.saturating_add(pages));
    let mut start = access.page;
    while start < end && plan.ahead.spare() > 0 {
        let piece = (end - start).min(FORCED_PIECE_PAGES);
        plan.ahead.read(start, piece, Cause::Random);
        start += piece;
    }
}
