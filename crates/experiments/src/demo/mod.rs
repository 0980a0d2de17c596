//! The demonstration: its figures on the lab's devices, compared with the same controller in the simulator.
//!
//! ```text
//!   crates/patterns         which files, read in which order, by whom   --+--> live: crates/demo  --> demo.csv --+
//!                                                                         |                                      +--> Table
//!   demo.toml               how programs read                           --+--> here: scripts                   --+
//!   demo-programs.csv       what they compute                           --'
//! ```

#[cfg(test)]
mod better_window;
mod judge;
mod readers;

use std::collections::BTreeMap;

use patterns::{PATTERNS, Pattern};
use readahead::adaptive::Rules;
use serde::Deserialize;
use sim::{Machine, MachineSpec};

use super::experiment::{Experiment, ExperimentError, figures};
use super::side_by_side::side_by_side;
use super::table::{Figure, Kind, Table};
use readers::{Program, Times};

const NAME: &str = "demo";

/// The setting under which bowwave runs.
const OURS: &str = "bowwave";

#[cfg(any(test, fuzzing))]
pub(super) const PARSERS: super::parsers::Parsers =
    super::parsers::Parsers::of::<Workload, Measured>();

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Workload {
    /// The settings by name.
    settings: BTreeMap<String, Setting>,
    /// Nanoseconds that the demonstration's own reader computes for each KiB.
    reader_ns_per_kib: f64,
    /// How programs read, by name.
    programs: BTreeMap<String, Program>,
    /// Figures to which the machine was fitted: row and setting.
    calibrated: Vec<String>,
    /// Patterns that are not simulated.
    left_out: Vec<String>,
}

/// A setting of the demonstration.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Setting {
    policy: String,
    readahead_kb: u64,
}

/// One live figure. The file also says how far the busy machine may have changed it, in percent.
#[derive(Clone, Debug, PartialEq, Deserialize)]
struct Measured {
    device: String,
    pattern: String,
    setting: String,
    unit: Unit,
    /// Median over the rounds.
    live: f64,
}

/// A line of the programs' table.
#[derive(Clone, Debug, Deserialize)]
struct ProgramTimes {
    program: String,
    start_us: f64,
    ns_per_kib: f64,
}

/// The figure of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
enum Unit {
    /// Its time.
    #[serde(rename = "s")]
    Seconds,
    /// Throughput of the streams beside a random reader.
    #[serde(rename = "MB/s")]
    StreamsMbS,
    /// The median latency of the random reader.
    #[serde(rename = "ms")]
    LatencyMs,
}

impl Unit {
    fn name(self) -> &'static str {
        match self {
            Unit::Seconds => "s",
            Unit::StreamsMbS => "MB/s",
            Unit::LatencyMs => "ms",
        }
    }
}

/// A live figure, its pattern and its setting.
struct Cell<'a> {
    measured: &'a Measured,
    pattern: &'static Pattern,
    setting: &'a Setting,
}

pub(super) fn run(progress: &mut dyn FnMut(f64)) -> Result<Table, ExperimentError> {
    table(&experiment()?, &live()?, progress)
}

fn live() -> Result<Vec<Measured>, ExperimentError> {
    figures(NAME, include_str!("../../../../experiments/demo.csv"))
}

/// The experiment, with the processor times of its programs.
fn experiment() -> Result<Experiment<Workload>, ExperimentError> {
    let text = include_str!("../../../../experiments/demo.toml");
    let mut experiment: Experiment<Workload> = Experiment::parse(NAME, text)?;
    let text = include_str!("../../../../experiments/demo-programs.csv");
    for ProgramTimes { program, start_us, ns_per_kib } in figures(NAME, text)? {
        if let Some(program) = experiment.workload.programs.get_mut(&program) {
            program.times = Times { start_us, ns_per_kib };
        }
    }
    Ok(experiment)
}

fn table(
    experiment: &Experiment<Workload>,
    live: &[Measured],
    progress: &mut dyn FnMut(f64),
) -> Result<Table, ExperimentError> {
    let workload = &experiment.workload;
    let cells = cells(workload, live)?;
    let simulated = side_by_side(&cells, |cell| simulate(experiment, cell), progress)?;
    let figures: Vec<Figure> = cells
        .iter()
        .zip(simulated)
        .map(|(cell, simulated)| figure(workload, cell.measured, simulated))
        .collect();
    let verdicts = judge::judge(&figures);
    Ok(Table { figures, verdicts, ..experiment.table(NAME) })
}

/// Each cell's name, and what it costs under bowwave with each of these rules: a time, or the inverse of a throughput.
pub(super) fn costs_with_rules(
    all: &[Rules],
    progress: &mut dyn FnMut(f64),
) -> Result<Vec<(String, Vec<f64>)>, ExperimentError> {
    let (experiment, live) = (experiment()?, live()?);
    let mut ours = cells(&experiment.workload, &live)?;
    ours.retain(|cell| cell.measured.setting == OURS);
    let costs = |cell: &Cell<'_>| {
        let spec = spec(&experiment, cell);
        let cost = |rules: &Rules| {
            let figure = read(&experiment, cell, spec.build_with_rules(*rules)?);
            let is_throughput = cell.measured.unit == Unit::StreamsMbS;
            Ok(if is_throughput { 1.0 / figure } else { figure })
        };
        let costs = all.iter().map(cost).collect::<Result<_, ExperimentError>>()?;
        Ok((row(cell.measured), costs))
    };
    side_by_side(&ours, costs, progress)
}

