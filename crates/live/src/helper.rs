//! Doing in a process of its own what nobody can interrupt: reading a disk past the page cache, or closing a file of a
//! FUSE server. A process ends only when all its threads have, so a thread that waits there would hold up the end of
//! bowwave.

use std::ffi::{CStr, OsStr};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};
use rustix::thread::set_name;

/// What such a process is called, whatever the path of its program.
const NAME: &CStr = c"bowwave";

/// Who does such a job.
#[derive(Clone, Debug)]
pub enum Helper {
    /// A thread of this process.
    Thread,
    /// A process that is started with these words, the name of the job and this process's id.
    Process {
        /// The program.
        program: PathBuf,
        /// Its first arguments.
        arguments: Vec<String>,
    },
}

impl Helper {
    /// The process that does `job`, not started yet; `None` if a thread does it.
    pub(crate) fn command(&self, job: &str) -> Option<Command> {
        let Helper::Process { program, arguments } = self else { return None };
        let mut command = Command::new(program);
        command
            .arg0(OsStr::from_bytes(NAME.to_bytes()))
            .args(arguments)
            .arg(job)
            .arg(std::process::id().to_string());
        Some(command)
    }
}

/// Names this process, a helper, and has it end with the thread that started it in the process `parent`.
///
/// # Errors
/// If the parent has ended already.
pub(crate) fn end_with(parent: u32) -> io::Result<()> {
    set_name(NAME)?;
    set_parent_process_death_signal(Some(Signal::KILL))?;
    if getppid() != Pid::from_raw(parent as i32) {
        return Err(io::Error::other("the process that asked has ended"));
    }
    Ok(())
}
