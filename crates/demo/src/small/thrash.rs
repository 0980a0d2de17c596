//! Many slow readers in little memory: pages read ahead are evicted before their reader comes.

use std::fmt::Write;

use serde::Serialize;
use serde_json::{Value, json};

use super::machine::{Machine, Setup, Tool};
use super::sizes::{STREAM_BYTES_PER_SECOND, STREAM_EVERY_S, STREAMS, STREAMS_MEMORY, Sizes};
use super::{Section, note};
use crate::error::DemoError;
use crate::files;
use crate::row::median;
use crate::worker::Streams;
use crate::worker::jobs::Job;
use patterns::Files;

/// A file that fills memory before the streams start, as on a machine that has been up for a while.
const FILLING: Files = Files::one("slow/filling", STREAMS_MEMORY);
/// Bytes of each read of it.
const FILLING_READ_BYTES: u64 = 1 << 20;

/// One run, or the medians of several.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Figures {
    /// Bytes that the device delivered beyond the size of the files, as a share of that size. `None` where no device
    /// counts them, as on NFS.
    read_again: Option<f64>,
    /// Progress of the slowest stream as a share of the fastest stream's.
    least_progress: f64,
    seconds: f64,
    /// Bowwave's report.
    bowwave: Value,
}

pub(super) fn show(
    setup: &Setup<'_>,
    sizes: &Sizes,
    rounds: u32,
    is_rotational: bool,
) -> Result<Section, DemoError> {
    if is_rotational {
        let why = "800 streams at 64 times their speed are more than one head can serve";
        let row = json!({ "pattern": "thrash", "skipped": why });
        return Ok(Section { text: format!("thrash: skipped: {why}\n"), rows: vec![row] });
    }
    note("writing files");
    setup.target.set_fast(true)?;
    files::prepare(&setup.target.folder(), &[FILLING, sizes.streams()], setup.stop)?;
    setup.target.set_fast(false)?;
    let mut rows = Vec::new();
    for tool in [Tool::Stock, Tool::Bowwave] {
        let mut runs = Vec::new();
        for round in 1..=rounds {
            note(format_args!("thrash, round {round} of {rounds}: {tool}"));
            runs.push(run(setup, sizes, tool)?);
        }
        rows.push((tool, medians(&runs)));
    }
    Ok(section(&rows))
}

fn run(setup: &Setup<'_>, sizes: &Sizes, tool: Tool) -> Result<Figures, DemoError> {
    let streams = sizes.streams();
    let folder = setup.target.folder();
    let machine = Machine::boot(setup, STREAMS_MEMORY, &[FILLING, streams])?;
    let mut process = machine.process(tool)?;
    let filling = vec![folder.join(FILLING.name)];
    process.perform(&Job::Pass { paths: filling, each: FILLING_READ_BYTES })?;
    let before = setup.target.reading()?;
    let done = process.perform(&Job::Slowly(Streams {
        paths: streams.names().iter().map(|name| folder.join(name)).collect(),
        bytes_per_second: STREAM_BYTES_PER_SECOND,
        start_every_s: STREAM_EVERY_S,
    }))?;
    let read = setup.target.reading()?.since(&before).bytes_read;
    let bowwave = process.finish()?;
    let needed = streams.total_bytes() as f64;
    Ok(Figures {
        read_again: read.map(|read| read as f64 / needed - 1.0),
        least_progress: done.least_progress.unwrap_or(f64::NAN),
        seconds: done.seconds,
        bowwave,
    })
}

fn medians(runs: &[Figures]) -> Figures {
    let over = |figure: fn(&Figures) -> f64| median(runs.iter().map(figure));
    Figures {
        read_again: linux::median(runs.iter().filter_map(|run| run.read_again)),
        least_progress: over(|run| run.least_progress),
        seconds: over(|run| run.seconds),
        bowwave: runs.last().map(|run| run.bowwave.clone()).unwrap_or_default(),
    }
}

fn section(rows: &[(Tool, Figures)]) -> Section {
    let mut section = Section::default();
    let _ = writeln!(
        section.text,
        "thrash: {STREAMS} streams of {:.0} KB/s on a machine of {} MB\n\
         {:<9}{:>12}{:>18}{:>9}",
        STREAM_BYTES_PER_SECOND / 1024.0,
        STREAMS_MEMORY >> 20,
        "kernel",
        "read again",
        "slowest/fastest",
        "seconds"
    );
    for (tool, figures) in rows {
        let share = |share: f64| format!("{:.2}%", share * 100.0);
        let _ = writeln!(
            section.text,
            "{tool:<9}{:>12}{:>18.3}{:>9.1}",
            figures.read_again.map_or("-".into(), share),
            figures.least_progress,
            figures.seconds
        );
        let mut row = json!(figures);
        row["pattern"] = json!("thrash");
        row["tool"] = json!(tool.to_string());
        section.rows.push(row);
    }
    section
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_read_again_is_shown_in_percent() {
        let figures = |read_again| Figures {
            read_again: Some(read_again),
            least_progress: 0.97,
            seconds: 44.0,
            bowwave: Value::Null,
        };
        let runs = [figures(0.5), figures(0.4), figures(9.0)];
        let section = section(&[(Tool::Stock, medians(&runs)), (Tool::Bowwave, figures(0.002))]);
        assert!(section.text.contains("50.00%") && section.text.contains("0.20%"));
        assert_eq!(section.rows[1]["tool"], "bowwave");
    }

    #[test]
    fn where_no_device_counts_nothing_is_said_of_what_was_read_again() {
        let bowwave = Value::Null;
        let figures = Figures { read_again: None, least_progress: 0.97, seconds: 44.0, bowwave };
        let section = section(&[(Tool::Stock, medians(&[figures]))]);
        assert!(section.text.ends_with("stock               -             0.970     44.0\n"));
        assert_eq!(section.rows[0]["read_again"], Value::Null);
    }
}
