//! Read-ahead on demand: the kernel from 2.6.23 on, with one window per open file.
//!
//! ```text
//!                 |<----- async size -----|
//!     |-----------#-----------------------|:::::::::::: next window ::::::::::::|
//!     ^start      ^mark                   ^start + size
//! ```
//!
//! The policy is called when a page was absent or carried the mark. It checks these cases in order:
//!
//! | case        | when                                               | window                      |
//! |-------------|----------------------------------------------------|-----------------------------|
//! | start       | the file's first page (2.6.31)                     | from the request            |
//! | expected    | at the mark or the end of the window               | the next, 4 or 2 times      |
//! | interleaved | marked, but the window is another reader's         | at the next hole, sized by  |
//! |             |                                                    | its distance                |
//! | sequential  | at the page read last, or the one after it; or a   | from the request            |
//! |             | request larger than a window                       |                             |
//! | context     | the pages before are cached (2.6.31)               | from their number           |
//! | random      | none of these                                      | none: the request is read   |
//!
//! Random reads do not change the window, so a sequence among them continues. If a page of the
//! window was evicted before its reader came, it is absent and in sequence, and starts a small
//! window. That is the only response to thrashing.
//!
//! Later releases added:
//! - 2.6.23 (with the interleaved case of 2.6.24): if readers of one open file take turns, they get no
//!   window each, but keep one that exists.
//! - 2.6.31: *context*. Pages cached before the current page are the trace of a sequence. If they
//!   reach back to the file's start, they count double. If a window's mark would be on the current
//!   page, the next window is joined to it.
//! - 3.12: a history no longer than the request does not count, since random reads leave that, too.
//!   Other histories give a window as long as history and request, marked on its last page.
//!
//! Faults read around the page until a hundred more of them have missed than found their page.
//! Since 2.6.31 they use the open file's window; since 3.0 it has a mark a quarter before its end.

mod window;

use readahead::Cause;
use readahead::Table;
use readahead::{Hint, Nanos, OpenFileId, Via};
use window::Window;

use crate::access::{Access, Trigger};
use crate::faults::{ExcessMisses, FAULT_MISSES};
use crate::kernel::{Chunk, next_hole};
use crate::plan::Plan;
use crate::policy::KernelPolicy;
use crate::view::KernelView;

/// A range of kernel releases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OnDemandRelease {
    /// 2.6.23 to 2.6.30.
    Linux2_6_23,
    /// 2.6.31 to 3.11.
    Linux2_6_31,
    /// From 3.12 to the introduction of large folios.
    Linux3_12,
}

/// The policy, for the open files of any device.
#[derive(Debug)]
pub struct OnDemand {
    release: OnDemandRelease,
    open_files: Table<OpenFileId, State>,
}

/// Read-ahead state of one open file.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    window: Window,
    faults: ExcessMisses,
}

/// A window to read, and its cause.
type Decision = (Window, Cause);

impl OnDemand {
    /// A policy that tracks at least `open_files` open files.
    pub fn new(open_files: usize, release: OnDemandRelease) -> Self {
        OnDemand { release, open_files: Table::new(open_files) }
    }

    fn has_context(&self) -> bool {
        self.release >= OnDemandRelease::Linux2_6_31
    }

    fn state(&mut self, access: &Access) -> &mut State {
        self.open_files.get_or_insert_with(access.open_file, access.now, State::default, drop)
    }

    /// Handles an absent or marked page.
    fn on_page(&mut self, access: &Access, request: u64, cache: &dyn KernelView, plan: &mut Plan) {
        let most = most(access);
        let marked = access.trigger == Trigger::Mark;
        if marked && (most == 0 || cache.room_pages() == 0) {
            return;
        }
        if most == 0 {
            return read_as_is(access, 1, cache, plan);
        }
        let decision = self.due(access, request, most).or_else(|| match marked {
            true => self.at_mark(access, request, most, cache),
            false => self.at_absent(access, request, most, cache),
        });
        match decision {
            Some((window, cause)) => self.submit(access, window, cause, cache, plan),
            None if marked => {}
            None => read_as_is(access, request, cache, plan),
        }
    }

    /// The next window, if the reader is where the window expects it, or the first one at the
    /// start.
    fn due(&mut self, access: &Access, request: u64, most: u64) -> Option<Decision> {
        if access.page == 0 && self.has_context() {
            return Some((Window::begin(0, request, most), Cause::Initial));
        }
        let window = self.state(access).window;
        let expected = window.expects(access.page);
        expected.then(|| (window.next(most), Cause::Sequential))
    }

