//! Many slow streams in little memory, 2005: how many of them can run without thrashing.

use std::cmp::Reverse;

use readahead::{Nanos, PAGE_BYTES};
use serde::Deserialize;
use sim::Machine;
use sim::scripts::{Paced, Sequential};

use super::experiment::{Experiment, ExperimentError, figures};
use super::side_by_side::side_by_side;
use super::table::{Figure, Kind, Table, Verdict};

const NAME: &str = "slow-streams-2005";

#[cfg(any(test, fuzzing))]
pub(super) const PARSERS: super::parsers::Parsers =
    super::parsers::Parsers::of::<Workload, Record>();

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Workload {
    file_kb: u64,
    bytes_per_second: u64,
    start_every_ms: f64,
    /// Numbers of streams in the sweep, ascending.
    streams: Vec<usize>,
    /// Streams thrash if this share of the pages read, or more, is read again.
    thrashing_percent: f64,
    /// The DMA zone's share of memory.
    dma_share: f64,
}

#[derive(Clone, Debug, Deserialize)]
struct Record {
    case: String,
    figure: String,
    stock: Option<f64>,
    adaptive: Option<f64>,
}

const COLUMNS: [&str; 4] = ["stock", "adaptive", "linux-6", "bowwave"];

/// The column whose policy was chosen with this table in view.
const CHOSEN_HERE: &str = "bowwave";

/// How memory is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Memory {
    /// Into the DMA zone and the others, as on the machine of the posting.
    Zones,
    /// Not at all, as on today's kernels, which keep one set of lists for all zones of a node.
    One,
}

impl Memory {
    /// The suffix of its rows' names.
    fn suffix(self) -> &'static str {
        match self {
            Memory::Zones => "",
            Memory::One => ", memory in one zone",
        }
    }
}

/// A column of a sweep: re-reads in percent of the pages read, by number of streams.
struct Sweep {
    column: &'static str,
    memory: Memory,
    rereads: Vec<(usize, f64)>,
}

pub(super) fn run(progress: &mut dyn FnMut(f64)) -> Result<Table, ExperimentError> {
    let experiment: Experiment<Workload> =
        Experiment::parse(NAME, include_str!("../../../experiments/slow-streams-2005.toml"))?;
    let records: Vec<Record> =
        figures(NAME, include_str!("../../../experiments/slow-streams-2005.csv"))?;
    reproduce(&experiment, &records, progress)
}

fn reproduce(
    experiment: &Experiment<Workload>,
    records: &[Record],
    progress: &mut dyn FnMut(f64),
) -> Result<Table, ExperimentError> {
    let workload = &experiment.workload;
    let mut sweeps: Vec<_> = [Memory::Zones, Memory::One]
        .into_iter()
        .flat_map(|memory| COLUMNS.map(|column| Sweep { column, memory, rereads: Vec::new() }))
        .collect();
    // Most streams take longest. They go first, so that all processors end at about the same time.
    let mut cells: Vec<_> = (0..sweeps.len())
        .flat_map(|sweep| workload.streams.iter().map(move |streams| (sweep, *streams)))
        .collect();
    cells.sort_by_key(|(_, streams)| Reverse(*streams));
    let run = |&(sweep, streams): &(usize, usize)| {
        let Sweep { column, memory, .. } = sweeps[sweep];
        reread_percent(experiment, column, memory, streams)
    };
    let percents = side_by_side(&cells, run, progress)?;
    for ((sweep, streams), percent) in cells.into_iter().zip(percents) {
        sweeps[sweep].rereads.push((streams, percent));
    }
    for sweep in &mut sweeps {
        sweep.rereads.sort_by_key(|(streams, _)| *streams);
    }
    let most = workload.thrashing_percent;
    let rows = records.iter().flat_map(|record| summary(record, &sweeps, most));
    Ok(Table {
        figures: sweeps.iter().flat_map(Sweep::figures).chain(rows).collect(),
        verdicts: judge(&sweeps, most),
        ..experiment.table(NAME)
    })
}

/// Runs this many streams to their end. Returns the pages read again in percent of those read.
fn reread_percent(
    experiment: &Experiment<Workload>,
    column: &str,
    memory: Memory,
    streams: usize,
) -> Result<f64, ExperimentError> {
    let Workload { file_kb, bytes_per_second, start_every_ms, dma_share, .. } = experiment.workload;
    let mut machine = experiment.build(column)?;
    if memory == Memory::Zones {
        machine.divide_memory(dma_share);
    }
    let filled_at = fill(&mut machine, (experiment.machine.memory_mb * 1e6) as u64);
    let filling = (machine.device_counters().bytes, machine.cache_counters().read_again);
    let bytes = file_kb << 10;
    for number in 0..streams {
        let file = machine.add_file(bytes);
        let open = machine.open(file);
        let start = filled_at + (number as f64 * start_every_ms * 1e6) as u64;
        machine.spawn(start, Paced::new(open, bytes, bytes_per_second, start));
    }
    machine.run();
    let read = (machine.device_counters().bytes - filling.0) / PAGE_BYTES;
    let again = machine.cache_counters().read_again - filling.1;
    Ok(again as f64 / read as f64 * 100.0)
}

/// Fills memory with pages of a file twice as large, read in blocks of 128 KiB, so that there is reclaim before the
/// first stream. Returns when that is over.
fn fill(machine: &mut Machine, memory: u64) -> Nanos {
    const BLOCK: u64 = 1 << 17;
    let file = machine.add_file(2 * memory);
    let open = machine.open(file);
    let process = machine.spawn(0, Sequential::new(open, 2 * memory, BLOCK, 0));
    machine.run();
    machine.outcome(process).ended
}

