//! What a device that does not answer costs readers of another one, and the end of the daemon.
//!
//! ```text
//! cargo build --release && cargo run --release -p bowwave --example bad-devices -- target/release/bowwave
//! ```
//!
//! Each row: a file of 64 MB on a healthy lab disk (`net`) is read backward five times under the daemon, first alone,
//! then beside a reader of a bad device. Then the daemon gets SIGTERM. Medians of 3 runs, or of as many as a second
//! argument says. Needs root, FUSE and eBPF, and takes some three minutes.

#[path = "../tests/bad/mod.rs"]
mod bad;

use std::error::Error;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use lab::LabGuard;
use rustix::process::{Pid, Signal, kill_process};

use bad::{Bad, Sort};

type Fallible<T> = Result<T, Box<dyn Error>>;

/// What one run has shown.
struct Run {
    alone_s: f64,
    beside_s: f64,
    /// From SIGTERM until the daemon has printed its totals; by then it has given windows back.
    told_s: f64,
    /// From SIGTERM until the process has ended, if it ends before the device is released.
    ended_s: Option<f64>,
    /// Windows and journals are as they were.
    is_clean: bool,
}

/// How often the file is read. Once takes a fifth of a second, too little to be told from noise.
const TIMES: usize = 5;

/// How long to wait for the daemon's end before the bad device is released.
const MOST_ENDING: Duration = Duration::from_secs(12);

fn main() -> Fallible<()> {
    let mut arguments = std::env::args().skip(1);
    let bowwave = PathBuf::from(arguments.next().ok_or("name the bowwave to be tested")?);
    let runs: usize = arguments.next().map_or(Ok(3), |text| text.parse())?;
    println!("{}, {}", linux::provenance::kernel(), linux::provenance::date());
    println!(
        "beside                          alone s  beside s  ratio  SIGTERM: told s  ended s  windows"
    );
    for (sort, name) in [
        (Sort::Silent, "a server that never answers"),
        (Sort::Slow, "a disk that takes 10 s a read"),
        (Sort::Vanishing, "a disk that vanishes"),
    ] {
        let runs = (0..runs).map(|_| run(sort, &bowwave)).collect::<Fallible<Vec<_>>>()?;
        let of = |figure: fn(&Run) -> f64| {
            linux::median(runs.iter().map(figure).collect::<Vec<_>>()).unwrap_or(f64::NAN)
        };
        let (alone, beside) = (of(|run| run.alone_s), of(|run| run.beside_s));
        let ratio = of(|run| run.beside_s / run.alone_s);
        let told = of(|run| run.told_s);
        let ended = of(|run| run.ended_s.unwrap_or(f64::INFINITY));
        let is_clean = runs.iter().all(|run| run.is_clean);
        println!(
            "{name:<30} {alone:>8.3} {beside:>9.3} {ratio:>6.3} {told:>16.3} {ended:>8.3}  {}",
            if is_clean { "as before" } else { "CHANGED" }
        );
    }
    Ok(())
}

fn run(sort: Sort, bowwave: &Path) -> Fallible<Run> {
    let healthy = LabGuard::up(&bad::options(bowwave, "healthy", "net", None))?;
    let mut bad = Bad::up(sort, bowwave)?;
    let state = tempfile::tempdir()?;
    let before = (healthy.read_ahead_kb()?, bad.window_kb()?);
    let daemon = Daemon::start(bowwave, state.path(), &[&healthy.mount_point(), bad.folder()])?;
    // The disk is known from the second time on.
    stream(&healthy)?;
    let alone_s = stream(&healthy)?;
    bad.begin()?;
    let beside_s = stream(&healthy)?;
    let begun = Instant::now();
    let (told_s, mut child) = daemon.end()?;
    let mut ended_s = None;
    while ended_s.is_none() && begun.elapsed() < MOST_ENDING {
        ended_s = child.try_wait()?.map(|_| begun.elapsed().as_secs_f64());
        std::thread::sleep(Duration::from_millis(5));
    }
    let after = (healthy.read_ahead_kb()?, bad.window_kb()?);
    bad.release();
    child.wait()?;
    let is_clean = after == before && bad::journals(state.path()).is_empty();
    Ok(Run { alone_s, beside_s, told_s, ended_s, is_clean })
}

/// The seconds in which the cold file of the lab is read backward, several times.
fn stream(lab: &LabGuard) -> Fallible<f64> {
    let mut seconds = 0.0;
    for _ in 0..TIMES {
        bad::prepare(lab)?;
        let begun = Instant::now();
        bad::read_backward(&lab.mount_point(), &AtomicBool::new(false))?;
        seconds += begun.elapsed().as_secs_f64();
    }
    Ok(seconds)
}

/// A daemon; killed if a run fails.
struct Daemon {
    child: Option<Child>,
    output: BufReader<ChildStdout>,
}

impl Daemon {
    /// When it manages reads on these folders.
    fn start(bowwave: &Path, state: &Path, folders: &[&Path]) -> Fallible<Daemon> {
        let mut command = Command::new(bowwave);
        command.args(["daemon", "--json", "--charge", "reader", "--state"]).arg(state);
        for folder in folders {
            command.arg("--path").arg(folder);
        }
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let output = BufReader::new(child.stdout.take().ok_or("it is piped")?);
        let mut daemon = Daemon { child: Some(child), output };
        let line = daemon.line()?;
        if line.contains("\"ready\":true") { Ok(daemon) } else { Err(line.into()) }
    }

    fn line(&mut self) -> Fallible<String> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        Ok(line)
    }

    /// Sends SIGTERM; gives the seconds until it has told its totals.
    fn end(mut self) -> Fallible<(f64, Child)> {
        let child = self.child.take().ok_or("it runs")?;
        let begun = Instant::now();
        kill_process(Pid::from_child(&child), Signal::TERM)?;
        self.line()?;
        Ok((begun.elapsed().as_secs_f64(), child))
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
