//! A desktop's daily work, 2006: `grep`, `diff` and `dd`, local, over NFS and from a mounted image.

mod row;
mod setup;
mod verdicts;

use std::num::NonZeroUsize;

use serde::Deserialize;
use sim::scripts::programs::Program;
use sim::scripts::sizes::Sizes;

use super::experiment::{Experiment, ExperimentError, figures};
use super::side_by_side::side_by_side;
use super::table::{Figure, Kind, Table};

const NAME: &str = "desktop-2006";

#[cfg(any(test, fuzzing))]
pub(super) const PARSERS: super::parsers::Parsers = super::parsers::Parsers {
    figures: |text| figures(NAME, text)?.iter().try_for_each(Row::check),
    ..super::parsers::Parsers::of::<Workload, Row>()
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Workload {
    /// Distance between the beginnings of two copies on the disk, in MiB.
    apart_mib: u64,
    debian_mb: f64,
    dsl_mb: f64,
    /// Where dsl.iso is on the disk.
    dsl_at_gb: f64,
    sparse_mb: f64,
    backward_mb: f64,
    /// What the backward reader computes for each read, in microseconds.
    backward_read_us: f64,
    /// Files below /lib.
    lib: Sizes,
    /// Files in the image of the loop device.
    image: Sizes,
    dd: Program,
    grep: Program,
    diff: Program,
    nfs: Nfs,
    #[serde(rename = "loop")]
    looped: Loop,
    /// Rows whose stock figure was not calibrated: those whose name, `GROUP: WORKLOAD`, contains one of these texts.
    stock_predicted: Vec<String>,
    /// Rows whose adaptive figure influenced a choice, told in the same way.
    adaptive_calibrated: Vec<String>,
    stock_within_percent: f64,
}

/// An NFS mount of the machine's own disk.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Nfs {
    threads: usize,
    /// Most requests of a client in flight.
    slots: usize,
    /// Processor time of a server's thread for each request, in microseconds.
    request_us: f64,
    /// Microseconds to copy a page out of the server's page cache and through the network's layers.
    server_page_us: f64,
    /// Microseconds to find and open a file over the network.
    file_us: f64,
    /// Files below /lib in the second round of the rows over the network.
    lib_again: Sizes,
    /// Read-ahead of the client in requests.
    client_requests: u64,
}

/// A file system in a file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Loop {
    /// KiB that the loop device's thread reads of its file at once.
    read_kb: u64,
    /// Files of a directory of the image.
    directory_files: NonZeroUsize,
    /// Largest request of the loop device.
    request_kb: u64,
}

/// One published row.
#[derive(Clone, Debug, Deserialize)]
struct Row {
    group: String,
    workload: String,
    stock_ra_kb: u64,
    adaptive_ra_kb: u64,
    stock_seconds: Option<f64>,
    adaptive_seconds: Option<f64>,
}

impl Row {
    fn name(&self) -> String {
        format!("{}: {}", self.group, self.workload)
    }
}

/// A row's seconds, stock and adaptive.
struct Outcome {
    row: Row,
    simulated: [f64; 2],
    kinds: [Kind; 2],
}

pub(super) fn run(progress: &mut dyn FnMut(f64)) -> Result<Table, ExperimentError> {
    let text = include_str!("../../../../experiments/desktop-2006.toml");
    let experiment: Experiment<Workload> = Experiment::parse(NAME, text)?;
    let rows: Vec<Row> = figures(NAME, include_str!("../../../../experiments/desktop-2006.csv"))?;
    rows.iter().try_for_each(Row::check)?;
    let run = |row: &Row| -> Result<[f64; 2], ExperimentError> {
        Ok([
            setup::seconds(&experiment, row, "stock", row.stock_ra_kb)?,
            setup::seconds(&experiment, row, "adaptive", row.adaptive_ra_kb)?,
        ])
    };
    let simulated = side_by_side(&rows, run, progress)?;
    let outcomes = rows.into_iter().zip(simulated).map(|(row, simulated)| {
        let name = row.name();
        let is_in = |list: &[String]| list.iter().any(|part| name.contains(part));
        let kind = |is_calibrated| if is_calibrated { Kind::Calibrated } else { Kind::Prediction };
        let kinds = [
            kind(!is_in(&experiment.workload.stock_predicted)),
            kind(is_in(&experiment.workload.adaptive_calibrated)),
        ];
        Outcome { row, simulated, kinds }
    });
    let outcomes: Vec<_> = outcomes.collect();
    Ok(Table {
        figures: outcomes.iter().flat_map(figures_of).collect(),
        verdicts: verdicts::judge(&outcomes, experiment.workload.stock_within_percent),
        ..experiment.table(NAME)
    })
}

fn figures_of(outcome: &Outcome) -> [Figure; 2] {
    let figure = |policy: &str, published, simulated, kind| Figure {
        row: outcome.row.name(),
        policy: policy.to_owned(),
        unit: "s",
        published,
        simulated,
        kind,
    };
    let [stock, adaptive] = outcome.simulated;
    let [of_stock, of_adaptive] = outcome.kinds;
    [
        figure("stock", outcome.row.stock_seconds, stock, of_stock),
        figure("adaptive", outcome.row.adaptive_seconds, adaptive, of_adaptive),
    ]
}
