//! What `bowwave run` costs a command: the time `true` takes, and the time `cat` takes for 1 GB that is
//! not cached, each by itself and under bowwave. Every round runs each way once, and begins with another way. A
//! shared disk varies from round to round, so ratios are taken within rounds. Needs root.
//!
//! `cargo run --release -p bowwave --example run-cost -- target/release/bowwave [FOLDER [ROUNDS]]`; the file is
//! made in FOLDER, or else in /var/tmp, and read that often each way, or else 21 times.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use rustix::fs::{Advice, fadvise};

const STARTS: usize = 31;
const COPIES: usize = 21;
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
    let usage = "name the bowwave to measure: run-cost target/release/bowwave [FOLDER [ROUNDS]]";
    let bowwave = words.next().ok_or_else(|| io::Error::other(usage))?;
    let folder = words.next().unwrap_or_else(|| "/var/tmp".into());
    let copies = match words.next() {
        None => COPIES,
        Some(word) => {
            let rounds = word.to_str().and_then(|word| word.parse().ok()).filter(|&it| it > 0);
            rounds.ok_or_else(|| io::Error::other(usage))?
        }
    };
    println!(
        "{:<28}{:>10}{:>10}{:>10}{:>16}",
        "medians, ms", "time", "more", "ratio", "its quartiles"
    );
    let starts = measure(&bowwave, STARTS, &["true".as_ref()], || Ok(()))?;
    show("true", &starts);
    let file = tempfile::NamedTempFile::new_in(folder)?;
    fill(file.as_file())?;
    let evict = || Ok(fadvise(file.as_file(), 0, None, Advice::DontNeed)?);
    show("cat 1 GB", &measure(&bowwave, copies, &["cat".as_ref(), file.path()], evict)?);
    Ok(())
}

fn fill(mut file: &File) -> io::Result<()> {
    let piece = vec![0x5a; 1_000_000];
    (0..FILE_BYTES / 1_000_000).try_for_each(|_| file.write_all(&piece))?;
    file.sync_all()
}

/// Milliseconds that the command takes, each way, round by round.
fn measure(
    bowwave: &Path,
    rounds: usize,
    words: &[&Path],
    mut before: impl FnMut() -> io::Result<()>,
) -> io::Result<Vec<[f64; WAYS.len()]>> {
    let round = |round: usize| {
        let mut times = [0.0; WAYS.len()];
        for way in (0..WAYS.len()).map(|way| (way + round) % WAYS.len()) {
            let mut command = under(bowwave, WAYS[way].1, words);
            before()?;
            let started = Instant::now();
            let status = command.status()?;
            times[way] = started.elapsed().as_secs_f64() * 1e3;
            if !status.success() {
                return Err(io::Error::other(format!("{command:?}: {status}")));
            }
        }
        Ok(times)
    };
    (0..rounds).map(round).collect()
}

/// The command by itself, or under `bowwave run` with these options.
fn under(bowwave: &Path, options: Option<&[&str]>, words: &[&Path]) -> Command {
    let mut command = match options {
        None => Command::new(words[0]),
        Some(options) => {
            let mut command = Command::new(bowwave);
            command.arg("run").args(options).arg("--").arg(words[0]);
            command
        }
    };
    command.args(&words[1..]).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn show(what: &str, rounds: &[[f64; WAYS.len()]]) {
    for (way, (name, _)) in WAYS.iter().enumerate() {
        let over = |figure: &dyn Fn(&[f64; WAYS.len()]) -> f64| {
            let mut figures: Vec<f64> = rounds.iter().map(figure).collect();
            figures.sort_by(f64::total_cmp);
            [1, 2, 3].map(|quarter| figures[(figures.len() - 1) * quarter / 4])
        };
        let [_, time, _] = over(&|times| times[way]);
        let [_, more, _] = over(&|times| times[way] - times[0]);
        let [low, ratio, high] = over(&|times| times[way] / times[0]);
        let name = format!("{what}, {name}");
        println!("{name:<28}{time:>10.1}{more:>10.1}{ratio:>10.3}{low:>9.3}-{high:.3}");
    }
}
