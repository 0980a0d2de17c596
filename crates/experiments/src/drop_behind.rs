//! The effect of a large copy on a working set, 2007: four scans of a mapped file, with a copy in between.

use controller::MemoryStats;
use controller::behind::{Mode, Rules};
use serde::Deserialize;
use sim::{FileIndex, Listed, Machine, OnTop, Op, Parts};

use super::experiment::{Experiment, ExperimentError, figures};
use super::table::{Figure, Kind, Table, Verdict};

const NAME: &str = "drop-behind-2007";

#[cfg(any(test, fuzzing))]
pub(super) const PARSERS: super::parsers::Parsers =
    super::parsers::Parsers::of::<Workload, Record>();

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Workload {
    scanned_mib: u64,
    copied_mib: u64,
    copy_kb: u64,
}

/// One published line.
#[derive(Clone, Debug, Deserialize)]
struct Record {
    drop_behind: String,
    disturbance: String,
    scan1: f64,
    scan2: f64,
    scan3: f64,
    scan4: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Disturbance {
    None,
    Read,
    Copy,
}

impl Disturbance {
    const ALL: [Disturbance; 3] = [Disturbance::None, Disturbance::Read, Disturbance::Copy];

    /// Its name in the published table.
    fn name(self) -> &'static str {
        match self {
            Disturbance::None => "none",
            Disturbance::Read => "cp 5 GB file to /dev/null",
            Disturbance::Copy => "cp 5 GB file to a 5 GB copy",
        }
    }
}

/// The kernel without the patch, with it, and bowwave, which was not published.
const COLUMNS: [&str; 3] = ["off", "on", "bowwave"];

const SCANS: usize = 4;

/// The figures of one disturbance on one machine.
struct Run {
    column: &'static str,
    disturbance: Disturbance,
    published: Option<[f64; SCANS]>,
    scans: [f64; SCANS],
    /// Share of the scanned file that was cached after the disturbance.
    resident: f64,
}

pub(super) fn run(progress: &mut dyn FnMut(f64)) -> Result<Table, ExperimentError> {
    let text = include_str!("../../../experiments/drop-behind-2007.toml");
    let experiment: Experiment<Workload> = Experiment::parse(NAME, text)?;
    let text = include_str!("../../../experiments/drop-behind-2007.csv");
    let records: Vec<Record> = figures(NAME, text)?;
    let mut runs = Vec::new();
    for disturbance in Disturbance::ALL {
        for column in COLUMNS {
            let record = records
                .iter()
                .find(|r| r.drop_behind == column && r.disturbance == disturbance.name());
            let published = record.map(|r| [r.scan1, r.scan2, r.scan3, r.scan4]);
            let (scans, resident) = scan_seconds(&experiment, column, disturbance)?;
            runs.push(Run { column, disturbance, published, scans, resident });
            progress(runs.len() as f64 / (COLUMNS.len() * Disturbance::ALL.len()) as f64);
        }
    }
    Ok(Table {
        figures: runs.iter().flat_map(figures_of).collect(),
        verdicts: runs.iter().map(judge).collect(),
        ..experiment.table(NAME)
    })
}

/// Seconds of the four scans, and the share that was cached before the third.
fn scan_seconds(
    experiment: &Experiment<Workload>,
    column: &str,
    disturbance: Disturbance,
) -> Result<([f64; SCANS], f64), ExperimentError> {
    let workload = &experiment.workload;
    let mut machine = Machine::new(parts(experiment, column)?);
    let scanned = machine.add_file(workload.scanned_mib << 20);
    let before: Vec<Op> = [scan(&mut machine, scanned, 1), scan(&mut machine, scanned, 2)].concat();
    let between = disturb(&mut machine, workload, disturbance);
    let first = machine.spawn(0, Listed(before.into_iter().chain(between)));
    machine.run();
    let pages = (workload.scanned_mib << 20) / readahead::PAGE_BYTES;
    let resident = machine.resident_pages(scanned) as f64 / pages as f64;
    let ended = machine.outcome(first).ended;
    let after: Vec<Op> = [scan(&mut machine, scanned, 3), scan(&mut machine, scanned, 4)].concat();
    let second = machine.spawn(ended, Listed(after.into_iter()));
    machine.run();
    let mut seconds = [0.0; SCANS];
    for process in [first, second] {
        let stamps = &machine.outcome(process).stamps;
        for pair in stamps.chunks(2) {
            let [(scan, start), (_, end)] = pair else { continue };
            seconds[*scan as usize - 1] = (end - start) as f64 * 1e-9;
        }
    }
    Ok((seconds, resident))
}

