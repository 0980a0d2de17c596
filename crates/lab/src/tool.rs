//! Runs a tool of the system, which ends with its caller.
#![allow(unsafe_code)]

use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::{Signal, set_parent_process_death_signal};

/// A command that runs `program`. The kernel kills it if this thread ends first, so that no tool of a killed `lab up`
/// attaches or mounts anything.
pub(crate) fn command(program: &str) -> Command {
    let mut command = Command::new(program);
    // SAFETY: between fork and exec there is only one system call, which is async-signal-safe and allocates nothing.
    unsafe {
        command.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::KILL))?));
    }
    command
}
