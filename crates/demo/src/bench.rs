//! One run, and all of them.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::cgroup::MemoryCgroup;
use crate::daemon::Daemon;
use crate::error::DemoError;
use crate::files;
use crate::pattern::{PATTERNS, Pattern, Work, find};
use crate::report::Row;
use crate::stop::Stop;
use crate::target::Target;
use crate::tradeoff::TradeOff;
use crate::worker::Outcome;

/// What to show.
#[derive(Clone, Debug)]
pub struct Options {
    /// Devices: names of the lab, TOML files, or `local[:FOLDER]`.
    pub devices: Vec<String>,
    /// Patterns by name; the telling ones if empty.
    pub only: Vec<String>,
    /// Every pattern.
    pub full: bool,
    /// Runs of each; the medians are shown.
    pub rounds: u32,
}

/// A run whose device kept bad time is repeated so often.
const REPEATS: u32 = 2;

/// Under which read-ahead a pattern runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Setting {
    /// The kernel with a window of so many KiB.
    Stock(u64),
    /// Bowwave beside the kernel's default window.
    Bowwave,
}

const STOCK_KB: u64 = 128;
const LARGE_KB: u64 = 4096;

/// One measured run.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    pub(crate) outcome: Outcome,
    pub(crate) bytes_read: u64,
    pub(crate) daemon_cpu_s: f64,
    pub(crate) lateness_us: Option<f64>,
    pub(crate) rejection: Option<String>,
}

/// Shows everything; calls `on_device` with the rows of each device when it is done.
///
/// # Errors
/// See [`DemoError`]. Whatever was made is removed on every path.
pub fn run(
    options: &Options,
    mut on_device: impl FnMut(&str, Vec<Row>, Option<TradeOff>),
) -> Result<(), DemoError> {
    let stop = Stop::on_signals();
    for device in &options.devices {
        let patterns = choose(options, device)?;
        let (rows, trade_off) = run_device(device, &patterns, options.rounds, &stop)?;
        on_device(device, rows, trade_off);
    }
    Ok(())
}

fn choose(options: &Options, device: &str) -> Result<Vec<&'static Pattern>, DemoError> {
    let named: Result<Vec<_>, _> = options
        .only
        .iter()
        .map(|name| find(name).ok_or_else(|| DemoError::UnknownPattern(name.clone())))
        .collect();
    let named = named?;
    let is_wanted = |pattern: &Pattern| {
        if named.is_empty() {
            options.full || pattern.is_telling
        } else {
            named.iter().any(|wanted| wanted.name == pattern.name)
        }
    };
    // Latency beside streams is a matter of disks; elsewhere nothing has to be traded.
    let fits = |pattern: &Pattern| {
        !matches!(pattern.work, Work::Beside) || device == "hdd" || !named.is_empty()
    };
    let chosen: Vec<_> = PATTERNS.iter().filter(|p| is_wanted(p) && fits(p)).collect();
    if chosen.is_empty() { Err(DemoError::NothingToRun(device.into())) } else { Ok(chosen) }
}

