//! Leaves out one rule after the other: the time without it, divided by the time with all rules.

use readahead::adaptive::{Rule, Rules};
use sim::MachineSpec;

use super::workloads::{Workload, announced, headers, long_requests, runs};
use super::{Parameters, time_under};
use crate::experiment::{Experiment, ExperimentError};
use crate::side_by_side::side_by_side;
use crate::table::{Figure, Kind, Verdict};
use crate::{demo, field};

/// A rule is worth keeping if, without it, the geometric mean of the times is so many times as high.
const WORTH_IN_THE_MEAN: f64 = 1.01;

/// It is also worth keeping if, without it, the time of one cell is so many times as long.
const WORTH_IN_A_CELL: f64 = 1.05;

/// A cell's name, and its costs: with all rules, then without each one.
type Costs = (String, Vec<f64>);

/// What one rule is worth in some cells.
struct Worth {
    mean: f64,
    worst: f64,
    worst_cell: String,
}

pub(super) fn ablate(
    experiment: &Experiment<Parameters>,
    progress: &mut dyn FnMut(f64),
) -> Result<(Vec<Figure>, Verdict), ExperimentError> {
    let without = Rule::ALL.map(|(rule, _)| Rules { without: Some(rule), ..Rules::default() });
    let all: Vec<Rules> = std::iter::once(Rules::default()).chain(without).collect();
    let total = experiment.workload.total_mb << 20;
    let groups = [
        ("field", field::costs_with_rules(&all, &mut |share| progress(share / 2.0))?),
        ("demo", demo::costs_with_rules(&all, &mut |share| progress(0.5 + share / 4.0))?),
        ("runs", costs_of(experiment, &runs(total), &all)?),
        (
            "requests",
            costs_of(experiment, &[long_requests(), headers(), announced()].concat(), &all)?,
        ),
    ];
    progress(1.0);
    let (mut figures, mut described, mut not_worth_it) = (Vec::new(), Vec::new(), Vec::new());
    for (column, (_, name)) in (1..).zip(Rule::ALL) {
        let mut is_worth_it = false;
        for (group, cells) in &groups {
            let worth = worth(cells, column);
            is_worth_it |= worth.mean > WORTH_IN_THE_MEAN || worth.worst > WORTH_IN_A_CELL;
            figures.push(figure(format!("without {name}: mean of {group}"), worth.mean));
            figures.push(figure(format!("without {name}: worst of {group}"), worth.worst));
            described.push(format!(
                "{name}, {group} {:.4} and {:.2} ({})",
                worth.mean, worth.worst, worth.worst_cell
            ));
        }
        if !is_worth_it {
            not_worth_it.push(name);
        }
    }
    let exceptions = match &not_worth_it[..] {
        [] => String::new(),
        names => format!("; not so: {}", names.join(", ")),
    };
    let claim = format!(
        "each rule is worth keeping: without it a mean is 1 % higher, or a cell 5 %{exceptions}. The mean and the worst cell without: {}",
        described.join("; ")
    );
    Ok((figures, Verdict::new(claim, not_worth_it.is_empty())))
}

/// The costs of these workloads on each device with each size of memory.
fn costs_of(
    experiment: &Experiment<Parameters>,
    workloads: &[Workload],
    all: &[Rules],
) -> Result<Vec<Costs>, ExperimentError> {
    let parameters = &experiment.workload;
    let mut places: Vec<(String, MachineSpec, &Workload)> = Vec::new();
    for workload in workloads {
        for (device, queue) in &parameters.devices {
            for (size, memory_mb) in &parameters.memory_mb {
                let spec = queue.machine(&experiment.machine, device, *memory_mb);
                places.push((format!("{} {device} {size}", workload.name), spec, workload));
            }
        }
    }
    let cell = |(name, spec, workload): &(String, MachineSpec, &Workload)| {
        let time = |rules: &Rules| Ok(time_under(spec, parameters, workload, *rules)? as f64);
        Ok((name.clone(), all.iter().map(time).collect::<Result<_, ExperimentError>>()?))
    };
    side_by_side(&places, cell, &mut |_| ())
}

fn worth(cells: &[Costs], column: usize) -> Worth {
    let mut worth = Worth { mean: 0.0, worst: 0.0, worst_cell: String::new() };
    for (name, costs) in cells {
        let ratio = costs[column] / costs[0];
        worth.mean += ratio.ln() / cells.len() as f64;
        if ratio > worth.worst {
            worth.worst = ratio;
            worth.worst_cell.clone_from(name);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_rule_is_worth_is_a_mean_and_the_worst_cell() {
        let cells = [("a".to_owned(), vec![2.0, 4.0]), ("b".to_owned(), vec![4.0, 2.0])];
        let Worth { mean, worst, worst_cell } = worth(&cells, 1);
        assert!((mean - 1.0).abs() < 1e-12, "{mean}");
        assert_eq!((worst, worst_cell.as_str()), (2.0, "a"));
    }
}
