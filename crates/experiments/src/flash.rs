//! Throughput against read-ahead size, 2011: `dd` from eight flash drives.

use serde::Deserialize;
use sim::{Axis, Plot, Series};
use sim::{Listed, Op};

use super::experiment::{Experiment, ExperimentError, figures};
use super::table::{Figure, Kind, Table, Verdict};

const NAME: &str = "flash-2011";

#[cfg(any(test, fuzzing))]
pub(super) const PARSERS: super::parsers::Parsers =
    super::parsers::Parsers::of::<Workload, Point>();

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Workload {
    file_mib: u64,
    request_kb: u64,
    policy: String,
    /// How far a point may be off.
    within_percent: f64,
}

/// One published point.
#[derive(Clone, Debug, Deserialize)]
struct Point {
    device: String,
    readahead_kb: u64,
    mb_per_s_median: f64,
}

pub(super) fn run(progress: &mut dyn FnMut(f64)) -> Result<Table, ExperimentError> {
    let text = include_str!("../../../experiments/flash-2011.toml");
    let experiment: Experiment<Workload> = Experiment::parse(NAME, text)?;
    let text = include_str!("../../../experiments/device-curves-2011.csv");
    let points: Vec<Point> = figures(NAME, text)?;
    let mut simulated = Vec::new();
    for (index, point) in points.iter().enumerate() {
        simulated.push(throughput(&experiment, point)?);
        progress((index + 1) as f64 / points.len() as f64);
    }
    let figure = |(point, simulated): (&Point, &f64)| Figure {
        row: format!("{} {} KiB", point.device, point.readahead_kb),
        policy: experiment.workload.policy.clone(),
        unit: "MB/s",
        published: Some(point.mb_per_s_median),
        simulated: *simulated,
        kind: Kind::Calibrated,
    };
    Ok(Table {
        figures: points.iter().zip(&simulated).map(figure).collect(),
        verdicts: judge(&points, &simulated, experiment.workload.within_percent),
        plots: plots(&points, &simulated),
        ..experiment.table(NAME)
    })
}

fn throughput(experiment: &Experiment<Workload>, point: &Point) -> Result<f64, ExperimentError> {
    let workload = &experiment.workload;
    let mut spec = experiment.machine.clone();
    spec.device = point.device.clone();
    spec.readahead_kb = point.readahead_kb;
    let mut machine = spec.build(&workload.policy)?;
    let (size, bytes) = (workload.file_mib << 20, workload.request_kb << 10);
    let file = machine.add_file(size);
    let open = machine.open(file);
    let reads = (0..size / bytes).map(move |i| Op::Read { open, at: i * bytes, bytes });
    let reader = machine.spawn(0, Listed(reads));
    machine.run();
    Ok(size as f64 / 1e6 / (machine.outcome(reader).ended as f64 * 1e-9))
}

/// A plot for each device: throughput against read-ahead size.
fn plots(points: &[Point], simulated: &[f64]) -> Vec<Plot> {
    let pairs: Vec<(&Point, f64)> = points.iter().zip(simulated.iter().copied()).collect();
    let plot = |curve: &[(&Point, f64)]| {
        let at = |point: &Point, mb_s| (point.readahead_kb as f64, mb_s);
        let published = curve.iter().map(|(point, _)| at(point, point.mb_per_s_median)).collect();
        let simulated = curve.iter().map(|(point, mb_s)| at(point, *mb_s)).collect();
        let device = curve.first().map_or("", |(point, _)| &point.device);
        Plot {
            title: format!("{device}: throughput against read-ahead size"),
            x: Axis::log("read-ahead, KiB"),
            y: Axis::linear("MB/s"),
            series: vec![
                Series::published(device, published),
                Series::simulated(device, simulated),
            ],
        }
    };
    pairs.chunk_by(|a, b| a.0.device == b.0.device).map(plot).collect()
}

/// Judges the errors of each device's points.
fn judge(points: &[Point], simulated: &[f64], within_percent: f64) -> Vec<Verdict> {
    let pairs: Vec<(&Point, f64)> = points.iter().zip(simulated.iter().copied()).collect();
    let of_a_device = pairs.chunk_by(|a, b| a.0.device == b.0.device);
    let verdict = |curve: &[(&Point, f64)]| {
        let errors = curve.iter().map(|(point, mb_s)| (mb_s / point.mb_per_s_median - 1.0).abs());
        let worst = errors.fold(0.0, f64::max) * 100.0;
        let device = curve.first().map_or("", |(point, _)| &point.device);
        let claim =
            format!("{device}: every point within {within_percent:.0} % (worst {worst:.1} %)");
        Verdict::new(claim, worst <= within_percent)
    };
    of_a_device.map(verdict).collect()
}
