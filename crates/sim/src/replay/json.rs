//! A replay as JSON, as `bowwave replay --json` and the Python package give it.

use serde_json::{Map, Value, json};
use trace::Trace;

use super::{Process, Replay, Setup};
use crate::Row;

/// The figures of a replay, with the machine of `setup`. Times are in seconds, and pages have 4 KiB.
pub fn figures(replay: &Replay, setup: &Setup) -> Value {
    let causes = replay.matrix.rows().map(|(cause, counts)| row(cause.name(), *counts));
    json!({
        "policy": replay.policy,
        "device": setup.device,
        "elevator": setup.elevator,
        "memory_bytes": setup.memory_bytes,
        "pace": setup.pace.name(),
        "readahead_kb": replay.readahead_kb,
        "seconds": replay.seconds,
        "stalled_s": replay.stalled_s(),
        "mb_per_s": replay.mb_per_s(),
        "pages_needed": replay.pages_needed,
        "pages_read": replay.pages_read,
        "pages_read_again": replay.read_again,
        "pages_refaulted": replay.refaulted,
        "pages_read_alone": replay.matrix.alone,
        "decisions": replay.matrix.total().requests,
        "causes": causes.collect::<Vec<_>>(),
        "processes": replay.processes.iter().map(process).collect::<Vec<_>>(),
    })
}

/// The log of a replay's decisions: places and lengths in pages.
pub fn log(replay: &Replay, trace: &Trace) -> Value {
    let decisions = replay.log.iter().map(|d| {
        let file = &trace.files()[d.file as usize].name;
        json!({ "file": file, "start": d.start, "asked": d.asked, "read": d.read, "cause": d.cause.name() })
    });
    decisions.collect()
}

/// The names of the counts of each cause, as [`figures`] has them.
pub fn cause_counts() -> Vec<String> {
    Row::default().columns().iter().map(|(name, _)| key(name)).collect()
}

fn key(column: &str) -> String {
    column.replace([' ', '-'], "_")
}

fn row(cause: &str, counts: Row) -> Value {
    let mut object = Map::from_iter([("cause".to_owned(), cause.into())]);
    object.extend(counts.columns().map(|(name, count)| (key(name), count.into())));
    Value::Object(object)
}

fn process(process: &Process) -> Value {
    json!({ "process": process.name, "ended_s": process.ended_s, "stalled_s": process.stalled_s })
}