impl Sweep {
    fn figures(&self) -> impl Iterator<Item = Figure> {
        let figure = |&(streams, percent): &(usize, f64)| Figure {
            row: format!("{streams} streams{}: pages read again", self.memory.suffix()),
            policy: self.column.to_owned(),
            unit: "percent",
            published: None,
            simulated: percent,
            kind: self.kind(),
        };
        self.rereads.iter().map(figure)
    }

    fn kind(&self) -> Kind {
        match self.column {
            // The zone's share was chosen for its 70 streams.
            "stock" if self.memory == Memory::Zones => Kind::Calibrated,
            // That memory is full at the start was assumed with its figures in view.
            "adaptive" | CHOSEN_HERE => Kind::Calibrated,
            _ => Kind::Prediction,
        }
    }

    /// The most streams of the sweep that do not thrash; 0 if even the fewest do.
    fn most_without_thrashing(&self, percent: f64) -> usize {
        let calm = self.rereads.iter().take_while(|(_, rereads)| *rereads < percent);
        calm.last().map_or(0, |(streams, _)| *streams)
    }
}

/// A published row beside the result of the sweeps: how many streams run without thrashing.
fn summary(record: &Record, sweeps: &[Sweep], most_percent: f64) -> Vec<Figure> {
    let is_count = record.figure.starts_with("streams");
    let figure = |sweep: &Sweep| Figure {
        row: format!("{}: {}{}", record.case, record.figure, sweep.memory.suffix()),
        policy: sweep.column.to_owned(),
        unit: if is_count { "count" } else { "GB" },
        // Compare each with the memory on which it was measured. The version of the posting balanced its zones.
        published: match (sweep.column, sweep.memory) {
            ("stock", Memory::Zones) => record.stock,
            ("adaptive", Memory::One) => record.adaptive,
            _ => None,
        },
        simulated: if is_count {
            sweep.most_without_thrashing(most_percent) as f64
        } else {
            f64::NAN
        },
        kind: sweep.kind(),
    };
    sweeps.iter().filter(|sweep| is_count || sweep.memory == Memory::One).map(figure).collect()
}

/// The claims about each column, with memory divided as its kernels do.
fn judge(sweeps: &[Sweep], percent: f64) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for sweep in sweeps {
        let at = |wanted: usize| sweep.rereads.iter().find(|(streams, _)| *streams == wanted);
        let (Some((_, at_100)), Some((_, at_800))) = (at(100), at(800)) else { continue };
        let most = sweep.most_without_thrashing(percent);
        let (column, where_to) = (sweep.column, sweep.memory.suffix());
        match (column, sweep.memory) {
            ("stock", Memory::Zones) => {
                let claim = "calm at 70 streams and thrashing at 100, as posted";
                let holds = *at_100 >= percent && most >= 70;
                let claim = format!("stock: {claim}; here calm up to {most}");
                verdicts.push(Verdict::new(claim, holds));
                let claim = format!("stock thrashes at 800 streams ({at_800:.1} %)");
                verdicts.push(Verdict::new(claim, *at_800 >= percent));
            }
            ("linux-6", Memory::One) => {
                let claim = format!("linux-6 thrashes at 800 streams{where_to} ({at_800:.1} %)");
                verdicts.push(Verdict::new(claim, *at_800 >= percent));
            }
            ("adaptive", _) | (CHOSEN_HERE, Memory::One) => {
                let claim = format!(
                    "{column}: below {percent} % read again at 800 streams{where_to} ({at_800:.2} %)"
                );
                verdicts.push(Verdict::new(claim, *at_800 < percent));
                let fewer = sweep.rereads.iter().filter(|(streams, _)| *streams < 800);
                let worst = fewer.max_by(|a, b| a.1.total_cmp(&b.1)).copied();
                let (streams, worst) = worst.unwrap_or((0, 0.0));
                let claim = format!(
                    "{column}: below {percent} % read again at fewer streams, too{where_to} \
                     (most {worst:.2} %, at {streams})"
                );
                verdicts.push(Verdict::new(claim, worst < percent));
            }
            _ => {}
        }
    }
    verdicts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_16_stays_calm_where_stock_thrashes_at_a_quarter_of_the_size() {
        // An eighth, 4.5 MB, is too little for version 16, too.
        const QUARTER: usize = 4;
        let text = include_str!("../../../experiments/slow-streams-2005.toml");
        let mut experiment: Experiment<Workload> = Experiment::parse(NAME, text).expect("valid");
        experiment.machine.memory_mb /= QUARTER as f64;
        experiment.workload.file_kb /= 2;
        let rereads = |column| {
            reread_percent(&experiment, column, Memory::One, 800 / QUARTER).expect("it runs")
        };
        assert!(rereads("stock") > 10.0);
        assert!(rereads("linux-6") > 10.0);
        assert!(rereads("adaptive") < experiment.workload.thrashing_percent);
    }

    #[test]
    fn a_sweep_is_calm_up_to_the_first_number_that_thrashes() {
        let rereads = vec![(50, 0.1), (70, 0.2), (100, 9.0), (150, 0.0)];
        let sweep = Sweep { column: "stock", memory: Memory::One, rereads };
        assert_eq!(sweep.most_without_thrashing(1.0), 70);
    }
}
