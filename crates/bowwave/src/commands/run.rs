//! `bowwave run`.

mod beside;
mod remember;

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use crate::commands::child::{self, Caught};
use crate::commands::{helper, privilege};
use crate::print;
use crate::settings::{self, ModeName};
use anyhow::{anyhow, bail};
use beside::{Beside, Ending, Job, Outcome};
use clap::ValueEnum;
use controller::Charge;
use controller::behind::Rules;
use controller::metrics::Metrics;
use ebpf::observe::Scope;
use linux::state::StateError;
use live::engine::{Options, Prepared};
use live::places::Places;
use live::starts::Remember;
use recording::Place;
use remember::Start;
use remembered::Name;
use serde_json::{Value, json};
use status::Role;

/// Run a command with adaptive read-ahead for it and its descendants only.
///
/// The command starts at once while eBPF is loaded. If that fails, bowwave says so and the command
/// runs all the same. The exit status is the command's (128 + N if signal N ended it; 127 if it is
/// not found, 126 if it cannot be executed, 125 if it was not started). Bowwave passes these
/// signals on: SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGUSR1 and SIGUSR2. Needs root to see reads.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Say when bowwave begins to manage reads, and at the end what was read ahead, used and
    /// wasted.
    #[arg(short, long)]
    verbose: bool,
    /// Print the same as one JSON object, on standard error since standard output belongs to the
    /// command.
    #[arg(long)]
    json: bool,
    /// Drop pages behind the command's streams: from the first page on (always), behind streams
    /// that pass half of the available memory (auto), or never. Without =MODE it means always;
    /// without the option, what /etc/bowwave/config.toml says, or auto.
    #[arg(long, value_enum, value_name = "MODE", num_args = 0..=1, require_equals = true,
          default_missing_value = "always")]
    drop_behind: Option<ModeName>,
    /// With --drop-behind, wait until everything the command wrote is on the disk and dropped, an
    /// hour at most; a second signal ends the wait. Without --wait, bowwave waits 0.3 s at most.
    #[arg(long, requires = "drop_behind")]
    wait: bool,
    /// Start the command only once bowwave manages its reads; if that fails, exit with 125 instead.
    #[arg(long)]
    strict: bool,
    /// Remember under this name what the command reads in its first 30 seconds, and read it ahead
    /// at its next start. One name for each command.
    #[arg(long, value_name = "NAME")]
    remember: Option<Name>,
    /// Folder for what is remembered.
    #[arg(long, value_name = "DIR", requires = "remember", default_value = linux::state::REMEMBERED)]
    lists: PathBuf,
    /// Record all inputs and commands, for `bowwave replay --verify FILE`.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Folder for the status socket, disk measurements, and what to restore after a kill.
    #[arg(long, value_name = "DIR", default_value = linux::state::FOLDER)]
    state: PathBuf,
    /// The command and its arguments.
    #[arg(required = true, trailing_var_arg = true)]
    command: Vec<OsString>,
}

impl Args {
    fn drops_behind(&self) -> bool {
        self.drop_behind.is_some_and(|mode| mode != ModeName::Never)
    }
}

/// After the command's end, drop the pages behind its streams for this long.
const DROP_TIMEOUT: Duration = Duration::from_millis(300);

/// The same with --wait. Writing to a USB stick takes long.
const DROP_TIMEOUT_WITH_WAIT: Duration = Duration::from_secs(3600);

const TOO_SHORT: &str = "the command ended before eBPF was loaded, so bowwave did not help it";

pub(crate) fn main(args: Args) -> ExitCode {
    run(args).unwrap_or_else(|error| {
        print::note(format_args!("{error:#}"));
        ExitCode::from(child::OWN_FAILURE)
    })
}

