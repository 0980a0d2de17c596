//! What `bowwave record` costs programs that read cached data: processor time for each read of 4 KiB, from front to
//! back and in another order, and for mapping 1 MiB and reading a byte of each page. And what it costs a device's
//! requests: time for each direct read of 4 KiB from a loop device in memory, the fastest that there is everywhere. What
//! the recorder says of each round goes to standard error. Needs root.
//!
//! `cargo run --release -p bowwave --example record-cost -- target/release/bowwave [ROUNDS [requests]]`; with `requests`
//! only the last row.

mod cached;
mod direct;

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};

use cached::{Fallible, PAGES, read_mapped, read_page, show};
use rustix::process::{Pid, Signal, kill_process};

const ROUNDS: usize = 7;

/// Reads with this step follow no order that the kernel half merges. It has no common divisor with the number of pages.
const STEP: usize = 101;

fn main() -> Fallible<()> {
    let mut words = std::env::args().skip(1);
    let bowwave = PathBuf::from(words.next().ok_or("name the bowwave to measure")?);
    let rounds = words.next().map_or(Ok(ROUNDS), |word| word.parse())?;
    let only_requests = words.next().is_some_and(|word| word == "requests");
    let (file, folder) = (cached::file()?, tempfile::tempdir_in("/var/tmp")?);
    let trace = folder.path().join("trace");
    println!("{:<28}{:>12}{:>12}{:>8}", "medians, ns", "without", "recorded", "ratio");
    let begin = || Recorder::begin(&bowwave, &trace);
    if only_requests {
        return direct::show(rounds, begin);
    }
    let mut at = 0;
    let mut read = |step: usize| {
        at = (at + step) % PAGES;
        read_page(&file, at)
    };
    show("read of 4 KiB, in order", rounds, begin, || read(1))?;
    show("read of 4 KiB, other order", rounds, begin, || read(STEP))?;
    show("map and read 1 MiB", rounds, begin, || read_mapped(&file))?;
    direct::show(rounds, begin)
}

/// `bowwave record` of the machine, until this is dropped.
struct Recorder {
    child: Child,
    output: BufReader<ChildStderr>,
}

impl Recorder {
    fn begin(bowwave: &Path, trace: &Path) -> Fallible<Recorder> {
        let mut command = Command::new(bowwave);
        command.args(["record", "-o"]).arg(trace).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let output = BufReader::new(child.stderr.take().ok_or("it is piped")?);
        let mut recorder = Recorder { child, output };
        let mut line = String::new();
        recorder.output.read_line(&mut line)?;
        if !line.contains("recording") {
            return Err(format!("bowwave record does not begin: {line}").into());
        }
        Ok(recorder)
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let mut said = String::new();
        let _ = self.output.read_to_string(&mut said);
        eprint!("{said}");
        let _ = self.child.wait();
    }
}
