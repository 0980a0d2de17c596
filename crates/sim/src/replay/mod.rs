//! Replays a trace: how would this policy serve it on that device?

mod cached;
mod files;
pub mod json;
mod knowing;
mod player;
mod plots;
pub mod values;

use controller::behind::Rules;
use device::Spec;
use readahead::{Nanos, PAGE_BYTES, STOCK_WINDOW_KB};

use crate::machine_spec::{MachineError, MachineSpec};
use crate::{Decision, FileIndex, Machine, Matrix};
use trace::Trace;

pub use cached::traced_waiting;
pub use files::Layout;
pub use plots::plots;
pub use plots::{completion_plot, sorted_points, window, window_plot};

/// Why a trace cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The machine cannot be simulated.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// The trace is too long for a policy that knows it.
    #[error(
        "the trace reads more than {most} pages, which oracle and worst cannot know; cut it into parts"
    )]
    TooLongToKnow {
        /// Most pages that it can know.
        most: u64,
    },
}

/// What to do with the time between operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pace {
    /// Processes start as in the trace, and pause as long as in the trace between the end of one operation and the
    /// start of the next.
    #[default]
    Trace,
    /// The same, but each pause is shorter by what a tracer may have added to it.
    Untraced,
    /// All processes start at once, and never pause.
    None,
}

impl Pace {
    /// As users write it.
    pub fn name(self) -> &'static str {
        match self {
            Pace::Trace => "trace",
            Pace::Untraced => "untraced",
            Pace::None => "none",
        }
    }
}

/// Where a trace is replayed; `None` stands for the value in `machine.toml`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Setup {
    /// A device of the catalogue, or a TOML file.
    pub device: Option<String>,
    /// The device itself, instead of a name.
    pub spec: Option<Spec>,
    /// Bytes of memory for the page cache.
    pub memory_bytes: Option<u64>,
    /// The elevator.
    pub elevator: Option<String>,
    /// Largest read-ahead of the kernel's policy in KiB.
    pub readahead_kb: Option<u64>,
    /// What to do with the time between operations.
    pub pace: Pace,
    /// Where files are, and in which order directories list them.
    pub layout: Layout,
    /// Largest read-ahead in KiB when the trace was recorded. What was in memory then is there again, as far as the
    /// trace tells. `None`: nothing is cached at first.
    pub traced_readahead_kb: Option<u64>,
    /// The longest time in which nothing happens in the trace; what is longer is cut to it. `None`: it may be any.
    pub longest_idle: Option<Nanos>,
    /// Which pages `adaptive` drops behind streams; none without rules.
    pub behind: Option<Rules>,
    /// Whether the trace is that of a command that `adaptive` remembers. It is played twice, and the figures are those of
    /// the second start.
    pub remembers: bool,
    /// Whether to keep a log of decisions.
    pub keeps_log: bool,
}

/// One process of a replay.
#[derive(Clone, Debug, PartialEq)]
pub struct Process {
    /// As the trace names it.
    pub name: String,
    /// Seconds from the start of the replay to its start.
    pub started_s: f64,
    /// Seconds from the start of the replay to its end.
    pub ended_s: f64,
    /// Seconds it waited for the device.
    pub stalled_s: f64,
}

/// The result of a replay under one policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Replay {
    /// The policy.
    pub policy: String,
    /// The kernel's largest read-ahead.
    pub readahead_kb: u64,
    /// Seconds from the start to the end of the last process.
    pub seconds: f64,
    /// Pages the trace reads, each counted once.
    pub pages_needed: u64,
    /// Of these, pages that were cached at first.
    pub pages_cached: u64,
    /// Pages read from the device.
    pub pages_read: u64,
    /// Of these, pages that had been read ahead before and evicted unused.
    pub read_again: u64,
    /// Of these, pages that had been evicted after they were used: refaults.
    pub refaulted: u64,
    /// The figures of each class of read-ahead.
    pub matrix: Matrix,
    /// The requested chunks, if a log is kept.
    pub log: Vec<Decision>,
    /// The processes, as the trace numbers them.
    pub processes: Vec<Process>,
}