/// The machine of a column. Bowwave drops behind, and knows the size of memory as it does live.
fn parts(experiment: &Experiment<Workload>, column: &str) -> Result<Parts, ExperimentError> {
    let mut parts = experiment.machine.parts(experiment.policy(column))?;
    if let Some(OnTop::Bowwave(bowwave)) = &mut parts.on_top {
        let available_bytes = Some(parts.memory_pages * readahead::PAGE_BYTES);
        bowwave.memory = MemoryStats::Machine { available_bytes, own_cgroup_bytes: None };
        bowwave.options.behind = Some(Rules::only(Mode::Auto));
    }
    Ok(parts)
}

/// Maps the file, touches every page, unmaps it. Stamps the number before and after.
fn scan(machine: &mut Machine, file: FileIndex, number: u32) -> Vec<Op> {
    let open = machine.open(file);
    let pages = machine.file_pages_of(file);
    let stamp = || std::iter::once(Op::Stamp { label: number });
    let faults = (0..pages).map(|page| Op::Fault { open, page });
    stamp().chain(faults).chain(std::iter::once(Op::Unmap { open })).chain(stamp()).collect()
}

fn disturb(
    machine: &mut Machine,
    workload: &Workload,
    disturbance: Disturbance,
) -> Box<dyn Iterator<Item = Op> + Send> {
    let (size, bytes) = (workload.copied_mib << 20, workload.copy_kb << 10);
    let (from, to) = (machine.add_file(size), machine.add_file(size));
    let (from, to) = (machine.open(from), machine.open(to));
    let places = (0..size / bytes).map(move |i| i * bytes);
    let read = move |at| Op::Read { open: from, at, bytes };
    let write = move |at| Op::Write { open: to, at, bytes };
    match disturbance {
        Disturbance::None => Box::new(std::iter::empty()),
        Disturbance::Read => Box::new(places.map(read)),
        Disturbance::Copy => Box::new(places.flat_map(move |at| [read(at), write(at)])),
    }
}

fn figures_of(run: &Run) -> Vec<Figure> {
    let figure = |(index, seconds): (usize, &f64)| Figure {
        row: format!("{}, scan {}", run.disturbance.name(), index + 1),
        policy: run.column.to_owned(),
        unit: "s",
        published: run.published.map(|scans| scans[index]),
        simulated: *seconds,
        kind: if index < 2 { Kind::Calibrated } else { Kind::Prediction },
    };
    run.scans.iter().enumerate().map(figure).collect()
}

fn judge(run: &Run) -> Verdict {
    let name = run.disturbance.name();
    let [_, warm, third, _] = run.scans;
    match run.published {
        Some(published) => {
            let errors = run.scans.iter().zip(published).map(|(is, was)| (is / was - 1.0).abs());
            let worst = errors.fold(0.0, f64::max) * 100.0;
            let claim =
                format!("{} {name}: all scans within 15 % (worst {worst:.1} %)", run.column);
            Verdict::new(claim, worst <= 15.0)
        }
        None => {
            let resident = run.resident * 100.0;
            let claim = format!(
                "bowwave's drop-behind, {name}: {resident:.1} % stay cached, the third scan takes {third:.2} s after {warm:.2} s"
            );
            Verdict::new(claim, third <= 1.1 * warm && resident >= 99.0)
        }
    }
}
