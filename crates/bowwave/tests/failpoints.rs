//! Bowwave kills itself, as by `kill -9`, at each step at which something of the kernel's is changed. What must hold:
//! programs read what they read without it, and after the next start every device's window and every open file's window
//! is as before, also if that start was killed, too.
//!
//! Skipped where labs or eBPF do not work. BOWWAVE_TORTURE=1 tries each step together with each step of the recovery
//! after it.

// Steps are compiled in only where tests are.
#![cfg(debug_assertions)]

mod managed;
mod own;
mod stage;
mod trial;
mod windows;

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::process::{ChildStdout, Command, ExitStatus, Stdio};

use managed::{Bench, Daemon};
use own::Own;
use rustix::process::{Pid, Signal, kill_process};
use stage::BOWWAVE;

/// In the order in which they come when the window of an open file is set. They come again when it is given back.
const SETTING: [&str; 8] = [
    "ledger-noted",
    "knob-locked",
    "knob-journalled",
    "knob-noted",
    "knob-set",
    "window-copied",
    "knob-restored",
    "knob-struck",
];

/// Comes when the window was given back.
const GIVEN_BACK: &str = "ledger-struck";

/// Comes when the next start takes over the journal of one that was killed.
const TAKING_OVER: &str = "draft-written";

const FILE_BYTES: u64 = 24 << 20;

impl Bench {
    /// A lab with one file, and a disk that bowwave has met; `None` where labs or eBPF do not work.
    fn new() -> Option<Self> {
        let bench = Bench::of("failpoints", 128 << 20)?;
        let lab = &bench.lab;
        lab.set_fast(true).expect("fast");
        let bytes: Vec<u8> = (0..FILE_BYTES).map(byte_at).collect();
        fs::write(lab.mount_point().join("file"), bytes).expect("the file");
        lab.evict().expect("evicted");
        lab.set_fast(false).expect("slow");
        bench.recover();
        Some(bench)
    }

    fn file(&self) -> File {
        File::open(self.lab.mount_point().join("file")).expect("it was written")
    }

    /// A daemon that kills itself at that step, its output, and whether it said that it manages reads.
    fn daemon(&self, arguments: &[&str], dies_at: &str) -> (Own, BufReader<ChildStdout>, bool) {
        let mut command = managed::daemon(&self.lab, self.state.path(), arguments);
        let mut daemon = Own::start(command.env("BOWWAVE_DIE_AT", dies_at));
        let mut output = BufReader::new(daemon.stdout.take().expect("piped"));
        let mut line = String::new();
        output.read_line(&mut line).expect("a line, or none");
        (daemon, output, line.contains("\"ready\":true"))
    }

    /// A daemon starts, and ends in order.
    fn recover(&self) {
        Daemon::begin(&mut managed::daemon(&self.lab, self.state.path(), &[])).end();
    }

    fn requests(&self, file: &File) -> u64 {
        windows::requests(&self.lab, file)
    }

    fn is_as_before(&self, file: &File, requests: u64, when: &str) {
        windows::are_as_before(&self.lab, self.state.path(), file, requests, when);
    }
}