fn run(args: Args) -> anyhow::Result<ExitCode> {
    let beside = begin(&args)?;
    let caught = Caught::catch()?;
    let child = match caught.start(&args.command) {
        Ok(child) => child,
        Err(error) => {
            let program = &args.command[0];
            let hint = args.drop_behind.and_then(|_| mode_hint(program)).unwrap_or_default();
            print::note(format_args!("cannot run {}: {error}{hint}", program.display()));
            beside.abandon();
            return Ok(ExitCode::from(child::spawn_failure(&error)));
        }
    };
    let is_interrupted = Arc::new(AtomicBool::new(false));
    // From here on the command's status counts, so failures are only reported.
    let (command, ended) = child.watch();
    match ended {
        Ok(ended) => {
            let drop_timeout = if args.wait { DROP_TIMEOUT_WITH_WAIT } else { DROP_TIMEOUT };
            let is_interrupted = Arc::clone(&is_interrupted);
            beside.manage_until(Ending { ended, drop_timeout, is_interrupted });
        }
        Err(error) => {
            print::note(format_args!("{error}; the command continues without read-ahead"));
        }
    }
    let status = command.wait()?;
    // From here on, a signal ends bowwave's own waiting. Earlier ones do not count, as one of them may have ended the
    // command.
    for signal in command.signals {
        let _ = signal_hook::flag::register(signal, Arc::clone(&is_interrupted));
    }
    report(&args, &beside.end());
    Ok(status)
}

/// Starts to load the engine. Reports a failure once.
///
/// # Errors
/// With `--strict`, if reads cannot be managed.
fn begin(args: &Args) -> anyhow::Result<Beside> {
    let started = privilege::demand("run").and_then(|()| {
        match linux::state::prepare(&args.state) {
            Err(error @ StateError::Unusable { .. }) => {
                print::note(format_args!("{error}; the next start will measure disks again"));
            }
            prepared => {
                prepared.map_err(|error| anyhow!("{error}; name another folder with --state"))?;
            }
        }
        let job = job(args)?;
        if !args.drops_behind() && job.start.is_none() {
            // Looks at every process, so nothing waits for it.
            let _ = thread::Builder::new().name("bowwave-look".into()).spawn(note_daemon);
        }
        Ok(Beside::start(job)?)
    });
    let beside = match started {
        Err(error) if args.strict => return Err(error),
        Err(error) => {
            let reason = format!("{error:#}");
            beside::note_refusal(&reason);
            return Ok(Beside::refused(reason));
        }
        Ok(beside) => beside,
    };
    // With drop-behind, wait for eBPF: pages read before that are not known to be the command's and
    // would stay cached.
    let drops_all = args.drop_behind == Some(ModeName::Always);
    if args.strict || drops_all {
        match beside.wait_until_loaded() {
            Err(reason) if args.strict => bail!("{reason}; the command was not started"),
            _ => {}
        }
    }
    Ok(beside)
}

fn job(args: &Args) -> anyhow::Result<Job> {
    let behind = match args.drop_behind {
        Some(mode) => Rules::only(mode.into()),
        None => {
            let config = settings::read(None);
            let config = unless_strict(args, config, "the default applies to drop-behind (auto)")?;
            config.unwrap_or_default().drop_behind
        }
    };
    let record = args.record.as_deref().map(|path| {
        unless_strict(
            args,
            Place::take(path, &recording::KIND).map_err(Into::into),
            "nothing is recorded",
        )
    });
    let start = args.remember.clone().map(|name| {
        let start = Start::of(name, &args.lists).map_err(Into::into);
        unless_strict(args, start, "nothing is remembered")
    });
    let options = Options {
        scope: Scope::Process(std::process::id()),
        places: Places::all(),
        state: args.state.clone(),
        helper: helper::of_this_program(),
        charge: Charge::Bowwave,
        behind,
        remember: Remember::nothing(),
        record: record.transpose()?.flatten(),
    };
    Ok(Job {
        prepared: Prepared::new(options, None),
        is_verbose: args.verbose,
        is_strict: args.strict,
        state: args.state.clone(),
        start: start.transpose()?.flatten(),
        role: Role::Run { command: args.command[0].to_string_lossy().into_owned() },
    })
}

/// Reports a daemon that already does the same.
fn note_daemon() {
    if let Some(daemon) = linux::daemons::running().find(|daemon| daemon.manages_all) {
        print::note(format_args!(
            "a daemon (process {}) already manages every program, unless its configuration names \
             paths; bowwave run gains nothing beside it and uses CPU time",
            daemon.pid
        ));
    }
}

