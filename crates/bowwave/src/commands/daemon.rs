//! `bowwave daemon`.
//!
//! ```text
//!   settings --> start --> serve --SIGTERM--> leave
//!                  ^         |
//!                  |      SIGHUP: a thread reads the settings, while reads are managed
//!                  |         |
//!                  '--- stop, if they differ
//! ```

mod reading;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use controller::metrics::Metrics;
use ebpf::observe::Scope;
use linux::knob::JOURNALS;
use linux::state::{DaemonLock, StateError};
use live::config::Config;
use live::engine::{self, Engine, Heritage, Options, Prepared};
use live::places::Places;
use live::starts::Remember;
use remembered::Lists;
use serde_json::json;
use status::Role;

use crate::commands::{helper, privilege};
use crate::print::{self, PrintError};
use crate::service::Service;
use crate::settings;
use crate::signals::{self, Signals};
use reading::Reading;

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
    /// Folder for the status socket, disk measurements, and what to restore after a kill.
    #[arg(long, value_name = "DIR", default_value = linux::state::FOLDER)]
    state: PathBuf,
    /// Only restore what a killed daemon had changed; exits with 1 if something stays changed.
    #[arg(long, conflicts_with_all = ["record", "json"])]
    recover: bool,
    /// Folder for what is remembered of the commands in `remember.command` of the configuration.
    #[arg(long, value_name = "DIR", default_value = linux::state::REMEMBERED)]
    lists: PathBuf,
    /// Print one JSON object when ready and one at the end, instead of text.
    #[arg(long)]
    json: bool,
}

/// How long to wait for the file systems of the configured paths.
const PATHS_TIMEOUT: Duration = Duration::from_secs(5);

/// A configuration, and the file systems of its paths.
struct Settings {
    config: Config,
    places: Places,
}

impl Args {
    fn settings(&self) -> anyhow::Result<Settings> {
        let config = self.settings.apply_to(settings::read(self.config.as_deref())?);
        let places = Places::find(&config.path, PATHS_TIMEOUT)?;
        Ok(Settings { config, places })
    }

    fn settings_again(&self) -> anyhow::Result<Settings> {
        if self.record.is_some() {
            bail!("a recording has one set of settings; restart bowwave to change them");
        }
        self.settings()
    }
}

