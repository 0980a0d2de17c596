//! Ten parallel readers under four elevators, 2003, and six that walk trees of small files.

mod walks;

use std::collections::BTreeMap;

use serde::Deserialize;
use sim::replay::{completion_plot, sorted_points};
use sim::{Listed, Machine, Op, Plot, Series};

use super::experiment::{Experiment, ExperimentError};
use super::table::{Figure, Kind, Table, Verdict};

const NAME: &str = "parallel-streams-2003";

#[cfg(any(test, fuzzing))]
pub(super) const PARSERS: super::parsers::Parsers =
    super::parsers::Parsers::of::<Workload, (u64, String, [f64; 10])>();

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Workload {
    processes: usize,
    file_mb: u64,
    request_kb: u64,
    start_every_us: f64,
    /// How far the time of the last finisher may be off.
    last_finisher_within_percent: f64,
    /// Slices of the anticipatory elevator by read-ahead in KiB.
    slice_ms: BTreeMap<String, u64>,
    walks: walks::Walks,
    /// The elevators by the names of the table.
    elevators: BTreeMap<String, String>,
}

/// One row: completion times, sorted.
struct Row {
    readahead_kb: u64,
    elevator: &'static str,
    published: Option<Vec<f64>>,
    simulated: Vec<f64>,
}

/// Read-ahead in KiB and elevator of each row. Some were not published.
const ROWS: [(u64, &str); 8] = [
    (128, "linus (2.4.21-pre4)"),
    (128, "deadline (2.5.61 base)"),
    (128, "cfq v1"),
    (128, "anticipatory"),
    (8, "linus (2.4.21-pre4)"),
    (8, "deadline (2.5.61 base)"),
    (8, "cfq v1"),
    (8, "anticipatory"),
];

pub(super) fn run(progress: &mut dyn FnMut(f64)) -> Result<Table, ExperimentError> {
    let text = include_str!("../../../experiments/parallel-streams-2003.toml");
    let experiment: Experiment<Workload> = Experiment::parse(NAME, text)?;
    let published = published()?;
    let mut rows = Vec::new();
    for (index, (readahead_kb, elevator)) in ROWS.into_iter().enumerate() {
        let known = published.iter().find(|(kb, name, _)| *kb == readahead_kb && name == elevator);
        rows.push(Row {
            readahead_kb,
            elevator,
            published: known.map(|(_, _, times)| times.clone()),
            simulated: completion_times(&experiment, readahead_kb, elevator)?,
        });
        progress((index + 1) as f64 / ROWS.len() as f64);
    }
    let walks = walks::figures_of(&experiment)?;
    Ok(Table {
        figures: rows.iter().flat_map(figures_of).chain(walks).collect(),
        verdicts: judge(&experiment.workload, &rows),
        plots: [128, 8].map(|readahead_kb| plot_of(readahead_kb, &rows)).to_vec(),
        ..experiment.table(NAME)
    })
}

/// Read-ahead in KiB, elevator, and the times of the published rows.
fn published() -> Result<Vec<(u64, String, Vec<f64>)>, ExperimentError> {
    let text = include_str!("../../../experiments/parallel-streams-2003.csv");
    type Record = (u64, String, [f64; 10]);
    let records: Vec<Record> = super::experiment::figures(NAME, text)?;
    let sorted = |mut times: [f64; 10]| {
        times.sort_by(f64::total_cmp);
        times.to_vec()
    };
    Ok(records.into_iter().map(|(kb, elevator, times)| (kb, elevator, sorted(times))).collect())
}

/// The machine with this read-ahead and elevator.
fn machine(
    experiment: &Experiment<Workload>,
    readahead_kb: u64,
    elevator: &str,
) -> Result<Machine, ExperimentError> {
    let workload = &experiment.workload;
    let mut spec = experiment.machine.clone();
    spec.readahead_kb = readahead_kb;
    spec.elevator = workload.elevators.get(elevator).cloned().unwrap_or_default();
    if let Some(ms) = workload.slice_ms.get(&readahead_kb.to_string())
        && spec.elevator == "anticipatory"
    {
        spec.elevator = format!("anticipatory:{ms}");
    }
    Ok(spec.build("linux-2.5")?)
}

