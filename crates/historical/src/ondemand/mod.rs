//! Read-ahead on demand: what the kernel did from 2.6.23 on, with one window per open file.
//!
//! ```text
//!                 |<----- async size -----|
//!     |-----------#-----------------------|:::::::::::: next window ::::::::::::|
//!     ^start      ^mark                   ^start + size
//! ```
//!
//! The policy is asked when a page was absent, or carried the mark. In this order:
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
//! Random reads leave the window alone, so that a sequence among them goes on. A page of the window
//! that was evicted before its reader came is absent and in sequence: it starts a small window,
//! which is all the answer there is to thrashing.
//!
//! What releases added:
//! - 2.6.23 (with the interleaved case of 2.6.24): readers of one open file that take turns get
//!   no window each, but keep one that they have.
//! - 2.6.31: *context*. Pages cached before the page at hand are the trace of a sequence; where
//!   they reach back to the file's start they count double. A window whose mark would be on the
//!   page at hand takes the next one with it.
//! - 3.12: a history no longer than the request is what random reads leave, too; other histories
//!   give a window of history and request, marked on its last page.
//!
//! Faults read around the page, until a hundred more of them missed than found their page; since
//! 2.6.31 that is the open file's window, and since 3.0 it is marked a quarter before its end.

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

/// Which of the kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OnDemandRelease {
    /// 2.6.23 to 2.6.30.
    Linux2_6_23,
    /// 2.6.31 to 3.11.
    Linux2_6_31,
    /// From 3.12 on, until large folios.
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

/// A window to be read for a cause.
type Decision = (Window, Cause);

impl OnDemand {
    /// A policy that follows at least `open_files` open files.
    pub fn new(open_files: usize, release: OnDemandRelease) -> Self {
        OnDemand { release, open_files: Table::new(open_files) }
    }

    fn has_context(&self) -> bool {
        self.release >= OnDemandRelease::Linux2_6_31
    }

    fn state(&mut self, access: &Access) -> &mut State {
        self.open_files.get_or_insert_with(access.open_file, access.now, State::default, drop)
    }

    /// An absent or a marked page.
    fn on_page(&mut self, access: &Access, request: u64, cache: &dyn KernelView, plan: &mut Plan) {
        let most = most(access);
        let marked = access.trigger == Trigger::Mark;
        if marked && (most == 0 || cache.room_pages() == 0) {
            return;
        }
        if most == 0 {
            return read_as_is(access, 1, cache, plan);
        }
        let decision = if marked {
            self.at_mark(access, request, most, cache)
        } else {
            self.at_absent(access, request, most, cache)
        };
        match decision {
            Some((window, cause)) => self.submit(access, window, cause, cache, plan),
            None if marked => {}
            None => read_as_is(access, request, cache, plan),
        }
    }

    /// The window that is due because the reader is where it was expected, or at the start.
    fn due(&mut self, access: &Access, request: u64, most: u64) -> Option<Decision> {
        if access.page == 0 && self.has_context() {
            return Some((Window::begin(0, request, most), Cause::Initial));
        }
        let window = self.state(access).window;
        let expected = window.expects(access.page);
        expected.then(|| (window.next(most), Cause::Sequential))
    }

    fn at_mark(
        &mut self,
        access: &Access,
        request: u64,
        most: u64,
        cache: &dyn KernelView,
    ) -> Option<Decision> {
        if let Some(due) = self.due(access, request, most) {
            return Some(due);
        }
        let hole = next_hole(access.page, most, cache)?;
        let ahead = hole - access.page;
        let seen = if self.has_context() { ahead + request } else { ahead };
        Some((Window::after(seen, hole, most), Cause::Context))
    }

    fn at_absent(
        &mut self,
        access: &Access,
        request: u64,
        most: u64,
        cache: &dyn KernelView,
    ) -> Option<Decision> {
        if let Some(due) = self.due(access, request, most) {
            return Some(due);
        }
        if request > most || is_next(access) {
            return Some((Window::begin(access.page, request, most), Cause::Initial));
        }
        let window = self.by_context(access, request, most, cache)?;
        Some((window, Cause::Context))
    }

    /// The window that a history of cached pages before the page at hand suggests.
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

    /// A page fault: marked or announced sequential, it is taken like a read of one page, since
    /// 2.6.31 of a whole window; otherwise a window around the page is read.
    fn on_fault(&mut self, access: &Access, cache: &dyn KernelView, plan: &mut Plan) {
        let most = most(access);
        if most == 0 {
            return;
        }
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

/// Largest window: none for a program that announced random reading.
fn most(access: &Access) -> u64 {
    match access.hint {
        Hint::Random => 0,
        Hint::Normal | Hint::Sequential => u64::from(access.kernel_window),
    }
}

/// Whether the page is the one read last, or the one after it; the first page of the file follows
/// an open.
fn is_next(access: &Access) -> bool {
    match access.previous {
        Some(previous) => access.page.wrapping_sub(previous) <= 1,
        None => access.page == 0,
    }
}

/// Reads a request without regard to windows.
fn read_as_is(access: &Access, request: u64, cache: &dyn KernelView, plan: &mut Plan) {
    Chunk::unmarked(access.page, request).submit(access, cache, Cause::Random, plan);
}
