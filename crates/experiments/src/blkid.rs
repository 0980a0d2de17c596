//! How much `blkid` reads of a tiny device, 2011.

use serde::Deserialize;
use sim::{Listed, Op};

use super::experiment::{Experiment, ExperimentError, figures};
use super::table::{Figure, Kind, Table, Verdict};

const NAME: &str = "blkid-2011";

#[cfg(any(test, fuzzing))]
pub(super) const PARSERS: super::parsers::Parsers =
    super::parsers::Parsers::of::<Workload, Fetched>();

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Workload {
    policy: String,
    /// Offset and bytes of each read.
    reads: Vec<(u64, u64)>,
    /// From the default window down to that for the device's size.
    windows_kb: Vec<u64>,
    /// With the smallest window, less than this is to be fetched; in thousands of bytes.
    most_kb: f64,
}

#[derive(Debug, Deserialize)]
struct Fetched {
    window_kb: u64,
    fetched_kb: f64,
}

pub(super) fn run(progress: &mut dyn FnMut(f64)) -> Result<Table, ExperimentError> {
    let text = include_str!("../../../experiments/blkid-2011.toml");
    let experiment: Experiment<Workload> = Experiment::parse(NAME, text)?;
    let text = include_str!("../../../experiments/blkid-2011.csv");
    let published: Vec<Fetched> = figures(NAME, text)?;
    let mut rows = Vec::new();
    for window_kb in &experiment.workload.windows_kb {
        let of_window = published.iter().find(|fetched| fetched.window_kb == *window_kb);
        let (fetched_kb, seconds) = look(&experiment, *window_kb)?;
        let figure = |what: &str, unit, published, simulated| Figure {
            row: format!("window of {window_kb} KiB: {what}"),
            policy: experiment.workload.policy.clone(),
            unit,
            published,
            simulated,
            kind: Kind::Prediction,
        };
        rows.push(figure("fetched", "kB", of_window.map(|f| f.fetched_kb), fetched_kb));
        rows.push(figure("time", "s", None, seconds));
        progress(rows.len() as f64 / (2 * experiment.workload.windows_kb.len()) as f64);
    }
    let smallest = rows.iter().rev().find(|figure| figure.unit == "kB");
    let least_kb = smallest.map_or(f64::NAN, |figure| figure.simulated);
    let most_kb = experiment.workload.most_kb;
    let first = rows.first().is_some_and(|figure| figure.error() == Some(0.0));
    let verdicts = vec![
        Verdict::new("with the default window what was posted is fetched", first),
        Verdict::new(
            format!("with the window for its size less than {most_kb:.0} kB ({least_kb:.0})"),
            least_kb * 1.024 < most_kb,
        ),
    ];
    Ok(Table { figures: rows, verdicts, ..experiment.table(NAME) })
}

/// KiB that the device delivers for the reads, and the seconds that they take.
fn look(experiment: &Experiment<Workload>, window_kb: u64) -> Result<(f64, f64), ExperimentError> {
    let mut spec = experiment.machine.clone();
    spec.readahead_kb = window_kb;
    let mut machine = spec.build(&experiment.workload.policy)?;
    let device = machine.add_file((experiment.machine.device_gb * 1e9) as u64);
    let open = machine.open(device);
    let reads = experiment.workload.reads.clone();
    let reads = reads.into_iter().map(move |(at, bytes)| Op::Read { open, at, bytes });
    let blkid = machine.spawn(0, Listed(reads));
    machine.run();
    let seconds = machine.outcome(blkid).ended as f64 * 1e-9;
    Ok((machine.device_counters().bytes as f64 / 1024.0, seconds))
}
