//! `bowwave daemon`.
//!
//! ```text
//!   settings --> start --> serve --SIGTERM--> leave
//!                  ^         |
//!                  |      SIGHUP: other settings? --> stop
//!                  '-----------------------------------'
//! ```

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, anyhow};
use controller::metrics::Metrics;
use linux::state::{DaemonLock, StateError};
use live::config::Config;
use live::engine::{self, Engine, MOST_MEASURING, Options};
use live::observe::Scope;
use live::status::{Role, Socket};
use serde_json::json;

use crate::commands::{helper, privilege};
use crate::print::{self, PrintError};
use crate::service::Service;
use crate::settings;
use crate::signals::{self, Signals};

/// Adaptive read-ahead for every program on the machine, until stopped.
///
/// Needs root. SIGTERM or Ctrl-C ends it; it then prints what it did. SIGHUP makes it read its
/// configuration again, or ends it if it was started in a terminal. If it is killed, the next start
/// restores the settings that it had changed.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    settings: settings::Options,
    /// Read the settings from this file instead of /etc/bowwave/config.toml. Options replace what
    /// it says.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Only check the settings; exits with 0 if nothing is wrong.
    #[arg(long, conflicts_with_all = ["record", "recover", "json"])]
    check_config: bool,
    /// Record all inputs and commands, for `bowwave replay --verify FILE`.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Folder for measurements of disks, kept until reboot.
    #[arg(long, value_name = "DIR", default_value = linux::state::FOLDER)]
    state: PathBuf,
    /// Only restore what a killed daemon had changed.
    #[arg(long, conflicts_with_all = ["record", "json"])]
    recover: bool,
    /// Print one JSON object when ready and one at the end, instead of text.
    #[arg(long)]
    json: bool,
}

impl Args {
    fn config(&self) -> anyhow::Result<Config> {
        let config = self.settings.over(settings::read(self.config.as_deref())?);
        engine::check_paths(&config.path)?;
        Ok(config)
    }
}

pub(crate) fn main(args: Args) -> anyhow::Result<ExitCode> {
    if args.check_config {
        return check(&args);
    }
    let caught = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP];
    let is_meant = |&signal: &i32| signal != libc::SIGHUP || !signals::is_ignored(signal);
    let mut signals = Signals::catch(caught.into_iter().filter(is_meant))?;
    let config = if args.recover { Config::default() } else { args.config()? };
    privilege::demand("daemon")?;
    let _lock = DaemonLock::take(&args.state).map_err(|error| match error {
        StateError::Unusable { .. } => anyhow!("{error}; name another folder with --state"),
        StateError::Taken { .. } => anyhow!(error),
    })?;
    if args.recover {
        return recover(&args);
    }
    let metrics = manage(&args, config, &mut signals)?;
    if args.json {
        print::line(serde_json::to_string(&metrics)?)?;
    } else {
        print::line(metrics)?;
        metrics.walks().map_or(Ok(()), print::line)?;
        metrics.why_nothing().map_or(Ok(()), print::line)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn check(args: &Args) -> anyhow::Result<ExitCode> {
    args.config()?;
    match settings::place(args.config.as_deref()) {
        Some(path) => print::line(format_args!("nothing is wrong with {}", path.display()))?,
        None => print::line(format_args!("there is no {}; defaults apply", settings::FILE))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn recover(args: &Args) -> anyhow::Result<ExitCode> {
    let left = engine::recover(&args.state, &helper::of_this_program());
    if left > 0 {
        print::note(format_args!(
            "{left} open files keep the window they were given until bowwave is started again"
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// Manages reads until told to end, with an engine for each set of settings.
fn manage(args: &Args, mut config: Config, signals: &mut Signals) -> anyhow::Result<Metrics> {
    let service = Service::new();
    let ends_on_hang_up = signals::has_terminal();
    let mut record = args.record.as_deref().map(recording::Place::take).transpose()?;
    loop {
        let mut engine = start(args, &config, record.take())?;
        engine.get_to_know_devices(MOST_MEASURING, signals.readiness())?;
        announce(&engine, args.json)?;
        service.is_ready();
        let other = loop {
            serve(&mut engine, signals, &service)?;
            if signals.take().any(|signal| signal != libc::SIGHUP || ends_on_hang_up) {
                break None;
            }
            service.is_reloading();
            match reloaded(args) {
                Ok(other) if other != config => break Some(other),
                Ok(_) => print::note("the settings are the same"),
                Err(error) => print::note(format_args!("{error:#}; the settings stay as they are")),
            }
            service.is_ready();
        };
        let Some(other) = other else {
            service.is_stopping();
            engine.finish(Duration::ZERO, || true)?;
            return Ok(engine.leave());
        };
        engine.finish(Duration::ZERO, || true)?;
        engine.stop();
        config = other;
    }
}

fn start(args: &Args, config: &Config, record: Option<recording::Place>) -> anyhow::Result<Engine> {
    let options = Options {
        scope: Scope::Machine,
        paths: config.path.clone(),
        state: args.state.clone(),
        helper: helper::of_this_program(),
        charge: config.charge,
        behind: config.drop_behind.clone(),
        record,
    };
    let mut engine = Engine::start(options).context("cannot start")?;
    match Socket::bind(&args.state, Role::Daemon) {
        Ok(socket) => engine.answer_on(socket),
        Err(error) => print::note(error),
    }
    Ok(engine)
}

/// Manages reads until a signal arrives.
fn serve(engine: &mut Engine, signals: &Signals, service: &Service) -> anyhow::Result<()> {
    loop {
        // First, since signals may come more often than the pulse.
        service.is_alive();
        if engine.serve_for(service.pulse(), signals.readiness())? {
            return Ok(());
        }
    }
}

fn reloaded(args: &Args) -> anyhow::Result<Config> {
    if args.record.is_some() {
        return Err(anyhow!("a recording has one set of settings; restart bowwave to change them"));
    }
    args.config()
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
