//! Comparison with `nocache`, which drops behind from within each program.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::drop_behind::{cached_share, remove_copy};
use super::machine::{Machine, Setup, Tool};
use super::sizes::{BIG, COPY, SCANNED, Sizes};
use super::{Section, note};
use crate::error::DemoError;
use crate::row::median;
use crate::worker::jobs::Job;

const TOOLS: [Tool; 3] = [Tool::Stock, Tool::Nocache, Tool::DropBehind];

/// A program into which nothing can be preloaded.
const STATIC_READER: &str = "\
#include <fcntl.h>
#include <unistd.h>
static char buffer[65536];
int main(int count, char **words)
{
	int file = open(words[count - 1], O_RDONLY);
	long got;

	while (file >= 0 && (got = read(file, buffer, sizeof(buffer))) > 0)
		;
	return file < 0 || got < 0;
}
";

/// One run, or the medians of several.
#[derive(Clone, Copy)]
struct Figures {
    /// Most bytes of memory that the machine used during the job.
    peak: f64,
    /// Share of the working set that is cached after the job.
    cached: f64,
    /// Seconds of the job.
    seconds: f64,
}

pub(super) fn show(setup: &Setup<'_>, sizes: &Sizes, rounds: u32) -> Result<Section, DemoError> {
    let mut section = Section::default();
    let _ = writeln!(
        section.text,
        "beside nocache: the most memory used, the share of the working set cached afterwards\n\
         {:<16}{:<9}{:>9}{:>9}{:>9}",
        "job", "tool", "peak MB", "cached", "job s"
    );
    let folder = setup.target.folder();
    let path = |name| folder.join(name).display().to_string();
    let static_reader = static_reader();
    let reader = |reader: &TempDir| reader.path().join("reader").display().to_string();
    let jobs = [
        ("cat", Ok(vec!["cat".to_owned(), path(BIG)])),
        ("cp", Ok(vec!["cp".to_owned(), path(BIG), path(COPY)])),
        ("static reader", static_reader.as_ref().map(|folder| vec![reader(folder), path(BIG)])),
    ];
    for (name, words) in jobs {
        for tool in TOOLS {
            let missing = tool.missing().or_else(|| words.as_ref().err().map(|why| (*why).clone()));
            let label = if tool == Tool::Stock { name } else { "" };
            let mut row = json!({ "pattern": "nocache", "job": name, "tool": tool.to_string() });
            match (&words, missing) {
                (Ok(words), None) => {
                    let figures = measure(setup, sizes, tool, name, words, rounds)?;
                    let _ = writeln!(section.text, "{label:<16}{tool:<9}{}", figures.columns());
                    figures.put_into(&mut row);
                }
                (_, why) => {
                    let why = why.unwrap_or_default();
                    let _ = writeln!(section.text, "{label:<16}{tool:<9}skipped: {why}");
                    row["skipped"] = json!(why);
                }
            }
            section.rows.push(row);
        }
    }
    starts(setup, sizes, &mut section)?;
    Ok(section)
}

/// Medians over the rounds.
fn measure(
    setup: &Setup<'_>,
    sizes: &Sizes,
    tool: Tool,
    name: &str,
    words: &[String],
    rounds: u32,
) -> Result<Figures, DemoError> {
    let mut runs = Vec::new();
    for round in 1..=rounds {
        note(format_args!("nocache, round {round} of {rounds}: {name}, {tool}"));
        runs.push(run(setup, sizes, tool, words)?);
    }
    let over = |figure: fn(&Figures) -> f64| median(runs.iter().map(figure));
    Ok(Figures {
        peak: over(|run| run.peak),
        cached: over(|run| run.cached),
        seconds: over(|run| run.seconds),
    })
}

fn run(
    setup: &Setup<'_>,
    sizes: &Sizes,
    tool: Tool,
    words: &[String],
) -> Result<Figures, DemoError> {
    let scanned = setup.target.folder().join(SCANNED);
    let machine = Machine::boot(setup, sizes.memory, &sizes.files())?;
    let mut victim = machine.process(Tool::Stock)?;
    for _ in 0..2 {
        victim.perform(&Job::Scan { path: scanned.clone() })?;
    }
    let mut process = machine.process(tool)?;
    let job = Job::Program { words: words.to_vec() };
    let (done, peak) = machine.watching(|| process.perform(&job));
    // Why it could not be done, rather than that its process has ended.
    let done = done?;
    process.finish()?;
    let cached = cached_share(&scanned, sizes.scanned)?;
    victim.finish()?;
    remove_copy(setup)?;
    Ok(Figures { peak: peak as f64, cached, seconds: done.seconds })
}

impl Figures {
    fn columns(&self) -> String {
        let (peak, cached) = (self.peak / f64::from(1 << 20), self.cached * 100.0);
        format!("{peak:>9.0}{cached:>8.1}%{:>9.3}", self.seconds)
    }

    fn put_into(&self, row: &mut Value) {
        row["peak_bytes"] = json!(self.peak);
        row["cached"] = json!(self.cached);
        row["job_s"] = json!(self.seconds);
    }
}

/// The cost of starting a program that does nothing.
fn starts(setup: &Setup<'_>, sizes: &Sizes, section: &mut Section) -> Result<(), DemoError> {
    for tool in TOOLS {
        if tool.missing().is_some() {
            continue;
        }
        note(format_args!("nocache: starting true under {tool}"));
        let mut words = tool.words(setup.state);
        words.push("true".into());
        let mut times = Vec::new();
        for _ in 0..sizes.starts {
            setup.stop.check()?;
            let started = Instant::now();
            let mut command = Command::new(&words[0]);
            command.args(&words[1..]).stdout(Stdio::null()).stderr(Stdio::null());
            let status = command.status().map_err(DemoError::file(&words[0]))?;
            if !status.success() {
                return Err(DemoError::Process(format!("{} ended with {status}", words[0])));
            }
            times.push(started.elapsed().as_secs_f64() * 1e3);
        }
        let ms = median(times.into_iter());
        let _ = writeln!(section.text, "{:<16}{tool:<9}{ms:>9.1} ms", "start of true");
        let (pattern, job, tool) = ("nocache", "start of true", tool.to_string());
        section.rows.push(json!({ "pattern": pattern, "job": job, "tool": tool, "ms": ms }));
    }
    Ok(())
}

/// A folder with the static reader, or why there is none.
fn static_reader() -> Result<TempDir, String> {
    let failed = |error: std::io::Error| error.to_string();
    let folder = crate::leftovers::temporary_folder().map_err(failed)?;
    let source = folder.path().join("reader.c");
    fs::write(&source, STATIC_READER).map_err(failed)?;
    compile(&source, &folder.path().join("reader"))?;
    Ok(folder)
}

fn compile(source: &Path, program: &Path) -> Result<(), String> {
    let mut compiler = Command::new("cc");
    compiler.args(["-static", "-O2", "-o"]).arg(program).arg(source);
    match compiler.output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(_) => Err("cc cannot link statically here (libc6-dev)".into()),
        Err(_) => Err("there is no C compiler (cc) to make a static reader with".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_static_reader_reads_to_the_end_or_says_why_there_is_none() {
        let Ok(folder) = static_reader() else { return };
        let reader = folder.path().join("reader");
        let status = |path: &Path| Command::new(&reader).arg(path).status().expect("it runs");
        assert!(status(&reader).success());
        assert!(!status(Path::new("/no/such/file")).success());
    }
}
