//! Random reading of one file in stages, 2006. Pages stay cached, so stages get faster.

use serde::Deserialize;
use sim::scripts::random::Random;
use sim::{Axis, Machine, Op, Plot, Series};

use super::experiment::{Experiment, ExperimentError, figures};
use super::table::{Figure, Kind, Table, Verdict, goes_the_same_way};

const NAME: &str = "random-reads-2006";

#[cfg(any(test, fuzzing))]
pub(super) const PARSERS: super::parsers::Parsers =
    super::parsers::Parsers::of::<Workload, Record>();

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Workload {
    file_mb: u64,
    stage_mb: u64,
    /// What the program computes for each read, in microseconds.
    read_us: f64,
    configs: Vec<Config>,
}

/// One configuration: a row of stages in the published table.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    name: String,
    /// Memory of the page cache in MB.
    memory_mb: f64,
    request_kb: u64,
    is_aligned: bool,
}

/// One published figure.
#[derive(Clone, Debug, Deserialize)]
struct Record {
    config: String,
    /// Counted from 1.
    stage: usize,
    policy: String,
    stage_seconds: f64,
}

const STAGES: usize = 8;

/// Columns of every configuration; some were not published.
const COLUMNS: [&str; 5] = ["stock", "hr0", "hr1", "hr2", "hr8"];

pub(super) fn run(progress: &mut dyn FnMut(f64)) -> Result<Table, ExperimentError> {
    let experiment: Experiment<Workload> =
        Experiment::parse(NAME, include_str!("../../../experiments/random-reads-2006.toml"))?;
    let records: Vec<Record> =
        figures(NAME, include_str!("../../../experiments/random-reads-2006.csv"))?;
    let mut table = experiment.table(NAME);
    let configs = &experiment.workload.configs;
    let mut claims = Claims::default();
    for (index, config) in configs.iter().enumerate() {
        let published = |column: &str| published_stages(&records, &config.name, column);
        let mut simulated = Vec::new();
        for (position, column) in COLUMNS.into_iter().enumerate() {
            let stages = stages(&experiment, config, column)?;
            table.figures.extend(rows(config, column, &published(column), &stages));
            simulated.push((column, published(column), stages));
            let done = index * COLUMNS.len() + position + 1;
            progress(done as f64 / (configs.len() * COLUMNS.len()) as f64);
        }
        claims.judge(config, &simulated);
        table.plots.push(stage_plot(config, &simulated));
    }
    table.verdicts = claims.verdicts();
    Ok(table)
}

/// Simulated changes of all stages together against stock, in percent, for each configuration and each other policy.
pub(super) fn total_changes() -> Result<Vec<f64>, ExperimentError> {
    let experiment: Experiment<Workload> =
        Experiment::parse(NAME, include_str!("../../../experiments/random-reads-2006.toml"))?;
    let mut changes = Vec::new();
    for config in &experiment.workload.configs {
        let total = |column| -> Result<f64, ExperimentError> {
            Ok(stages(&experiment, config, column)?.iter().sum())
        };
        let stock = total("stock")?;
        for column in &COLUMNS[1..] {
            changes.push((total(column)? / stock - 1.0) * 100.0);
        }
    }
    Ok(changes)
}

/// The published seconds of each stage, if any.
fn published_stages(records: &[Record], config: &str, column: &str) -> Vec<Option<f64>> {
    let of = |stage: usize| {
        records
            .iter()
            .find(|r| r.config == config && r.policy == column && r.stage == stage)
            .map(|r| r.stage_seconds)
    };
    (1..=STAGES).map(of).collect()
}

/// Runs one configuration under one policy. Returns the seconds of each stage.
fn stages(
    experiment: &Experiment<Workload>,
    config: &Config,
    column: &str,
) -> Result<Vec<f64>, ExperimentError> {
    let Workload { file_mb, stage_mb, read_us, .. } = experiment.workload;
    let mut spec = experiment.machine.clone();
    spec.memory_mb = config.memory_mb;
    let policy = experiment.policies.get(column).map_or(column, String::as_str);
    let mut machine = spec.build(policy)?;
    let reader = spawn_reader(&mut machine, config, [file_mb << 20, stage_mb << 20], read_us);
    machine.run();
    let stamps = &machine.outcome(reader).stamps;
    let ends = stamps.iter().map(|(_, at)| *at as f64 * 1e-9);
    let starts = std::iter::once(0.0).chain(ends.clone());
    Ok(ends.zip(starts).map(|(end, start)| end - start).collect())
}

