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
//! Page faults read *around* the page; see [`Linux6::on_fault`]. The kernel would stop that once a hundred more of
//! them have missed than found their page. But a fault that waited for its page is tried again, finds it, and is
//! counted as one that did: random faults on a 6.18 kernel read around without end.
//!
//! Sizes, alignment and order were compared with the tracepoints of a 6.18 kernel. Huge-page
//! advice, executable mappings and cgroup throttling are left out, since accesses do not tell about
//! them. Folios matter for window sizes, and for the kernel's search for holes ([`folios`]).

mod folios;
mod window;

use folios::Folios;
pub use folios::folio_order;
use readahead::Cause;
use readahead::Table;
use readahead::{FileId, Hint, Nanos, OpenFileId, Via};
use window::Window;

use crate::access::{Access, Trigger};
use crate::kernel::Chunk;
use crate::plan::Plan;
use crate::policy::KernelPolicy;
use crate::view::KernelView;

/// If a program announced random reading, its requests are read in pieces of 2 MiB.
const FORCED_PIECE_PAGES: u64 = 512;

/// Order of the largest folio, a huge page of 2 MiB.
const LARGEST_FOLIO_ORDER: u32 = 9;

/// Largest request of most block devices (`max_sectors_kb`), 1280 KiB. The kernel also uses it as
/// the optimal one (`io_pages`).
const LARGEST_REQUEST_PAGES: u32 = 320;

/// Files of which folios are remembered; of others, folios are taken for small.
const MOST_FILES: usize = 1024;

/// Today's kernel policy.
#[derive(Debug)]
pub struct Linux6 {
    /// The window of each.
    open_files: Table<OpenFileId, Window>,
    folios: Table<FileId, Folios>,
    largest_request_pages: u32,
    largest_folio_order: u32,
}

impl Linux6 {
    /// A policy that tracks at least `open_files` open files, for a device with requests of up to
    /// 1280 KiB and a file system with large folios.
    pub fn new(open_files: usize) -> Self {
        Linux6 {
            open_files: Table::new(open_files),
            folios: Table::new(open_files.min(MOST_FILES)),
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

    fn window(&mut self, access: &Access) -> &mut Window {
        self.open_files.get_or_insert_with(access.open_file, access.now, Window::default, drop)
    }

    fn folios(&mut self, access: &Access) -> &mut Folios {
        self.folios.get_or_insert_with(access.file, access.now, Folios::default, drop)
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
        } else if let Some(pages) = self.pages_from_context(access, request, most, cache) {
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
        let mut window = *self.window(access);
        let cause = if access.page == window.mark() {
            window.advance(most);
            Cause::Sequential
        } else {
            let Some(hole) = self.folios(access).next_hole(access.page, most, cache) else {
                return;
            };
            let seen = hole - access.page + request;
            window.restart(hole, seen, most);
            Cause::Context
        };
        window.align_end(most);
        self.submit(access, window, cause, cache, plan);
    }

    /// Window size in pages from the history of cached pages before the access. Returns `None` if the
    /// history is no longer than the request: a random read leaves that, too.
    fn pages_from_context(
        &mut self,
        access: &Access,
        request: u64,
        most: u64,
        cache: &dyn KernelView,
    ) -> Option<u64> {
        let history = self.folios(access).run_before(access.page, most, cache);
        if history <= request {
            return None;
        }
        let from_the_start = history == access.page;
        let proven = if from_the_start { 2 * history } else { history };
        Some((proven + request).min(most))
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
        *self.window(access) = window;
        window.note(access.file_pages, self.folios(access));
        plan.read_in_folios(window.order());
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
            return self.r#async(access, request, cache, plan);
        }
        if access.hint == Hint::Sequential {
            return self.sync(access, request, cache, plan);
        }
        let around = Window::around(access.page, request);
        self.submit(access, around, Cause::Initial, cache, plan);
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
        self.open_files.copy(&from, to, now, Window::default);
    }

    fn forget_idle(&mut self, now: Nanos, idle: Nanos) {
        self.open_files.forget_before(now.saturating_sub(idle), drop);
        self.folios.forget_before(now.saturating_sub(idle), drop);
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

/// Reads exactly the request, without a window.
fn forced(access: &Access, pages: u64, plan: &mut Plan) {
    let end = access.file_pages.min(access.page.saturating_add(pages));
    let mut start = access.page;
    while start < end && plan.ahead().spare() > 0 {
        let piece = (end - start).min(FORCED_PIECE_PAGES);
        plan.read(start, piece, access.file_pages, Cause::Random);
        start += piece;
    }
}
