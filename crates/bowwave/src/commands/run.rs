//! `bowwave run`.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, ExitStatus};

use anyhow::Context;
use live::engine::{Charge, Engine, Options};
use live::observe::Scope;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

use crate::commands::policy::PolicyName;

/// Run a command with adaptive read-ahead for it and its descendants, and for nothing else.
///
/// Its exit status is passed on (128 + N if signal N ended it), and so are SIGTERM, SIGHUP, SIGUSR1
/// and SIGUSR2; Ctrl-C reaches it directly. Needs root.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Say at the end what was read ahead, used and wasted.
    #[arg(short, long)]
    verbose: bool,
    /// The same as one JSON object; on standard error, as standard output is the command's.
    #[arg(long)]
    json: bool,
    /// The policy that decides.
    #[arg(long, value_enum, default_value_t)]
    policy: PolicyName,
    /// Where measurements of disks are kept until reboot.
    #[arg(long, value_name = "DIR", default_value = "/run/bowwave")]
    state: PathBuf,
    /// The command and its arguments.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

pub(crate) fn main(args: Args) -> anyhow::Result<ExitCode> {
    let scope = Scope::Process(std::process::id());
    let options = Options { scope, paths: Vec::new(), state: args.state, charge: Charge::Bowwave };
    let mut engine = Engine::start(options, args.policy.build()).context("cannot start")?;
    let mut child = Command::new(&args.command[0])
        .args(&args.command[1..])
        .spawn()
        .with_context(|| format!("cannot run {}", args.command[0].display()))?;
    pass_signals_on(&child)?;
    let ended = watch(&child)?;
    engine.serve_until(std::os::fd::AsFd::as_fd(&ended))?;
    let status = child.wait()?;
    let summary = engine.summary();
    if args.json {
        eprintln!("{}", serde_json::to_string(&summary)?);
    } else if args.verbose {
        eprintln!("bowwave: {summary}");
    }
    Ok(exit_code(status))
}

fn watch(child: &Child) -> anyhow::Result<OwnedFd> {
    Ok(pidfd_open(pid_of(child), PidfdFlags::empty())?)
}

fn pid_of(child: &Child) -> Pid {
    Pid::from_child(child)
}

/// The terminal sends SIGINT and SIGQUIT to the whole foreground group, so the command has them
/// already; the others are meant for whoever was started.
fn pass_signals_on(child: &Child) -> anyhow::Result<()> {
    let pid = pid_of(child);
    let forwarded = [Signal::TERM, Signal::HUP, Signal::USR1, Signal::USR2];
    let mut caught = signal_hook::iterator::Signals::new(
        forwarded.iter().map(|signal| signal.as_raw()).chain([libc::SIGINT, libc::SIGQUIT]),
    )?;
    std::thread::spawn(move || {
        for number in caught.forever() {
            if let Some(signal) = forwarded.iter().find(|signal| signal.as_raw() == number) {
                // A command that has ended needs no signal.
                let _ = kill_process(pid, *signal);
            }
        }
    });
    Ok(())
}

fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    ExitCode::from(code as u8)
}
