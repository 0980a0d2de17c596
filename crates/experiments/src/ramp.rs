//! How windows grow, 2005: the debug log of one `cp`, line by line.

use serde::Deserialize;
use sim::replay::{window, window_plot};
use sim::{Decision, Listed, Op, Series};

use super::experiment::{Experiment, ExperimentError, figures};
use super::table::{Figure, Kind, Table, Verdict};

const NAME: &str = "ramp-2005";

#[cfg(any(test, fuzzing))]
pub(super) const PARSERS: super::parsers::Parsers = super::parsers::Parsers::of::<Workload, Line>();

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Workload {
    file_pages: u64,
    request_kb: u64,
}

/// One published line: `readahead(file, start+asked) = read`.
#[derive(Clone, Debug, Deserialize)]
struct Line {
    policy: String,
    start: u64,
    asked: u64,
    read: u64,
}

pub(super) fn run(progress: &mut dyn FnMut(f64)) -> Result<Table, ExperimentError> {
    let experiment: Experiment<Workload> =
        Experiment::parse(NAME, include_str!("../../../experiments/ramp-2005.toml"))?;
    let lines: Vec<Line> = figures(NAME, include_str!("../../../experiments/ramp-2005.csv"))?;
    let mut table = experiment.table(NAME);
    let columns = ["stock", "adaptive ratio 101"];
    let mut windows = Vec::new();
    for (index, column) in columns.into_iter().enumerate() {
        let published: Vec<&Line> = lines.iter().filter(|line| line.policy == column).collect();
        let log = log_of(&experiment, column)?;
        let points = |(start, asked): (u64, u64)| ((start * 4) as f64, (asked * 4) as f64);
        let was = published.iter().map(|line| points((line.start, line.asked)));
        windows.push(Series::published(column, was.collect()));
        windows.push(Series::simulated(column, log.iter().map(window).collect()));
        let same = compare(&mut table, column, &published, &log);
        let all = published.len();
        let claim = format!("{column}: {same} of {all} lines exact, and no others");
        table.verdicts.push(Verdict::new(claim, same == all && log.len() == all));
        progress((index + 1) as f64 / columns.len() as f64);
    }
    table.plots.push(window_plot("How windows grow", windows));
    Ok(table)
}

fn log_of(
    experiment: &Experiment<Workload>,
    column: &str,
) -> Result<Vec<Decision>, ExperimentError> {
    let Workload { file_pages, request_kb } = experiment.workload;
    let mut machine = experiment.build(column)?;
    machine.keep_log();
    let file = machine.add_file(file_pages * 4096);
    let open = machine.open(file);
    let bytes = request_kb * 1024;
    let reads =
        (0..file_pages * 4096 / bytes).map(move |i| Op::Read { open, at: i * bytes, bytes });
    machine.spawn(0, Listed(reads));
    machine.run();
    Ok(machine.log().to_vec())
}

/// Adds a row for each line. Returns how many lines are the same.
fn compare(table: &mut Table, column: &str, published: &[&Line], log: &[Decision]) -> usize {
    let mut same = 0;
    for (index, line) in published.iter().enumerate() {
        let simulated = log.get(index);
        let triple = simulated.map(|s| (s.start, s.asked, s.read));
        same += usize::from(triple == Some((line.start, line.asked, line.read)));
        let fields = [
            ("start", line.start, simulated.map(|s| s.start)),
            ("asked", line.asked, simulated.map(|s| s.asked)),
            ("read", line.read, simulated.map(|s| s.read)),
        ];
        table.figures.extend(fields.into_iter().map(|(field, published, simulated)| Figure {
            row: format!("line {} {field}", index + 1),
            policy: column.to_owned(),
            unit: "pages",
            published: Some(published as f64),
            simulated: simulated.map_or(f64::NAN, |pages| pages as f64),
            kind: Kind::Exact,
        }));
    }
    same
}
