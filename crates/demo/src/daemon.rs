//! Bowwave itself, as a child process for the length of one run.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::error::DemoError;
use crate::machine::cpu_seconds;

/// A daemon that leads the files below one folder; stopped when dropped.
pub(crate) struct Daemon {
    child: Child,
    /// Kept open, as it prints a summary at the end.
    _output: BufReader<ChildStdout>,
    cpu_at_start: f64,
}

impl Daemon {
    /// Starts it and waits until it leads.
    pub(crate) fn start(folder: &Path) -> Result<Self, DemoError> {
        let own = std::env::current_exe().map_err(DemoError::file("/proc/self/exe"))?;
        let mut child = Command::new(own)
            .args(["daemon", "--json", "--path"])
            .arg(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| DemoError::Daemon(error.to_string()))?;
        let output = child.stdout.take().expect("it is piped");
        let mut output = BufReader::new(output);
        let mut line = String::new();
        let _ = output.read_line(&mut line);
        if !line.contains("\"ready\":true") {
            let said = child.wait_with_output().map(|out| out.stderr).unwrap_or_default();
            return Err(DemoError::Daemon(String::from_utf8_lossy(&said).trim().to_owned()));
        }
        let cpu_at_start = cpu_seconds(child.id());
        Ok(Daemon { child, _output: output, cpu_at_start })
    }

    /// CPU seconds used since it was ready.
    pub(crate) fn cpu_seconds(&self) -> f64 {
        cpu_seconds(self.child.id()) - self.cpu_at_start
    }

    fn terminate(&mut self) {
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let _ = self.child.wait();
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.terminate();
    }
}