/// The result. An error is only reported, with its consequence, so that the command gets help nonetheless.
///
/// # Errors
/// With `--strict`, the same error.
fn unless_strict<T>(
    args: &Args,
    result: anyhow::Result<T>,
    consequence: &str,
) -> anyhow::Result<Option<T>> {
    match result {
        Err(error) if !args.strict => {
            print::note(format_args!("{error:#}; {consequence}"));
            Ok(None)
        }
        result => result.map(Some),
    }
}

/// Reports the outcome as the options request.
fn report(args: &Args, outcome: &Outcome) {
    if args.json {
        let mut object = json!(match outcome {
            Outcome::Managed(summary) => **summary,
            _ => Metrics::default(),
        });
        object["loaded"] = matches!(outcome, Outcome::Managed(_)).into();
        object["reason"] = match outcome {
            Outcome::Managed(_) => Value::Null,
            Outcome::Refused(reason) => reason.as_str().into(),
            Outcome::TooShort => TOO_SHORT.into(),
        };
        // Ignore errors: the command's exit status counts.
        let _ = writeln!(std::io::stderr(), "{object}");
        return;
    }
    match outcome {
        Outcome::Managed(summary) => {
            if args.verbose {
                summary.lines().for_each(print::note);
            }
            if args.drops_behind() {
                print::note(summary.behind());
            }
        }
        Outcome::TooShort if args.remember.is_some() => {
            print::note(format_args!(
                "{TOO_SHORT}, and its list was neither used nor changed; --strict loads eBPF first"
            ));
        }
        Outcome::TooShort if args.verbose || args.drops_behind() => print::note(TOO_SHORT),
        // The reason was reported before.
        Outcome::Refused(_) | Outcome::TooShort => {}
    }
}

/// A hint for users who wrote the name of a mode where the command should be.
fn mode_hint(program: &OsStr) -> Option<String> {
    let name = program.to_str()?;
    ModeName::from_str(name, false).ok()?;
    Some(format!("; if the mode of drop-behind was meant, write --drop-behind={name}"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: Args,
    }

    fn command(words: &[&str]) -> Option<Vec<OsString>> {
        Cli::try_parse_from([&["run"], words].concat()).ok().map(|cli| cli.args.command)
    }

    #[test]
    fn the_first_word_ends_bowwaves_own_options() {
        let tar = ["tar", "-cf", "-", "--", "-x"].map(OsString::from).to_vec();
        assert_eq!(command(&["tar", "-cf", "-", "--", "-x"]), Some(tar.clone()));
        assert_eq!(command(&["-v", "--", "tar", "-cf", "-", "--", "-x"]), Some(tar.clone()));
        assert_eq!(command(&["-v", "tar", "-cf", "-", "--", "-x"]), Some(tar));
        assert_eq!(command(&["--", "--odd"]), Some(vec!["--odd".into()]));
    }

    #[test]
    fn the_mode_of_drop_behind_needs_an_equals_sign() {
        let mode = |words: &[&str]| {
            let cli = Cli::try_parse_from([&["run"], words].concat()).ok()?;
            Some((cli.args.drop_behind, cli.args.command))
        };
        let tar = vec![OsString::from("tar")];
        assert_eq!(mode(&["tar"]), Some((None, tar.clone())));
        let always = Some((Some(ModeName::Always), tar.clone()));
        assert_eq!(mode(&["--drop-behind", "tar"]), always);
        assert_eq!(mode(&["--drop-behind", "--", "tar"]), always);
        assert_eq!(mode(&["--drop-behind=never", "tar"]), Some((Some(ModeName::Never), tar)));
        assert_eq!(mode(&["--drop-behind=often", "tar"]), None);
    }

    #[test]
    fn a_mode_in_the_commands_place_is_recognised() {
        let hint = mode_hint(OsStr::new("always")).expect("it is a mode");
        assert!(hint.ends_with("--drop-behind=always"), "{hint}");
        assert_eq!(mode_hint(OsStr::new("tar")), None);
    }

    #[test]
    fn an_unknown_option_is_no_command() {
        assert_eq!(command(&["--nope", "--", "true"]), None);
        assert_eq!(command(&["--nope"]), None);
        assert_eq!(command(&[]), None);
    }
}
