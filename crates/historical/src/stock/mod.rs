//! The kernel from 2.6.13 to 2.6.22: two windows per open file.
//!
//! ```text
//!     |---- current window ----|-------- ahead window --------|
//!     ^start       ^seen       ^ahead start                   ^ahead start + pages
//!                  reader -->
//! ```
//!
//! The reader uses the current window while the ahead window is being read. There are no marks. The
//! policy is called at the first page of each `read(2)` and again at the page it names. It assumes
//! that the reader uses all of a request, up to a window (`seen`).
//!
//! | request                            | action                                                    |
//! |------------------------------------|-----------------------------------------------------------|
//! | at `seen`                          | its first page was read before: the rest counts           |
//! | at `seen + 1`, no window           | a window here, sized by the request; if the request is as |
//! |                                    | large as a window, also the ahead window                  |
//! | at `seen + 1`, no ahead window     | the ahead window                                          |
//! | at `seen + 1`, in the ahead window | it becomes the current one; a new ahead window            |
//! | anywhere else                      | random: drop both windows, read the request               |
//!
//! Small windows grow fourfold, others double. If a page is absent at its turn, it was evicted: the
//! next window is two pages smaller. That is the only response to thrashing. If the device's queue
//! is full, an ahead window is dropped, provided that the reader does not wait for it yet. If 256
//! requested pages in a row were cached, the file counts as cached, and read-ahead stays off until
//! the next miss.
//!
//! If a request is not used in full (`sendfile` to a slow socket), `seen` runs ahead of the reader.
//! Its next request then counts as random: the windows are dropped and nothing is pipelined.
//!
//! Releases differ in the [first window](size::initial) and in how far `seen` may run ahead: since
//! 2.6.17, not beyond the ahead window.
//!
//! Mappings are read around; with sequential advice, each fault counts as a request of one page. If
//! calls are not reported, this policy reads nothing ahead.

mod size;
mod windows;

use readahead::Table;
use readahead::{Hint, Nanos, OpenFileId, Via};
use windows::{AccessContext, Windows};

use crate::access::{Access, Trigger};
use crate::plan::Plan;
use crate::policy::KernelPolicy;
use crate::view::KernelView;

/// A range of kernel releases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StockRelease {
    /// 2.6.13 to 2.6.16.
    Linux2_6_13,
    /// 2.6.17 to 2.6.22.
    Linux2_6_17,
}

/// The policy, for the open files of any device.
#[derive(Debug)]
pub struct Stock {
    release: StockRelease,
    open_files: Table<OpenFileId, Windows>,
}

impl Stock {
    /// A policy that tracks at least `open_files` open files.
    pub fn new(open_files: usize, release: StockRelease) -> Self {
        Stock { release, open_files: Table::new(open_files) }
    }
}

impl KernelPolicy for Stock {
    fn name(&self) -> &'static str {
        match self.release {
            StockRelease::Linux2_6_13 => "stock-2.6.13",
            StockRelease::Linux2_6_17 => "stock-2.6.17",
        }
    }

    fn on_access(&mut self, access: &Access, cache: &dyn KernelView, plan: &mut Plan) {
        if access.page >= access.file_pages {
            return;
        }
        let windows = self.open_files.get_or_insert_with(
            access.open_file,
            access.now,
            Windows::default,
            drop,
        );
        if access.via == Via::Mmap && access.hint != Hint::Sequential {
            return windows.faults.on_fault(access, cache, plan);
        }
        match access.trigger {
            Trigger::Call => {
                let context =
                    AccessContext { access, cache, release: self.release, most: most(access) };
                windows.on_request(access.page, request(access), &context, plan);
            }
            Trigger::Absent => windows.on_miss(),
            Trigger::Mark => {}
        }
        plan.call_again_at(windows.next());
    }

    fn wants_calls(&self) -> bool {
        true
    }

    fn copy_state(&mut self, from: OpenFileId, to: OpenFileId, now: Nanos) {
        self.open_files.copy(&from, to, now, Windows::default);
    }

    fn forget_idle(&mut self, now: Nanos, idle: Nanos) {
        self.open_files.forget_before(now.saturating_sub(idle), drop);
    }
}

/// Pages of the request; a fault counts as one.
fn request(access: &Access) -> u64 {
    match access.via {
        Via::Read => u64::from(access.request.max(1)),
        Via::Mmap => 1,
    }
}

/// Largest window in pages; 0 if the program announced random reading.
fn most(access: &Access) -> u64 {
    match access.hint {
        Hint::Random => 0,
        Hint::Normal | Hint::Sequential => u64::from(access.kernel_window),
    }
}
