//! The field: every pattern on every device, with three sizes of memory, under every policy. Times are multiples of
//! those of a policy that knows the trace.

mod anywhere;
mod cell;
mod patterns;

use std::collections::BTreeMap;

use cell::{oracle_time, time_under, time_with_rules, worst_time};
use patterns::Pattern;
use readahead::adaptive::Rules;
use serde::Deserialize;
use sim::MachineSpec;

use super::experiment::{Experiment, ExperimentError};
use super::side_by_side::side_by_side;
use super::table::{Figure, Kind, Table, Verdict, median};

const NAME: &str = "field";

#[cfg(any(test, fuzzing))]
pub(super) const PARSERS: super::parsers::Parsers = super::parsers::Parsers::of::<Workload, ()>();

/// The column of bowwave's policy.
const OURS: &str = "adaptive";

/// The column of today's kernel at its best static window.
const BEST_STATIC: &str = "linux-6 best";

/// The column of the most harmful policy.
const WORST: &str = "worst";

/// A time counts as equal if it is longer by at most this share.
const TOLERANCE: f64 = 0.03;

/// Most failing cells that a verdict names.
const NAMED: usize = 8;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Workload {
    /// Size of most files.
    file_mb: u64,
    /// The queue of each device.
    devices: BTreeMap<String, Queue>,
    /// The columns.
    columns: Vec<String>,
    /// Memory by name, in MB.
    memory_mb: BTreeMap<String, f64>,
    /// Static windows of today's kernel in KiB; each cell takes the best.
    static_kb: Vec<u64>,
}

/// How requests reach a device.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Queue {
    elevator: String,
    depth: usize,
}

impl Queue {
    /// The machine with that device behind this queue, and `memory_mb` of memory.
    pub(super) fn machine(&self, base: &MachineSpec, device: &str, memory_mb: f64) -> MachineSpec {
        MachineSpec {
            device: device.to_owned(),
            elevator: self.elevator.clone(),
            device_depth: self.depth,
            memory_mb,
            ..base.clone()
        }
    }
}

/// The times of one cell divided by the oracle's, by column.
struct Cell {
    name: String,
    times: Vec<(String, f64)>,
}

impl Cell {
    fn of(&self, column: &str) -> f64 {
        let time = self.times.iter().find(|(name, _)| name == column);
        time.map_or(f64::NAN, |(_, time)| *time)
    }

    /// Column and time of the fastest policy other than bowwave's.
    fn best_other(&self) -> (&str, f64) {
        let others = self.times.iter().filter(|(name, _)| name != OURS && name != BEST_STATIC);
        let best = others.min_by(|a, b| a.1.total_cmp(&b.1));
        best.map_or(("", f64::NAN), |(name, time)| (name, *time))
    }
}

pub(super) fn run(progress: &mut dyn FnMut(f64)) -> Result<Table, ExperimentError> {
    table(&experiment()?, progress)
}

fn experiment() -> Result<Experiment<Workload>, ExperimentError> {
    Experiment::parse(NAME, include_str!("../../../../experiments/field.toml"))
}

fn table(
    experiment: &Experiment<Workload>,
    progress: &mut dyn FnMut(f64),
) -> Result<Table, ExperimentError> {
    let workload = &experiment.workload;
    let patterns = patterns::all(workload.file_mb << 20);
    let places = places(experiment, &patterns);
    let cell = |(name, spec, pattern): &Place<'_>| {
        times(workload, spec, pattern).map(|times| Cell { name: name.clone(), times })
    };
    let cells = side_by_side(&places, cell, progress)?;
    Ok(Table { figures: figures(&cells), verdicts: judge(&cells), ..experiment.table(NAME) })
}

/// A cell's name, machine and pattern.
type Place<'a> = (String, MachineSpec, &'a Pattern);

fn places<'a>(experiment: &Experiment<Workload>, patterns: &'a [Pattern]) -> Vec<Place<'a>> {
    let workload = &experiment.workload;
    let mut places = Vec::new();
    for pattern in patterns {
        for (device, queue) in &workload.devices {
            for (size, memory_mb) in &workload.memory_mb {
                let spec = queue.machine(&experiment.machine, device, *memory_mb);
                places.push((format!("{} {device} {size}", pattern.name), spec, pattern));
            }
        }
    }
    places
}

