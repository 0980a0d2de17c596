//! What `bowwave top` costs programs that read cached data: processor time for each read of 4 KiB, and for mapping 1 MiB
//! and reading a byte of each page. Each round measures without and with `top`; ratios are taken within rounds. Needs
//! root.
//!
//! `cargo run --release -p bowwave --example top-cost -- target/release/bowwave [ROUNDS]`

use std::error::Error;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use linux::median;
use rustix::process::{Pid, Signal, kill_process};
use rustix::time::{ClockId, clock_gettime};

type Fallible<T> = Result<T, Box<dyn Error>>;

const ROUNDS: usize = 7;
const PAGES: usize = 256;
const PAGE_BYTES: usize = 4096;

/// `top` decides anew each second how long it looks.
const MEASURED: Duration = Duration::from_secs(2);

/// How often to look at the clock.
const AT_ONCE: u32 = 1000;

fn main() -> Fallible<()> {
    let mut words = std::env::args().skip(1);
    let bowwave = PathBuf::from(words.next().ok_or("name the bowwave to measure")?);
    let rounds = words.next().map_or(Ok(ROUNDS), |word| word.parse())?;
    let mut file = tempfile::tempfile_in("/var/tmp")?;
    file.write_all(&vec![1; PAGES * PAGE_BYTES])?;
    println!("{}, {}", linux::provenance::kernel(), linux::provenance::date());
    println!("{:<24}{:>12}{:>12}{:>8}", "medians, ns", "without", "with top", "ratio");
    let mut at = 0;
    let mut page = [0; PAGE_BYTES];
    show("cached read of 4 KiB", &bowwave, rounds, || {
        at = (at + 1) % PAGES;
        Ok(file.read_exact_at(&mut page, (at * PAGE_BYTES) as u64)?)
    })?;
    show("map and read 1 MiB", &bowwave, rounds, || read_mapped(&file))
}

#[allow(unsafe_code)]
fn read_mapped(file: &File) -> Fallible<()> {
    // SAFETY: nobody else has the file.
    let mapping = unsafe { memmap2::Mmap::map(file)? };
    let sum: usize = (0..PAGES).map(|page| usize::from(mapping[page * PAGE_BYTES])).sum();
    if sum == PAGES { Ok(()) } else { Err("other bytes than written".into()) }
}

fn show(
    what: &str,
    bowwave: &Path,
    rounds: usize,
    mut once: impl FnMut() -> Fallible<()>,
) -> Fallible<()> {
    let mut pairs = Vec::new();
    for _ in 0..rounds {
        let without = cost_ns(&mut once)?;
        let top = Top::begin(bowwave)?;
        let with = cost_ns(&mut once)?;
        drop(top);
        pairs.push((without, with));
    }
    let over = |figure: fn(&(f64, f64)) -> f64| median(pairs.iter().map(figure)).unwrap_or(0.0);
    let (without, with) = (over(|pair| pair.0), over(|pair| pair.1));
    println!("{what:<24}{without:>12.0}{with:>12.0}{:>8.3}", over(|pair| pair.1 / pair.0));
    Ok(())
}

/// Processor time of this thread for doing it once.
fn cost_ns(once: &mut impl FnMut() -> Fallible<()>) -> Fallible<f64> {
    let (begun, used, mut count) = (Instant::now(), processor_time(), 0u32);
    while begun.elapsed() < MEASURED {
        (0..AT_ONCE).try_for_each(|_| once())?;
        count += AT_ONCE;
    }
    Ok((processor_time() - used).as_nanos() as f64 / f64::from(count))
}

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
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
