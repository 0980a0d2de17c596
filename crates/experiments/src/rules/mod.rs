//! Compares the rules of bowwave's policy with alternatives and with none, for different runs, devices and memories.

mod ablation;
mod candidates;
mod workloads;

use std::collections::{BTreeMap, BTreeSet};

use candidates::{COLUMNS, Contest};
use readahead::adaptive::{Limits, Rules};
use readahead::{Adaptive, Hint};
use serde::Deserialize;
use sim::{Bowwave, Listed, Machine, MachineError, MachineSpec, OnTop, Op};
use workloads::Workload;

use super::experiment::{Experiment, ExperimentError};
use super::field::Queue;
use super::table::{Figure, Kind, Table, Verdict, geometric_mean, median};

const NAME: &str = "rules";

#[cfg(any(test, fuzzing))]
pub(super) const PARSERS: super::parsers::Parsers = super::parsers::Parsers::of::<Parameters, ()>();

/// The kernel's policy below.
const KERNEL: &str = "linux-6";

/// A mean counts as equal if it exceeds the least by at most this share, which may be chance in the choice of
/// workloads.
const CLOSE: f64 = 0.01;

/// A time counts as equal to the best if it is longer by at most this share.
const TOLERANCE: f64 = 0.03;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    /// Megabytes that a workload reads, approximately.
    total_mb: u64,
    /// Memory by name, in MB.
    memory_mb: BTreeMap<String, f64>,
    /// One plan may request one part in this many of memory.
    plan_share: u64,
    /// The queue of each device.
    devices: BTreeMap<String, Queue>,
}

/// One cell: the times under each candidate, divided by the least of them.
struct Cell {
    name: String,
    times: Vec<f64>,
}

pub(super) fn run(progress: &mut dyn FnMut(f64)) -> Result<Table, ExperimentError> {
    table(&experiment()?, progress)
}

fn experiment() -> Result<Experiment<Parameters>, ExperimentError> {
    Experiment::parse(NAME, include_str!("../../../../experiments/rules.toml"))
}

fn table(
    experiment: &Experiment<Parameters>,
    progress: &mut dyn FnMut(f64),
) -> Result<Table, ExperimentError> {
    let contests = candidates::all();
    let (mut figures, mut verdicts) = (Vec::new(), Vec::new());
    for (index, contest) in contests.iter().enumerate() {
        let mut report = |share| progress((index as f64 + share) / (contests.len() + 1) as f64);
        let cells = cells(experiment, contest, &mut report)?;
        for cell in &cells {
            figures.extend(row(&cell.name, cell.times.iter().copied()));
        }
        let medians = (0..contest.candidates.len()).map(|column| median_of(&cells, column));
        figures.extend(row(&format!("{}: median where they differ", contest.rule), medians));
        verdicts.push(judge(contest, &cells));
    }
    let contests = contests.len() as f64;
    let (rows, verdict) =
        ablation::ablate(experiment, &mut |share| progress((contests + share) / (contests + 1.0)))?;
    figures.extend(rows);
    verdicts.push(verdict);
    Ok(Table { figures, verdicts, ..experiment.table(NAME) })
}

fn cells(
    experiment: &Experiment<Parameters>,
    contest: &Contest,
    progress: &mut dyn FnMut(f64),
) -> Result<Vec<Cell>, ExperimentError> {
    let parameters = &experiment.workload;
    let workloads = (contest.workloads)(parameters.total_mb << 20);
    let all = workloads.len() * parameters.devices.len() * parameters.memory_mb.len();
    let mut cells = Vec::new();
    for workload in &workloads {
        for (device, queue) in &parameters.devices {
            for (size, memory_mb) in &parameters.memory_mb {
                let spec = queue.machine(&experiment.machine, device, *memory_mb);
                let mut times = Vec::new();
                for (_, rules) in &contest.candidates {
                    times.push(time_under(&spec, parameters, workload, *rules)? as f64);
                }
                let least = times.iter().copied().fold(f64::INFINITY, f64::min);
                times.iter_mut().for_each(|time| *time /= least);
                let name = format!("{}: {} {device} {size}", contest.rule, workload.name);
                cells.push(Cell { name, times });
                progress(cells.len() as f64 / all as f64);
            }
        }
    }
    Ok(cells)
}

