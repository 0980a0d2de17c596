//! Runs of ten distributions of lengths: fixed windows and bowwave, compared with a policy that knows each run.

mod clairvoyant;
mod lengths;

use std::collections::BTreeMap;

use clairvoyant::Clairvoyant;
use lengths::Lengths;
use patterns::order::{Read, backward, forward};
use serde::Deserialize;
use sim::scripts::random::Random;
use sim::{Listed, Machine, MachineSpec, Op};

use super::experiment::{Experiment, ExperimentError};
use super::field::Queue;
use super::side_by_side::side_by_side;
use super::table::{Figure, Kind, Table, Verdict, geometric_mean};

const NAME: &str = "run-lengths";

#[cfg(any(test, fuzzing))]
pub(super) const PARSERS: super::parsers::Parsers = super::parsers::Parsers::of::<Workload, ()>();

/// The column of bowwave's policy.
const OURS: &str = "adaptive";

/// A mean counts as equal if it is at most this many times the least.
const AS_GOOD: f64 = 1.03;

/// Bytes of a program's read.
const REQUEST: u64 = 16 << 10;

/// Least distance of two runs in bytes; the largest is twice that.
const APART: u64 = 4 << 20;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Workload {
    /// Runs of a lone reader.
    runs_of_one: u64,
    /// Runs of each of several readers.
    runs_of_each: u64,
    /// Number of readers, if there are several.
    readers: u64,
    /// Each cell is the geometric mean over these.
    seeds: Vec<u64>,
    /// The queue of each device.
    devices: BTreeMap<String, Queue>,
    /// Policies and the kernel's window in KiB, by column.
    columns: BTreeMap<String, Column>,
    /// Goals for `adaptive`, as geometric means over all distributions, by the name of the row.
    goals: BTreeMap<String, f64>,
    /// Goal for bytes read over bytes needed, in the mean over all rows.
    bytes_goal: f64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Column {
    policy: String,
    window_kb: u64,
}

/// How the runs are read.
#[derive(Clone, Copy, Debug)]
struct Way {
    name: &'static str,
    are_several: bool,
    is_forward: bool,
}

const WAYS: [Way; 4] = [
    Way { name: "forward", are_several: false, is_forward: true },
    Way { name: "backward", are_several: false, is_forward: false },
    Way { name: "interleaved", are_several: true, is_forward: true },
    Way { name: "interleaved backward", are_several: true, is_forward: false },
];

/// A device, read in one way.
struct Place {
    name: String,
    spec: MachineSpec,
    way: Way,
}

/// One distribution at one place.
struct Cell {
    /// The number of the place.
    place: usize,
    name: String,
    /// By column.
    costs: Vec<Cost>,
}

/// The cost of a policy: its time as a multiple of the clairvoyant's, and its bytes as a multiple of those of the runs.
#[derive(Clone, Copy, Debug)]
struct Cost {
    time: f64,
    bytes: f64,
}

/// The runs of each reader in order, with a file for each.
struct Runs {
    is_forward: bool,
    readers: Vec<Vec<Read>>,
}

pub(super) fn run(progress: &mut dyn FnMut(f64)) -> Result<Table, ExperimentError> {
    table(&experiment()?, progress)
}

fn experiment() -> Result<Experiment<Workload>, ExperimentError> {
    Experiment::parse(NAME, include_str!("../../../../experiments/run-lengths.toml"))
}

fn table(
    experiment: &Experiment<Workload>,
    progress: &mut dyn FnMut(f64),
) -> Result<Table, ExperimentError> {
    let workload = &experiment.workload;
    let mut places = Vec::new();
    for (device, queue) in &workload.devices {
        for way in WAYS {
            let spec = queue.machine(&experiment.machine, device, experiment.machine.memory_mb);
            places.push(Place { name: format!("{device} {}", way.name), spec, way });
        }
    }
    let count = places.len();
    let all: Vec<_> = (0..count).flat_map(|place| lengths::ALL.map(|of| (place, of))).collect();
    let cell = |(place, (name, lengths)): &(usize, (&str, Lengths))| {
        let at = &places[*place];
        let name = format!("{} {name}", at.name);
        costs(workload, at, *lengths).map(|costs| Cell { place: *place, name, costs })
    };
    let cells = side_by_side(&all, cell, progress)?;
    let means: Vec<_> =
        (0..count).map(|place| (places[place].name.as_str(), mean(&cells, place))).collect();
    Ok(Table {
        figures: figures(workload, &cells, &means),
        verdicts: judge(workload, &means),
        ..experiment.table(NAME)
    })
}

/// The costs of every column, geometric means over the seeds.
fn costs(
    workload: &Workload,
    place: &Place,
    lengths: Lengths,
) -> Result<Vec<Cost>, ExperimentError> {
    let mut by_seed = Vec::new();
    for seed in &workload.seeds {
        let runs = Runs::draw(workload, place.way, lengths, *seed);
        let clairvoyant = Box::new(Clairvoyant::new(&runs.readers));
        let least = runs.read(Machine::new(place.spec.parts_with(clairvoyant, None)?));
        let mut costs = Vec::new();
        for column in workload.columns.values() {
            let spec = MachineSpec { readahead_kb: column.window_kb, ..place.spec.clone() };
            let (ended, bytes) = runs.read(spec.build(&column.policy)?);
            let (time, bytes) = (ended as f64 / least.0 as f64, bytes as f64 / runs.bytes() as f64);
            costs.push(Cost { time, bytes });
        }
        by_seed.push(costs);
    }
    let columns = 0..workload.columns.len();
    Ok(columns.map(|column| mean_of(by_seed.iter().map(|costs| costs[column]))).collect())
}

impl Runs {
    fn draw(workload: &Workload, way: Way, lengths: Lengths, seed: u64) -> Runs {
        let (readers, count) = match way.are_several {
            true => (workload.readers, workload.runs_of_each),
            false => (1, workload.runs_of_one),
        };
        let one = |reader| {
            let mut random = Random::new(seed * workload.readers + reader);
            let lengths = lengths.draw(count, &mut random);
            scatter(&lengths, &mut random)
        };
        Runs { is_forward: way.is_forward, readers: (0..readers).map(one).collect() }
    }

    /// Nanoseconds until the last reader ends, and the bytes read from the device.
    fn read(&self, mut machine: Machine) -> (u64, u64) {
        let mut processes = Vec::new();
        for runs in &self.readers {
            let end = runs.iter().map(|(at, bytes)| at + bytes).max().unwrap_or(0);
            let file = machine.add_file(end + APART);
            let open = machine.open(file);
            let is_forward = self.is_forward;
            let reads = runs.clone().into_iter().flat_map(move |run| reads(run, is_forward));
            let ops = reads.map(move |(at, bytes)| Op::Read { open, at, bytes });
            processes.push(machine.spawn(0, Listed(ops)));
        }
        machine.run();
        let ended = processes.into_iter().map(|process| machine.outcome(process).ended).max();
        (ended.unwrap_or(0), machine.matrix().pages_read() * readahead::PAGE_BYTES)
    }

    fn bytes(&self) -> u64 {
        self.readers.iter().flatten().map(|(_, bytes)| bytes).sum()
    }
}

/// The requests of a run in order; the last one takes the rest.
fn reads((at, bytes): Read, is_forward: bool) -> Vec<Read> {
    let (whole, rest) = (bytes / REQUEST * REQUEST, bytes % REQUEST);
    let mut reads = match is_forward {
        true => forward(at, whole, REQUEST),
        false => backward(at + bytes, whole, REQUEST),
    };
    if rest > 0 {
        reads.push((if is_forward { at + whole } else { at }, rest));
    }
    reads
}

/// Runs of these lengths in this order, at random places of one file.
fn scatter(lengths: &[u64], random: &mut Random) -> Vec<Read> {
    let mut order: Vec<usize> = (0..lengths.len()).collect();
    random.shuffle(&mut order);
    let mut runs = vec![(0, 0); lengths.len()];
    let mut at = 0;
    for index in order {
        at += APART + random.below(APART / REQUEST) * REQUEST;
        runs[index] = (at, lengths[index]);
        at += lengths[index].next_multiple_of(REQUEST);
    }
    runs
}

/// The geometric means over a place's distributions, by column.
fn mean(cells: &[Cell], place: usize) -> Vec<Cost> {
    let of_this = || cells.iter().filter(|cell| cell.place == place);
    let columns = 0..of_this().next().map_or(0, |cell| cell.costs.len());
    columns.map(|column| mean_of(of_this().map(|cell| cell.costs[column]))).collect()
}

fn mean_of(costs: impl Iterator<Item = Cost> + Clone) -> Cost {
    Cost {
        time: geometric_mean(costs.clone().map(|cost| cost.time)),
        bytes: geometric_mean(costs.map(|cost| cost.bytes)),
    }
}

/// A row of times and one of bytes for each cell, followed by those of the means.
fn figures(workload: &Workload, cells: &[Cell], means: &[(&str, Vec<Cost>)]) -> Vec<Figure> {
    let names = || workload.columns.keys();
    let row = |row: String, unit, values: Vec<f64>| {
        names().zip(values).map(move |(policy, simulated)| Figure {
            row: row.clone(),
            policy: policy.clone(),
            unit,
            published: None,
            simulated,
            kind: Kind::Prediction,
        })
    };
    let rows = |name: &str, costs: &[Cost]| {
        let times = costs.iter().map(|cost| cost.time).collect();
        let bytes = costs.iter().map(|cost| cost.bytes).collect();
        row(name.to_owned(), "x clairvoyant", times)
            .chain(row(format!("{name}, bytes"), "x needed", bytes))
            .collect::<Vec<_>>()
    };
    let cells = cells.iter().flat_map(|cell| rows(&cell.name, &cell.costs));
    let means = means.iter().flat_map(|(name, costs)| rows(&format!("mean of {name}"), costs));
    cells.chain(means).collect()
}

/// Judges whether bowwave reaches its goals, and whether it is at least as good as either window.
fn judge(workload: &Workload, means: &[(&str, Vec<Cost>)]) -> Vec<Verdict> {
    let ours = workload.columns.keys().position(|name| name == OURS).unwrap_or(0);
    let goals = means.iter().filter_map(|(name, costs)| {
        workload.goals.get(*name).map(|goal| (*name, costs[ours].time, *goal))
    });
    let fastest = means.iter().map(|(name, costs)| {
        let fastest = costs.iter().map(|cost| cost.time).fold(f64::INFINITY, f64::min);
        (*name, costs[ours].time, AS_GOOD * fastest)
    });
    let bytes = mean_of(means.iter().map(|(_, costs)| costs[ours])).bytes;
    vec![
        verdict("adaptive is as near to the clairvoyant as it is to be", goals),
        verdict("adaptive is the fastest in the mean, or within 3 % of it", fastest),
        verdict(
            "adaptive reads few bytes in vain",
            [("mean", bytes, workload.bytes_goal)].into_iter(),
        ),
    ]
}

/// A claim about every place, given its value and the largest allowed one.
fn verdict<'a>(claim: &str, places: impl Iterator<Item = (&'a str, f64, f64)>) -> Verdict {
    let mut holds = true;
    let mut all = Vec::new();
    for (name, is, most) in places {
        holds &= is <= most;
        all.push(format!("{name} {is:.2} of {most:.2}"));
    }
    Verdict::new(format!("{claim}: {}", all.join(", ")), holds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_faster_than_the_clairvoyant_or_reads_less_than_is_needed() {
        let mut experiment = experiment().expect("it is valid");
        let workload = &mut experiment.workload;
        (workload.runs_of_one, workload.runs_of_each) = (4, 2);
        workload.seeds.truncate(1);
        workload.devices.retain(|device, _| device == "net" || device == "hdd");
        let table = table(&experiment, &mut |_| {}).expect("it runs");
        let rows = 2 * (lengths::ALL.len() + 1) * WAYS.len() * 2;
        assert_eq!(table.figures.len(), rows * experiment.workload.columns.len());
        let least = table.figures.iter().map(|figure| figure.simulated).fold(f64::MAX, f64::min);
        assert!(least > 0.95, "{least}");
    }

    #[test]
    fn runs_lie_apart_and_are_read_whole() {
        let lengths = [1 << 20, 4096, 200 << 10];
        let mut runs = scatter(&lengths, &mut Random::new(7));
        assert_eq!(runs.iter().map(|run| run.1).collect::<Vec<_>>(), lengths);
        for is_forward in [true, false] {
            for run in &runs {
                let mut reads = reads(*run, is_forward);
                assert_eq!(reads.iter().map(|read| read.1).sum::<u64>(), run.1);
                reads.sort_unstable();
                assert_eq!(reads[0].0, run.0);
                assert!(reads.windows(2).all(|two| two[0].0 + two[0].1 == two[1].0), "{reads:?}");
            }
        }
        runs.sort_unstable();
        assert!(runs.windows(2).all(|two| two[0].0 + two[0].1 + APART <= two[1].0), "{runs:?}");
    }
}