pub(crate) fn main(args: Args) -> anyhow::Result<ExitCode> {
    if args.check_config {
        return check(&args);
    }
    // Under nohup, keep ignoring SIGHUP.
    let hang_up = linux::signals::not_ignored([libc::SIGHUP]);
    let mut signals = Signals::catch([libc::SIGTERM, libc::SIGINT].into_iter().chain(hang_up))?;
    let settings = (!args.recover).then(|| args.settings()).transpose()?;
    if args.recover {
        privilege::demand_to_recover()?;
    } else {
        privilege::demand("daemon")?;
    }
    let _lock = DaemonLock::take(&args.state).map_err(|error| match error {
        StateError::Taken { .. } => anyhow!(error),
        _ => anyhow!("{error}; name another folder with --state"),
    })?;
    let Some(settings) = settings else { return recover(&args) };
    linux::state::prepare(Path::new(JOURNALS))
        .context("the daemon needs a folder for its journal")?;
    let args = Arc::new(args);
    let metrics = manage(&args, settings, &mut signals)?;
    if args.json {
        print::line(serde_json::to_string(&metrics)?)?;
    } else {
        metrics.lines().try_for_each(print::line)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn check(args: &Args) -> anyhow::Result<ExitCode> {
    args.settings()?;
    print::line(settings::examine(args.config.as_deref())?)?;
    Ok(ExitCode::SUCCESS)
}

fn recover(args: &Args) -> anyhow::Result<ExitCode> {
    let left = engine::recover(&args.state, &helper::of_this_program());
    left.failed.iter().for_each(print::note);
    if left.open_files > 0 {
        print::note(format_args!(
            "{} open files keep the window that bowwave set until bowwave is started again",
            left.open_files
        ));
    }
    Ok(if left.is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Manages reads until a signal ends it, with one engine after another for changed settings.
fn manage(
    args: &Arc<Args>,
    mut settings: Settings,
    signals: &mut Signals,
) -> anyhow::Result<Metrics> {
    let service = Service::new();
    let mut record = args
        .record
        .as_deref()
        .map(|path| recording::Place::take(path, &recording::KIND))
        .transpose()?;
    let mut heritage = None;
    loop {
        let mut engine = start(args, &settings, record.take(), heritage.take())?;
        engine.measure_devices(signals.readiness())?;
        announce(&engine, args.json)?;
        service.notify_ready();
        let changed = serve(args, &settings.config, &mut engine, signals, &service)?;
        engine.finish(Duration::ZERO, || true)?;
        let Some(mut changed) = changed else { return Ok(engine.leave()) };
        changed.places.mean_as_before(&settings.places);
        heritage = Some(engine.stop());
        settings = changed;
    }
}

fn start(
    args: &Args,
    settings: &Settings,
    record: Option<recording::Place>,
    heritage: Option<Heritage>,
) -> anyhow::Result<Engine> {
    let options = Options {
        scope: Scope::Machine,
        places: settings.places.clone(),
        state: args.state.clone(),
        helper: helper::of_this_program(),
        charge: settings.config.charge,
        behind: settings.config.drop_behind.clone(),
        remember: Remember {
            commands: settings.config.remember.clone(),
            lists: Lists::in_folder(&args.lists),
        },
        record,
    };
    let mut engine = Prepared::new(options, heritage).load().context("cannot start")?;
    engine.answer_in(&args.state, Role::Daemon);
    Ok(engine)
}

/// Manages reads until the settings change, and returns the new ones; or until a signal ends it.
fn serve(
    args: &Arc<Args>,
    config: &Config,
    engine: &mut Engine,
    signals: &mut Signals,
    service: &Service,
) -> anyhow::Result<Option<Settings>> {
    let ends_on_hang_up = signals::has_terminal();
    let mut reading: Option<Reading<Settings>> = None;
    loop {
        // Do this in each round, as signals may come more often than the interval.
        service.notify_alive();
        let reading_time = reading.as_ref().map_or(Duration::MAX, Reading::time_left);
        let stop = reading.as_ref().map_or(signals.readiness(), Reading::readiness);
        engine.serve_for(reading_time.min(service.alive_interval()), stop)?;
        let caught: Vec<i32> = signals.take().collect();
        if caught.iter().any(|signal| *signal != libc::SIGHUP || ends_on_hang_up) {
            service.notify_stopping();
            return Ok(None);
        }
        let mut read = None;
        if caught.is_empty() {
            read = reading.as_ref().and_then(Reading::result);
        } else {
            // If a reading is under way, begin again: the file may have changed.
            service.notify_reloading();
            let args = Arc::clone(args);
            match Reading::begin(signals.readiness(), move || args.settings_again()) {
                Ok(begun) => reading = Some(begun),
                Err(error) => read = Some(Err(error.into())),
            }
        }
        match read {
            None => continue,
            Some(Ok(changed)) if changed.config != *config => return Ok(Some(changed)),
            Some(Ok(_)) => print::note("the settings are the same"),
            Some(Err(error)) => {
                print::note(format_args!("{error:#}; the settings stay as they are"));
            }
        }
        reading = None;
        service.notify_ready();
    }
}

fn announce(engine: &Engine, as_json: bool) -> Result<(), PrintError> {
    let mounts = engine.mounts().into_iter();
    let places: Vec<_> = mounts.map(|mount| mount.mount_point.display().to_string()).collect();
    if as_json {
        print::json_line(&json!({ "ready": true, "mounts": places }))
    } else {
        print::line(format_args!("managing reads on {}", print::visible(&places.join(", "))))
    }
}
