//! `bowwave status`.

mod http;
mod openmetrics;
mod scrape;
mod text;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;
use serde_json::Value;
use status::{AskError, Report};

use crate::print;

/// Show what the daemon and each `bowwave run` are doing: devices, files, budget, totals, and why
/// pages were not read ahead.
///
/// Needs root. Exits with 1 if none is running.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Print a JSON array with one object per process instead of text.
    #[arg(long)]
    json: bool,
    /// Print metrics in the OpenMetrics text format, for Prometheus, instead of text.
    #[arg(long, conflicts_with = "json")]
    metrics: bool,
    /// Serve the metrics over HTTP on this address, until ended. Only a loopback address is accepted,
    /// such as 127.0.0.1:9464.
    #[arg(long, value_name = "ADDRESS", requires = "metrics", value_parser = scrape::loopback)]
    listen: Option<SocketAddr>,
    /// The state folder of the processes to show.
    #[arg(long, value_name = "DIR", default_value = linux::state::FOLDER)]
    state: PathBuf,
}

pub(crate) fn main(args: Args) -> anyhow::Result<ExitCode> {
    if let Some(address) = args.listen {
        let mut noted = Vec::new();
        match scrape::serve(address, || metrics(&args.state, &mut noted))? {}
    }
    let answers = status::ask(&args.state)?;
    if answers.is_empty() {
        bail!(
            "no bowwave daemon or run uses {}; start one (bowwave daemon, or systemctl start \
             bowwave), or name its folder with --state",
            args.state.display()
        );
    }
    let asked = answers.len();
    let shown = match () {
        () if args.json => show_json(answers)?,
        () if args.metrics => show_metrics(answers)?,
        () => show_text(answers)?,
    };
    Ok(if shown == asked { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

type Answers = Vec<Result<Value, AskError>>;

/// Prints the answers and returns their number. Reports the processes that have not answered.
fn show_json(answers: Answers) -> anyhow::Result<usize> {
    let reports: Vec<Value> = answers.into_iter().filter_map(or_note).collect();
    let shown = reports.len();
    if shown > 0 {
        print::json(&reports.into())?;
    }
    Ok(shown)
}

/// As [`show_json`], in the OpenMetrics text format.
fn show_metrics(answers: Answers) -> anyhow::Result<usize> {
    let reports = reports(answers);
    if !reports.is_empty() {
        print::all(|output| output.write_all(openmetrics::of(&reports).as_bytes()))?;
    }
    Ok(reports.len())
}

/// The metrics of all processes that answer; `None` if there are processes and none answers. Notes why one does not,
/// unless that was noted the last time: `noted`.
fn metrics(state: &Path, noted: &mut Vec<String>) -> Option<String> {
    let answers = status::ask(state).unwrap_or_else(|error| vec![Err(error)]);
    let mut faults = Vec::new();
    let mut or_fault = |report: Result<Report, AskError>| {
        report.map_err(|fault| faults.push(fault.to_string())).ok()
    };
    let parsed = answers.into_iter().map(|answer| Report::parse(&answer?));
    let reports: Vec<Report> = parsed.filter_map(&mut or_fault).collect();
    faults.iter().filter(|fault| !noted.contains(fault)).for_each(print::note);
    let is_answered = !reports.is_empty() || faults.is_empty();
    *noted = faults;
    is_answered.then(|| openmetrics::of(&reports))
}

/// As [`show_json`], for people.
fn show_text(answers: Answers) -> anyhow::Result<usize> {
    let texts: Vec<String> =
        reports(answers).iter().map(|report| text::of(report).join("\n")).collect();
    if !texts.is_empty() {
        print::line(texts.join("\n\n"))?;
    }
    Ok(texts.len())
}

/// The reports. Notes which processes have not given one.
fn reports(answers: Answers) -> Vec<Report> {
    answers.into_iter().map(|answer| Report::parse(&answer?)).filter_map(or_note).collect()
}

/// The answer, or a note why there is none.
fn or_note<T>(answer: Result<T, AskError>) -> Option<T> {
    answer.map_err(print::note).ok()
}
