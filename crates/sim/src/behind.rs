//! Dropping behind: what the brain decides about pages passed, carried out.

use readahead::behind::{Passing, Span};
use readahead::{Nanos, OpenFileId, Page};

use crate::machine::Machine;

impl Machine {
    /// A stream has passed a page.
    pub(crate) fn pass(&mut self, now: Nanos, open: u32, page: Page, passing: Passing) {
        let file = self.opens[open as usize].file;
        let file_pages = self.cache.file(file).pages();
        let Some(behind) = &mut self.behind else { return };
        let id = OpenFileId(u64::from(open));
        let answer = behind.on_pass(id, page, file_pages, passing, now);
        if let Some(Span { start, end }) = answer.write_out {
            self.write_out(now, file, start, end);
        }
        if let Some(span) = answer.release {
            self.cache.release(file, open, span);
        }
    }
}
