//! `bowwave run`.

use std::ffi::{OsStr, OsString};
use std::io::{ErrorKind, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use clap::ValueEnum;
use live::behind::Rules;
use live::engine::{Charge, Engine, Options};
use live::observe::Scope;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::low_level::siginfo::Cause;

use crate::commands::behind::ModeName;
use crate::commands::policy::PolicyName;
use crate::commands::privilege;
use crate::print;
use crate::signals;

/// Run a command with adaptive read-ahead for it and its descendants, and for nothing else.
///
/// Its exit status is passed on (128 + N if signal N ended it; 127 if it is not found, 126 if it
/// cannot be executed, 125 if bowwave itself fails), and so are signals: SIGTERM, SIGHUP, SIGINT,
/// SIGQUIT, SIGUSR1 and SIGUSR2. Needs root.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Say at the end what was read ahead, used and wasted.
    #[arg(short, long)]
    verbose: bool,
    /// The same as one JSON object; on standard error, as standard output is the command's.
    #[arg(long)]
    json: bool,
    /// Drop pages behind the command's streams: from the first page on (always), behind streams that
    /// pass an eighth of the memory there is (auto), or not at all (never). Without =MODE it is
    /// always, without the option auto.
    #[arg(long, value_enum, value_name = "MODE", num_args = 0..=1, require_equals = true,
          default_missing_value = "always")]
    drop_behind: Option<ModeName>,
    /// With --drop-behind, end only when what the command wrote is on the disk, and dropped, too (a second
    /// signal ends it before). Else it waits 0.3 s at most.
    #[arg(long, requires = "drop_behind")]
    wait: bool,
    /// The policy that decides.
    #[arg(long, value_enum, default_value_t)]
    policy: PolicyName,
    /// Where measurements of disks are kept until reboot.
    #[arg(long, value_name = "DIR", default_value = linux::state::FOLDER)]
    state: PathBuf,
    /// The command and its arguments.
    #[arg(required = true, trailing_var_arg = true)]
    command: Vec<OsString>,
}

/// Exit status where bowwave itself is at fault, as `env`, `nohup` and `timeout` have it.
pub(crate) const OWN_FAILURE: u8 = 125;
/// The command's end is held up for so long, for what it wrote to leave the cache.
const LAST_MOMENT: Duration = Duration::from_millis(300);

/// With --wait; a stick takes long.
const MOST_WAITING: Duration = Duration::from_secs(3600);

const CANNOT_BE_EXECUTED: u8 = 126;
const NOT_FOUND: u8 = 127;

pub(crate) fn main(args: Args) -> ExitCode {
    lead(args).unwrap_or_else(|error| {
        print::note(format_args!("{error:#}"));
        ExitCode::from(OWN_FAILURE)
    })
}

