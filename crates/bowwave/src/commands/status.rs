//! `bowwave status`.

mod text;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::bail;
use live::status::{self, AskError, Report};
use serde_json::Value;

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
    /// The state folder.
    #[arg(long, value_name = "DIR", default_value = linux::state::FOLDER)]
    state: PathBuf,
}

pub(crate) fn main(args: Args) -> anyhow::Result<ExitCode> {
    let answers = status::ask(&args.state)?;
    if answers.is_empty() {
        bail!(
            "no bowwave daemon or run uses {}; start one (systemctl start bowwave), or name its \
             folder with --state",
            args.state.display()
        );
    }
    let is_complete = if args.json { show_json(answers)? } else { show_text(answers)? };
    Ok(if is_complete { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

type Answers = Vec<Result<Value, AskError>>;

/// Prints the answers. Returns whether every process has answered, and names those that have not.
/// [`show_text`] does the same.
fn show_json(answers: Answers) -> anyhow::Result<bool> {
    let asked = answers.len();
    let told: Vec<Value> = answers.into_iter().filter_map(or_note).collect();
    let is_complete = told.len() == asked;
    if !told.is_empty() {
        print::json(&told.into())?;
    }
    Ok(is_complete)
}

fn show_text(answers: Answers) -> anyhow::Result<bool> {
    let asked = answers.len();
    let reports = answers.into_iter().map(|answer| Report::parse(&answer?));
    let told: Vec<String> =
        reports.filter_map(or_note).map(|report| text::of(&report).join("\n")).collect();
    let is_complete = told.len() == asked;
    if !told.is_empty() {
        print::line(told.join("\n\n"))?;
    }
    Ok(is_complete)
}

fn or_note<T>(answer: Result<T, AskError>) -> Option<T> {
    answer.map_err(print::note).ok()
}
