//! Starts processes for work that nobody can interrupt: reading a disk past the page cache, or closing a file of a FUSE
//! server. A process ends only when all its threads have, so a thread that hangs in such a call would keep bowwave from
//! ending.

use std::ffi::{CStr, OsStr};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};
use rustix::thread::set_name;

/// The helper's process name, whatever its program file is called.
const NAME: &CStr = c"bowwave";

/// How to start a process for such a job: `program arguments... JOB PID`, with this process's id.
#[derive(Clone, Debug)]
pub struct Helper {
    /// The program.
    pub program: PathBuf,
    /// Its first arguments.
    pub arguments: Vec<String>,
}

impl Helper {
    /// The command that does `job`.
    pub(crate) fn command(&self, job: &str) -> Command {
        let mut command = Command::new(&self.program);
        command
            .arg0(OsStr::from_bytes(NAME.to_bytes()))
            .args(&self.arguments)
            .arg(job)
            .arg(std::process::id().to_string());
        command
    }
}

/// Names this helper process, and has the kernel kill it when the thread of `parent` that started it ends.
///
/// # Errors
/// If the parent has ended already.
pub(crate) fn die_with_parent(parent: u32) -> io::Result<()> {
    set_name(NAME)?;
    set_parent_process_death_signal(Some(Signal::KILL))?;
    if getppid() != Pid::from_raw(parent as i32) {
        return Err(io::Error::other("the process that started this one has ended"));
    }
    Ok(())
}