/// Nanoseconds until the last reader ends.
fn time_under(
    spec: &MachineSpec,
    parameters: &Parameters,
    workload: &Workload,
    rules: Rules,
) -> Result<u64, ExperimentError> {
    let memory = (spec.memory_mb * 1e6) as u64;
    let limits = Limits {
        ahead_bytes: u64::MAX,
        plan_bytes: memory / parameters.plan_share,
        region_bytes: memory / parameters.plan_share,
        ..Limits::default()
    };
    let kernel = historical::by_name(KERNEL, limits.files)
        .ok_or_else(|| MachineError::Policy(KERNEL.to_owned()))?;
    let policy = Box::new(Adaptive::with_rules(limits, rules));
    let bowwave = OnTop::Bowwave(Bowwave::new(policy, u64::MAX));
    let mut machine = Machine::new(spec.parts_with(kernel, Some(bowwave))?);
    let mut opens = Vec::new();
    for bytes in &workload.files {
        let file = machine.add_file(*bytes);
        opens.push(machine.open(file));
    }
    let mut processes = Vec::new();
    for reads in &workload.readers {
        let (opens, compute) = (opens.clone(), workload.compute);
        let files: BTreeSet<usize> = reads.iter().map(|(file, _)| *file).collect();
        let advice = workload.advice;
        let announced: Vec<Op> = match advice {
            Hint::Normal => Vec::new(),
            _ => files.into_iter().map(|file| Op::Advise { open: opens[file], advice }).collect(),
        };
        let ops = reads.clone().into_iter().flat_map(move |(file, (at, bytes))| {
            let read = Op::Read { open: opens[file], at, bytes };
            [Some(read), (compute > 0).then_some(Op::Compute { ns: compute })]
        });
        processes.push(machine.spawn(0, Listed(announced.into_iter().chain(ops.flatten()))));
    }
    machine.run();
    Ok(processes.into_iter().map(|process| machine.outcome(process).ended).max().unwrap_or(0))
}

fn row(name: &str, times: impl Iterator<Item = f64>) -> Vec<Figure> {
    let figure = |(column, simulated): (&&str, f64)| Figure {
        row: name.to_owned(),
        policy: (*column).to_owned(),
        unit: "x best",
        published: None,
        simulated,
        kind: Kind::Prediction,
    };
    COLUMNS.iter().zip(times).map(figure).collect()
}

/// Whether the rules differ in the cell.
fn is_open(cell: &&Cell) -> bool {
    cell.times.iter().any(|time| *time > 1.0 + TOLERANCE)
}

/// The median of the cells in which the rules differ.
fn median_of(cells: &[Cell], column: usize) -> f64 {
    median(cells.iter().filter(is_open).map(|cell| cell.times[column]))
}

/// Judges whether the shipped rule has the least mean over all cells, or nearly.
fn judge(contest: &Contest, cells: &[Cell]) -> Verdict {
    let describe = |(column, (name, _)): (usize, &(&str, Rules))| {
        let times = || cells.iter().map(|cell| cell.times[column]);
        let near = times().filter(|time| *time <= 1.0 + TOLERANCE).count();
        let worst = times().fold(1.0, f64::max);
        let (median, mean) = (median_of(cells, column), mean_of(cells, column));
        format!("{name} {near} (median {median:.3}, mean {mean:.3}, worst {worst:.2})")
    };
    let all: Vec<String> = contest.candidates.iter().enumerate().map(describe).collect();
    let claim = format!(
        "{}: the shipped rule has the least mean or one within 1 % of it. Best or within 3 % of the best in so many of {} cells \
         (median where they differ, {} cells): {}",
        contest.rule,
        cells.len(),
        cells.iter().filter(is_open).count(),
        all.join("; ")
    );
    let least = (0..contest.candidates.len()).map(|column| mean_of(cells, column));
    Verdict::new(claim, mean_of(cells, 0) <= (1.0 + CLOSE) * least.fold(f64::INFINITY, f64::min))
}

/// The geometric mean.
fn mean_of(cells: &[Cell], column: usize) -> f64 {
    geometric_mean(cells.iter().map(|cell| cell.times[column]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_contest_has_cells_that_tell_its_rules_apart() {
        let mut experiment = experiment().expect("it is valid");
        let parameters = &mut experiment.workload;
        parameters.total_mb = 2;
        parameters.memory_mb = BTreeMap::from([("ample".into(), 256.0)]);
        parameters.devices.retain(|device, _| device == "hdd");
        for contest in candidates::all() {
            let cells = cells(&experiment, &contest, &mut |_| ()).expect("it runs");
            let tells = cells.iter().any(|cell| is_open(&cell));
            assert!(tells, "{}: no rule makes a difference", contest.rule);
        }
    }
}
