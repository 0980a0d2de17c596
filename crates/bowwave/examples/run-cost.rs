//! What `bowwave run` costs a command: the time `true` takes, and the time `cat` takes for 1 GB that is
//! not cached, each by itself and under bowwave, in turn; medians. Needs root.
//!
//! `cargo run --release -p bowwave --example run-cost -- target/release/bowwave [FOLDER]`; the file is
//! made in FOLDER, or else in /var/tmp.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use rustix::fs::{Advice, fadvise};

const STARTS: usize = 31;
const COPIES: usize = 7;
const FILE_BYTES: u64 = 1_000_000_000;

/// Each way to run a command, with the options of `run`; stock first.
const WAYS: [(&str, Option<&[&str]>); 4] = [
    ("by itself", None),
    ("run", Some(&[])),
    ("run --strict", Some(&["--strict"])),
    ("run --drop-behind", Some(&["--drop-behind"])),
];

fn main() -> io::Result<()> {
    let mut words = std::env::args_os().skip(1).map(PathBuf::from);
    let usage = "name the bowwave to measure: run-cost target/release/bowwave [FOLDER]";
    let bowwave = words.next().ok_or_else(|| io::Error::other(usage))?;
    let folder = words.next().unwrap_or_else(|| "/var/tmp".into());
    println!("{:<28}{:>10}{:>10}{:>10}", "median, ms", "time", "more", "ratio");
    let starts = medians(&bowwave, STARTS, &["true".as_ref()], || Ok(()))?;
    show("true", &starts);
    let file = tempfile::NamedTempFile::new_in(folder)?;
    fill(file.as_file())?;
    let evict = || Ok(fadvise(file.as_file(), 0, None, Advice::DontNeed)?);
    show("cat 1 GB", &medians(&bowwave, COPIES, &["cat".as_ref(), file.path()], evict)?);
    Ok(())
}

fn fill(mut file: &File) -> io::Result<()> {
    let piece = vec![0x5a; 1_000_000];
    (0..FILE_BYTES / 1_000_000).try_for_each(|_| file.write_all(&piece))?;
    file.sync_all()
}

/// Milliseconds that the command takes, each way.
fn medians(
    bowwave: &Path,
    rounds: usize,
    words: &[&Path],
    mut before: impl FnMut() -> io::Result<()>,
) -> io::Result<[f64; WAYS.len()]> {
    let mut times: [Vec<f64>; WAYS.len()] = Default::default();
    for _ in 0..rounds {
        for ((_, options), times) in WAYS.iter().zip(&mut times) {
            let mut command = match options {
                None => Command::new(words[0]),
                Some(options) => {
                    let mut command = Command::new(bowwave);
                    command.arg("run").args(*options).arg("--").arg(words[0]);
                    command
                }
            };
            command.args(&words[1..]).stdout(Stdio::null()).stderr(Stdio::null());
            before()?;
            let started = Instant::now();
            let status = command.status()?;
            times.push(started.elapsed().as_secs_f64() * 1e3);
            if !status.success() {
                return Err(io::Error::other(format!("{command:?}: {status}")));
            }
        }
    }
    Ok(times.map(median))
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn show(what: &str, times: &[f64; WAYS.len()]) {
    for ((name, _), time) in WAYS.iter().zip(times) {
        let (more, ratio) = (time - times[0], time / times[0]);
        println!("{:<28}{time:>10.1}{more:>10.1}{ratio:>10.3}", format!("{what}, {name}"));
    }
}
