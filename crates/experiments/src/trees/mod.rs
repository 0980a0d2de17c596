//! Walks over trees of small files: static windows and bowwave, compared with a program that knows its walk.

mod tree;
mod walks;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use readahead::{Nanos, PAGE_BYTES};
use serde::Deserialize;
use sim::{Listed, Machine, MachineSpec, Op, OpenFile};

use super::experiment::{Experiment, ExperimentError};
use super::field::Queue;
use super::side_by_side::side_by_side;
use super::table::{Figure, Kind, Table, Verdict, geometric_mean};
use tree::{Tree, TreeSpec};
use walks::{Visit, WALKS, Walk};

const NAME: &str = "trees";

#[cfg(any(test, fuzzing))]
pub(super) const PARSERS: super::parsers::Parsers = super::parsers::Parsers::of::<Workload, ()>();

/// The columns that verdicts compare; `oracle` is a program that knows its walk.
const STOCK: &str = "stock 128K";
const LARGE: &str = "stock 4M";
const OURS: &str = "bowwave";
const ORACLE: &str = "oracle";

/// Distance of the beginnings of two trees on the device in bytes.
const APART: u64 = 1 << 30;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Workload {
    /// Kinds of trees, by name.
    trees: BTreeMap<String, TreeSpec>,
    /// Each cell is the geometric mean over trees of these seeds.
    seeds: Vec<u64>,
    /// KiB of a program's read.
    request_kb: u64,
    /// Microseconds to look up, open and close a file.
    file_us: f64,
    /// Nanoseconds that a program computes for each KiB.
    ns_per_kib: f64,
    /// Files that the oracle requests at once; each cell takes the best.
    oracle_batches: Vec<NonZeroUsize>,
    columns: Vec<Column>,
    /// The queue of each device.
    devices: BTreeMap<String, Queue>,
}

/// A policy, and the kernel's window.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Column {
    name: String,
    policy: String,
    window_kb: u64,
}

/// A walk on a device.
struct Place {
    name: String,
    spec: MachineSpec,
    walk: &'static Walk,
}

/// The costs of a walk at one place, by column.
struct Cell {
    name: String,
    /// As [`Walk::is_complete`].
    is_complete: bool,
    costs: Vec<(String, Cost)>,
}

/// Seconds of a walk, and bytes read as a multiple of those needed.
#[derive(Clone, Copy, Debug)]
struct Cost {
    seconds: f64,
    bytes: f64,
}

pub(super) fn run(progress: &mut dyn FnMut(f64)) -> Result<Table, ExperimentError> {
    table(&experiment()?, progress)
}

fn experiment() -> Result<Experiment<Workload>, ExperimentError> {
    Experiment::parse(NAME, include_str!("../../../../experiments/trees.toml"))
}

fn table(
    experiment: &Experiment<Workload>,
    progress: &mut dyn FnMut(f64),
) -> Result<Table, ExperimentError> {
    let Experiment { machine, workload, .. } = experiment;
    let mut places = Vec::new();
    for (device, queue) in &workload.devices {
        for walk in &WALKS {
            let spec = queue.machine(machine, device, machine.memory_mb);
            places.push(Place { name: format!("{device} {}", walk.name), spec, walk });
        }
    }
    let cells = side_by_side(&places, |place| cell(workload, place), progress)?;
    Ok(Table {
        figures: cells.iter().flat_map(Cell::figures).collect(),
        verdicts: judge(&cells),
        ..experiment.table(NAME)
    })
}

fn cell(workload: &Workload, place: &Place) -> Result<Cell, ExperimentError> {
    let mut costs = Vec::new();
    for Column { name, policy, window_kb } in &workload.columns {
        let spec = MachineSpec { readahead_kb: *window_kb, ..place.spec.clone() };
        let cost = |seed| Ok(read(workload, place.walk, spec.build(policy)?, seed, None));
        costs.push((name.clone(), mean(workload, cost)?));
    }
    let oracle = mean(workload, |seed| oracle(workload, place, seed))?;
    costs.push((ORACLE.to_owned(), oracle));
    Ok(Cell { name: place.name.clone(), is_complete: place.walk.is_complete, costs })
}

/// The geometric mean over the seeds.
fn mean(
    workload: &Workload,
    cost: impl Fn(u64) -> Result<Cost, ExperimentError>,
) -> Result<Cost, ExperimentError> {
    let costs: Vec<Cost> =
        workload.seeds.iter().map(|seed| cost(*seed)).collect::<Result<_, ExperimentError>>()?;
    Ok(Cost {
        seconds: geometric_mean(costs.iter().map(|cost| cost.seconds)),
        bytes: geometric_mean(costs.iter().map(|cost| cost.bytes)),
    })
}

/// The least cost of a program that knows its walk.
fn oracle(workload: &Workload, place: &Place, seed: u64) -> Result<Cost, ExperimentError> {
    let mut least = Cost { seconds: f64::INFINITY, bytes: f64::NAN };
    for batch in &workload.oracle_batches {
        let machine = place.spec.build("linux-6")?;
        let cost = read(workload, place.walk, machine, seed, Some(*batch));
        least = if cost.seconds < least.seconds { cost } else { least };
    }
    Ok(least)
}

