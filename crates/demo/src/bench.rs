//! One run: cold caches, the kernel's window, the daemon if the setting needs it, a fresh reader.

use std::io::Write;
use std::path::Path;
use std::time::Instant;

use linux::waits;
use serde_json::Value;

use crate::cgroup::MemoryCgroup;
use crate::child::{OwnChild, own_command};
use crate::daemon::Daemon;
use crate::error::DemoError;
use crate::recordings::Recordings;
use crate::stop::Stop;
use crate::target::Target;
use crate::worker::Outcome;
use patterns::{Pattern, Work};

/// How often to repeat a run that was not cold or that has a wide error.
const REPEATS: u32 = 2;

/// A wide error, as a share of the measured time.
const WIDE: f64 = 0.15;

/// The kernel's own window, in KiB, while bowwave runs: the default of stock kernels.
pub(crate) const DEFAULT_KB: u64 = 128;

/// The read-ahead for a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Setting {
    /// The kernel with a window of this many KiB.
    Stock(u64),
    /// Bowwave beside the kernel's default window.
    Bowwave,
}

impl std::fmt::Display for Setting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Setting::Stock(kb) => write!(f, "stock {kb}K"),
            Setting::Bowwave => f.write_str("bowwave"),
        }
    }
}

/// One measured run.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    /// The reader's report.
    pub(crate) outcome: Outcome,
    /// Bytes that the device delivered, if it counts them.
    pub(crate) bytes_read: Option<u64>,
    /// CPU time of bowwave in seconds.
    pub(crate) daemon_cpu_s: f64,
    /// Bowwave's report.
    pub(crate) daemon: Value,
    /// How far the time may be wrong because the machine was busy, as a share of it.
    pub(crate) error: f64,
    /// Why the run does not count, if so.
    pub(crate) rejection: Option<String>,
}

impl Sample {
    /// Prefers cold runs, then a small error.
    fn is_better_than(&self, other: &Sample) -> bool {
        let rank = |sample: &Sample| (sample.rejection.is_some(), sample.error);
        rank(self) < rank(other)
    }
}

/// The device and daemon of a run.
pub(crate) struct Bench<'a> {
    pub(crate) target: &'a Target,
    /// Where the daemon keeps its measurement of the device.
    pub(crate) state: &'a Path,
    /// Where to record what bowwave does.
    pub(crate) recordings: Option<Recordings<'a>>,
    pub(crate) stop: &'a Stop,
    /// No run is repeated after this.
    pub(crate) repeat_until: Option<Instant>,
}

impl Bench<'_> {
    /// A cold run with a small error, or the best of several others.
    pub(crate) fn sample(&self, pattern: &Pattern, setting: Setting) -> Result<Sample, DemoError> {
        let mut best = self.run(pattern, setting)?;
        for _ in 0..REPEATS {
            let is_fine = best.rejection.is_none() && best.error <= WIDE;
            if is_fine || self.repeat_until.is_some_and(|until| Instant::now() > until) {
                break;
            }
            let again = self.run(pattern, setting)?;
            if again.is_better_than(&best) {
                best = again;
            }
        }
        Ok(best)
    }

    /// One cold run, whether it counts or not.
    fn run(&self, pattern: &Pattern, setting: Setting) -> Result<Sample, DemoError> {
        self.stop.check()?;
        self.target.evict(pattern.files)?;
        self.target.set_read_ahead_kb(match setting {
            Setting::Stock(kb) => kb,
            Setting::Bowwave => DEFAULT_KB,
        })?;
        let daemon = match setting {
            Setting::Stock(_) => None,
            Setting::Bowwave => {
                let record = self.recordings.map(|recordings| recordings.next(pattern.name));
                let folder = self.target.folder();
                Some(Daemon::start(&folder, self.state, record.as_deref(), self.stop)?)
            }
        };
        let waited = || (waits::kernel_workers(), daemon.as_ref().map_or(0.0, Daemon::waited_s));
        let (before, waited_before) = (self.target.reading()?, waited());
        let outcome = self.read(pattern)?;
        let waited = waited();
        let reading = self.target.reading()?.since(&before);
        // The workers serve the requests in flight side by side.
        let workers_s = (waited.0 - waited_before.0).seconds() / reading.depth().max(1.0);
        let daemon_s = (waited.1 - waited_before.1).max(0.0);
        let waited_s = outcome.waited_s + workers_s + daemon_s;
        let daemon_cpu_s = daemon.as_ref().map_or(0.0, Daemon::cpu_seconds);
        Ok(Sample {
            outcome,
            bytes_read: reading.bytes_read,
            daemon_cpu_s,
            daemon: daemon.map(Daemon::stop).transpose()?.unwrap_or_default(),
            error: (reading.error_s() + waited_s) / outcome.seconds,
            rejection: reading.rejection(pattern.bytes_needed()),
        })
    }

    /// Starts a reader in a separate process, tells it to begin, and waits for its report.
    fn read(&self, pattern: &Pattern) -> Result<Outcome, DemoError> {
        let failed = |reason: String| DemoError::Reader { pattern: pattern.name.into(), reason };
        let failed_io = |error: std::io::Error| failed(error.to_string());
        // Created before the reader, so that it is removed after it.
        let cgroup = match pattern.work {
            Work::Limited(_, bytes) => Some(MemoryCgroup::new(bytes).map_err(failed_io)?),
            _ => None,
        };
        let mut command = own_command();
        command.args(["demo", "--worker", pattern.name, "--folder"]).arg(self.target.folder());
        let mut reader = OwnChild::spawn(command).map_err(failed_io)?;
        if let Some(cgroup) = &cgroup {
            cgroup.admit(reader.pid().as_raw_nonzero().get() as u32).map_err(failed_io)?;
        }
        if let Some(mut input) = reader.streams().stdin.take() {
            // If the reader has ended already, it reports why.
            let _ = input.write_all(WORD);
        }
        let mut output = reader.streams().stdout.take().expect("it is piped");
        let report = self.stop.read_to_end(&mut output)?;
        reader.wait().map_err(failed_io)?;
        serde_json::from_slice(&report).map_err(|_| failed(reader.last_words()))
    }
}

/// Written to a reader's standard input, it tells the reader to begin.
pub const WORD: &[u8] = b"go\n";
