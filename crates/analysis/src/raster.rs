//! Pictures of reads and waits over time and place, as rasters.

use readahead::{Nanos, PAGE_BYTES};
use trace::{Record, Trace};

use crate::Analysis;

/// The number of columns of a raster: moments.
const COLUMNS: usize = 160;

/// The most rows of a raster: places.
const MOST_ROWS: usize = 80;

/// Reads and waits, with time to the right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Raster {
    /// When and where the kernel brought pages in, of a file of a trace that tells.
    pub brought: Layer,
    /// When and where something was read.
    pub read: Layer,
    /// When and where a read waited.
    pub waited: Layer,
}

/// The cells of a raster in which something happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    /// The number of columns.
    pub columns: usize,
    /// The number of rows; the first one is the lowest.
    pub rows: usize,
    cells: Vec<bool>,
}

impl Layer {
    /// Neighbouring cells, from left to right: their row, the first column, and how many they are.
    pub fn runs(&self) -> Vec<(usize, usize, usize)> {
        let mut runs = Vec::new();
        for (row, cells) in self.cells.chunks(self.columns).enumerate() {
            let mut column = 0;
            for equal in cells.chunk_by(|one, other| one == other) {
                if equal[0] {
                    runs.push((row, column, equal.len()));
                }
                column += equal.len();
            }
        }
        runs
    }
}

/// The reads of one file: its first byte is at the bottom, its last one at the top.
pub fn file_raster(trace: &Trace, analysis: &Analysis, file: u32) -> Raster {
    let bytes = trace.files()[file as usize].bytes;
    let rows = MOST_ROWS.min(usize::try_from(bytes).unwrap_or(MOST_ROWS)).max(1);
    let mut drawing = Drawing::new(analysis, rows);
    let place = |record: &Record| {
        let last = record.end().min(bytes) - 1;
        (row(record.offset, bytes, rows), row(last, bytes, rows))
    };
    drawing.reads(trace, |record| (record.file == file).then(|| place(record)));
    drawing.waits(trace, analysis, |record| (record.file == file).then(|| place(record)));
    for window in trace.windows().iter().filter(|window| window.file == file) {
        let [first, end] = [window.pages.start, window.pages.end].map(|page| page * PAGE_BYTES);
        let rows = (row(first, bytes, rows), row(end - 1, bytes, rows));
        drawing.brought.fill(drawing.columns(window.at, window.at), rows);
    }
    drawing.finish()
}

/// The reads of all files: the file that was read first is at the bottom. Also returns their number.
pub fn tree_raster(trace: &Trace, analysis: &Analysis) -> (Raster, usize) {
    let mut ranks = vec![None; trace.files().len()];
    let mut count = 0;
    for stream in &analysis.streams {
        ranks[stream.file as usize].get_or_insert_with(|| {
            count += 1;
            count - 1
        });
    }
    let rows = MOST_ROWS.min(count).max(1);
    let mut drawing = Drawing::new(analysis, rows);
    let place = |record: &Record| {
        let rank = ranks[record.file as usize]? as u64;
        let row = row(rank, count as u64, rows);
        Some((row, row))
    };
    drawing.reads(trace, place);
    drawing.waits(trace, analysis, place);
    (drawing.finish(), count)
}

/// The row of a place, of so many places in so many rows.
fn row(place: u64, of: u64, rows: usize) -> usize {
    let row = u128::from(place) * rows as u128 / u128::from(of.max(1));
    (row as usize).min(rows - 1)
}

/// A raster that is being drawn.
struct Drawing {
    began: Nanos,
    /// Nanoseconds of a column.
    column: Nanos,
    brought: Sketch,
    read: Sketch,
    waited: Sketch,
}

impl Drawing {
    fn new(analysis: &Analysis, rows: usize) -> Self {
        let (began, ended) = analysis.span;
        Drawing {
            began,
            column: (ended - began).div_ceil(COLUMNS as u64).max(1),
            brought: Sketch::new(rows),
            read: Sketch::new(rows),
            waited: Sketch::new(rows),
        }
    }

    /// The first and the last column of a time.
    fn columns(&self, from: Nanos, to: Nanos) -> (usize, usize) {
        // A window may be older than the first operation: what a read brings in comes before it waits.
        let column = |at: Nanos| (at.saturating_sub(self.began) / self.column) as usize;
        (column(from).min(COLUMNS - 1), column(to).min(COLUMNS - 1))
    }

    /// Draws the reads that `rows` gives a place.
    fn reads(&mut self, trace: &Trace, rows: impl Fn(&Record) -> Option<(usize, usize)>) {
        let reads = trace.records().iter().filter(|record| record.op.is_read());
        for record in reads.filter(|record| trace.has_bytes(record)) {
            let Some(rows) = rows(record) else { continue };
            self.read.fill(self.columns(record.at, record.at + record.took), rows);
        }
    }

    fn waits(
        &mut self,
        trace: &Trace,
        analysis: &Analysis,
        rows: impl Fn(&Record) -> Option<(usize, usize)>,
    ) {
        for wait in &analysis.waits {
            let record = &trace.records()[wait.record];
            let Some(rows) = rows(record) else { continue };
            let end = record.at + record.took;
            self.waited.fill(self.columns(end - wait.wait, end), rows);
        }
    }

    fn finish(self) -> Raster {
        Raster {
            brought: self.brought.finish(),
            read: self.read.finish(),
            waited: self.waited.finish(),
        }
    }
}

/// How many rectangles cover each cell, as differences to the cells on the left and below: a rectangle of any size
/// changes four of these.
struct Sketch {
    rows: usize,
    differences: Vec<i64>,
}

impl Sketch {
    const WIDTH: usize = COLUMNS + 1;

    fn new(rows: usize) -> Self {
        Sketch { rows, differences: vec![0; Self::WIDTH * (rows + 1)] }
    }

    /// Fills the cells from a column to another one and from a row to another one, these included.
    fn fill(&mut self, columns: (usize, usize), rows: (usize, usize)) {
        for (row, sign) in [(rows.0, 1), (rows.1 + 1, -1)] {
            self.differences[row * Self::WIDTH + columns.0] += sign;
            self.differences[row * Self::WIDTH + columns.1 + 1] -= sign;
        }
    }

    fn finish(self) -> Layer {
        let mut cells = Vec::with_capacity(COLUMNS * self.rows);
        let mut below = [0; Self::WIDTH];
        for differences in self.differences.chunks(Self::WIDTH).take(self.rows) {
            let mut covering = 0;
            for (column, difference) in differences.iter().enumerate() {
                below[column] += difference;
                covering += below[column];
                if column < COLUMNS {
                    cells.push(covering > 0);
                }
            }
        }
        Layer { columns: COLUMNS, rows: self.rows, cells }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_cell_is_covered_if_a_rectangle_covers_it(
            rectangles in prop::collection::vec((0..COLUMNS, 0..COLUMNS, 0..9usize, 0..9usize), 0..6)
        ) {
            let mut sketch = Sketch::new(9);
            let mut cells = vec![false; COLUMNS * 9];
            for (a, b, c, d) in rectangles {
                let (columns, rows) = ((a.min(b), a.max(b)), (c.min(d), c.max(d)));
                sketch.fill(columns, rows);
                for row in rows.0..=rows.1 {
                    cells[row * COLUMNS..][columns.0..=columns.1].fill(true);
                }
            }
            let layer = sketch.finish();
            let count: usize = layer.runs().iter().map(|(.., count)| count).sum();
            prop_assert_eq!(count, cells.iter().filter(|cell| **cell).count());
            prop_assert_eq!(&layer.cells, &cells);
        }
    }
}
