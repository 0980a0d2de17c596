//! A tool of the system's, which ends with whoever called it.
#![allow(unsafe_code)]

use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::{Signal, set_parent_process_death_signal};

/// A command that runs `program`. It is killed if this thread ends before: nothing is attached or mounted
/// by a tool of a `lab up` that is gone.
pub(crate) fn command(program: &str) -> Command {
    let mut command = Command::new(program);
    // SAFETY: between fork and exec only one system call is made, which is async-signal-safe and
    // allocates nothing.
    unsafe {
        command.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::KILL))?));
    }
    command
}
