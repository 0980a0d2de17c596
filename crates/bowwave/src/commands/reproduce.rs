//! `bowwave reproduce`: the published tables beside the simulator's figures.

use std::io::IsTerminal;
use std::process::ExitCode;

use anyhow::bail;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use sim::published::{Figure, Kind, TABLES, Table};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Tables to reproduce; all of them by default
    #[arg(value_name = "TABLE")]
    tables: Vec<String>,
    /// Name the tables there are
    #[arg(long)]
    list: bool,
    /// A list of rows: table, row, policy, unit, published, simulated
    #[arg(long)]
    json: bool,
}

pub(crate) fn main(args: Args) -> anyhow::Result<ExitCode> {
    if args.list {
        TABLES.iter().for_each(|(name, _)| println!("{name}"));
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(unknown) = args.tables.iter().find(|name| !TABLES.iter().any(|(n, _)| n == *name)) {
        bail!("there is no table {unknown:?}; `bowwave reproduce --list` names those there are");
    }
    let chosen = TABLES
        .iter()
        .filter(|(name, _)| args.tables.is_empty() || args.tables.iter().any(|t| t == name));
    let mut rows = Vec::new();
    let mut all = Vec::new();
    for (name, run) in chosen {
        let bar = progress_bar(name);
        let table = run(&mut |share| bar.set_position((share * 1000.0) as u64))?;
        bar.finish_and_clear();
        if args.json {
            rows.extend(table.figures.iter().map(|figure| row(&table, figure)));
        } else {
            print(&table);
        }
        all.push(table);
    }
    if args.json {
        println!("{}", serde_json::to_string_pretty(&rows)?);
    } else {
        summarise(&all);
    }
    Ok(ExitCode::SUCCESS)
}

fn progress_bar(name: &str) -> ProgressBar {
    let bar = ProgressBar::new(1000);
    let style = ProgressStyle::with_template("{msg:24} [{bar:40}] {percent}%");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> "));
    bar.set_message(name.to_owned());
    bar
}

fn row(table: &Table, figure: &Figure) -> serde_json::Value {
    json!({
        "table": table.name,
        "row": figure.row,
        "policy": figure.policy,
        "unit": figure.unit,
        "published": figure.published,
        "simulated": if figure.simulated.is_finite() { Some(figure.simulated) } else { None },
    })
}

/// A figure as people write it: three digits that count.
fn short(value: f64) -> String {
    match value.abs() {
        _ if !value.is_finite() => "-".into(),
        v if v >= 100.0 || (v.fract() == 0.0 && v < 1e6) => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// One line a row, the policies side by side: published, simulated, and the error.
fn print(table: &Table) {
    println!("{}: {}", table.name, table.title);
    let mut policies: Vec<&str> = Vec::new();
    let mut names: Vec<&str> = Vec::new();
    for figure in &table.figures {
        if !policies.contains(&figure.policy.as_str()) {
            policies.push(&figure.policy);
        }
        if !names.contains(&figure.row.as_str()) {
            names.push(&figure.row);
        }
    }
    let width = names.iter().map(|name| name.len()).max().unwrap_or(0).max(4);
    print!("{:width$}", "");
    policies.iter().for_each(|policy| print!("  {policy:>26}"));
    println!();
    print!("{:width$}", "row");
    policies.iter().for_each(|_| print!("  {:>9} {:>9} {:>6}", "published", "simulated", "error"));
    println!();
    for name in names {
        print!("{name:width$}");
        for policy in &policies {
            let figure = table.figures.iter().find(|f| f.row == name && f.policy == *policy);
            print!("  {}", figure.map_or(" ".repeat(26), cell));
        }
        println!();
    }
    for assumption in &table.assumptions {
        println!("  assumed: {assumption}");
    }
    for verdict in &table.verdicts {
        println!("  {} {}", mark(verdict.holds), verdict.claim);
    }
    println!();
}

fn cell(figure: &Figure) -> String {
    let published = figure.published.map_or("-".into(), short);
    let error = figure.error().map_or(String::new(), |error| format!("{:+.0}%", error * 100.0));
    let kind = if figure.kind == Kind::Calibrated { "~" } else { " " };
    format!("{published:>9} {:>9}{kind}{error:>6}", short(figure.simulated))
}

/// What holds, and in red what does not.
fn mark(holds: bool) -> &'static str {
    match (holds, std::io::stdout().is_terminal()) {
        (true, _) => "holds:",
        (false, true) => "\x1b[31mFAILS:\x1b[0m",
        (false, false) => "FAILS:",
    }
}

fn summarise(tables: &[Table]) {
    let verdicts = || tables.iter().flat_map(|table| &table.verdicts);
    let hold = verdicts().filter(|verdict| verdict.holds).count();
    println!("{hold} of {} claims hold (~ marks what was calibrated)", verdicts().count());
}
