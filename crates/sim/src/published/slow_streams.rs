//! Many slow streams in little memory, 2005: how many of them go without thrashing.

use readahead::PAGE_BYTES;
use serde::Deserialize;

use super::experiment::{Experiment, ExperimentError, figures};
use super::table::{Figure, Kind, Table, Verdict};
use crate::scripts::{Paced, Sequential};

const NAME: &str = "slow-streams-2005";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Workload {
    file_kb: u64,
    bytes_per_second: u64,
    start_every_ms: f64,
    /// The sweep, ascending.
    streams: Vec<usize>,
    thrashing_percent: f64,
    /// Columns whose kernels age all zones of memory alike.
    zones_even: Vec<String>,
}

#[derive(Clone, Debug, Deserialize)]
struct Record {
    case: String,
    figure: String,
    stock: Option<f64>,
    adaptive: Option<f64>,
}

const COLUMNS: [&str; 4] = ["stock", "adaptive", "linux-6", "bowwave"];

/// A column of the sweep: re-reads in percent of the pages read, by number of streams.
struct Sweep {
    column: &'static str,
    rereads: Vec<(usize, f64)>,
}

pub(super) fn run(progress: &mut dyn FnMut(f64)) -> Result<Table, ExperimentError> {
    let experiment: Experiment<Workload> =
        Experiment::parse(NAME, include_str!("../../../../experiments/slow-streams-2005.toml"))?;
    let records: Vec<Record> =
        figures(NAME, include_str!("../../../../experiments/slow-streams-2005.csv"))?;
    reproduce(&experiment, &records, progress)
}

fn reproduce(
    experiment: &Experiment<Workload>,
    records: &[Record],
    progress: &mut dyn FnMut(f64),
) -> Result<Table, ExperimentError> {
    let workload = &experiment.workload;
    let all = (COLUMNS.len() * workload.streams.iter().sum::<usize>()) as f64;
    let mut done = 0;
    let mut sweeps = Vec::new();
    for column in COLUMNS {
        let mut rereads = Vec::new();
        for &streams in &workload.streams {
            rereads.push((streams, reread_percent(experiment, column, streams)?));
            done += streams;
            progress(done as f64 / all);
        }
        sweeps.push(Sweep { column, rereads });
    }
    let mut table = Table {
        name: NAME,
        title: experiment.title.clone(),
        assumptions: experiment.assumptions.clone(),
        figures: sweeps.iter().flat_map(Sweep::figures).collect(),
        plots: Vec::new(),
        verdicts: judge(&sweeps, workload.thrashing_percent),
    };
    table.figures.extend(records.iter().flat_map(|record| summary(record, &sweeps, workload)));
    Ok(table)
}

/// Memory is full when the streams start: one file as large as it has been read in these blocks, and
/// that is over after these nanoseconds.
const FILLING_BLOCK: u64 = 1 << 17;
const FILLED_AT: u64 = 10_000_000_000;

/// Runs so many streams to their end; returns the pages read again in percent of those read.
fn reread_percent(
    experiment: &Experiment<Workload>,
    column: &str,
    streams: usize,
) -> Result<f64, ExperimentError> {
    let Workload { file_kb, bytes_per_second, start_every_ms, ref zones_even, .. } =
        experiment.workload;
    let mut spec = experiment.machine.clone();
    if zones_even.iter().any(|even| even == column) {
        spec.zone = None;
    }
    let mut machine = spec.build(experiment.policy(column))?;
    let memory = (experiment.machine.memory_mb * 1e6) as u64;
    let file = machine.add_file(memory);
    let open = machine.open(file);
    machine.spawn(0, Sequential::new(open, memory, FILLING_BLOCK, 0));
    let bytes = file_kb << 10;
    for number in 0..streams {
        let file = machine.add_file(bytes);
        let open = machine.open(file);
        let start = FILLED_AT + (number as f64 * start_every_ms * 1e6) as u64;
        machine.spawn(start, Paced::new(open, bytes, bytes_per_second, start));
    }
    machine.run();
    let read = machine.device_counters().bytes.saturating_sub(memory) / PAGE_BYTES;
    Ok(machine.cache_counters().read_again as f64 / read as f64 * 100.0)
}