fn run_device(
    device: &str,
    patterns: &[&'static Pattern],
    rounds: u32,
    stop: &Stop,
) -> Result<(Vec<Row>, Option<TradeOff>), DemoError> {
    let target = Target::open(device)?;
    let bar = progress(device, patterns.len() as u64 * u64::from(rounds) * 3);
    target.set_fast(true)?;
    for pattern in patterns {
        bar.set_message(format!("writing the files of {}", pattern.name));
        files::prepare(&target.folder(), pattern.files)?;
        stop.check()?;
    }
    target.set_fast(false)?;
    let (mut rows, mut trade_off) = (Vec::new(), None);
    for pattern in patterns {
        let bench = Bench { target: &target, pattern, bar: &bar, stop };
        if matches!(pattern.work, Work::Beside) {
            trade_off = Some(bench.trade_off(rounds)?);
        } else {
            rows.push(bench.row(device, rounds)?);
        }
    }
    bar.finish_and_clear();
    Ok((rows, trade_off))
}

fn progress(device: &str, length: u64) -> ProgressBar {
    let bar = ProgressBar::new(length);
    if !std::io::stderr().is_terminal() {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    let style = ProgressStyle::with_template("{prefix} [{bar:30}] {pos}/{len} {elapsed} {msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.set_prefix(device.to_owned());
    bar.enable_steady_tick(Duration::from_millis(500));
    bar
}

struct Bench<'a> {
    target: &'a Target,
    pattern: &'static Pattern,
    bar: &'a ProgressBar,
    stop: &'a Stop,
}

impl Bench<'_> {
    /// All rounds of one pattern under the three settings, which follow one another.
    fn row(&self, device: &str, rounds: u32) -> Result<Row, DemoError> {
        let settings = [Setting::Stock(STOCK_KB), Setting::Stock(LARGE_KB), Setting::Bowwave];
        let mut samples: [Vec<Sample>; 3] = Default::default();
        for _ in 0..rounds {
            for (samples, setting) in samples.iter_mut().zip(settings) {
                samples.push(self.sample(setting)?);
            }
        }
        let all = samples.iter().flatten();
        let sums: Vec<u64> = all.map(|sample| sample.outcome.checksum).collect();
        if sums.windows(2).any(|pair| pair[0] != pair[1]) {
            return Err(DemoError::DifferentBytes(self.pattern.name.into()));
        }
        let needed = self.pattern.bytes_needed();
        Ok(Row::new(device, self.pattern.name, &samples, needed, self.target.limit_seconds(needed)))
    }

    fn trade_off(&self, rounds: u32) -> Result<TradeOff, DemoError> {
        let mut trade_off = TradeOff::new();
        for _ in 0..rounds {
            for setting in TradeOff::SETTINGS {
                let sample = self.sample(setting)?;
                trade_off.add(setting, &sample);
            }
        }
        Ok(trade_off)
    }

    /// One run that counts, or the last of several that do not.
    fn sample(&self, setting: Setting) -> Result<Sample, DemoError> {
        let mut sample = self.run_once(setting)?;
        for _ in 0..REPEATS {
            if sample.rejection.is_none() {
                break;
            }
            sample = self.run_once(setting)?;
        }
        self.bar.inc(1);
        Ok(sample)
    }

    fn run_once(&self, setting: Setting) -> Result<Sample, DemoError> {
        self.stop.check()?;
        self.bar.set_message(format!("{} {setting:?}", self.pattern.name));
        self.target.evict(self.pattern.files)?;
        self.target.set_read_ahead_kb(match setting {
            Setting::Stock(kb) => kb,
            Setting::Bowwave => STOCK_KB,
        })?;
        let daemon = match setting {
            Setting::Stock(_) => None,
            Setting::Bowwave => Some(Daemon::start(&self.target.folder())?),
        };
        let before = self.target.reading()?;
        let outcome = self.read()?;
        let reading = self.target.reading()?.since(&before);
        Ok(Sample {
            outcome,
            bytes_read: reading.bytes_read,
            daemon_cpu_s: daemon.as_ref().map_or(0.0, Daemon::cpu_seconds),
            lateness_us: reading.lateness_us(),
            rejection: reading.rejection(),
        })
    }

    /// Starts the reader, a process of its own, and waits for what it reports.
    fn read(&self) -> Result<Outcome, DemoError> {
        let failed =
            |reason: String| DemoError::Reader { pattern: self.pattern.name.into(), reason };
        let cgroup = match self.pattern.work {
            Work::Limited(_, bytes) => Some(MemoryCgroup::new(bytes)?),
            _ => None,
        };
        let own = std::env::current_exe().map_err(DemoError::file("/proc/self/exe"))?;
        let mut child = Command::new(own)
            .args(["demo", "--worker", self.pattern.name, "--folder"])
            .arg(self.target.folder())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| failed(error.to_string()))?;
        if let Some(cgroup) = &cgroup {
            let procs: PathBuf = cgroup.procs();
            std::fs::write(&procs, child.id().to_string()).map_err(DemoError::file(procs))?;
        }
        if let Some(mut go) = child.stdin.take() {
            // A reader that has ended already reports why.
            let _ = go.write_all(b"go\n");
        }
        let output = child.wait_with_output().map_err(|error| failed(error.to_string()))?;
        serde_json::from_slice(&output.stdout)
            .map_err(|_| failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
    }
}
