//! What the kernel did from 2.6.13 to 2.6.22: two windows per open file.
//!
//! ```text
//!     |---- current window ----|-------- ahead window --------|
//!     ^start       ^seen       ^ahead start                   ^ahead start + pages
//!                  reader -->
//! ```
//!
//! The reader consumes the current window while the ahead window is being read. There are no
//! marks: the policy is asked at the first page of every `read(2)`, and again at the page it names.
//! It believes that the reader takes all that the request was for, up to a window (`seen`).
//!
//! | request                            | what is done                                              |
//! |------------------------------------|-----------------------------------------------------------|
//! | at `seen`                          | its first page was read already: the rest counts          |
//! | at `seen + 1`, no window           | a window here, sized from the request; for a request as   |
//! |                                    | large as a window, the ahead window, too                  |
//! | at `seen + 1`, no ahead window     | the ahead window                                          |
//! | at `seen + 1`, into ahead window   | which becomes the current one; the next ahead window      |
//! | anywhere else                      | random: windows are dropped, the request is read          |
//!
//! Windows grow by four while they are small, then by two. A page found absent at its turn was
//! evicted: the next window is two pages smaller, and that is all that thrashing leads to. A full
//! device queue drops an ahead window that the reader does not wait for yet. When 256 pages asked
//! for in a row were cached, the file is taken as cached and read-ahead is off until the next miss.
//!
//! Where a request is not consumed in full (`sendfile` to a slow socket), `seen` runs ahead of the
//! reader, whose next request then passes for random: the windows go, and nothing is pipelined.
//!
//! Releases differ in the [first window](size::initial), and in how far `seen` may run: from 2.6.17
//! on not beyond the ahead window.
//!
//! Mappings are read around, or, announced sequential, like requests of a page each. A body that
//! does not tell of calls gets no read-ahead of this policy.

mod size;
mod windows;

use readahead::Table;
use readahead::{Hint, Nanos, OpenFileId, Via};
use windows::{AccessContext, Windows};

use crate::access::{Access, Trigger};
use crate::plan::Plan;
use crate::policy::KernelPolicy;
use crate::view::KernelView;

/// Which of the kernels.
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
    /// A policy that follows at least `open_files` open files.
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

fn request(access: &Access) -> u64 {
    match access.via {
        Via::Read => u64::from(access.request.max(1)),
        Via::Mmap => 1,
    }
}

/// Largest window: none for a program that announced random reading.
fn most(access: &Access) -> u64 {
    match access.hint {
        Hint::Random => 0,
        Hint::Normal | Hint::Sequential => u64::from(access.kernel_window),
    }
}
