//! `bowwave replay --json` for Python.

use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use sim::replay::{Pace, Setup, json, replay, values};

use crate::traces::PyTrace;

/// A size in bytes, or as users write it.
pub(crate) enum Size {
    Bytes(Whole),
    Text(String),
}

impl FromPyObject<'_, '_> for Size {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        if let Ok(text) = object.extract() {
            return Ok(Size::Text(text));
        }
        object.extract().map(Size::Bytes).map_err(|_| {
            let given = object.repr().map_or_else(|error| error.to_string(), |it| it.to_string());
            let message = format!("the memory is {given}; give bytes, or text such as \"1G\"");
            PyTypeError::new_err(message)
        })
    }
}

/// A whole number of Python; `None` for one below 0 or beyond 64 bits, which every limit refuses anyway.
pub(crate) struct Whole(Option<u64>);

impl FromPyObject<'_, '_> for Whole {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        match object.extract() {
            Ok(number) => Ok(Whole(Some(number))),
            Err(error) if error.is_instance_of::<PyOverflowError>(object.py()) => Ok(Whole(None)),
            Err(error) => Err(error),
        }
    }
}

/// Bytes of a page cache, given as a number or, for example, as `"1G"`. Raises `ValueError` beyond 1M to 64G.
#[pyfunction]
pub(crate) fn memory_bytes(memory: Size) -> PyResult<u64> {
    let bytes = match memory {
        Size::Bytes(Whole(bytes)) => values::memory_bytes(bytes.unwrap_or(0)),
        Size::Text(text) => values::memory(&text),
    };
    bytes.map_err(wrong)
}

/// Raises `ValueError` if a replay with these values is not possible.
#[pyfunction]
#[pyo3(signature = (policy, device, memory, *, elevator, readahead_kb, pace))]
pub(crate) fn check(
    policy: &str,
    device: &str,
    memory: Size,
    elevator: &str,
    readahead_kb: Whole,
    pace: &str,
) -> PyResult<()> {
    let setup = setup(device, memory, elevator, readahead_kb, pace)?;
    sim::replay::check(policy, &setup).map_err(wrong)
}

/// Replays a trace in the simulator. Gives the object that `bowwave replay --json` prints for this replay.
///
/// Raises `ValueError` if a value is wrong. Other threads of Python run meanwhile.
#[pyfunction]
#[pyo3(signature = (trace, policy="adaptive", device="hdd", memory=Size::Bytes(Whole(Some(1 << 30))), *,
    elevator="mq-deadline", readahead_kb=Whole(Some(128)), pace="trace", log=false))]
#[pyo3(
    text_signature = "(trace, policy='adaptive', device='hdd', memory='1G', *, elevator='mq-deadline', \
    readahead_kb=128, pace='trace', log=False)"
)]
// As many as bowwave replay has options.
#[allow(clippy::too_many_arguments)]
pub(crate) fn simulate<'py>(
    py: Python<'py>,
    trace: &Bound<'py, PyTrace>,
    policy: &str,
    device: &str,
    memory: Size,
    elevator: &str,
    readahead_kb: Whole,
    pace: &str,
    log: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let setup = Setup { keeps_log: log, ..setup(device, memory, elevator, readahead_kb, pace)? };
    let trace = &trace.get().0;
    let text = py.detach(|| {
        let replay = replay(trace, policy, &setup)?;
        let mut object = json::figures(&replay, &setup);
        if log {
            object["log"] = json::log(&replay, trace);
        }
        Ok(object.to_string())
    });
    let text = text.map_err(|error: sim::replay::ReplayError| wrong(error))?;
    py.import("json")?.call_method1("loads", (text,))
}

fn setup(
    device: &str,
    memory: Size,
    elevator: &str,
    readahead_kb: Whole,
    pace: &str,
) -> PyResult<Setup> {
    Ok(Setup {
        device: Some(device.to_owned()),
        memory_bytes: Some(memory_bytes(memory)?),
        elevator: Some(elevator.to_owned()),
        readahead_kb: Some(window(readahead_kb)?),
        pace: pace_of(pace)?,
        ..Setup::default()
    })
}

fn window(Whole(kib): Whole) -> PyResult<u64> {
    values::readahead_kb(kib.unwrap_or(u64::MAX)).map_err(wrong)
}

fn pace_of(name: &str) -> PyResult<Pace> {
    let known = [Pace::Trace, Pace::None];
    let found = known.into_iter().find(|pace| pace.name() == name);
    found.ok_or_else(|| wrong(format!("there is no pace {name:?}; write trace or none")))
}

fn wrong(error: impl ToString) -> PyErr {
    PyValueError::new_err(error.to_string())
}