/// Reads trees of a seed on a machine. A program that knows its walk requests batches of so many files.
fn read(
    workload: &Workload,
    walk: &Walk,
    mut machine: Machine,
    seed: u64,
    batch: Option<NonZeroUsize>,
) -> Cost {
    let spec = &workload.trees[walk.tree];
    let trees: Vec<Tree> =
        (0..walk.trees).map(|n| Tree::add(&mut machine, spec, seed, n * APART)).collect();
    let visits = walk.visits(&machine, &trees);
    let needed: u64 = visits.iter().map(|visit| visit.bytes.div_ceil(PAGE_BYTES)).sum();
    let ops = program(workload, &mut machine, visits, batch);
    let reader = machine.spawn(0, Listed(ops.into_iter()));
    machine.run();
    Cost {
        seconds: machine.outcome(reader).ended as f64 * 1e-9,
        bytes: machine.matrix().pages_read() as f64 / needed as f64,
    }
}

/// What a program does that visits these files. If it knows its walk, it requests each batch of so many files before it
/// reads the previous one, in the order of places.
fn program(
    workload: &Workload,
    machine: &mut Machine,
    visits: Vec<Visit>,
    batch: Option<NonZeroUsize>,
) -> Vec<Op> {
    let opens: Vec<_> = visits.into_iter().map(|visit| (machine.open(visit.file), visit)).collect();
    let batches: Vec<_> = opens.chunks(batch.map_or(usize::MAX, NonZeroUsize::get)).collect();
    let request = |batch: &&[(OpenFile, Visit)]| {
        let mut batch = batch.to_vec();
        batch.sort_by_key(|(_, visit)| machine.offset_of(visit.file));
        batch.into_iter().map(|(open, visit)| Op::WillNeed { open, at: 0, bytes: visit.bytes })
    };
    let first = batches.first().filter(|_| batch.is_some());
    let mut ops: Vec<Op> = first.into_iter().flat_map(request).collect();
    for (number, opens) in batches.iter().enumerate() {
        ops.extend(batches.get(number + 1).into_iter().flat_map(request));
        ops.extend(opens.iter().flat_map(|(open, visit)| whole(workload, *open, visit.bytes)));
    }
    ops
}

/// Looks up a file, reads its first `bytes`, and closes it.
fn whole(workload: &Workload, open: OpenFile, bytes: u64) -> Vec<Op> {
    let request = workload.request_kb << 10;
    let read = |at: u64| {
        let bytes = request.min(bytes - at);
        let ns = (bytes as f64 / 1024.0 * workload.ns_per_kib) as Nanos;
        [Op::Read { open, at, bytes }, Op::Compute { ns }]
    };
    let look_up = Op::LookUp { ns: (workload.file_us * 1e3) as Nanos };
    let reads = (0..bytes).step_by(request as usize).flat_map(read);
    [look_up].into_iter().chain(reads).chain([Op::Close { open }]).collect()
}

impl Cell {
    fn of(&self, column: &str) -> Cost {
        let found = self.costs.iter().find(|(name, _)| name == column);
        found.map_or(Cost { seconds: f64::NAN, bytes: f64::NAN }, |(_, cost)| *cost)
    }

    fn seconds(&self, column: &str) -> f64 {
        self.of(column).seconds
    }

    /// A row of times and one of bytes.
    fn figures(&self) -> Vec<Figure> {
        let row = |row: String, unit, value: fn(&Cost) -> f64| {
            self.costs.iter().map(move |(column, cost)| Figure {
                row: row.clone(),
                policy: column.clone(),
                unit,
                published: None,
                simulated: value(cost),
                kind: Kind::Prediction,
            })
        };
        let times = row(self.name.clone(), "s", |cost| cost.seconds);
        times.chain(row(format!("{}, bytes", self.name), "x needed", |cost| cost.bytes)).collect()
    }
}

fn judge(cells: &[Cell]) -> Vec<Verdict> {
    let claim = |text: &str, is_complete: bool, holds: fn(&Cell) -> bool| {
        let cells = cells.iter().filter(|cell| cell.is_complete == is_complete);
        Verdict::of_all(text, cells.map(|cell| (cell.name.clone(), holds(cell))))
    };
    vec![
        claim("complete walks: bowwave at least twice as fast as either window", true, |cell| {
            [STOCK, LARGE].iter().all(|stock| cell.seconds(stock) >= 2.0 * cell.seconds(OURS))
        }),
        claim("complete walks: bowwave at most twice as slow as the oracle", true, |cell| {
            cell.seconds(OURS) <= 2.0 * cell.seconds(ORACLE)
        }),
        claim("complete walks: bowwave reads at most 1.1 times what is needed", true, |cell| {
            cell.of(OURS).bytes <= 1.1
        }),
        claim("all others: bowwave at least 0.97 times as fast as stock 128K", false, |cell| {
            cell.seconds(STOCK) >= 0.97 * cell.seconds(OURS)
        }),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_table_is_the_same_every_time_and_nothing_in_it_is_faster_than_the_oracle() {
        let mut experiment = experiment().expect("it is valid");
        for tree in experiment.workload.trees.values_mut() {
            (tree.files, tree.directories) = (tree.files.min(300), 12);
        }
        experiment.workload.seeds.truncate(1);
        let run = || table(&experiment, &mut |_| {}).expect("it runs");
        let table = run();
        assert_eq!(table.figures.len(), WALKS.len() * 2 * 2 * 4);
        for (row, _) in table.rows() {
            let least = if row.ends_with("bytes") {
                1.0
            } else {
                table.figure(row, ORACLE).expect("a figure").simulated
            };
            let figures = table.figures.iter().filter(|figure| figure.row == row);
            for Figure { policy, simulated, .. } in figures {
                assert!(*simulated > 0.97 * least, "{row} {policy}: {simulated} of {least}");
            }
        }
        assert_eq!(table, run());
    }
}
