//! `bowwave advise`: what would help the load of a trace?

mod ground;
mod json;
mod steps;
mod text;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use advice::{Load, advise};
use anyhow::{Context, anyhow};
use linux::state;
use sim::replay::values;

use super::output::progress_bar;
use super::privilege;
use super::record::{self, TRACE, duration};
use crate::print;
use crate::signals;
use ground::Ground;

/// Rank what would help a load: leave it, another read_ahead_kb, bowwave, drop-behind, remembering
///
/// Replays a trace of the load in a simulator with each remedy, and says what it saves, within which range, what it
/// costs, and the commands that apply it and undo it. Changes no setting.
#[derive(clap::Args)]
#[command(
    override_usage = "bowwave advise [OPTIONS] <TRACE>\n       bowwave advise [OPTIONS] --for <TIME>"
)]
pub(crate) struct Args {
    /// The trace, from `bowwave record` or in the format of docs/trace.md; - is standard input
    #[arg(required_unless_present = "time")]
    trace: Option<PathBuf>,
    /// Record what all programs read for this long first, for example 60s, into bowwave.trace; needs
    /// root
    #[arg(long = "for", value_name = "TIME", value_parser = duration, conflicts_with = "trace")]
    time: Option<Duration>,
    /// A device from `bowwave lab --list`, or a TOML file that describes one; by default what
    /// `bowwave tune` has remembered of the disk where the trace's files are
    #[arg(long)]
    device: Option<String>,
    /// Memory that may hold files; by default what this machine has available
    #[arg(long, value_parser = values::memory)]
    memory: Option<u64>,
    /// Today's read_ahead_kb; by default that of the disk where the trace's files are, or 128
    #[arg(long, value_name = "KIB", value_parser = values::readahead)]
    readahead: Option<u64>,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

pub(crate) fn main(args: Args) -> anyhow::Result<ExitCode> {
    let given = args.device.as_deref().map(ground::given).transpose()?;
    let memory_bytes = args
        .memory
        .or_else(linux::meminfo::available_bytes)
        .context("this machine does not tell how much memory it has available; give --memory")?;
    let path = args.trace.unwrap_or_else(|| TRACE.into());
    if let Some(time) = args.time {
        privilege::demand("advise --for")?;
        if given.is_none() {
            ground::demand_a_profile(Path::new(state::PROFILES))?;
        }
        record::record_machine(&path, false, Some(time))?;
        signals::end_by(linux::signals::ENDING)?;
    }
    // Not `traces::read`: what is odd about the trace is told with the other notes.
    let trace = trace::open(&path)?;
    let ground = Ground::of(&trace, given, args.readahead).map_err(|error| match args.time {
        Some(_) => anyhow!(
            "{error:#}; the recording stays in {TRACE}, so then go on with `sudo bowwave advise {TRACE}`"
        ),
        None => error,
    })?;
    let load = Load {
        trace: &trace,
        device: ground.device.spec.clone(),
        device_error: ground.device.error,
        memory_bytes,
        readahead_kb: ground.readahead_kb,
        most_kb: tune::choose::most_kb(&ground.device.spec.cost(), memory_bytes),
    };
    let bar = progress_bar("simulate", "{percent}%");
    let advice = advise(&load, &mut |share| bar.set_position((share * 1000.0) as u64))?;
    bar.finish_and_clear();
    if args.json {
        print::json(&json::object(&path, &load, &ground, &advice))?;
    } else {
        print::line(text::describe(&path, &load, &ground, &advice))?;
    }
    Ok(ExitCode::SUCCESS)
}
