//! The native part of the Python package `bowwave`: reads traces and simulates them, as `bowwave replay` does.
//!
//! What Python can do as well (Arrow tables, sweeps) is in `python/bowwave`.

#![forbid(unsafe_code)]

mod columns;
mod simulate;
mod traces;

use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// What `bowwave/__init__.py` imports from.
#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::simulate::{check, memory_bytes, simulate};
    #[pymodule_export]
    use crate::traces::{PyTrace, read_trace};

    use super::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("EXAMPLE", trace::EXAMPLE)?;
        module.add("OPS", PyTuple::new(module.py(), columns::ops())?)?;
        module.add("REASONS", PyTuple::new(module.py(), columns::reasons())?)?;
        module.add("REQUEST_OPS", PyTuple::new(module.py(), columns::request_ops())?)?;
        module.add("CAUSE_COUNTS", PyTuple::new(module.py(), sim::replay::json::cause_counts())?)
    }
}
