//! Figures of each class of read-ahead, and a log of decisions.
//!
//! The matrix follows the one in the kernel's proposal of 2006. It has a row for each class and a column for each
//! event. A class is the cause that a policy gives. Each page remembers the class that read it, and each event counts
//! for that class, whichever class requests the page next:
//!
//! | 2006               | here              |                                                          |
//! |--------------------|-------------------|----------------------------------------------------------|
//! | `readahead`        | `requests`, `pages`, `read` | what was asked for, and what of it was absent  |
//! | `readahead_hit`    | `hits`            | a page was used                                          |
//! | `io_block`         | `late`            | its reader came while it was on its way                  |
//! | `lookahead_hit`    | `look_ahead_hits` | a reader touched the class's mark                        |
//! | `readahead_thrash` | `thrashed`        | a page went unused, and was read again                   |
//! | `readahead_shrink` | `shrinks`         | after that, a smaller window (charged to the new one's)  |
//! | `readahead_eof`    | `to_the_end`      | a chunk reached the end of its file                      |

use derive_more::Add;
use historical::Asked;
use readahead::{Cause, Page};

/// One row: totals of a cause.
#[derive(Add, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// Chunks requested.
    pub requests: u64,
    /// Pages of these.
    pub pages: u64,
    /// Of these, pages that were absent and read.
    pub read: u64,
    /// Pages read and then used.
    pub hits: u64,
    /// Readers that found a page read ahead in flight, and waited for it.
    pub late: u64,
    /// Look-ahead marks that a reader touched. A mark of the kernel counts for the class that read its page. A mark of
    /// the policy on top that was set without reading counts for none.
    pub look_ahead_hits: u64,
    /// Pages read, evicted before they were used, and read again.
    pub thrashed: u64,
    /// Windows smaller than the previous one through the same open file, after that file missed pages evicted unused,
    /// whoever read them. Windows that the end of the file cuts do not count.
    pub shrinks: u64,
    /// Chunks that reach the end of their file.
    pub to_the_end: u64,
}

impl Row {
    /// Every count with the name of its column, in the order they are shown.
    pub fn columns(&self) -> [(&'static str, u64); 9] {
        [
            ("requests", self.requests),
            ("pages", self.pages),
            ("read", self.read),
            ("hits", self.hits),
            ("late", self.late),
            ("look-ahead hits", self.look_ahead_hits),
            ("thrashed", self.thrashed),
            ("shrinks", self.shrinks),
            ("to the end", self.to_the_end),
        ]
    }
}

/// The matrix: a row a cause.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matrix {
    rows: [Row; Cause::ALL.len()],
    /// Pages absent when their reader came.
    pub misses: u64,
    /// Pages read for their reader alone, as no policy asked for them.
    pub alone: u64,
}

impl Matrix {
    /// The row of a cause.
    pub fn row(&self, cause: Cause) -> &Row {
        &self.rows[cause as usize]
    }

    pub(crate) fn row_mut(&mut self, cause: Cause) -> &mut Row {
        &mut self.rows[cause as usize]
    }

    /// The row of the cause that a frame or a page table remembers.
    pub(crate) fn row_of(&mut self, cause: u8) -> &mut Row {
        &mut self.rows[usize::from(cause)]
    }

    /// The rows that hold anything.
    pub fn rows(&self) -> impl Iterator<Item = (Cause, &Row)> {
        let rows = Cause::ALL.into_iter().zip(&self.rows);
        rows.filter(|(_, row)| **row != Row::default())
    }

    /// Pages read from the device.
    pub fn pages_read(&self) -> u64 {
        self.total().read + self.alone
    }

    /// All rows together.
    pub fn total(&self) -> Row {
        self.rows.iter().fold(Row::default(), |sum, row| sum + *row)
    }
}

/// The window that a policy last asked for through an open file, and what that has missed since.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LastWindow {
    pages: u64,
    has_thrashed: bool,
}

impl LastWindow {
    /// The reader missed a page that had been evicted before it came.
    pub(crate) fn thrash(&mut self) {
        self.has_thrashed = true;
    }

    /// Takes in what a plan asks for; the cause of a window that thrashing has made smaller. Requests read
    /// as they are and regions read whole are no windows.
    pub(crate) fn next(&mut self, asked: &[Asked], file_pages: u64) -> Option<Cause> {
        let is_window = |chunk: &&Asked| !matches!(chunk.cause, Cause::Random | Cause::Dense);
        let chunks = || asked.iter().filter(is_window);
        let cause = chunks().next()?.cause;
        let pages = chunks().map(|chunk| chunk.pages).sum();
        let is_cut = chunks().any(|chunk| chunk.start.saturating_add(chunk.pages) >= file_pages);
        let is_smaller = pages < self.pages && !is_cut;
        let before = std::mem::replace(self, LastWindow { pages, has_thrashed: false });
        (before.has_thrashed && is_smaller).then_some(cause)
    }
}

/// One chunk asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Number of the file.
    pub file: u32,
    /// First page.
    pub start: Page,
    /// Pages asked for, those past the end of the file included.
    pub asked: u64,
    /// Pages that were absent and read.
    pub read: u64,
    /// Why.
    pub cause: Cause,
}

impl std::fmt::Display for Decision {
    /// As the patches of the time printed it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "readahead({}, {}+{}) = {}", self.file, self.start, self.asked, self.read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE_PAGES: u64 = 1000;

    fn chunk(start: Page, pages: u64, cause: Cause) -> Asked {
        Asked { start, pages, cause }
    }

    #[test]
    fn a_window_shrinks_only_after_thrashing_and_once() {
        let mut last = LastWindow::default();
        let next = |last: &mut LastWindow, pages| {
            last.next(&[chunk(8, pages, Cause::Sequential)], FILE_PAGES)
        };
        assert_eq!((next(&mut last, 32), next(&mut last, 16)), (None, None), "no page was lost");
        last.thrash();
        assert_eq!((next(&mut last, 8), next(&mut last, 4)), (Some(Cause::Sequential), None));
        last.thrash();
        assert_eq!(next(&mut last, 8), None, "it has grown");
    }

    #[test]
    fn what_is_read_as_it_is_or_cut_by_the_files_end_has_not_shrunk() {
        let mut last = LastWindow::default();
        last.next(&[chunk(0, 16, Cause::Initial), chunk(16, 16, Cause::Sequential)], FILE_PAGES);
        last.thrash();
        assert_eq!(last.next(&[chunk(700, 1, Cause::Random)], FILE_PAGES), None);
        assert_eq!(last.next(&[], FILE_PAGES), None);
        let mut at_the_end = last;
        assert_eq!(at_the_end.next(&[chunk(990, 10, Cause::Sequential)], FILE_PAGES), None);
        let smaller = chunk(500, 31, Cause::Thrashed);
        assert_eq!(last.next(&[smaller], FILE_PAGES), Some(Cause::Thrashed), "of 32 pages in all");
    }
}