impl Sweep {
    fn figures(&self) -> impl Iterator<Item = Figure> {
        let figure = |&(streams, percent): &(usize, f64)| Figure {
            row: format!("{streams} streams: pages read again"),
            policy: self.column.to_owned(),
            unit: "percent",
            published: None,
            simulated: percent,
            kind: Kind::Prediction,
        };
        self.rereads.iter().map(figure)
    }

    /// The most streams of the sweep up to which none thrash; 0 if the fewest do.
    fn most_without_thrashing(&self, percent: f64) -> usize {
        let calm = self.rereads.iter().take_while(|(_, rereads)| *rereads < percent);
        calm.last().map_or(0, |(streams, _)| *streams)
    }
}

/// A published row beside what the sweeps say of it.
fn summary(record: &Record, sweeps: &[Sweep], workload: &Workload) -> Vec<Figure> {
    let is_count = record.figure.starts_with("streams");
    let figure = |sweep: &Sweep| Figure {
        row: format!("{}: {}", record.case, record.figure),
        policy: sweep.column.to_owned(),
        unit: if is_count { "count" } else { "GB" },
        published: match sweep.column {
            "stock" => record.stock,
            "adaptive" => record.adaptive,
            _ => None,
        },
        simulated: if is_count {
            sweep.most_without_thrashing(workload.thrashing_percent) as f64
        } else {
            f64::NAN
        },
        kind: Kind::Prediction,
    };
    sweeps.iter().map(figure).collect()
}

fn judge(sweeps: &[Sweep], percent: f64) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for sweep in sweeps {
        let most = sweep.most_without_thrashing(percent);
        let Some(at_800) = sweep.rereads.iter().find(|(streams, _)| *streams == 800) else {
            continue;
        };
        let column = sweep.column;
        verdicts.push(match column {
            "stock" => {
                let at_100 = sweep.rereads.iter().find(|(streams, _)| *streams == 100);
                let thrashes = at_100.is_some_and(|(_, rereads)| *rereads >= percent);
                let claim = "calm at 70 streams and thrashing at 100, as posted";
                Verdict::new(
                    format!("stock: {claim}; here calm up to {most}"),
                    thrashes && most >= 70,
                )
            }
            "linux-6" => {
                let claim = format!("linux-6 thrashes at 800 streams ({:.1} %)", at_800.1);
                Verdict::new(claim, at_800.1 >= percent)
            }
            _ => {
                let claim =
                    format!("below {percent} % read again at 800 streams ({:.2} %)", at_800.1);
                Verdict::new(format!("{column}: {claim}; calm up to {most}"), at_800.1 < percent)
            }
        });
        if column == "stock" {
            let claim = format!("stock thrashes at 800 streams ({:.1} %)", at_800.1);
            verdicts.push(Verdict::new(claim, at_800.1 >= percent));
        }
    }
    verdicts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_16_stays_calm_where_stock_thrashes_at_a_quarter_of_the_size() {
        const QUARTER: usize = 4;
        let text = include_str!("../../../../experiments/slow-streams-2005.toml");
        let mut experiment: Experiment<Workload> = Experiment::parse(NAME, text).expect("valid");
        experiment.machine.memory_mb /= QUARTER as f64;
        experiment.workload.file_kb /= 2;
        let rereads = |column| reread_percent(&experiment, column, 800 / QUARTER).expect("it runs");
        assert!(rereads("stock") > 10.0);
        assert!(rereads("linux-6") > 10.0);
        assert!(rereads("adaptive") < experiment.workload.thrashing_percent);
    }

    #[test]
    fn a_sweep_is_calm_up_to_the_first_number_that_thrashes() {
        let sweep =
            Sweep { column: "stock", rereads: vec![(50, 0.1), (70, 0.2), (100, 9.0), (150, 0.0)] };
        assert_eq!(sweep.most_without_thrashing(1.0), 70);
    }
}
