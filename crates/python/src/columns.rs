//! The operations, windows and requests of a trace as columns of numbers.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use readahead::PAGE_BYTES;
use trace::{Reason, Record, Request, RequestOp, TraceOp, Window};

/// A name, and the cells below it.
pub(crate) type Column<Row> = (&'static str, Cells<Row>);

/// What a column has of each row.
pub(crate) enum Cells<Row> {
    /// Nanoseconds or bytes.
    Number(fn(&Row) -> u64),
    /// An index into names of the trace.
    Index(fn(&Row) -> u32),
    /// The same, or none, which is -1 as in pandas.
    IndexOrNone(fn(&Row) -> Option<u32>),
    /// An index into [`ops`], [`reasons`] or [`request_ops`].
    Kind(fn(&Row) -> u8),
}

/// Of operations. Times are in nanoseconds, `offset` and `bytes` in bytes.
pub(crate) const OPERATIONS: [Column<Record>; 7] = [
    ("time_ns", Cells::Number(|record| record.at)),
    ("took_ns", Cells::Number(|record| record.took)),
    ("process", Cells::Index(|record| record.process)),
    ("file", Cells::Index(|record| record.file)),
    ("op", Cells::Kind(|record| index(&TraceOp::ALL, record.op))),
    ("offset", Cells::Number(|record| record.offset)),
    ("bytes", Cells::Number(|record| record.bytes)),
];

/// Of windows. Times are in nanoseconds. Places are in bytes, as those of operations are, to compare both.
pub(crate) const WINDOWS: [Column<Window>; 8] = [
    ("time_ns", Cells::Number(|window| window.at)),
    ("process", Cells::IndexOrNone(|window| window.process)),
    ("file", Cells::Index(|window| window.file)),
    ("reason", Cells::Kind(|window| index(&Reason::ALL, window.reason))),
    ("offset", Cells::Number(|window| window.pages.start * PAGE_BYTES)),
    ("bytes", Cells::Number(|window| window.len() * PAGE_BYTES)),
    ("asked_offset", Cells::Number(|window| window.asked.start * PAGE_BYTES)),
    ("asked_bytes", Cells::Number(|window| (window.asked.end - window.asked.start) * PAGE_BYTES)),
];

/// Of requests. Times are in nanoseconds, `bytes` in bytes.
pub(crate) const REQUESTS: [Column<Request>; 5] = [
    ("time_ns", Cells::Number(|request| request.at)),
    ("took_ns", Cells::Number(|request| request.took)),
    ("device", Cells::Index(|request| request.device)),
    ("op", Cells::Kind(|request| index(&RequestOp::ALL, request.op))),
    ("bytes", Cells::Number(|request| request.bytes.into())),
];

/// A `memoryview` for each column, by its name.
pub(crate) fn views<'py, Row: Sync>(
    py: Python<'py>,
    columns: &[Column<Row>],
    rows: &[Row],
) -> PyResult<Bound<'py, PyDict>> {
    let views = PyDict::new(py);
    for (name, cells) in columns {
        let data = PyBytes::new_with(py, rows.len() * cells.width(), |into| {
            py.detach(|| cells.fill(rows, into));
            Ok(())
        })?;
        let view = py.import("builtins")?.call_method1("memoryview", (data,))?;
        views.set_item(name, view.call_method1("cast", (cells.format(),))?)?;
    }
    Ok(views)
}

impl<Row> Cells<Row> {
    /// Bytes of a cell.
    fn width(&self) -> usize {
        match self {
            Cells::Number(_) => 8,
            Cells::Index(_) | Cells::IndexOrNone(_) => 4,
            Cells::Kind(_) => 1,
        }
    }

    /// The type of a cell, as Python's `struct` names it.
    fn format(&self) -> &'static str {
        match self {
            Cells::Number(_) => "Q",
            Cells::Index(_) => "I",
            Cells::IndexOrNone(_) => "i",
            Cells::Kind(_) => "b",
        }
    }

    /// Writes all cells, in the machine's order.
    fn fill(&self, rows: &[Row], into: &mut [u8]) {
        match self {
            Cells::Number(of) => write(rows, into, |row| of(row).to_ne_bytes()),
            Cells::Index(of) => write(rows, into, |row| of(row).to_ne_bytes()),
            // A trace has 65,536 names at most.
            Cells::IndexOrNone(of) => {
                write(rows, into, |row| of(row).map_or(-1, |name| name as i32).to_ne_bytes());
            }
            Cells::Kind(of) => write(rows, into, |row| [of(row)]),
        }
    }
}

fn write<Row, const WIDTH: usize>(
    rows: &[Row],
    into: &mut [u8],
    cell: impl Fn(&Row) -> [u8; WIDTH],
) {
    for (row, place) in rows.iter().zip(into.chunks_exact_mut(WIDTH)) {
        place.copy_from_slice(&cell(row));
    }
}

/// The names of operations; a column has their indices.
pub(crate) fn ops() -> Vec<&'static str> {
    TraceOp::ALL.iter().map(|op| op.name()).collect()
}

/// The names of the reasons of windows, likewise.
pub(crate) fn reasons() -> Vec<&'static str> {
    Reason::ALL.iter().map(|reason| reason.name()).collect()
}

/// The names of what requests ask for, likewise.
pub(crate) fn request_ops() -> Vec<&'static str> {
    RequestOp::ALL.iter().map(|op| op.name()).collect()
}

/// Where it is among all of its kind.
fn index<Kind: PartialEq>(all: &[Kind], of: Kind) -> u8 {
    let index = all.iter().position(|known| *known == of);
    index.expect("all are in ALL") as u8
}