fn completion_times(
    experiment: &Experiment<Workload>,
    readahead_kb: u64,
    elevator: &str,
) -> Result<Vec<f64>, ExperimentError> {
    let workload = &experiment.workload;
    let mut machine = machine(experiment, readahead_kb, elevator)?;
    let (size, request) = (workload.file_mb << 20, workload.request_kb << 10);
    for number in 0..workload.processes {
        let file = machine.add_file(size);
        machine.map_by_blocks(file);
        let open = machine.open(file);
        let reads =
            (0..size / request).map(move |i| Op::Read { open, at: i * request, bytes: request });
        machine.spawn((number as f64 * workload.start_every_us * 1e3) as u64, Listed(reads));
    }
    machine.run();
    let ended = |process| machine.outcome(process).ended as f64 * 1e-9;
    let mut times: Vec<f64> = (0..workload.processes).map(ended).collect();
    times.sort_by(f64::total_cmp);
    Ok(times)
}

fn figures_of(row: &Row) -> Vec<Figure> {
    // The disk was fitted to all times of the base kernel. The queueing of 2.4 and the slices of the anticipatory
    // elevator were fitted to the total times.
    let is_fitted = |index| match row.elevator {
        "deadline (2.5.61 base)" => true,
        "linus (2.4.21-pre4)" => row.readahead_kb == 128 && index + 1 == row.simulated.len(),
        "anticipatory" => index + 1 == row.simulated.len(),
        _ => false,
    };
    let figure = |(index, simulated): (usize, &f64)| Figure {
        row: format!("{}k finisher {}", row.readahead_kb, index + 1),
        policy: row.elevator.to_owned(),
        unit: "s",
        published: row.published.as_ref().map(|times| times[index]),
        simulated: *simulated,
        kind: if is_fitted(index) { Kind::Calibrated } else { Kind::Prediction },
    };
    row.simulated.iter().enumerate().map(figure).collect()
}

/// When the streams end, elevator by elevator.
fn plot_of(readahead_kb: u64, rows: &[Row]) -> Plot {
    let of = rows.iter().filter(|row| row.readahead_kb == readahead_kb);
    let series = of.flat_map(|row| {
        let was = row.published.iter().cloned();
        let was = was.map(|times| Series::published(row.elevator, sorted_points(times)));
        was.chain([Series::simulated(row.elevator, sorted_points(row.simulated.clone()))])
    });
    let title = format!("When the streams end, read-ahead {readahead_kb} KiB");
    completion_plot(&title, series.collect())
}

fn judge(workload: &Workload, rows: &[Row]) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for row in rows {
        let Some(published) = &row.published else { continue };
        let (was, is) = (last(published), last(&row.simulated));
        let error = (is / was - 1.0) * 100.0;
        verdicts.push(Verdict::new(
            format!(
                "{}k {}: last finisher {is:.1} s for {was:.1} s ({error:+.1} %)",
                row.readahead_kb, row.elevator
            ),
            error.abs() <= workload.last_finisher_within_percent,
        ));
    }
    for readahead_kb in [128, 8] {
        let of = |name: &str| {
            let row = rows.iter().find(|r| r.readahead_kb == readahead_kb && r.elevator == name);
            row.map_or(f64::NAN, |row| last(&row.simulated))
        };
        let order = ["anticipatory", "linus (2.4.21-pre4)", "cfq v1", "deadline (2.5.61 base)"];
        let times = order.map(of);
        // Of the rows at 8 KiB only two were published.
        let holds = match readahead_kb {
            128 => times.is_sorted(),
            _ => times[0] < times[3],
        };
        let claim = format!(
            "{readahead_kb}k: the elevators' order is {}",
            if readahead_kb == 128 {
                "anticipatory, 2.4, CFQ, base"
            } else {
                "anticipatory before base"
            }
        );
        verdicts.push(Verdict::new(claim, holds));
    }
    if let Some(cfq) = rows.iter().find(|r| r.elevator == "cfq v1" && r.readahead_kb == 128) {
        let widest = (1..cfq.simulated.len())
            .max_by(|a, b| gap(&cfq.simulated, *a).total_cmp(&gap(&cfq.simulated, *b)));
        let claim =
            "CFQ's two groups: five finish close together, then a gap twice as wide at least";
        let times = &cfq.simulated;
        let is_close = times.len() > 5 && 2.0 * (times[4] - times[0]) <= times[5] - times[4];
        verdicts.push(Verdict::new(claim, widest == Some(5) && is_close));
    }
    verdicts
}

fn last(times: &[f64]) -> f64 {
    times.last().copied().unwrap_or(f64::NAN)
}

fn gap(times: &[f64], index: usize) -> f64 {
    times[index] - times[index - 1]
}
