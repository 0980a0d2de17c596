//! A working set, scanned twice before and twice after a job.

use std::fmt::Write;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::Path;
use std::time::Instant;

use serde::Serialize;
use serde_json::json;

use super::disturbance::Disturbance;
use super::machine::{Machine, Setup, Tool};
use super::sizes::{COPY, SCANNED, Sizes};
use super::{Section, note};
use crate::error::DemoError;
use crate::mapping;
use crate::row::median;
use crate::worker::jobs::Job;
use patterns::PAGE_BYTES;

/// Two before the job, two after it.
const SCANS: usize = 4;

const TOOLS: [Tool; 2] = [Tool::Stock, Tool::DropBehind];

/// One run, or the medians of several.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct Figures {
    /// Seconds of each scan.
    scans: [f64; SCANS],
    /// Share of the working set that is cached after the job.
    cached: f64,
    /// Most bytes of memory that the machine used during the job.
    peak_bytes: f64,
    /// Seconds of the job.
    job_s: f64,
    /// Seconds until everything that it wrote was on the device.
    stored_s: f64,
}

/// One job under one tool.
struct Row {
    disturbance: Disturbance,
    tool: Tool,
    runs: Vec<Figures>,
}

/// The table: each job under each tool, as medians over the rounds.
pub(super) fn show(setup: &Setup<'_>, sizes: &Sizes, rounds: u32) -> Result<Section, DemoError> {
    let row = |(disturbance, tool)| Row { disturbance, tool, runs: Vec::new() };
    let all = Disturbance::ALL.into_iter().flat_map(|one| TOOLS.map(|tool| (one, tool)));
    let mut rows: Vec<Row> = all.map(row).collect();
    for round in 1..=rounds {
        for row in &mut rows {
            note(format_args!(
                "drop-behind, round {round} of {rounds}: {}, {}",
                row.disturbance.name(),
                row.tool
            ));
            row.runs.push(run(setup, sizes, row.disturbance, row.tool)?);
        }
    }
    Ok(section(&rows, sizes))
}

fn run(
    setup: &Setup<'_>,
    sizes: &Sizes,
    disturbance: Disturbance,
    tool: Tool,
) -> Result<Figures, DemoError> {
    let folder = setup.target.folder();
    let scanned = folder.join(SCANNED);
    let machine = Machine::boot(setup, sizes.memory, &sizes.files())?;
    let mut victim = machine.process(Tool::Stock)?;
    let mut scan = || {
        let done = victim.perform(&Job::Scan { path: scanned.clone() })?;
        Ok::<f64, DemoError>(done.seconds)
    };
    let before = [scan()?, scan()?];
    let (mut job_s, mut stored_s, mut peak_bytes) = (0.0, 0.0, 0.0);
    if let Some(job) = disturbance.job(&folder) {
        let mut process = machine.process(tool)?;
        let (done, peak) = machine.watching(|| process.perform(&job));
        (job_s, peak_bytes) = (done?.seconds, peak as f64);
        stored_s = job_s + store_copy(setup)?;
        process.finish()?;
    }
    let cached = cached_share(&scanned, sizes.scanned)?;
    let after = [scan()?, scan()?];
    victim.finish()?;
    remove_copy(setup)?;
    let scans = [before[0], before[1], after[0], after[1]];
    Ok(Figures { scans, cached, peak_bytes, job_s, stored_s })
}

/// The share of a file of `bytes` bytes that is in the page cache.
pub(super) fn cached_share(path: &Path, bytes: u64) -> Result<f64, DemoError> {
    let pages = File::open(path).and_then(|file| mapping::resident_pages(&file));
    let pages = pages.map_err(DemoError::file(path))?;
    Ok(pages as f64 / bytes.div_ceil(PAGE_BYTES) as f64)
}

/// Writes the rest of a copy to the device. Returns the seconds that this takes.
fn store_copy(setup: &Setup<'_>) -> Result<f64, DemoError> {
    let copy = setup.target.folder().join(COPY);
    let began = Instant::now();
    match File::open(&copy).and_then(|file| file.sync_all()) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(DemoError::file(copy)(error)),
        _ => Ok(began.elapsed().as_secs_f64()),
    }
}

