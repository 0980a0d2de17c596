//! Each rule that may be left out, left out in turn: the time without it over the time with all.

use readahead::adaptive::{Rule, Rules};
use sim::MachineSpec;

use super::workloads::{Workload, runs};
use super::{Parameters, time_under};
use crate::experiment::{Experiment, ExperimentError};
use crate::field;
use crate::side_by_side::side_by_side;
use crate::table::{Figure, Kind, Verdict};

/// A rule without which the geometric mean is so much higher earns its keep.
const WORTH_IN_THE_MEAN: f64 = 1.003;

/// So does one without which some cell takes so much longer.
const WORTH_IN_A_CELL: f64 = 1.08;

/// A cell's name, and its times with all rules and without each.
type Cell = (String, Vec<u64>);

/// What one rule is worth over some cells.
struct Worth {
    mean: f64,
    worst: f64,
    of: String,
}

pub(super) fn ablate(
    experiment: &Experiment<Parameters>,
    progress: &mut dyn FnMut(f64),
) -> Result<(Vec<Figure>, Verdict), ExperimentError> {
    let without = Rule::ALL.map(|(rule, _)| Rules { without: Some(rule), ..Rules::default() });
    let all: Vec<Rules> = std::iter::once(Rules::default()).chain(without).collect();
    let field = field::times_with_rules(&all, &mut |share| progress(share / 2.0))?;
    let runs = cells_of_runs(experiment, &all, &mut |share| progress((1.0 + share) / 2.0))?;
    let (mut figures, mut described, mut holds) = (Vec::new(), Vec::new(), true);
    for (column, (_, name)) in (1..).zip(Rule::ALL) {
        let mut is_worth_it = false;
        for (cells, of) in [(&field, "field"), (&runs, "runs")] {
            let worth = worth(cells, column);
            is_worth_it |= worth.mean > WORTH_IN_THE_MEAN || worth.worst > WORTH_IN_A_CELL;
            figures.push(figure(format!("without {name}: mean of {of}"), worth.mean));
            figures.push(figure(format!("without {name}: worst of {of}"), worth.worst));
            described.push(format!(
                "{name}, {of} {:.4} and {:.2} ({})",
                worth.mean, worth.worst, worth.of
            ));
        }
        holds &= is_worth_it;
    }
    let claim = format!(
        "each rule is worth its keep: without it the mean is 0.3 % higher, or a cell 8 %. The mean and the worst cell without: {}",
        described.join("; ")
    );
    Ok((figures, Verdict::new(claim, holds)))
}

/// The runs on which windows are compared; memory bounds what is ahead.
fn cells_of_runs(
    experiment: &Experiment<Parameters>,
    all: &[Rules],
    progress: &mut dyn FnMut(f64),
) -> Result<Vec<Cell>, ExperimentError> {
    let parameters = &experiment.workload;
    let workloads = runs(parameters.total_mb << 20);
    let mut places: Vec<(String, MachineSpec, &Workload)> = Vec::new();
    for workload in &workloads {
        for (device, queue) in &parameters.devices {
            for (size, memory_mb) in &parameters.memory_mb {
                let spec = queue.machine(&experiment.machine, device, *memory_mb);
                places.push((format!("{} {device} {size}", workload.name), spec, workload));
            }
        }
    }
    let cell = |(name, spec, workload): &(String, MachineSpec, &Workload)| {
        let times = all.iter().map(|rules| time_under(spec, parameters, workload, *rules));
        Ok((name.clone(), times.collect::<Result<_, ExperimentError>>()?))
    };
    side_by_side(&places, cell, progress)
}

fn worth(cells: &[Cell], column: usize) -> Worth {
    let mut worth = Worth { mean: 0.0, worst: 0.0, of: String::new() };
    for (name, times) in cells {
        let ratio = times[column] as f64 / times[0] as f64;
        worth.mean += ratio.ln() / cells.len() as f64;
        if ratio > worth.worst {
            worth.worst = ratio;
            worth.of.clone_from(name);
        }
    }
    Worth { mean: worth.mean.exp(), ..worth }
}

fn figure(row: String, simulated: f64) -> Figure {
    Figure {
        row,
        policy: "a".to_owned(),
        unit: "x shipped",
        published: None,
        simulated,
        kind: Kind::Prediction,
    }
}
