//! The read-ahead of Linux 2.5.61 (February 2003), as far as it affects a sequential reader. It has
//! two windows, and submits the next one at the second page of the one being read.
//!
//! ```text
//!   |------ current ------|------- ahead -------|
//!    ^ 2nd page: submit    ^ 2nd page: submit
//!      the ahead window      the next one
//! ```
//!
//! A reader that enters the ahead window before it has arrived sleeps on its first page. It submits
//! the next window only on the second page. So a sleeping reader has exactly one window queued.
//!
//! Recalled from memory. The growth of the first windows by two pages per hit is left out: every
//! window has the limit's size, but at least 16 KiB whatever the limit (`VM_MIN_READAHEAD`, applied
//! after the limit).

use readahead::Cause;
use readahead::Table;
use readahead::{Hint, Nanos, OpenFileId, Page, Via};

use crate::access::{Access, Trigger};
use crate::kernel::Chunk;
use crate::plan::Plan;
use crate::policy::KernelPolicy;
use crate::view::KernelView;

/// Smallest window: 16 KiB.
const SMALLEST_WINDOW_PAGES: u64 = 4;

/// The policy.
#[derive(Debug)]
pub struct Linux25 {
    /// End of the last submitted window.
    ends: Table<OpenFileId, Page>,
}

impl Linux25 {
    /// A policy that tracks at least `open_files` open files.
    pub fn new(open_files: usize) -> Self {
        Linux25 { ends: Table::new(open_files) }
    }
}

impl KernelPolicy for Linux25 {
    fn name(&self) -> &'static str {
        "linux-2.5"
    }

    fn on_access(&mut self, access: &Access, cache: &dyn KernelView, plan: &mut Plan) {
        let is_left_alone = access.hint == Hint::Random || access.trigger == Trigger::Call;
        if access.page >= access.file_pages || is_left_alone || access.kernel_window == 0 {
            return;
        }
        let window = u64::from(access.kernel_window).max(SMALLEST_WINDOW_PAGES);
        let end = self.ends.get_or_insert_with(access.open_file, access.now, || 0, drop);
        let (start, cause) = match access.trigger {
            Trigger::Mark => (*end, Cause::Sequential),
            _ if is_next(access) => (access.page, Cause::Initial),
            _ => {
                let request = u64::from(access.request.max(1)).min(window);
                let chunk = Chunk::unmarked(access.page, request);
                return chunk.submit(access, cache, Cause::Random, plan);
            }
        };
        *end = start.saturating_add(window);
        let chunk = Chunk { start, pages: window, look_ahead: window - 1 };
        chunk.submit(access, cache, cause, plan);
    }

    fn copy_state(&mut self, from: OpenFileId, to: OpenFileId, now: Nanos) {
        self.ends.copy(&from, to, now, || 0);
    }

    fn forget_idle(&mut self, now: Nanos, idle: Nanos) {
        self.ends.forget_before(now.saturating_sub(idle), drop);
    }
}

/// Whether a read starts at the file's beginning or follows the page before.
fn is_next(access: &Access) -> bool {
    let follows =
        access.previous.is_some_and(|previous| previous.checked_add(1) == Some(access.page));
    access.via == Via::Read && (access.page == 0 || follows)
}