/// Removes the copy, and with it its dirty pages. The next run writes it anew.
pub(super) fn remove_copy(setup: &Setup<'_>) -> Result<(), DemoError> {
    let copy = setup.target.folder().join(COPY);
    match fs::remove_file(&copy) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(DemoError::file(copy)(error)),
        _ => Ok(()),
    }
}

impl Row {
    fn figures(&self) -> Figures {
        let over = |figure: &dyn Fn(&Figures) -> f64| median(self.runs.iter().map(figure));
        Figures {
            scans: std::array::from_fn(|scan| over(&|run| run.scans[scan])),
            cached: over(&|run| run.cached),
            peak_bytes: over(&|run| run.peak_bytes),
            job_s: over(&|run| run.job_s),
            stored_s: over(&|run| run.stored_s),
        }
    }

    /// `stock` has the figures of the same job on the stock kernel.
    fn line(&self, stock: Option<Figures>) -> String {
        let name = if self.tool == Tool::Stock { self.disturbance.name() } else { "" };
        let figures = self.figures();
        let mut line = format!("{name:<16}{:<8}", self.tool);
        for seconds in figures.scans {
            let _ = write!(line, "{seconds:>7.3}");
        }
        let _ = write!(line, "{:>7.1}%", figures.cached * 100.0);
        if self.disturbance != Disturbance::Nothing {
            let _ = write!(line, "{:>8.0}", figures.peak_bytes / f64::from(1 << 20));
            let stock = stock.filter(|_| self.tool != Tool::Stock);
            let times: [fn(&Figures) -> f64; 2] = [|run| run.job_s, |run| run.stored_s];
            for time in times {
                let of_stock = stock.as_ref().map(|stock| time(&figures) / time(stock));
                let ratio = of_stock.map_or(String::new(), |ratio| format!("{ratio:.2}x"));
                let _ = write!(line, "{:>9.3}{ratio:>7}", time(&figures));
            }
        }
        line
    }
}

fn section(rows: &[Row], sizes: &Sizes) -> Section {
    let mb = |bytes: u64| bytes >> 20;
    let mut text = format!(
        "drop-behind: {} MB scanned on a machine of {} MB while {} MB go by; seconds of four scans\n",
        mb(sizes.scanned),
        mb(sizes.memory),
        mb(sizes.big)
    );
    let _ = writeln!(
        text,
        "{:<16}{:<8}{:>7}{:>7}{:>7}{:>7}{:>8}{:>8}{:>9}{:>7}{:>9}",
        "what goes by", "kernel", "1", "2", "3", "4", "cached", "peak MB", "job s", "", "stored s"
    );
    let stock = |disturbance| {
        let stock =
            rows.iter().find(|row| row.disturbance == disturbance && row.tool == Tool::Stock);
        stock.map(Row::figures)
    };
    let mut json_rows = Vec::new();
    for row in rows {
        let _ = writeln!(text, "{}", row.line(stock(row.disturbance)));
        let mut object = json!(row.figures());
        object["pattern"] = json!("drop-behind");
        object["disturbance"] = json!(row.disturbance.name());
        object["tool"] = json!(row.tool.to_string());
        json_rows.push(object);
    }
    Section { text, rows: json_rows }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(tool: Tool, jobs: &[f64]) -> Row {
        let run = |job_s: &f64| Figures {
            scans: [0.4, 0.1, 0.5, 0.1],
            cached: 0.25,
            peak_bytes: 256e6,
            job_s: *job_s,
            stored_s: 2.0 * job_s,
        };
        let runs = jobs.iter().map(run).collect();
        Row { disturbance: Disturbance::Read, tool, runs }
    }

    #[test]
    fn a_job_is_compared_with_that_on_the_stock_kernel() {
        let rows = [row(Tool::Stock, &[2.0, 9.0, 1.0]), row(Tool::DropBehind, &[2.1])];
        let section = section(&rows, &Sizes::of(false));
        let lines: Vec<&str> = section.text.lines().collect();
        for (line, word) in [(0, "40 MB"), (2, "2.000"), (2, "25.0%"), (3, "1.05x"), (3, "4.200")] {
            assert!(lines[line].contains(word), "{word} in {}", lines[line]);
        }
        assert!(lines.iter().all(|line| line.len() <= 100));
        assert_eq!(section.rows[1]["job_s"], 2.1);
    }
}
