//! Six processes that read a kernel tree each: `find | xargs cat`.

use serde::Deserialize;
use sim::scripts::{Tree, TreeSpec, Walk};

use super::super::experiment::{Experiment, ExperimentError};
use super::super::table::{Figure, Kind};
use super::{NAME, Workload, machine};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Walks {
    processes: u64,
    readahead_kb: u64,
    tree: TreeSpec,
    /// Distance between the beginnings of two trees.
    apart_mb: u64,
    /// Processor time to find and open a file, in microseconds.
    file_us: f64,
    /// The elevators whose seconds the layout was fitted to.
    fitted: Vec<String>,
}

/// A published row.
#[derive(Debug, Deserialize)]
struct Record {
    elevator: String,
    seconds: f64,
}

pub(super) fn figures_of(
    experiment: &Experiment<Workload>,
) -> Result<Vec<Figure>, ExperimentError> {
    let text = include_str!("../../../../experiments/tree-walks-2003.csv");
    let records: Vec<Record> = super::super::experiment::figures(NAME, text)?;
    let fitted = &experiment.workload.walks.fitted;
    let figure = |record: Record| {
        let simulated = seconds(experiment, &record.elevator)?;
        let kind =
            if fitted.contains(&record.elevator) { Kind::Calibrated } else { Kind::Prediction };
        Ok(Figure {
            row: "six walks over kernel trees".to_owned(),
            policy: record.elevator,
            unit: "s",
            published: Some(record.seconds),
            simulated,
            kind,
        })
    };
    records.into_iter().map(figure).collect()
}

/// Seconds until all walks have ended.
fn seconds(experiment: &Experiment<Workload>, elevator: &str) -> Result<f64, ExperimentError> {
    let walks = &experiment.workload.walks;
    let mut machine = machine(experiment, walks.readahead_kb, elevator)?;
    for number in 0..walks.processes {
        let tree = Tree::add(&mut machine, &walks.tree, number, number * (walks.apart_mb << 20));
        let walk = Walk::new(&mut machine, &[&tree], 0.0, (walks.file_us * 1e3) as u64);
        machine.spawn(0, walk);
    }
    machine.run();
    let ended = (0..walks.processes).map(|number| machine.outcome(number as usize).ended);
    Ok(ended.max().unwrap_or(0) as f64 * 1e-9)
}
