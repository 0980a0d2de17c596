//! Advice for programs.

use std::path::Path;

use advice::{Advice, Load, Prediction, Range, Remedy};
use serde_json::{Value, json};

use super::ground::Ground;
use super::steps::Steps;
use super::text::notes;

/// The version of this object's form.
const SCHEMA: u64 = 1;

pub(super) fn object(path: &Path, load: &Load, ground: &Ground, advice: &Advice) -> Value {
    let remedies = advice.predictions.iter().map(|prediction| remedy(prediction, ground));
    json!({
        "schema": SCHEMA,
        "trace": path.display().to_string(),
        "operations": load.trace.records().len(),
        "processes": load.trace.processes().len(),
        "files": load.trace.files().len(),
        "device": ground.device.name,
        "device_is_measured": ground.device.is_measured,
        "device_error": load.device_error,
        "memory_bytes": load.memory_bytes,
        "readahead_kb": load.readahead_kb,
        "needed_bytes": advice.needed_bytes,
        "cached_bytes": advice.cached_bytes,
        "busy_s": advice.busy_s,
        "traced_s": advice.traced_s,
        "worlds": advice.worlds,
        "remedies": remedies.collect::<Vec<_>>(),
        "notes": notes(load, ground, advice),
    })
}

fn remedy(prediction: &Prediction, ground: &Ground) -> Value {
    let (name, readahead_kb, processes) = match &prediction.remedy {
        Remedy::Leave => ("leave", None, None),
        Remedy::Window { kib } => ("window", Some(kib), None),
        Remedy::Bowwave => ("bowwave", None, None),
        Remedy::DropBehind { processes } => ("drop-behind", None, Some(processes)),
        Remedy::Remember => ("remember", None, None),
    };
    let steps = Steps::of(&prediction.remedy, ground);
    let commands = |steps: &[(String, &str)]| -> Vec<String> {
        let named = steps.iter().map(|(command, _)| command.clone());
        named.filter(|command| !command.is_empty()).collect()
    };
    json!({
        "remedy": name,
        "readahead_kb": readahead_kb,
        "processes": processes,
        "seconds": range(prediction.seconds),
        "saved_s": range(prediction.saved),
        "waited_s": prediction.waited_s,
        "ends_s": prediction.ends_s,
        "read_bytes": prediction.read_bytes,
        "unused_bytes": prediction.unused_bytes,
        "apply": commands(&steps.apply),
        "undo": commands(&steps.undo),
    })
}

fn range(range: Range) -> Value {
    json!({ "least": range.least, "expected": range.expected, "most": range.most })
}
