//! Runs a command for the user: passes signals on to it, and its exit status to the user.

use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::thread;

use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, WaitStatus, pidfd_open, pidfd_send_signal, wait,
};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::low_level::siginfo::Cause;

use crate::print;

/// Exit status for bowwave's own failures, as of `env`, `nohup` and `timeout`.
pub(crate) const OWN_FAILURE: u8 = 125;

const CANNOT_BE_EXECUTED: u8 = 126;
const NOT_FOUND: u8 = 127;

const FORWARDED: [Signal; 6] =
    [Signal::TERM, Signal::HUP, Signal::USR1, Signal::USR2, Signal::INT, Signal::QUIT];

/// The signals that a command will get.
pub(crate) struct Caught {
    numbers: Vec<i32>,
    signals: SignalsInfo<WithOrigin>,
}

/// A command that has started.
pub(crate) struct Child {
    pid: Pid,
    caught: Caught,
}

impl Caught {
    /// Catches signals before the command starts: one that arrives meanwhile would end only bowwave.
    pub(crate) fn catch() -> io::Result<Self> {
        // Leave ignored signals ignored: the command inherits that, but would not inherit a handler.
        let numbers = FORWARDED.iter().map(|signal| signal.as_raw());
        let numbers: Vec<i32> = linux::signals::not_ignored(numbers).collect();
        let signals = SignalsInfo::new(&numbers)?;
        // If SIGCHLD is ignored, the kernel does not report how the command ended.
        signal_hook::flag::register(libc::SIGCHLD, Arc::default())?;
        Ok(Caught { numbers, signals })
    }

    /// Starts the command.
    pub(crate) fn start(self, command: &[OsString]) -> io::Result<Child> {
        let child = Command::new(&command[0]).args(&command[1..]).spawn()?;
        Ok(Child { pid: Pid::from_child(&child), caught: self })
    }
}

impl Child {
    /// Passes signals on from now on. Returns a descriptor that is readable once the command has ended, and the numbers
    /// of the signals.
    pub(crate) fn watch(self) -> (Running, io::Result<OwnedFd>) {
        let Child { pid, caught: Caught { numbers, signals } } = self;
        let ended = pidfd_open(pid, PidfdFlags::empty()).map_err(io::Error::from);
        let ended = ended.and_then(|ended| {
            pass_signals_on(signals, ended.try_clone()?);
            Ok(ended)
        });
        (Running { pid, signals: numbers }, ended)
    }
}

/// A command that gets its signals.
pub(crate) struct Running {
    pid: Pid,
    /// These are passed on.
    pub(crate) signals: Vec<i32>,
}

impl Running {
    /// Waits until the command has ended. Also reaps descendants that became children of this process when their
    /// parents exited.
    pub(crate) fn wait(&self) -> io::Result<ExitCode> {
        loop {
            match wait(WaitOptions::empty()) {
                Ok(Some((pid, status))) if pid == self.pid => return Ok(exit_code(status)),
                Err(error) if error != Errno::INTR => return Err(error.into()),
                _ => {}
            }
        }
    }
}

/// The exit status if a command could not be started.
pub(crate) fn spawn_failure(error: &io::Error) -> u8 {
    match error.kind() {
        ErrorKind::NotFound => NOT_FOUND,
        _ => CANNOT_BE_EXECUTED,
    }
}

/// Passes signals on to the command. For SIGINT and SIGQUIT, only if a process sent them: the terminal sends them to
/// the whole foreground group, which includes the command.
fn pass_signals_on(mut caught: SignalsInfo<WithOrigin>, command: OwnedFd) {
    let pass = move || {
        for origin in caught.forever() {
            let signal = FORWARDED.iter().find(|signal| signal.as_raw() == origin.signal);
            let Some(signal) = signal.filter(|_| origin.cause != Cause::Kernel) else { continue };
            // This fails if the command has ended.
            let _ = pidfd_send_signal(&command, *signal);
        }
    };
    if let Err(error) = thread::Builder::new().name("bowwave-signals".into()).spawn(pass) {
        print::note(format_args!("signals are not passed on to the command: {error}"));
    }
}

fn exit_code(status: WaitStatus) -> ExitCode {
    let signal = || status.terminating_signal().map(|signal| 128 + signal);
    let code = status.exit_status().or_else(signal).unwrap_or(1);
    ExitCode::from(code as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_status_tells_a_missing_program_from_one_that_cannot_be_executed() {
        assert_eq!(spawn_failure(&ErrorKind::NotFound.into()), 127);
        assert_eq!(spawn_failure(&ErrorKind::PermissionDenied.into()), 126);
    }
}