fn lead(args: Args) -> anyhow::Result<ExitCode> {
    privilege::demand("run")?;
    if let Err(error) = linux::state::prepare(&args.state) {
        print::note(format_args!("{error}; what is measured of disks will be measured again"));
    }
    let drops_behind = args.drop_behind.is_some_and(|mode| mode != ModeName::Never);
    let daemon = linux::daemons::running().find(|daemon| daemon.leads_all);
    if let Some(daemon) = daemon.filter(|_| !drops_behind) {
        print::note(format_args!(
            "a daemon (process {}) leads every program already; beside it bowwave run only takes \
             more CPU time",
            daemon.pid
        ));
    }
    let scope = Scope::Process(std::process::id());
    let mode = args.drop_behind.unwrap_or_default();
    let options = Options {
        scope,
        paths: Vec::new(),
        state: args.state,
        charge: Charge::Bowwave,
        behind: Rules::only(mode.into()),
    };
    let mut engine = Engine::start(options, args.policy.build()).context("cannot start")?;
    // What is ignored stays so: the command inherits that, and not that a signal is caught.
    let meant = FORWARDED.iter().map(|signal| signal.as_raw());
    let meant: Vec<i32> = meant.filter(|signal| !signals::is_ignored(*signal)).collect();
    // Before the command is there: a signal that comes as it starts would end bowwave alone.
    let caught = SignalsInfo::new(&meant)?;
    let program = &args.command[0];
    let mut child = match Command::new(program).args(&args.command[1..]).spawn() {
        Ok(child) => child,
        Err(error) => {
            let hint = args.drop_behind.and_then(|_| mode_hint(program)).unwrap_or_default();
            print::note(format_args!("cannot run {}: {error}{hint}", program.display()));
            return Ok(ExitCode::from(spawn_failure(&error)));
        }
    };
    if let Err(error) = lead_until_it_ends(&mut engine, &child, caught) {
        print::note(format_args!("{error}; the command goes on without read-ahead"));
    }
    let status = child.wait()?;
    // Signals are for bowwave from now on. Those that came before do not count, however late they are
    // handled: one of them may have ended the command.
    let is_interrupted = Arc::new(AtomicBool::new(false));
    for signal in meant {
        signal_hook::flag::register(signal, Arc::clone(&is_interrupted))?;
    }
    let most = if args.wait { MOST_WAITING } else { LAST_MOMENT };
    if let Err(error) = engine.finish(most, || is_interrupted.load(Ordering::Relaxed)) {
        print::note(format_args!("{error}; what is not dropped by now stays cached"));
    }
    let summary = engine.summary();
    if args.json {
        // The command's status is what counts, not whether this can be written.
        let _ = writeln!(std::io::stderr(), "{}", serde_json::to_string(&summary)?);
    } else {
        if args.verbose {
            print::note(summary);
        }
        if drops_behind {
            print::note(summary.behind());
        }
    }
    Ok(exit_code(status))
}

/// What was meant by a command that is no program, but the name of a mode.
fn mode_hint(program: &OsStr) -> Option<String> {
    let name = program.to_str()?;
    ModeName::from_str(name, false).ok()?;
    Some(format!("; if the mode of drop-behind was meant, write --drop-behind={name}"))
}

fn spawn_failure(error: &std::io::Error) -> u8 {
    match error.kind() {
        ErrorKind::NotFound => NOT_FOUND,
        _ => CANNOT_BE_EXECUTED,
    }
}

fn lead_until_it_ends(
    engine: &mut Engine,
    child: &Child,
    caught: SignalsInfo<WithOrigin>,
) -> anyhow::Result<()> {
    let ended = pidfd_open(Pid::from_child(child), PidfdFlags::empty())?;
    pass_signals_on(caught, ended.try_clone()?);
    Ok(engine.serve_until(ended.as_fd())?)
}

const FORWARDED: [Signal; 6] =
    [Signal::TERM, Signal::HUP, Signal::USR1, Signal::USR2, Signal::INT, Signal::QUIT];

/// What is sent to bowwave is meant for the command. Of SIGINT and SIGQUIT that is so if a process sent
/// them: the terminal sends them to the whole foreground group, so the command has them already.
fn pass_signals_on(mut caught: SignalsInfo<WithOrigin>, command: OwnedFd) {
    std::thread::spawn(move || {
        for origin in caught.forever() {
            let signal = FORWARDED.iter().find(|signal| signal.as_raw() == origin.signal);
            let Some(signal) = signal.filter(|_| origin.cause != Cause::Kernel) else { continue };
            // It may have ended, and then needs none.
            let _ = pidfd_send_signal(&command, *signal);
        }
    });
}

fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    ExitCode::from(code as u8)
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
    fn everything_from_the_first_word_on_is_the_commands() {
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

    #[test]
    fn what_is_not_there_is_told_from_what_cannot_be_executed() {
        assert_eq!(spawn_failure(&ErrorKind::NotFound.into()), 127);
        assert_eq!(spawn_failure(&ErrorKind::PermissionDenied.into()), 126);
    }
}
