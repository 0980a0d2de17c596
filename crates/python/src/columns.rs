//! The operations of a trace as columns of numbers.

use trace::{Record, Trace, TraceOp};

/// A column: `width` bytes for each operation, in the machine's order.
pub(crate) struct Column {
    pub(crate) name: &'static str,
    /// As Python's `struct` names the type.
    pub(crate) format: &'static str,
    pub(crate) width: usize,
    write: fn(&Record, &mut [u8]),
}

/// All columns. Times are in nanoseconds, `offset` and `bytes` in bytes.
pub(crate) const ALL: [Column; 7] = [
    Column::wide("time_ns", |record, into| into.copy_from_slice(&record.at.to_ne_bytes())),
    Column::wide("took_ns", |record, into| into.copy_from_slice(&record.took.to_ne_bytes())),
    Column::index("process", |record, into| into.copy_from_slice(&record.process.to_ne_bytes())),
    Column::index("file", |record, into| into.copy_from_slice(&record.file.to_ne_bytes())),
    Column { name: "op", format: "b", width: 1, write: |record, into| into[0] = op(record.op) },
    Column::wide("offset", |record, into| into.copy_from_slice(&record.offset.to_ne_bytes())),
    Column::wide("bytes", |record, into| into.copy_from_slice(&record.bytes.to_ne_bytes())),
];

impl Column {
    const fn wide(name: &'static str, write: fn(&Record, &mut [u8])) -> Column {
        Column { name, format: "Q", width: 8, write }
    }

    const fn index(name: &'static str, write: fn(&Record, &mut [u8])) -> Column {
        Column { name, format: "I", width: 4, write }
    }

    /// Writes the column.
    pub(crate) fn fill(&self, trace: &Trace, into: &mut [u8]) {
        for (record, place) in trace.records().iter().zip(into.chunks_exact_mut(self.width)) {
            (self.write)(record, place);
        }
    }
}

/// The names of operations; a column has their indices.
pub(crate) fn ops() -> Vec<&'static str> {
    TraceOp::ALL.iter().map(|op| op.name()).collect()
}

/// The index of an operation in [`ops`].
fn op(op: TraceOp) -> u8 {
    let index = TraceOp::ALL.iter().position(|known| *known == op);
    index.expect("all are in ALL") as u8
}
