//! Traces as Python objects.

use std::path::PathBuf;

use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use readahead::Nanos;
use trace::{OpenError, Trace};

use crate::columns;

/// The reads of programs, what the kernel brought into its cache, and the requests of block devices, each in the order
/// of time. It never changes.
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

    /// The names of the block devices that completed requests, for example `sda`. Only a recorded trace has some.
    #[getter]
    fn devices(&self) -> Vec<&str> {
        self.0.devices().iter().map(String::as_str).collect()
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

    /// What a recorded trace tells about itself; `None` of a text.
    ///
    /// `bowwave`, `kernel` and `date` tell who recorded it, on what and when. `lost` and `left_out` are numbers of
    /// operations, `lost_pages` is one of pages of 4 KiB, and `lost_requests` one of requests: all of these are missing
    /// in the trace. `is_complete` is false if the recorder did not come to its end. `calls_per_record` tells how many
    /// calls at most are one operation.
    #[getter]
    fn origin<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(origin) = self.0.origin() else { return Ok(None) };
        let told = PyDict::new(py);
        told.set_item("bowwave", &origin.bowwave)?;
        told.set_item("kernel", &origin.kernel)?;
        told.set_item("date", &origin.date)?;
        told.set_item("lost", origin.lost)?;
        told.set_item("lost_pages", origin.lost_pages)?;
        told.set_item("lost_requests", origin.lost_requests)?;
        told.set_item("left_out", origin.left_out)?;
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
        columns::views(py, &columns::OPERATIONS, self.0.records())
    }

    /// The operations as a `pyarrow.Table`. Needs pyarrow.
    fn to_arrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("bowwave._arrow")?.call_method1("operations", (slf,))
    }

    /// What the kernel brought into its cache, as columns like those of `columns`. A row is a window: adjoining pages
    /// of a file that the kernel brought in at once.
    ///
    /// `time_ns` is when the first page entered the cache. `offset` and `bytes` are the window's place, in bytes;
    /// `asked_offset` and `asked_bytes` are the part of it for which the read or fault itself had asked (0 bytes if
    /// there is none). All are whole pages and have 64 bits. `process` is an index into `processes`, or -1 for a
    /// process that does nothing else in the trace; `file` is one into `files`, `reason` is one into `bowwave.REASONS`.
    ///
    /// Empty in a text, and in a trace that was recorded before Linux 6.18.
    fn windows<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        columns::views(py, &columns::WINDOWS, self.0.windows())
    }

    /// The windows as a `pyarrow.Table`; a `process` of -1 is null. Needs pyarrow.
    fn windows_to_arrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("bowwave._arrow")?.call_method1("windows", (slf,))
    }

    /// The requests that block devices completed, of any program, as columns like those of `columns`.
    ///
    /// `time_ns` is when the device's driver got the request, `took_ns` how long it took from then until it was
    /// complete; `bytes` is how much it read or wrote, 0 if it did neither. These have 64 bits. `device` is an index
    /// into `devices`, `op` is one into `bowwave.REQUEST_OPS`.
    ///
    /// Empty in a text, and in a recorded trace of format 1 or 2.
    fn requests<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        columns::views(py, &columns::REQUESTS, self.0.requests())
    }

    /// The requests as a `pyarrow.Table`. Needs pyarrow.
    fn requests_to_arrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("bowwave._arrow")?.call_method1("requests", (slf,))
    }
}