impl Replay {
    /// Seconds that all processes together waited for the device.
    pub fn stalled_s(&self) -> f64 {
        self.processes.iter().map(|process| process.stalled_s).sum()
    }

    /// Seconds divided by those of another; 1 if neither takes any.
    pub fn seconds_to(&self, other: &Replay) -> f64 {
        if self.seconds == other.seconds { 1.0 } else { self.seconds / other.seconds }
    }

    /// Pages read for each page needed.
    pub fn read_per_needed(&self) -> f64 {
        self.pages_read as f64 / self.pages_needed.max(1) as f64
    }

    /// Needed bytes per second, in MB; `None` if the trace takes no time.
    pub fn mb_per_s(&self) -> Option<f64> {
        let bytes = (self.pages_needed * PAGE_BYTES) as f64;
        (self.seconds > 0.0).then(|| bytes / 1e6 / self.seconds)
    }
}

/// Checks that policy, device and elevator exist.
///
/// # Errors
/// Says which does not exist, and which do.
pub fn check(policy: &str, setup: &Setup) -> Result<(), ReplayError> {
    // The least memory that a machine can have, as it is only built to see whether it can be.
    let spec = MachineSpec { memory_mb: 1.0, ..machine_of(setup, 0) };
    // A policy that knows the trace is built from it; the rest of the machine is the same.
    let policy = if knowing::knows_the_trace(policy) { "none" } else { policy };
    spec.build(policy)?;
    Ok(())
}

/// Replays a trace. Two policies know the trace: `oracle`, the best of several [`Oracle`](crate::Oracle)s, and `worst`,
/// a [`Worst`](crate::Worst) on top of `linux-6`.
///
/// # Errors
/// As [`check`]; also if the trace is too long to be known.
pub fn replay(trace: &Trace, policy: &str, setup: &Setup) -> Result<Replay, ReplayError> {
    let bytes = trace.files().iter().map(|file| file.bytes + PAGE_BYTES).sum();
    let spec = machine_of(setup, bytes);
    match policy {
        "oracle" => knowing::oracle(trace, setup, &spec),
        "worst" => knowing::worst(trace, setup, &spec),
        _ => {
            let mut machine = spec.build(policy)?;
            if setup.remembers {
                let mut first = spec.build(policy)?;
                first.begin_start(Vec::new());
                run(trace, setup, &mut first);
                machine.begin_start(first.remembered());
            }
            Ok(play(trace, policy, setup, &spec, machine))
        }
    }
}

/// The trace on a machine that has run.
struct Ran {
    /// The files, by their numbers in the trace.
    files: Vec<FileIndex>,
    /// Pages that were cached at first.
    pages_cached: u64,
    /// The processes, by their numbers in the trace.
    numbers: Vec<usize>,
}

/// Has a machine run the processes of a trace.
fn run(trace: &Trace, setup: &Setup, machine: &mut Machine) -> Ran {
    let files = files::add(trace, setup.layout, machine);
    let pages_cached = setup.traced_readahead_kb.map_or(0, |kb| cache(trace, kb, &files, machine));
    let numbers = player::spawn(trace, setup, &files, machine);
    machine.run();
    Ran { files, pages_cached, numbers }
}

/// Replays a trace on a machine.
fn play(
    trace: &Trace,
    policy: &str,
    setup: &Setup,
    spec: &MachineSpec,
    mut machine: Machine,
) -> Replay {
    if setup.keeps_log {
        machine.keep_log();
    }
    let Ran { files, pages_cached, numbers } = run(trace, setup, &mut machine);
    let process = |(name, number): (&String, &usize)| {
        let outcome = machine.outcome(*number);
        Process {
            name: name.clone(),
            started_s: seconds(outcome.started),
            ended_s: seconds(outcome.ended),
            stalled_s: seconds(outcome.stalled),
        }
    };
    let processes: Vec<Process> = trace.processes().iter().zip(&numbers).map(process).collect();
    Replay {
        policy: policy.to_owned(),
        readahead_kb: spec.readahead_kb,
        seconds: processes.iter().map(|process| process.ended_s).fold(0.0, f64::max),
        pages_needed: trace.pages_needed(),
        pages_cached,
        pages_read: machine.matrix().pages_read(),
        read_again: machine.cache_counters().read_again,
        refaulted: machine.cache_counters().refaulted,
        matrix: machine.matrix().clone(),
        log: log(&machine, &files),
        processes,
    }
}