/// Starts the reader of a file of so many bytes, in stages of so many.
fn spawn_reader(
    machine: &mut Machine,
    config: &Config,
    [file, stage]: [u64; 2],
    read_us: f64,
) -> usize {
    let index = machine.add_file(file);
    let open = machine.open(index);
    let bytes = config.request_kb << 10;
    let reads_per_stage = stage / bytes;
    // Requests begin at multiples of this: of a request, or of a sector.
    let grain = if config.is_aligned { bytes } else { 512 };
    let places = (file - bytes) / grain + 1;
    // Any seed will do, but it must stay the same.
    let mut random = Random::new(2006);
    let compute = Op::Compute { ns: (read_us * 1e3) as u64 };
    let mut has_computed = false;
    let mut done = 0;
    let mut stage = 0;
    machine.spawn(0, move |_| {
        if stage == STAGES as u32 {
            return Op::Exit;
        }
        if done == reads_per_stage {
            done = 0;
            stage += 1;
            return Op::Stamp { label: stage };
        }
        has_computed = !has_computed;
        if has_computed {
            return compute;
        }
        done += 1;
        Op::Read { open, at: random.below(places) * grain, bytes }
    })
}

fn rows(
    config: &Config,
    column: &str,
    published: &[Option<f64>],
    simulated: &[f64],
) -> Vec<Figure> {
    let kind = if column == "stock" { Kind::Calibrated } else { Kind::Prediction };
    let figure = |(index, (published, simulated)): (usize, (&Option<f64>, &f64))| Figure {
        row: format!("{} stage {}", config.name, index + 1),
        policy: column.to_owned(),
        unit: "s",
        published: *published,
        simulated: *simulated,
        kind,
    };
    published.iter().zip(simulated).enumerate().map(figure).collect()
}

/// The seconds of each stage, column by column.
fn stage_plot(config: &Config, columns: &[Column]) -> Plot {
    let numbered = |seconds: &mut dyn Iterator<Item = Option<f64>>| -> Vec<(f64, f64)> {
        let numbered = seconds.enumerate();
        numbered.filter_map(|(index, seconds)| Some(((index + 1) as f64, seconds?))).collect()
    };
    let series = columns.iter().flat_map(|(column, published, simulated)| {
        let was = numbered(&mut published.iter().copied());
        let is = numbered(&mut simulated.iter().copied().map(Some));
        let published = (!was.is_empty()).then(|| Series::published(*column, was));
        published.into_iter().chain([Series::simulated(*column, is)])
    });
    Plot {
        title: format!("{}: seconds a stage", config.name),
        x: Axis::linear("stage"),
        y: Axis::linear("s"),
        series: series.collect(),
    }
}

/// A column: its policy, the published seconds of each stage, and the simulated ones.
type Column<'a> = (&'a str, Vec<Option<f64>>, Vec<f64>);

/// The claims, each about several configurations or columns.
#[derive(Default)]
struct Claims {
    stock: Vec<(String, bool)>,
    signs: Vec<(String, bool)>,
    sums: Vec<(String, bool)>,
}

impl Claims {
    fn verdicts(self) -> Vec<Verdict> {
        vec![
            Verdict::of_all("every stock stage within 8 %", self.stock),
            Verdict::of_all("the sign of each stage's change above 5 % is right", self.signs),
            Verdict::of_all("accumulated changes within 10 points", self.sums),
        ]
    }

    fn judge(&mut self, config: &Config, columns: &[Column]) {
        let (_, stock, stock_simulated) = &columns[0];
        let errors = stock.iter().zip(stock_simulated).filter_map(|(p, s)| p.map(|p| s / p - 1.0));
        let worst = errors.fold(0.0, |worst: f64, error| worst.max(error.abs()));
        self.stock.push((config.name.clone(), worst <= 0.08));
        for (column, published, simulated) in &columns[1..] {
            let name = format!("{} {column}", config.name);
            self.judge_changes(&name, [stock, published], [stock_simulated, simulated]);
        }
    }

    /// Whether changes against stock have the published sign, stage by stage if a stage changed by much, and about the
    /// published size in all stages together.
    fn judge_changes(
        &mut self,
        name: &str,
        [stock, policy]: [&Vec<Option<f64>>; 2],
        [stock_simulated, policy_simulated]: [&Vec<f64>; 2],
    ) {
        let all = |stages: &[Option<f64>]| stages.iter().copied().collect::<Option<Vec<f64>>>();
        let (Some(stock), Some(published)) = (all(stock), all(policy)) else { return };
        let change = |a: &[f64], b: &[f64]| -> Vec<f64> {
            a.iter().zip(b).map(|(stock, policy)| (policy / stock - 1.0) * 100.0).collect()
        };
        let was = change(&stock, &published);
        let is = change(stock_simulated, policy_simulated);
        for (index, (was, is)) in was.into_iter().zip(is).enumerate() {
            if was.abs() > 5.0 {
                let stage = format!("{name} stage {}", index + 1);
                self.signs.push((stage, goes_the_same_way(was, is)));
            }
        }
        let total = |stages: &[f64]| stages.iter().sum::<f64>();
        let was = (total(&published) / total(&stock) - 1.0) * 100.0;
        let is = (total(policy_simulated) / total(stock_simulated) - 1.0) * 100.0;
        self.sums.push((name.to_owned(), (was - is).abs() <= 10.0));
    }
}
