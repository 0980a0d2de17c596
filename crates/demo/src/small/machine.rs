//! A small machine: a memory cgroup with processes, each under a tool.

use std::fmt;
use std::io::Write;
use std::path::Path;
use std::process::{ChildStdin, ChildStdout, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::bench::DEFAULT_KB;
use crate::cgroup::MemoryCgroup;
use crate::child::{OwnChild, begin_in, own_command, report_in};
use crate::daemon::forget_histories;
use crate::error::DemoError;
use crate::stop::Stop;
use crate::target::Target;
use crate::worker::jobs::{Done, Job};
use patterns::Files;

/// The tool under which a process runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tool {
    /// No tool.
    Stock,
    /// `nocache`, a preloaded library that drops pages behind.
    Nocache,
    /// `bowwave run`.
    Bowwave,
    /// `bowwave run --drop-behind`.
    DropBehind,
}

impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Tool::Stock => "stock",
            Tool::Nocache => "nocache",
            Tool::Bowwave | Tool::DropBehind => "bowwave",
        })
    }
}

impl Tool {
    /// Why it is not available here, if so.
    pub(super) fn missing(self) -> Option<String> {
        (self == Tool::Nocache && !crate::machine::has_program("nocache"))
            .then(|| "nocache is not installed (apt-get install nocache)".into())
    }

    /// The words before a command that runs under this tool. Bowwave keeps its measurements of disks in `state`.
    pub(super) fn words(self, state: &Path) -> Vec<String> {
        let state = state.display().to_string();
        let words: &[&str] = match self {
            Tool::Stock => &[],
            Tool::Nocache => &["nocache"],
            Tool::Bowwave => &["/proc/self/exe", "run", "--json", "--state", &state, "--"],
            Tool::DropBehind => {
                &["/proc/self/exe", "run", "--drop-behind", "--json", "--state", &state, "--"]
            }
        };
        words.iter().map(|word| (*word).to_owned()).collect()
    }
}

/// What all runs have in common.
pub(super) struct Setup<'a> {
    pub(super) target: &'a Target,
    pub(super) state: &'a Path,
    pub(super) stop: &'a Stop,
}

/// A machine with cold caches and little memory. Its processes must end before it is dropped.
pub(super) struct Machine<'a> {
    setup: &'a Setup<'a>,
    cgroup: MemoryCgroup,
}

impl<'a> Machine<'a> {
    /// Creates a machine with this many bytes of memory, with none of the files cached.
    pub(super) fn boot(
        setup: &'a Setup<'a>,
        bytes: u64,
        files: &[Files],
    ) -> Result<Self, DemoError> {
        setup.stop.check()?;
        setup.target.evict(files)?;
        setup.target.set_read_ahead_kb(DEFAULT_KB)?;
        forget_histories(setup.state);
        let cgroup = MemoryCgroup::new(bytes).map_err(DemoError::file("memory cgroup"))?;
        Ok(Machine { setup, cgroup })
    }

    /// Starts a process (`bowwave demo --hand`) that waits for jobs, under a tool.
    pub(super) fn process(&self, tool: Tool) -> Result<Process<'a>, DemoError> {
        let failed = DemoError::file("memory cgroup");
        let mut words = tool.words(self.setup.state);
        // Once a tool has replaced it, `/proc/self/exe` is that tool; bowwave is its own tool.
        let own = match tool {
            Tool::Nocache => std::env::current_exe().map_err(DemoError::file("bowwave"))?,
            _ => "/proc/self/exe".into(),
        };
        words.extend([own.display().to_string(), "demo".into(), "--hand".into()]);
        let mut command = own_command_of(&words);
        begin_in(&mut command, self.cgroup.processes().map_err(failed)?);
        let mut child = OwnChild::spawn(command).map_err(DemoError::file(&words[0]))?;
        let jobs = child.streams().stdin.take();
        let answers = child.streams().stdout.take().expect("it is piped");
        Ok(Process { child, jobs, answers, stop: self.setup.stop })
    }

    /// Does `work`. Returns its result, and the most memory that the machine used meanwhile, in bytes.
    pub(super) fn watching<T>(&self, work: impl FnOnce() -> T) -> (T, u64) {
        const LOOK: Duration = Duration::from_millis(5);
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let watch = scope.spawn(|| {
                let mut most = 0;
                while !is_over.load(Ordering::Relaxed) {
                    most = most.max(self.cgroup.used_bytes().unwrap_or(0));
                    thread::sleep(LOOK);
                }
                most
            });
            let result = work();
            is_over.store(true, Ordering::Relaxed);
            (result, watch.join().unwrap_or(0))
        })
    }
}

/// A command of these words, set up like [`own_command`].
fn own_command_of(words: &[String]) -> Command {
    let mut command =
        if words[0] == "/proc/self/exe" { own_command() } else { crate::child::command(&words[0]) };
    command.args(&words[1..]);
    command
}

/// A process of the machine, killed when this is dropped.
pub(super) struct Process<'a> {
    child: OwnChild,
    jobs: Option<ChildStdin>,
    answers: ChildStdout,
    stop: &'a Stop,
}

impl Process<'_> {
    /// Makes it do a job.
    pub(super) fn perform(&mut self, job: &Job) -> Result<Done, DemoError> {
        let failed = |reason: String| DemoError::Process(reason);
        let mut line = serde_json::to_vec(job).map_err(|error| failed(error.to_string()))?;
        line.push(b'\n');
        if let Some(jobs) = &mut self.jobs {
            // If it has ended, its standard error says why.
            let _ = jobs.write_all(&line);
        }
        let answer = self.stop.read_line(&mut self.answers)?;
        let done =
            serde_json::from_slice::<Done>(&answer).map_err(|_| failed(self.child.last_words()))?;
        match done.failure {
            Some(reason) => Err(failed(reason)),
            None => Ok(done),
        }
    }

    /// Lets it end. Returns bowwave's report if it ran under bowwave.
    pub(super) fn finish(mut self) -> Result<Value, DemoError> {
        self.jobs = None;
        let words = self.child.last_words();
        let status = self.child.wait().map_err(|error| DemoError::Process(error.to_string()))?;
        if !status.success() {
            return Err(DemoError::Process(format!("ended with {status}: {words}")));
        }
        Ok(report_in(&words))
    }
}
