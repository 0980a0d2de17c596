//! `bowwave demo`.

use std::io::Read;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail};
use demo::pattern::{PATTERNS, find};
use demo::{Options, Row, TradeOff};
use serde_json::{Value, json};

/// Show the effect: patterns read cold from slow disks made on the spot, stock kernel and bowwave.
///
/// Takes two minutes. Needs root, FUSE and a kernel that bowwave runs on (see `bowwave doctor`).
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Every pattern, 3 rounds.
    #[arg(long)]
    full: bool,
    /// Devices, separated by commas: those of `bowwave lab --list`, TOML files, or local[:FOLDER]
    /// for the machine's own disk.
    #[arg(long, value_delimiter = ',', default_value = "hdd,net")]
    device: Vec<String>,
    /// Patterns, separated by commas.
    #[arg(long, value_delimiter = ',', value_name = "PATTERN")]
    only: Vec<String>,
    /// Runs of each pattern; medians are shown.
    #[arg(long)]
    rounds: Option<u32>,
    /// A list of rows as JSON instead of tables.
    #[arg(long)]
    json: bool,
    /// Name the patterns.
    #[arg(long)]
    list: bool,
    #[arg(long, hide = true, requires = "folder")]
    worker: Option<String>,
    #[arg(long, hide = true)]
    folder: Option<PathBuf>,
}

pub(crate) fn main(args: Args) -> anyhow::Result<ExitCode> {
    if args.list {
        PATTERNS.iter().for_each(|pattern| println!("{:<17} {}", pattern.name, pattern.definition));
        return Ok(ExitCode::SUCCESS);
    }
    if let (Some(pattern), Some(folder)) = (args.worker, args.folder) {
        return work(&pattern, &folder);
    }
    let rounds = args.rounds.unwrap_or(if args.full { 3 } else { 1 });
    if rounds == 0 {
        bail!("--rounds must be at least 1");
    }
    let options = Options { devices: args.device, only: args.only, full: args.full, rounds };
    let mut json_rows = Vec::new();
    let shown = demo::run(&options, |device, rows, trade_off| {
        if args.json {
            json_rows.extend(to_json(device, &rows, trade_off.as_ref()));
        } else {
            print(device, rounds, &rows, trade_off.as_ref());
        }
    });
    if args.json {
        println!("{}", serde_json::to_string_pretty(&json_rows)?);
    }
    shown.context("the demonstration was not completed; `bowwave doctor` tells what works here, `bowwave demo --list` what would be shown")?;
    Ok(ExitCode::SUCCESS)
}

fn print(device: &str, rounds: u32, rows: &[Row], trade_off: Option<&TradeOff>) {
    if !rows.is_empty() {
        println!("{}", demo::render(device, rounds, rows));
    }
    if let Some(trade_off) = trade_off {
        println!("{device}: {}", trade_off.render());
    }
}

fn to_json(device: &str, rows: &[Row], trade_off: Option<&TradeOff>) -> Vec<Value> {
    let points = trade_off.map(TradeOff::points).unwrap_or_default();
    let points = points
        .iter()
        .map(|point| json!({ "device": device, "pattern": "random-beside-4", "point": point }));
    rows.iter().map(|row| json!(row)).chain(points).collect()
}

/// Waits for the word, reads, reports.
fn work(pattern: &str, folder: &std::path::Path) -> anyhow::Result<ExitCode> {
    let pattern = find(pattern).with_context(|| format!("there is no pattern {pattern:?}"))?;
    let mut word = [0; 3];
    std::io::stdin().read_exact(&mut word).context("the word to start never came")?;
    let outcome = demo::worker::perform(pattern, folder)?;
    println!("{}", serde_json::to_string(&outcome)?);
    Ok(ExitCode::SUCCESS)
}
