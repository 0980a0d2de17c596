//! What `bowwave top` costs programs that read cached data: processor time for each read of 4 KiB, and for mapping
//! 1 MiB and reading a byte of each page. Needs root.
//!
//! `cargo run --release -p bowwave --example top-cost -- target/release/bowwave [ROUNDS]`

mod cached;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use cached::{Fallible, PAGES, read_mapped, read_page, show};
use rustix::process::{Pid, Signal, kill_process};

const ROUNDS: usize = 7;

fn main() -> Fallible<()> {
    let mut words = std::env::args().skip(1);
    let bowwave = PathBuf::from(words.next().ok_or("name the bowwave to measure")?);
    let rounds = words.next().map_or(Ok(ROUNDS), |word| word.parse())?;
    let file = cached::file()?;
    println!("{:<28}{:>12}{:>12}{:>8}", "medians, ns", "without", "with top", "ratio");
    let begin = || Top::begin(&bowwave);
    let mut at = 0;
    show("cached read of 4 KiB", rounds, begin, || {
        at = (at + 1) % PAGES;
        read_page(&file, at)
    })?;
    show("map and read 1 MiB", rounds, begin, || read_mapped(&file))
}

/// `bowwave top`, until this is dropped.
struct Top(Child);

impl Top {
    fn begin(bowwave: &Path) -> Fallible<Top> {
        let mut command = Command::new(bowwave);
        // So little is printed that the pipe holds it. A thread that reads it would make each system call of this
        // process that names a descriptor slower.
        command.args(["top", "--json", "--rows", "0"]).stdout(Stdio::piped());
        let mut top = Top(command.spawn()?);
        let mut line = String::new();
        BufReader::new(top.0.stdout.as_mut().ok_or("it is piped")?).read_line(&mut line)?;
        if !line.contains("\"ready\":true") {
            return Err("bowwave top does not begin".into());
        }
        Ok(top)
    }
}

impl Drop for Top {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = kill_process(Pid::from_child(&self.0), Signal::TERM);
        let _ = self.0.wait();
    }
}
