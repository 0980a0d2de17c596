//! `bowwave daemon`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, anyhow};
use controller::Charge;
use linux::state::{DaemonLock, StateError};
use live::engine::{Engine, MOST_MEASURING, Options};
use live::observe::Scope;
use live::status::{Role, Socket};
use serde_json::json;

use crate::commands::behind::{self, ModeName};
use crate::commands::{helper, privilege};
use crate::print::{self, PrintError};
use crate::signals::{self, Signals};

/// Adaptive read-ahead for every program on the machine, until stopped.
///
/// Needs root. SIGTERM, SIGHUP or Ctrl-C ends it; it then prints what it did. If it is killed, the
/// next start restores the settings that it had changed.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Manage only the file system that holds this path; may be given several times.
    #[arg(long, value_name = "PATH")]
    path: Vec<PathBuf>,
    /// Record all inputs and commands, for `bowwave replay --verify FILE`.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Folder for measurements of disks, kept until reboot.
    #[arg(long, value_name = "DIR", default_value = linux::state::FOLDER)]
    state: PathBuf,
    /// Which memory cgroup is charged for pages read ahead: bowwave's own, or the reader's wherever
    /// the kernel can do the read-ahead itself.
    #[arg(long, value_enum, default_value_t)]
    charge: ChargeName,
    /// Drop pages behind streams: after they have passed an eighth of the available memory (auto,
    /// the default), from their first page on (always), or never.
    #[arg(long, value_enum, value_name = "MODE")]
    drop_behind: Option<ModeName>,
    /// A file with the drop-behind mode, and rules by path, cgroup or command.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print one JSON object when ready and one at the end, instead of text.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Default, clap::ValueEnum)]
enum ChargeName {
    /// Bowwave's own cgroup.
    #[default]
    Bowwave,
    /// The reader's cgroup, for forward streams.
    Reader,
}

impl From<ChargeName> for Charge {
    fn from(name: ChargeName) -> Self {
        match name {
            ChargeName::Bowwave => Charge::Bowwave,
            ChargeName::Reader => Charge::Reader,
        }
    }
}

pub(crate) fn main(args: Args) -> anyhow::Result<ExitCode> {
    let ending = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP];
    let is_meant = |&signal: &i32| signal != libc::SIGHUP || !signals::is_ignored(signal);
    let signals = Signals::catch(ending.into_iter().filter(is_meant))?;
    let rules = behind::rules(args.config.as_deref(), args.drop_behind)?;
    privilege::demand("daemon")?;
    let _lock = DaemonLock::take(&args.state).map_err(|error| match error {
        StateError::Unusable { .. } => anyhow!("{error}; name another folder with --state"),
        StateError::Taken { .. } => anyhow!(error),
    })?;
    let options = Options {
        scope: Scope::Machine,
        paths: args.path,
        state: args.state.clone(),
        helper: helper::of_this_program(),
        charge: args.charge.into(),
        behind: rules,
        record: args.record.as_deref().map(recording::Place::take).transpose()?,
    };
    let mut engine = Engine::start(options).context("cannot start")?;
    match Socket::bind(&args.state, Role::Daemon) {
        Ok(socket) => engine.answer_on(socket),
        Err(error) => print::note(error),
    }
    engine.get_to_know_devices(MOST_MEASURING, signals.readiness())?;
    announce(&engine, args.json)?;
    engine.serve_until(signals.readiness())?;
    engine.finish(Duration::ZERO, || true)?;
    let metrics = engine.leave();
    if args.json {
        print::line(serde_json::to_string(&metrics)?)?;
    } else {
        print::line(metrics)?;
        metrics.walks().map_or(Ok(()), print::line)?;
        metrics.why_nothing().map_or(Ok(()), print::line)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn announce(engine: &Engine, as_json: bool) -> Result<(), PrintError> {
    let mounts = engine.mounts().into_iter();
    let places: Vec<_> = mounts.map(|mount| mount.mount_point.display().to_string()).collect();
    if as_json {
        print::line(json!({ "ready": true, "mounts": places }))
    } else {
        print::line(format_args!("managing reads on {}", places.join(", ")))
    }
}
