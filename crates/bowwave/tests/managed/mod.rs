//! Bowwave, managing the reads of a lab's files.

// Each test program uses a part of it.
#![allow(dead_code)]

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Stdio};
use std::time::Duration;

use lab::{Lab, LabGuard};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::own::Own;
use crate::stage::{self, Alone, BOWWAVE, skipped};

/// `None` where labs or eBPF do not work.
pub(crate) fn possible() -> Option<()> {
    let able = Command::new(BOWWAVE).arg("doctor").output().expect("bowwave runs");
    if !fs::exists("/dev/fuse").unwrap_or(false) {
        return skipped("a lab needs /dev/fuse");
    }
    if able.status.success() {
        return Some(());
    }
    let said = String::from_utf8_lossy(&able.stdout);
    let missing: Vec<&str> = said.lines().filter(|line| line.starts_with("MISSING")).collect();
    skipped(&format!("`bowwave doctor` says: {}", missing.join("; ")))
}

/// A lab of one test's own, and a state folder.
pub(crate) struct Bench {
    pub(crate) lab: LabGuard,
    pub(crate) state: TempDir,
    _alone: Alone,
}

impl Bench {
    /// With an empty ext4 on the device `net`; `None` where labs or eBPF do not work.
    pub(crate) fn of(purpose: &str, size_bytes: u64) -> Option<Self> {
        Bench::on("net", purpose, size_bytes)
    }

    /// With an empty ext4 on that device.
    pub(crate) fn on(device: &str, purpose: &str, size_bytes: u64) -> Option<Self> {
        possible()?;
        let (alone, lab) = stage::lab(purpose, device, size_bytes, "ext4");
        Some(Bench { lab, state: stage::state(), _alone: alone })
    }
}

/// A daemon for that lab's files, which has not begun yet.
pub(crate) fn daemon(lab: &Lab, state: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(BOWWAVE);
    command.args(["daemon", "--json", "--path"]).arg(lab.mount_point());
    command.arg("--state").arg(state).args(arguments).stdout(Stdio::piped());
    command
}

/// What the daemon with that state folder says it does now; null where it does not answer.
pub(crate) fn status(state: &Path) -> Value {
    let mut status = Command::new(BOWWAVE);
    let said = status.args(["status", "--json", "--state"]).arg(state).output().expect("it runs");
    let all: Value = serde_json::from_slice(&said.stdout).unwrap_or_default();
    all[0].clone()
}

/// Begins it; gives what it says once it manages reads.
pub(crate) fn begin(daemon: &mut Command) -> (Own, BufReader<ChildStdout>) {
    let mut daemon = Own::start(daemon);
    let mut output = BufReader::new(daemon.stdout.take().expect("piped"));
    let mut line = String::new();
    output.read_line(&mut line).expect("a line");
    assert!(line.contains("\"ready\":true"), "{line}");
    (daemon, output)
}

/// Waits until a daemon with that state folder has measured the lab's disk. A daemon begins with a guess where that
/// takes seconds.
pub(crate) fn wait_measured(lab: &Lab, state: &Path) {
    let note = disk_note(lab, state);
    stage::wait_until("the disk is measured", Duration::from_secs(60), || note.exists());
}

/// What is known of the lab's disk is kept here.
pub(crate) fn disk_note(lab: &Lab, state: &Path) -> PathBuf {
    let disk = lab.block_device().file_name().expect("a device").to_owned();
    state.join("disks").join(disk).with_extension("json")
}

/// A daemon that manages reads.
pub(crate) struct Daemon {
    pub(crate) child: Own,
    pub(crate) output: BufReader<ChildStdout>,
}

impl Daemon {
    pub(crate) fn begin(command: &mut Command) -> Self {
        let (child, output) = begin(command);
        Daemon { child, output }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it is not reaped");
    }

    /// Ends it; gives what it says it did.
    pub(crate) fn end(mut self) -> Value {
        self.signal(Signal::TERM);
        let mut said = String::new();
        self.output.read_to_string(&mut said).expect("its last words");
        assert!(self.child.wait().expect("it ends").success(), "{said}");
        serde_json::from_str(said.lines().last().unwrap_or_default()).expect("its summary")
    }
}
