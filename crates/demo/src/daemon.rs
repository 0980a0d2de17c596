//! A bowwave daemon as a child process for one run.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{ChildStdout, Command};
use std::thread;
use std::time::Duration;

use linux::waits;
use rustix::process::{Signal, kill_process};
use serde_json::Value;

use crate::child::{OwnChild, own_command, report_in};
use crate::error::DemoError;
use crate::process_clock::cpu_time;
use crate::stop::Stop;

/// Pause after the daemon is ready: the kernel still frees memory that loading the programs took. An installed daemon
/// was started long ago.
const SETTLE: Duration = Duration::from_millis(300);

/// A daemon that manages the files below one folder. It ends when this is dropped.
pub(crate) struct Daemon {
    child: OwnChild,
    output: ChildStdout,
    /// CPU time that it had used when it was ready.
    cpu_before: Duration,
}

impl Daemon {
    /// Starts it and waits until it is ready, unless stopped first. It keeps its measurements of disks in `state`, but
    /// knows nothing of how files were read before. It writes a recording to `record`.
    pub(crate) fn start(
        folder: &Path,
        state: &Path,
        record: Option<&Path>,
        stop: &Stop,
    ) -> Result<Self, DemoError> {
        forget_histories(state);
        let mut command = own_command();
        command.args(["daemon", "--json", "--state"]).arg(state).arg("--path").arg(folder);
        if let Some(file) = record {
            command.arg("--record").arg(file);
        }
        Daemon::spawn(command, stop)
    }

    fn spawn(command: Command, stop: &Stop) -> Result<Self, DemoError> {
        let failed = |error: std::io::Error| DemoError::Daemon(error.to_string());
        let mut child = OwnChild::spawn(command).map_err(failed)?;
        let mut output = child.streams().stdout.take().expect("it is piped");
        if !is_ready(&stop.read_line(&mut output)?) {
            return Err(DemoError::Daemon(child.last_words()));
        }
        thread::sleep(SETTLE);
        let cpu_before = cpu_time(child.pid()).unwrap_or_default();
        Ok(Daemon { child, output, cpu_before })
    }

    /// CPU seconds since it was ready.
    pub(crate) fn cpu_seconds(&self) -> f64 {
        let now = cpu_time(self.child.pid()).unwrap_or_default();
        now.saturating_sub(self.cpu_before).as_secs_f64()
    }

    /// Seconds that it has waited for a processor.
    pub(crate) fn waited_s(&self) -> f64 {
        waits::process(self.child.pid().as_raw_nonzero().get() as u32).seconds()
    }

    /// Ends it. Returns its report.
    ///
    /// # Errors
    /// If it has ended before, or ends with an error: the run was not managed.
    pub(crate) fn stop(mut self) -> Result<Value, DemoError> {
        if let Ok(Some(_)) = self.child.streams().try_wait() {
            return Err(DemoError::Daemon(format!("ended early: {}", self.child.last_words())));
        }
        let _ = kill_process(self.child.pid(), Signal::TERM);
        let mut said = String::new();
        let _ = self.output.read_to_string(&mut said);
        let words = self.child.last_words();
        match self.child.wait() {
            Ok(status) if status.success() => Ok(report_in(&said)),
            Ok(status) => Err(DemoError::Daemon(format!("ended with {status}: {words}"))),
            Err(error) => Err(DemoError::Daemon(error.to_string())),
        }
    }
}

/// Removes what bowwave has learned of how files are read, so that every run is the first one, in any order.
pub(crate) fn forget_histories(state: &Path) {
    // There may be none.
    let _ = fs::remove_dir_all(linux::state::histories(state));
}

fn is_ready(line: &[u8]) -> bool {
    serde_json::from_slice::<Value>(line).is_ok_and(|value| value["ready"] == true)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::child::command;
    use crate::stop::tests::stop;

    #[test]
    fn it_is_ready_when_it_says_so() {
        assert!(is_ready(b"{\"mounts\":[\"/\"],\"ready\":true}\n"));
        assert!(!is_ready(b"{\"ready\":false}\n"));
        assert!(!is_ready(b""));
    }

    #[test]
    fn a_signal_ends_the_wait_for_one_that_is_never_ready() {
        let (stop, mut signal) = stop();
        signal.write_all(b"x").expect("room in the pipe");
        let mut slow = command("sleep");
        slow.arg("1000");
        assert!(matches!(Daemon::spawn(slow, &stop), Err(DemoError::Stopped)));
    }
}
