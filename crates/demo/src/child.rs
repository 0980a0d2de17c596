//! Child processes, such as this executable itself, which always end with the demonstration.
#![allow(unsafe_code)]

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process_group, set_parent_process_death_signal};
use serde_json::Value;

/// A child in a separate process group, so that Ctrl-C reaches only the demonstration, which then ends the child in
/// order. Dropping it kills the whole group.
pub(crate) struct OwnChild {
    child: Child,
    is_reaped: bool,
}

/// A command that runs this executable, even if its file has been replaced since. All standard streams are pipes.
pub(crate) fn own_command() -> Command {
    let mut command = command("/proc/self/exe");
    command.arg0("bowwave");
    command
}

/// A command that runs another program in the same way.
pub(crate) fn command(program: &str) -> Command {
    let mut command = Command::new(program);
    command.process_group(0);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // SAFETY: between fork and exec there is only one system call, which is async-signal-safe and allocates nothing.
    unsafe {
        command.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::KILL))?));
    }
    command
}

/// Starts the command in the cgroup whose `cgroup.procs` is `processes`, so that everything it allocates and reads is
/// charged there from the first page on.
pub(crate) fn begin_in(command: &mut Command, processes: File) {
    // SAFETY: as above; the closure owns the descriptor, so it stays open.
    unsafe {
        command.pre_exec(move || Ok(rustix::io::write(&processes, b"0").map(drop)?));
    }
}

impl OwnChild {
    pub(crate) fn spawn(mut command: Command) -> io::Result<Self> {
        Ok(OwnChild { child: command.spawn()?, is_reaped: false })
    }

    /// Its standard streams, to be taken.
    pub(crate) fn streams(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Reads its standard error to the end.
    pub(crate) fn last_words(&mut self) -> String {
        let mut said = String::new();
        if let Some(mut stream) = self.child.stderr.take() {
            let _ = stream.read_to_string(&mut said);
        }
        said.trim().to_owned()
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Waits for its end.
    pub(crate) fn wait(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait()?;
        self.is_reaped = true;
        Ok(status)
    }
}

/// The last line that is a JSON object: bowwave's report, among other words.
pub(crate) fn report_in(said: &str) -> Value {
    let objects = said.lines().rev().filter_map(|line| serde_json::from_str(line).ok());
    objects.into_iter().find(Value::is_object).unwrap_or_default()
}

impl Drop for OwnChild {
    fn drop(&mut self) {
        if !self.is_reaped {
            // It may just have ended by itself.
            let _ = kill_process_group(self.pid(), Signal::KILL);
            let _ = self.child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_that_is_dropped_is_gone() {
        let mut command = Command::new("sleep");
        command.arg("1000").process_group(0);
        let child = OwnChild::spawn(command).expect("sleep is there");
        let pid = child.pid();
        drop(child);
        assert!(rustix::process::test_kill_process(pid).is_err());
    }

    #[test]
    fn a_report_is_the_last_object_that_is_printed() {
        assert_eq!(report_in("{\"events\":1}\nsome words\n{\"events\":7}\n")["events"], 7);
        assert_eq!(report_in("").get("events"), None);
    }
}
