//! What each class of read-ahead asked for, and what became of it; and a log of decisions.
//!
//! The matrix is that of the kernel's proposal of 2006, for the causes of all policies.

use readahead::{Cause, Page};

/// One row: totals of a cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// Chunks asked for.
    pub requests: u64,
    /// Pages of these.
    pub pages: u64,
    /// Of these, pages that were absent and read.
    pub read: u64,
    /// Pages read and then used.
    pub hits: u64,
    /// Chunks asked for by a mark.
    pub by_mark: u64,
    /// Chunks that reach the end of their file.
    pub to_the_end: u64,
}

/// The matrix: a row a cause.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matrix {
    rows: [Row; Cause::ALL.len()],
    /// Pages absent when their reader came.
    pub misses: u64,
    /// Pages read for their reader alone, as no policy asked for them.
    pub alone: u64,
    /// Pages whose reader found them on their way, and waited.
    pub late: u64,
}

impl Matrix {
    /// The row of a cause.
    pub fn row(&self, cause: Cause) -> &Row {
        &self.rows[cause as usize]
    }

    pub(crate) fn row_mut(&mut self, cause: Cause) -> &mut Row {
        &mut self.rows[cause as usize]
    }

    pub(crate) fn hit(&mut self, cause: u8) {
        self.rows[usize::from(cause)].hits += 1;
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
        self.rows.iter().fold(Row::default(), |sum, row| Row {
            requests: sum.requests + row.requests,
            pages: sum.pages + row.pages,
            read: sum.read + row.read,
            hits: sum.hits + row.hits,
            by_mark: sum.by_mark + row.by_mark,
            to_the_end: sum.to_the_end + row.to_the_end,
        })
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