/// The log with the trace's numbers of files.
fn log(machine: &Machine, files: &[FileIndex]) -> Vec<Decision> {
    let mut numbers: Vec<(u32, u32)> =
        (0..).zip(files).map(|(number, file)| (file.0, number)).collect();
    numbers.sort_unstable();
    let log = machine.log().iter();
    log.map(|decision| Decision { file: numbers[decision.file as usize].1, ..*decision }).collect()
}

/// Caches what was cached when the trace was recorded with this window. Returns how many pages.
fn cache(trace: &Trace, traced_kb: u64, files: &[FileIndex], machine: &mut Machine) -> u64 {
    /// The kernel reads one window while another one is used.
    const WINDOWS: u64 = 2;
    let window = traced_kb.max(STOCK_WINDOW_KB) * 1024 / PAGE_BYTES;
    let ranges = cached::before(trace, WINDOWS * window);
    ranges.into_iter().map(|(file, pages)| machine.cache_pages(files[file as usize], pages)).sum()
}

fn seconds(ns: Nanos) -> f64 {
    ns as f64 * 1e-9
}

/// The machine of `machine.toml` with what the setup replaces, on a device with room for `bytes` of files.
fn machine_of(setup: &Setup, bytes: u64) -> MachineSpec {
    let text = include_str!("machine.toml");
    let mut spec: MachineSpec = toml::from_str(text).expect("the built-in machine is valid");
    spec.device_gb = spec.device_gb.max(bytes as f64 / 1e9);
    if let Some(device) = &setup.device {
        spec.device.clone_from(device);
    }
    if let Some(elevator) = &setup.elevator {
        spec.elevator.clone_from(elevator);
    }
    if let Some(bytes) = setup.memory_bytes {
        spec.memory_mb = bytes as f64 / 1e6;
    }
    spec.readahead_kb = setup.readahead_kb.unwrap_or(spec.readahead_kb);
    spec.device_spec.clone_from(&setup.spec);
    spec.behind.clone_from(&setup.behind);
    spec
}

#[cfg(test)]
mod tests {
    use controller::behind::{Mode, Rule};

    use super::*;

    /// A scan of 48 MiB and a look at 4 MiB twice, before and after it, in 32 MiB of memory.
    fn trace() -> Trace {
        let read = |at: u64, process: &str, place: u64| {
            format!("{at},{process},/{process},read,{},65536,100\n", place << 16)
        };
        let looks = |start: u64| {
            (0..64).map(move |n| read(start + n * 10_000, "hot", n)).collect::<String>()
        };
        let scan: String = (0..768).map(|n| read(1_000_000 + n * 3000, "scan", n)).collect();
        let text = format!(
            "time_us,process,file,op,offset,bytes,took_us\n{}{scan}{}",
            looks(0),
            looks(5_000_000)
        );
        Trace::parse(text.as_bytes()).expect("valid")
    }

    #[test]
    fn pages_are_dropped_behind_the_process_that_a_rule_names() {
        let read_again = |command: &str| {
            let rule = Rule {
                path: None,
                cgroup: None,
                command: Some(command.into()),
                mode: Mode::Always,
            };
            let behind = Some(Rules { mode: Mode::Never, rules: vec![rule] });
            let setup = Setup { memory_bytes: Some(32 << 20), behind, ..Setup::default() };
            replay(&trace(), "adaptive", &setup).expect("all exists").refaulted
        };
        assert_eq!((read_again("scan"), read_again("nobody")), (0, 1024));
    }
}