/// Each cell's name, and its times under `adaptive` with each of these rules, in nanoseconds.
pub(super) fn costs_with_rules(
    all: &[Rules],
    progress: &mut dyn FnMut(f64),
) -> Result<Vec<(String, Vec<f64>)>, ExperimentError> {
    let experiment = experiment()?;
    let patterns = patterns::all(experiment.workload.file_mb << 20);
    let cell = |(name, spec, pattern): &Place<'_>| {
        let time = |rules: &Rules| Ok(time_with_rules(spec, pattern, *rules)? as f64);
        Ok((name.clone(), all.iter().map(time).collect::<Result<_, ExperimentError>>()?))
    };
    side_by_side(&places(&experiment, &patterns), cell, progress)
}

fn times(
    workload: &Workload,
    spec: &MachineSpec,
    pattern: &Pattern,
) -> Result<Vec<(String, f64)>, ExperimentError> {
    let oracle = oracle_time(spec, pattern)? as f64;
    let mut times = Vec::new();
    for column in &workload.columns {
        times.push((column.clone(), time_under(spec, pattern, column)? as f64 / oracle));
    }
    let mut best = f64::INFINITY;
    for window in &workload.static_kb {
        let spec = MachineSpec { readahead_kb: *window, ..spec.clone() };
        best = best.min(time_under(&spec, pattern, "linux-6")? as f64 / oracle);
    }
    times.push((BEST_STATIC.to_owned(), best));
    times.push((WORST.to_owned(), worst_time(spec, pattern)? as f64 / oracle));
    Ok(times)
}

/// A row for each cell, and the medians.
fn figures(cells: &[Cell]) -> Vec<Figure> {
    let figure = |row: &str, policy: &str, simulated: f64| Figure {
        row: row.to_owned(),
        policy: policy.to_owned(),
        unit: "x oracle",
        published: None,
        simulated,
        kind: Kind::Prediction,
    };
    let mut figures = Vec::new();
    for cell in cells {
        figures.extend(cell.times.iter().map(|(column, time)| figure(&cell.name, column, *time)));
    }
    if let Some(first) = cells.first() {
        for (column, _) in &first.times {
            figures.push(figure("median of all", column, median_of(cells, column)));
        }
    }
    figures
}

fn median_of(cells: &[Cell], column: &str) -> f64 {
    median(cells.iter().map(|cell| cell.of(column)))
}

fn judge(cells: &[Cell]) -> Vec<Verdict> {
    let behind = |cell: &Cell| {
        let (column, best) = cell.best_other();
        (cell.of(OURS) / best, format!("{} ({column})", cell.name))
    };
    let behind_static = |cell: &Cell| (cell.of(OURS) / cell.of(BEST_STATIC), cell.name.clone());
    let beyond = |cell: &Cell| {
        let least = cell.times.iter().map(|(_, time)| *time).fold(f64::INFINITY, f64::min);
        (1.0 / least, cell.name.clone())
    };
    vec![
        verdict("adaptive is the best policy or within 3 % of it", cells, behind),
        verdict(
            "adaptive is within 3 % of linux-6 at its best static window",
            cells,
            behind_static,
        ),
        verdict("no policy is more than 3 % faster than the oracle", cells, beyond),
    ]
}

/// A claim about every cell. `ratio` says how far each is from it; the verdict names the worst.
fn verdict(claim: &str, cells: &[Cell], ratio: impl Fn(&Cell) -> (f64, String)) -> Verdict {
    let mut failing: Vec<(f64, String)> =
        cells.iter().map(ratio).filter(|(ratio, _)| *ratio > 1.0 + TOLERANCE).collect();
    failing.sort_by(|a, b| b.0.total_cmp(&a.0));
    let worst: Vec<String> =
        failing.iter().take(NAMED).map(|(ratio, name)| format!("{name} {ratio:.2}x")).collect();
    let of = format!("{} of {} cells fail", failing.len(), cells.len());
    let claim = match failing.is_empty() {
        true => format!("{claim}, in all {} cells", cells.len()),
        false => format!("{claim}: {of}; worst: {}", worst.join(", ")),
    };
    Verdict::new(claim, failing.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_field_is_the_same_every_time_and_whole() {
        let mut experiment = experiment().expect("it is valid");
        let workload = &mut experiment.workload;
        workload.file_mb = 1;
        workload.static_kb = vec![128, 1024];
        workload.memory_mb = BTreeMap::from([("ample".into(), 8.0)]);
        workload.devices.retain(|device, _| device == "net" || device == "hdd-fifo");
        let run = || table(&experiment, &mut |_| {}).expect("it runs");
        let table = run();
        let columns = experiment.workload.columns.len() + 2;
        let rows = patterns::all(1 << 20).len() * 2 + 1;
        assert_eq!(table.figures.len(), rows * columns);
        assert!(table.figures.iter().all(|figure| figure.simulated > 0.5), "{table:?}");
        assert_eq!(table, run());
    }
}
