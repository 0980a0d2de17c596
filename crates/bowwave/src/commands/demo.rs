//! `bowwave demo`.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, anyhow};
use demo::small::SHOWS;
use demo::{DemoError, Options};
use patterns::{PATTERNS, find};

use super::doctor::checks;
use crate::invocation;
use crate::print::{self, PrintError};
use crate::signals;

/// Show the effect: read test patterns from slow disks made for this, with the stock kernel and
/// with bowwave.
///
/// Takes one minute, two on a busy machine, and more than an hour with --full. Needs root, FUSE and a kernel
/// that bowwave supports (see `bowwave doctor`).
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Run every pattern in 3 rounds; takes more than an hour.
    #[arg(long)]
    full: bool,
    /// Devices, separated by commas: names from `bowwave lab --list`, TOML files, or local[:FOLDER]
    /// for the machine's own disk.
    #[arg(long, value_delimiter = ',', default_value = "net,hdd")]
    device: Vec<String>,
    /// Patterns, separated by commas.
    #[arg(long, value_delimiter = ',', value_name = "PATTERN")]
    only: Vec<String>,
    /// Rounds per pattern; shows medians.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: Option<u32>,
    /// Record what bowwave does into a file of this folder for each run; `bowwave replay --verify`
    /// checks it.
    #[arg(long, value_name = "FOLDER")]
    record: Option<PathBuf>,
    /// Print JSON instead of text: a list of rows, or of patterns with --list.
    #[arg(long)]
    json: bool,
    /// List the patterns.
    #[arg(long)]
    list: bool,
    /// For tests: delay the replies of modelled devices by this many microseconds on average, as a
    /// busy machine does.
    #[arg(long, value_name = "US", default_value_t = 0, hide_default_value = true)]
    inject_late: u32,
    #[arg(long, hide = true, requires = "folder")]
    worker: Option<String>,
    #[arg(long, hide = true)]
    folder: Option<PathBuf>,
    /// Execute jobs read from standard input.
    #[arg(long, hide = true)]
    hand: bool,
}

pub(crate) fn main(args: Args) -> anyhow::Result<ExitCode> {
    if args.list {
        return list(args.json);
    }
    if args.hand {
        demo::worker::jobs::serve(std::io::stdin().lock(), std::io::stdout().lock())?;
        return Ok(ExitCode::SUCCESS);
    }
    match (&args.worker, &args.folder) {
        (Some(pattern), Some(folder)) => work(pattern, folder),
        _ => show(args),
    }
}

fn list(as_json: bool) -> anyhow::Result<ExitCode> {
    let named = PATTERNS.iter().map(|pattern| (pattern.name, pattern.definition)).chain(SHOWS);
    print::list(["pattern", "definition"], &named.collect::<Vec<_>>(), as_json)?;
    Ok(ExitCode::SUCCESS)
}

fn show(args: Args) -> anyhow::Result<ExitCode> {
    let rounds = args.rounds.unwrap_or(if args.full { 3 } else { 1 });
    let is_short = !args.full && args.only.is_empty() && rounds == 1;
    let options = Options {
        devices: args.device,
        only: args.only,
        full: args.full,
        rounds,
        record: args.record,
        begin_within: is_short.then_some(demo::SHORT),
        invoked_as: invocation::as_root(),
        why_not_able: why_not_able(),
        inject_late_us: args.inject_late.into(),
    };
    let mut json_rows = Vec::new();
    let mut has_rows = false;
    let shown = demo::show(&options, |report| {
        if args.json {
            if let demo::Report::Note(note) = &report {
                print::note(note);
            }
            json_rows.extend(report.json_rows());
            return Ok(());
        }
        has_rows |= matches!(report, demo::Report::Row(_));
        print::line(report).map_err(|error| error.0)
    });
    if args.json && !json_rows.is_empty() {
        print::json(&json_rows.into())?;
    }
    match shown {
        Ok(()) => {
            if has_rows {
                print::line(format_args!("\n{}", demo::LEGEND))?;
            }
            if !args.json {
                print::line(format_args!("\n{}", demo::next_steps(&invocation::as_root())))?;
            }
            Ok(ExitCode::SUCCESS)
        }
        Err(DemoError::Stopped) => {
            print::note("stopped; everything made has been removed");
            Ok(ExitCode::from(signals::INTERRUPTED))
        }
        Err(DemoError::Output(error)) => Err(PrintError(error).into()),
        Err(error) => Err(explain(&error)),
    }
}

/// The first reason why bowwave cannot manage reads on this machine.
fn why_not_able() -> Option<String> {
    let checks = checks::examine();
    let check = checks.iter().find(|check| check.stands_in_the_way())?;
    Some(format!("{}: {}", check.name, check.finding))
}

/// Adds to the error what the user can still try on this machine.
fn explain(error: &DemoError) -> anyhow::Error {
    match error {
        DemoError::NotRoot => anyhow!(
            "{error}\n`bowwave demo --list` lists what it would show; `bowwave reproduce` shows simulated \
             figures without root\n\n{}",
            demo::next_steps(&invocation::as_root())
        ),
        DemoError::Lab(_) | DemoError::Daemon(_) => anyhow!(
            "{error}\n`bowwave doctor` shows what works here, `bowwave demo --list` lists what it would show"
        ),
        _ => anyhow!("{error}"),
    }
}

/// Waits for the start signal, reads, and reports.
fn work(pattern: &str, folder: &Path) -> anyhow::Result<ExitCode> {
    let pattern = find(pattern).with_context(|| format!("there is no pattern {pattern:?}"))?;
    let mut word = [0; demo::WORD.len()];
    std::io::stdin()
        .read_exact(&mut word)
        .context("standard input ended before the start signal")?;
    let outcome = demo::worker::perform(pattern, folder)?;
    print::line(serde_json::to_string(&outcome)?)?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: Args,
    }

    fn parse(words: &[&str]) -> Result<Args, clap::Error> {
        Cli::try_parse_from([&["demo"], words].concat()).map(|cli| cli.args)
    }

    #[test]
    fn both_devices_are_shown_unless_others_are_named() {
        let devices = |words: &[&str]| parse(words).map(|args| args.device).unwrap_or_default();
        assert_eq!(devices(&[]), ["net", "hdd"]);
        assert_eq!(devices(&["--device", "ssd,local:/srv"]), ["ssd", "local:/srv"]);
    }

    #[test]
    fn patterns_are_separated_by_commas() {
        let only = parse(&["--only", "tac,seq-4k"]).map(|args| args.only).unwrap_or_default();
        assert_eq!(only, ["tac", "seq-4k"]);
    }

    #[test]
    fn rounds_are_a_number_above_zero() {
        assert_eq!(parse(&["--rounds", "5"]).ok().and_then(|args| args.rounds), Some(5));
        for bad in ["0", "-1", "many"] {
            assert!(parse(&["--rounds", bad]).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_worker_needs_a_folder() {
        assert!(parse(&["--worker", "seq-4k"]).is_err());
        assert!(parse(&["--worker", "seq-4k", "--folder", "/mnt"]).is_ok());
    }
}
