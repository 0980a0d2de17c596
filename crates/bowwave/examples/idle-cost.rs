//! What the daemon costs a machine on which nobody reads anything new: processor time and memory, with few processes
//! and mounts and with many. Needs root.
//!
//! `cargo run --release -p bowwave --example idle-cost -- target/release/bowwave [PROCESSES MOUNTS SECONDS]`

use std::error::Error;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::mount::{UnmountFlags, mount_bind, unmount};
use rustix::process::{Pid, Signal, kill_process};

type Fallible<T> = Result<T, Box<dyn Error>>;

/// The share of a processor is the median of so many measurements.
const TIMES: usize = 3;

fn main() -> Fallible<()> {
    let mut words = std::env::args().skip(1);
    let bowwave = PathBuf::from(words.next().ok_or("name the bowwave to measure")?);
    let mut number = |otherwise: u32| words.next().map_or(Ok(otherwise), |word| word.parse());
    let (processes, mounts, seconds) = (number(10_000)?, number(1_000)?, number(20)?);
    println!("{}, {}", linux::provenance::kernel(), linux::provenance::date());
    println!("processes  mounts  % of one processor   RSS MiB");
    measure(&bowwave, 0, 0, seconds)?;
    measure(&bowwave, processes, mounts, seconds)
}

fn measure(bowwave: &Path, processes: u32, mounts: u32, seconds: u32) -> Fallible<()> {
    let sleepers = (0..processes).map(|_| {
        let mut sleeper = Command::new("sleep");
        sleeper.arg("infinity").stdin(Stdio::null()).spawn().map(Ended)
    });
    let _sleepers: Vec<Ended> = sleepers.collect::<Result<_, _>>()?;
    let mut mounted = Mounted { folder: tempfile::tempdir()?, points: Vec::new() };
    for number in 0..mounts {
        mounted.add(number)?;
    }
    let state = tempfile::tempdir()?;
    let mut daemon = Command::new(bowwave);
    daemon.args(["daemon", "--json", "--state"]).arg(state.path()).stdout(Stdio::piped());
    let mut daemon = Ended(daemon.spawn()?);
    let mut line = String::new();
    let mut output = BufReader::new(daemon.0.stdout.take().ok_or("it is piped")?);
    output.read_line(&mut line)?;
    if !line.contains("\"ready\":true") {
        return Err(line.into());
    }
    let pid = daemon.0.id();
    // By then the daemon has measured the disks, which is no part of what it costs all the time.
    sleep(Duration::from_secs(5));
    let mut shares = Vec::new();
    for _ in 0..TIMES {
        let (before, begun) = (processor_s(pid)?, Instant::now());
        sleep(Duration::from_secs(seconds.into()));
        shares.push(100.0 * (processor_s(pid)? - before) / begun.elapsed().as_secs_f64());
    }
    let share = linux::median(shares).unwrap_or(f64::NAN);
    println!("{processes:>9} {mounts:>7} {share:>19.3} {:>9.1}", resident_mib(pid)?);
    kill_process(Pid::from_child(&daemon.0), Signal::TERM)?;
    daemon.0.wait()?;
    Ok(())
}

/// Seconds of processor time that all threads of the process have had; those of ended threads are left out.
fn processor_s(pid: u32) -> Fallible<f64> {
    let mut sum = 0.0;
    for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
        let text = fs::read_to_string(thread?.path().join("schedstat")).unwrap_or_default();
        sum += text.split(' ').next().and_then(|word| word.parse::<f64>().ok()).unwrap_or(0.0);
    }
    Ok(sum / 1e9)
}

fn resident_mib(pid: u32) -> Fallible<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<f64>()? / 1024.0)
}

/// A child that ends with this.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Folders that are mounted on others, until this is dropped.
struct Mounted {
    folder: tempfile::TempDir,
    points: Vec<PathBuf>,
}

impl Mounted {
    fn add(&mut self, number: u32) -> Fallible<()> {
        let (from, point) =
            (self.folder.path().join("from"), self.folder.path().join(number.to_string()));
        fs::create_dir_all(&from)?;
        fs::create_dir(&point)?;
        mount_bind(&from, &point)?;
        self.points.push(point);
        Ok(())
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        for point in &self.points {
            let _ = unmount(point, UnmountFlags::DETACH);
        }
    }
}
