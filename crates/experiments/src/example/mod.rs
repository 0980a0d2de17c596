//! The example of docs/adding-a-table.md.

use serde::Deserialize;
use sim::{Listed, Op};

use super::experiment::{Experiment, ExperimentError, figures};
use super::table::{Figure, Kind, Table, Verdict};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Workload {
    policies: Vec<String>,
    file_bytes: u64,
    read_bytes: u64,
}

#[derive(Debug, Deserialize)]
struct Published {
    policy: String,
    seconds: f64,
}

pub(super) fn run(progress: &mut dyn FnMut(f64)) -> Result<Table, ExperimentError> {
    let text = include_str!("backward.toml");
    let experiment: Experiment<Workload> = Experiment::parse("backward", text)?;
    let text = include_str!("backward.csv");
    let published: Vec<Published> = figures("backward", text)?;
    let mut rows = Vec::new();
    for policy in &experiment.workload.policies {
        rows.push(Figure {
            row: "elapsed".into(),
            policy: policy.clone(),
            unit: "s",
            published: published.iter().find(|row| row.policy == *policy).map(|row| row.seconds),
            simulated: elapsed(&experiment, policy)?,
            kind: Kind::Prediction,
        });
        progress(rows.len() as f64 / experiment.workload.policies.len() as f64);
    }
    let fastest = rows.iter().min_by(|a, b| a.simulated.total_cmp(&b.simulated));
    let is_adaptive = fastest.is_some_and(|figure| figure.policy == "adaptive");
    Ok(Table {
        name: "backward",
        title: experiment.title,
        assumptions: experiment.assumptions,
        verdicts: vec![Verdict::new("adaptive is the fastest", is_adaptive)],
        figures: rows,
        plots: Vec::new(),
    })
}

fn elapsed(experiment: &Experiment<Workload>, policy: &str) -> Result<f64, ExperimentError> {
    let Workload { file_bytes, read_bytes, .. } = experiment.workload;
    let mut machine = experiment.build(policy)?;
    let file = machine.add_file(file_bytes);
    let open = machine.open(file);
    let numbers = (0..file_bytes / read_bytes).rev();
    let reads = numbers.map(move |n| Op::Read { open, at: n * read_bytes, bytes: read_bytes });
    let reader = machine.spawn(0, Listed(reads));
    machine.run();
    Ok(machine.outcome(reader).ended as f64 * 1e-9)
}