/// A cell for each live figure, but for patterns that are not simulated.
fn cells<'a>(
    workload: &'a Workload,
    live: &'a [Measured],
) -> Result<Vec<Cell<'a>>, ExperimentError> {
    let is_wanted = |measured: &&Measured| !workload.left_out.contains(&measured.pattern);
    live.iter().filter(is_wanted).map(|measured| cell(workload, measured)).collect()
}

fn cell<'a>(workload: &'a Workload, measured: &'a Measured) -> Result<Cell<'a>, ExperimentError> {
    let wrong = |problem: String| ExperimentError::Row {
        name: NAME,
        row: format!("{} {}", measured.device, measured.pattern),
        problem,
    };
    let pattern = PATTERNS.iter().find(|pattern| pattern.name == measured.pattern);
    let pattern = pattern.ok_or_else(|| wrong("there is no pattern of that name".into()))?;
    let setting = workload.settings.get(&measured.setting).ok_or_else(|| {
        let known: Vec<&str> = workload.settings.keys().map(String::as_str).collect();
        wrong(format!("the setting {:?} is none of {}", measured.setting, known.join(", ")))
    })?;
    if pattern.program().is_some_and(|program| !workload.programs.contains_key(program)) {
        return Err(wrong("demo.toml does not tell how its program reads".into()));
    }
    Ok(Cell { measured, pattern, setting })
}

fn figure(workload: &Workload, measured: &Measured, simulated: f64) -> Figure {
    let row = row(measured);
    let is_calibrated = workload.calibrated.contains(&format!("{row} {}", measured.setting));
    Figure {
        row,
        policy: measured.setting.clone(),
        unit: measured.unit.name(),
        published: Some(measured.live),
        simulated,
        kind: if is_calibrated { Kind::Calibrated } else { Kind::Prediction },
    }
}

fn row(measured: &Measured) -> String {
    let Measured { device, pattern, unit, .. } = measured;
    match unit {
        Unit::Seconds => format!("{device} {pattern}"),
        Unit::StreamsMbS | Unit::LatencyMs => format!("{device} {pattern} {}", unit.name()),
    }
}

/// The figure of the simulated machine.
fn simulate(experiment: &Experiment<Workload>, cell: &Cell<'_>) -> Result<f64, ExperimentError> {
    let machine = spec(experiment, cell).build(&cell.setting.policy)?;
    Ok(read(experiment, cell, machine))
}

/// The machine of a cell.
fn spec(experiment: &Experiment<Workload>, cell: &Cell<'_>) -> MachineSpec {
    let mut spec = experiment.machine.clone();
    spec.device.clone_from(&cell.measured.device);
    spec.readahead_kb = cell.setting.readahead_kb;
    if let Some(bytes) = readers::memory_bytes(cell.pattern, &cell.setting.policy) {
        spec.memory_mb = bytes as f64 / 1e6;
    }
    spec
}

/// Reads the pattern of a cell on a machine.
fn read(experiment: &Experiment<Workload>, cell: &Cell<'_>, mut machine: Machine) -> f64 {
    let (cpu, unit) = (&experiment.machine.cpu, cell.measured.unit);
    readers::run(&mut machine, cell.pattern, &experiment.workload, cpu, unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(pattern: &str, setting: &str, live: f64) -> Measured {
        Measured {
            device: "net".into(),
            pattern: pattern.into(),
            setting: setting.into(),
            unit: Unit::Seconds,
            live,
        }
    }

    fn simulated(live: &[Measured]) -> Result<Table, ExperimentError> {
        table(&experiment()?, live, &mut |_| {})
    }

    #[test]
    fn a_row_that_cannot_be_simulated_is_named_with_the_reason() {
        let error = |row| simulated(&[row]).expect_err("it cannot be").to_string();
        let unknown = error(measured("sideways", "bowwave", 1.0));
        assert!(unknown.contains("net sideways") && unknown.contains("no pattern"), "{unknown}");
        let unknown = error(measured("tac", "stock 1M", 1.0));
        assert!(unknown.contains("bowwave, stock 128K, stock 4M"), "{unknown}");
    }

    #[test]
    fn what_is_left_out_has_no_row() {
        let live = [measured("grep-tree", "bowwave", 1.0), measured("tac", "bowwave", 0.03)];
        let table = simulated(&live).expect("it runs");
        assert_eq!(table.rows(), [("net tac", "s")]);
    }

    #[test]
    fn each_pattern_can_be_simulated_or_is_left_out() {
        let experiment = experiment().expect("it is one");
        for pattern in PATTERNS {
            let is_left_out = experiment.workload.left_out.iter().any(|name| name == pattern.name);
            let cell = measured(pattern.name, "stock 128K", 1.0);
            assert!(
                is_left_out || super::cell(&experiment.workload, &cell).is_ok(),
                "{}",
                pattern.name
            );
        }
    }

    #[test]
    fn each_program_has_its_times() {
        for (name, program) in experiment().expect("it is one").workload.programs {
            assert!(program.times.start_us > 0.0 && program.times.ns_per_kib > 0.0, "{name}");
        }
    }

    /// 512 accesses of 5 ms; only a few of them under bowwave.
    #[test]
    fn a_backward_reader_waits_for_each_read_of_the_stock_kernel_only() {
        let [stock, bowwave] = ["stock 128K", "bowwave"].map(|setting| {
            let table = simulated(&[measured("tac", setting, 1.0)]).expect("it runs");
            table.figures[0].simulated
        });
        assert!((2.5..2.8).contains(&stock), "{stock}");
        assert!((0.01..0.1).contains(&bowwave), "{bowwave}");
    }
}