    /// The window for a mark that the window does not expect.
    fn at_mark(
        &self,
        access: &Access,
        request: u64,
        most: u64,
        cache: &dyn KernelView,
    ) -> Option<Decision> {
        let hole = next_hole(access.page, most, cache)?;
        let ahead = hole - access.page;
        let seen = if self.has_context() { ahead + request } else { ahead };
        Some((Window::after(seen, hole, most), Cause::Context))
    }

    /// The window for an absent page that the window does not expect.
    fn at_absent(
        &self,
        access: &Access,
        request: u64,
        most: u64,
        cache: &dyn KernelView,
    ) -> Option<Decision> {
        if request > most || is_next(access) {
            return Some((Window::begin(access.page, request, most), Cause::Initial));
        }
        let window = self.by_context(access, request, most, cache)?;
        Some((window, Cause::Context))
    }

    /// The window suggested by the history of cached pages before the current page.
    fn by_context(
        &self,
        access: &Access,
        request: u64,
        most: u64,
        cache: &dyn KernelView,
    ) -> Option<Window> {
        if !self.has_context() {
            return None;
        }
        let is_cautious = self.release >= OnDemandRelease::Linux3_12;
        let history = cache.run_before(access.page, most);
        let too_short = if is_cautious { request } else { 0 };
        if history <= too_short {
            return None;
        }
        let from_the_start = history >= access.page;
        let proven = if from_the_start { 2 * history } else { history };
        let from_history =
            if is_cautious { Window::from_history_cautiously } else { Window::from_history };
        Some(from_history(access.page, proven + request, most))
    }

    fn submit(
        &mut self,
        access: &Access,
        mut window: Window,
        cause: Cause,
        cache: &dyn KernelView,
        plan: &mut Plan,
    ) {
        if self.has_context() {
            window.merge_own_mark(access.page, most(access));
        }
        self.state(access).window = window;
        window.chunk().submit(access, cache, cause, plan);
    }

    /// Handles a page fault. With a mark or sequential advice it counts as a read of one page,
    /// since 2.6.31 of a whole window. Otherwise a window around the page is read.
    fn on_fault(&mut self, access: &Access, cache: &dyn KernelView, plan: &mut Plan) {
        let most = most(access);
        if most == 0 {
            return;
        }
        // Of the modelled ranges of releases, only the last one has what 3.0 changed.
        let is_since_3_0 = self.release >= OnDemandRelease::Linux3_12;
        let request = if self.has_context() { most } else { 1 };
        let most_misses = if is_since_3_0 { 10 * FAULT_MISSES } else { u64::MAX };
        if access.trigger == Trigger::Mark {
            self.state(access).faults.count(access, -1, most_misses);
            return self.on_page(access, request, cache, plan);
        }
        if access.hint == Hint::Sequential {
            return self.on_page(access, request, cache, plan);
        }
        if self.state(access).faults.count(access, 1, most_misses) > FAULT_MISSES {
            return;
        }
        let around = Window::around(access.page, most, if is_since_3_0 { most / 4 } else { 0 });
        if self.has_context() {
            self.state(access).window = around;
        }
        around.chunk().submit(access, cache, Cause::Initial, plan);
    }
}

impl KernelPolicy for OnDemand {
    fn name(&self) -> &'static str {
        match self.release {
            OnDemandRelease::Linux2_6_23 => "ondemand-2.6.23",
            OnDemandRelease::Linux2_6_31 => "context-2.6.31",
            OnDemandRelease::Linux3_12 => "context-3.12",
        }
    }

    fn on_access(&mut self, access: &Access, cache: &dyn KernelView, plan: &mut Plan) {
        if access.page >= access.file_pages || access.trigger == Trigger::Call {
            return;
        }
        match access.via {
            Via::Mmap => self.on_fault(access, cache, plan),
            Via::Read => self.on_page(access, u64::from(access.request.max(1)), cache, plan),
        }
    }

    fn copy_state(&mut self, from: OpenFileId, to: OpenFileId, now: Nanos) {
        self.open_files.copy(&from, to, now, State::default);
    }

    fn forget_idle(&mut self, now: Nanos, idle: Nanos) {
        self.open_files.forget_before(now.saturating_sub(idle), drop);
    }
}

/// Largest window in pages; 0 if the program announced random reading.
fn most(access: &Access) -> u64 {
    match access.hint {
        Hint::Random => 0,
        Hint::Normal | Hint::Sequential => u64::from(access.kernel_window),
    }
}

/// Whether the page is the last one read or the one after it. After an open, the first page of the
/// file is next.
fn is_next(access: &Access) -> bool {
    match access.previous {
        Some(previous) => access.page.wrapping_sub(previous) <= 1,
        None => access.page == 0,
    }
}

/// Reads exactly the request, without a window.
fn read_as_is(access: &Access, request: u64, cache: &dyn KernelView, plan: &mut Plan) {
    Chunk::unmarked(access.page, request).submit(access, cache, Cause::Random, plan);
}