fn byte_at(offset: u64) -> u8 {
    (offset.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

/// Reads the file to its end, or until the process has ended; gives its status then.
fn read_until_ended(file: &File, process: &mut Own) -> Option<ExitStatus> {
    let mut part = vec![0; 64 << 10];
    for offset in (0..FILE_BYTES).step_by(part.len()) {
        file.read_exact_at(&mut part, offset).expect("it is read");
        let is_right = part.iter().zip(offset..).all(|(byte, at)| *byte == byte_at(at));
        assert!(is_right, "other bytes were read");
        if let Some(status) = process.try_wait().expect("it is ours") {
            return Some(status);
        }
    }
    None
}

/// The daemon kills itself at `step`, when it sets a window or ends.
fn killed_at(bench: &Bench, file: &File, arguments: &[&str], step: &str) {
    let (mut daemon, _output, is_ready) = bench.daemon(arguments, step);
    assert!(is_ready, "{step}: it does not start");
    let status = read_until_ended(file, &mut daemon).unwrap_or_else(|| {
        kill_process(Pid::from_child(&daemon), Signal::TERM).expect("it is not reaped");
        daemon.wait().expect("it ends")
    });
    assert_eq!(status.signal(), Some(libc::SIGKILL), "it does not come to {step}: {status}");
}

/// Tells whether a start after that comes to `step`, and is killed there.
fn recovery_killed_at(bench: &Bench, step: &str) -> bool {
    let (mut daemon, _output, is_ready) = bench.daemon(&[], step);
    if is_ready {
        kill_process(Pid::from_child(&daemon), Signal::TERM).expect("it is not reaped");
    }
    daemon.wait().expect("it ends").signal() == Some(libc::SIGKILL)
}

#[test]
fn a_daemon_killed_at_any_step_and_again_while_it_recovers_leaves_every_window_as_it_was() {
    let Some(bench) = Bench::new() else { return };
    let mut recovered_at = SETTING.to_vec();
    recovered_at.extend([GIVEN_BACK, TAKING_OVER]);
    let is_long = trial::is_long();
    let mut killed_again = 0;
    for (number, step) in SETTING.into_iter().chain([GIVEN_BACK]).enumerate() {
        let all = recovered_at.len();
        let again = if is_long { 0..all } else { number % all..number % all + 1 };
        for again in recovered_at[again].iter() {
            let file = bench.file();
            let requests = bench.requests(&file);
            killed_at(&bench, &file, &["--charge", "reader"], step);
            killed_again += u32::from(recovery_killed_at(&bench, again));
            bench.recover();
            bench.is_as_before(&file, requests, &format!("{step}, then {again}"));
        }
    }
    println!("killed {killed_again} times while recovering");
    assert!(killed_again > 2, "{killed_again}");
}

#[test]
fn a_daemon_killed_while_it_drops_pages_changes_nothing_that_is_read() {
    let Some(bench) = Bench::new() else { return };
    let file = bench.file();
    let requests = bench.requests(&file);
    killed_at(&bench, &file, &["--drop-behind", "always"], "dropped");
    let (mut bytes, mut again) = (Vec::new(), bench.file());
    again.read_to_end(&mut bytes).expect("read");
    assert!(bytes.iter().zip(0..).all(|(byte, at)| *byte == byte_at(at)));
    drop(again);
    bench.recover();
    bench.is_as_before(&file, requests, "dropped");
}

#[test]
fn a_command_goes_on_where_run_is_killed_while_it_drops_pages() {
    let Some(bench) = Bench::new() else { return };
    let mut run = Command::new(BOWWAVE);
    run.args(["run", "--strict", "--drop-behind=always", "--state"]).arg(bench.state.path());
    run.args(["--", "cat"]).arg(bench.lab.mount_point().join("file"));
    let mut run = Own::start(run.env("BOWWAVE_DIE_AT", "dropped").stdout(Stdio::piped()));
    let mut bytes = Vec::new();
    run.stdout.take().expect("piped").read_to_end(&mut bytes).expect("its output");
    let status = run.wait().expect("it ends");
    assert_eq!(status.signal(), Some(libc::SIGKILL), "it does not drop: {status}");
    assert_eq!(bytes.len() as u64, FILE_BYTES);
    assert!(bytes.iter().zip(0..).all(|(byte, at)| *byte == byte_at(at)));
}

#[test]
fn tune_killed_at_any_step_leaves_the_window_as_it_was() {
    let Some(bench) = Bench::new() else { return };
    for step in SETTING.into_iter().filter(|step| step.starts_with("knob-")) {
        let mut tune = Command::new(BOWWAVE);
        tune.args(["tune", "--seconds", "2"]).arg(bench.lab.block_device());
        tune.stdout(Stdio::null()).stderr(Stdio::null()).env("BOWWAVE_DIE_AT", step);
        let status = Own::start(&mut tune).wait().expect("it ends");
        assert_eq!(status.signal(), Some(libc::SIGKILL), "it does not come to {step}: {status}");
        bench.recover();
        let file = bench.file();
        let requests = bench.requests(&file);
        bench.is_as_before(&file, requests, step);
    }
}
