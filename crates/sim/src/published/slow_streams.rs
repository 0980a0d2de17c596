//! Many slow streams in little memory, 2005: how many of them go without thrashing.

use readahead::{Nanos, PAGE_BYTES};
use serde::Deserialize;

use super::experiment::{Experiment, ExperimentError, figures};
use super::table::{Figure, Kind, Table, Verdict};
use crate::Machine;
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
    /// Of a row beside those that are judged.
    zone: Zone,
}

/// A zone of memory with lists of its own, as the kernel of the posting had one for DMA.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Zone {
    /// Of memory.
    share: f64,
    /// How many times as fast its pages age.
    pace: f64,
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
    let columns = COLUMNS.map(|column| (column, None));
    let with_zone = ("stock", Some(workload.zone));
    let all = ((columns.len() + 1) * workload.streams.iter().sum::<usize>()) as f64;
    let mut done = 0;
    let mut sweeps = Vec::new();
    for (column, zone) in columns.into_iter().chain([with_zone]) {
        let mut rereads = Vec::new();
        for &streams in &workload.streams {
            rereads.push((streams, reread_percent(experiment, column, zone, streams)?));
            done += streams;
            progress(done as f64 / all);
        }
        sweeps.push(Sweep { column, rereads });
    }
    let zoned = sweeps.split_off(columns.len());
    let mut table = Table {
        figures: sweeps.iter().flat_map(Sweep::figures).collect(),
        verdicts: judge(&sweeps, workload.thrashing_percent),
        ..experiment.table(NAME)
    };
    let most = workload.thrashing_percent;
    table.figures.extend(records.iter().flat_map(|record| summary(record, &sweeps, most)));
    table.figures.extend(records.iter().flat_map(|record| with_a_zone(record, &zoned, most)));
    Ok(table)
}

/// Runs so many streams to their end, in memory that has a zone of its own or none; returns the pages
/// read again in percent of those read.
fn reread_percent(
    experiment: &Experiment<Workload>,
    column: &str,
    zone: Option<Zone>,
    streams: usize,
) -> Result<f64, ExperimentError> {
    let Workload { file_kb, bytes_per_second, start_every_ms, .. } = experiment.workload;
    let mut machine = experiment.build(column)?;
    if let Some(Zone { share, pace }) = zone {
        machine.divide_memory(share, pace);
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

/// Fills memory with pages of one file twice as large, read in blocks of 128 KiB, so that there is
/// reclaim before the first stream; returns when that is over.
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
            row: format!("{streams} streams: pages read again"),
            policy: self.column.to_owned(),
            unit: "percent",
            published: None,
            simulated: percent,
            kind: self.kind(),
        };
        self.rereads.iter().map(figure)
    }

    fn kind(&self) -> Kind {
        if self.column == CHOSEN_HERE { Kind::Calibrated } else { Kind::Prediction }
    }

    /// The most streams of the sweep up to which none thrash; 0 if the fewest do.
    fn most_without_thrashing(&self, percent: f64) -> usize {
        let calm = self.rereads.iter().take_while(|(_, rereads)| *rereads < percent);
        calm.last().map_or(0, |(streams, _)| *streams)
    }
}

/// Whether a published row counts streams, which is what the sweeps tell.
fn is_count(record: &Record) -> bool {
    record.figure.starts_with("streams")
}

/// A published row beside what the sweeps say of it.
fn summary(record: &Record, sweeps: &[Sweep], most_percent: f64) -> Vec<Figure> {
    let is_count = is_count(record);
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
            sweep.most_without_thrashing(most_percent) as f64
        } else {
            f64::NAN
        },
        kind: sweep.kind(),
    };
    sweeps.iter().map(figure).collect()
}

/// The row that counts streams once more, of a kernel whose zones age apart: it is not judged, as the
/// pace was fitted to it.
fn with_a_zone(record: &Record, zoned: &[Sweep], most_percent: f64) -> Vec<Figure> {
    let figure = |sweep: &Sweep| Figure {
        row: format!("{}: {}, with the posting's DMA zone", record.case, record.figure),
        policy: sweep.column.to_owned(),
        unit: "count",
        published: record.stock,
        simulated: sweep.most_without_thrashing(most_percent) as f64,
        kind: Kind::Calibrated,
    };
    zoned.iter().filter(|_| is_count(record)).map(figure).collect()
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
        // An eighth, 4.5 MB, is too little for version 16, too.
        const QUARTER: usize = 4;
        let text = include_str!("../../../../experiments/slow-streams-2005.toml");
        let mut experiment: Experiment<Workload> = Experiment::parse(NAME, text).expect("valid");
        experiment.machine.memory_mb /= QUARTER as f64;
        experiment.workload.file_kb /= 2;
        let rereads =
            |column| reread_percent(&experiment, column, None, 800 / QUARTER).expect("it runs");
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
