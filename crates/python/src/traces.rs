//! Traces as Python objects.

use std::path::PathBuf;

use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use readahead::Nanos;
use trace::{OpenError, Trace};

use crate::columns;

/// The reads of programs, in the order of time. It never changes.
#[pyclass(name = "Trace", module = "bowwave", frozen)]
pub(crate) struct PyTrace(pub(crate) Trace);

/// Reads a trace: text (docs/trace.md), or what `bowwave record` has written.
///
/// Raises `OSError` if the file cannot be read, and `ValueError` if it is no trace.
#[pyfunction]
pub(crate) fn read_trace(py: Python<'_>, path: PathBuf) -> PyResult<PyTrace> {
    let opened = py.detach(|| trace::open(&path));
    opened.map(PyTrace).map_err(|error| match &error {
        // With a number, Python makes it a FileNotFoundError or PermissionError.
        OpenError::Io { cause, .. } => match cause.raw_os_error() {
            Some(number) => PyOSError::new_err((number, error.to_string())),
            None => PyOSError::new_err(error.to_string()),
        },
        OpenError::Trace { .. } => PyValueError::new_err(error.to_string()),
    })
}

#[pymethods]
impl PyTrace {
    /// Reads a trace from what a file holds. Raises `ValueError` if it is no trace.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, data: &[u8]) -> PyResult<PyTrace> {
        let read = py.detach(|| trace::read(data));
        read.map(PyTrace).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// The names of the processes, in the order they appear.
    #[getter]
    fn processes(&self) -> Vec<&str> {
        self.0.processes().iter().map(String::as_str).collect()
    }

    /// Name and bytes of each file, in the order they are named.
    #[getter]
    fn files(&self) -> Vec<(&str, u64)> {
        self.0.files().iter().map(|file| (file.name.as_str(), file.bytes)).collect()
    }

    /// Seconds from the start of the first operation to the end of the last.
    #[getter]
    fn duration_s(&self) -> f64 {
        let records = self.0.records();
        let start = records.first().map_or(0, |record| record.at);
        let end: Nanos = records.iter().map(|record| record.at + record.took).max().unwrap_or(0);
        (end - start) as f64 * 1e-9
    }

    /// Pages of 4 KiB that are read, each counted once.
    #[getter]
    fn pages_needed(&self, py: Python<'_>) -> u64 {
        py.detach(|| self.0.pages_needed())
    }

    /// What a user of the trace should know, one sentence each: losses, reads beyond the end of a file.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.0.notes()
    }

    /// What a recorded trace tells about itself: `bowwave`, `kernel`, `date`, `lost`, `is_complete` and
    /// `calls_per_record`. `None` of a text.
    #[getter]
    fn origin<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(origin) = self.0.origin() else { return Ok(None) };
        let told = PyDict::new(py);
        told.set_item("bowwave", &origin.bowwave)?;
        told.set_item("kernel", &origin.kernel)?;
        told.set_item("date", &origin.date)?;
        told.set_item("lost", origin.lost)?;
        told.set_item("is_complete", origin.is_complete)?;
        told.set_item("calls_per_record", origin.calls_per_record)?;
        Ok(Some(told))
    }

    /// How many operations there are.
    fn __len__(&self) -> usize {
        self.0.records().len()
    }

    fn __repr__(&self) -> String {
        format!(
            "<bowwave.Trace: {} operations of {} processes on {} files>",
            self.0.records().len(),
            self.0.processes().len(),
            self.0.files().len()
        )
    }

    /// The operations as columns: a `memoryview` for each, which NumPy takes without a copy (`numpy.asarray`).
    ///
    /// `time_ns`, `took_ns`, `offset` and `bytes` have 64 bits; `process` and `file` are indices into `processes` and
    /// `files`, `op` is one into `bowwave.OPS`.
    fn columns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let columns = PyDict::new(py);
        for column in columns::ALL {
            let bytes = self.0.records().len() * column.width;
            let data = PyBytes::new_with(py, bytes, |into| {
                py.detach(|| column.fill(&self.0, into));
                Ok(())
            })?;
            let view = py.import("builtins")?.call_method1("memoryview", (data,))?;
            columns.set_item(column.name, view.call_method1("cast", (column.format,))?)?;
        }
        Ok(columns)
    }

    /// The operations as a `pyarrow.Table`. Needs pyarrow.
    fn to_arrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("bowwave._arrow")?.call_method1("table", (slf,))
    }
}
