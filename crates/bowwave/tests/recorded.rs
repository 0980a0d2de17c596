//! Live runs, recorded and replayed: a new controller asks for the same, byte for byte.
//!
//! Needs root, FUSE, eBPF, memory cgroups and python3.

mod cgroup;
mod managed;
mod own;
mod stage;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use cgroup::Cgroup;
use lab::LabGuard;
use managed::Daemon;
use own::Own;
use stage::{Alone, BOWWAVE};

const MB: usize = 1 << 20;

/// A lab with one file, and a folder for recordings.
struct Bench {
    lab: LabGuard,
    folder: tempfile::TempDir,
    _alone: Alone,
}

/// `None` where labs or eBPF do not work.
fn bench(device: &str) -> Option<Bench> {
    managed::possible()?;
    let (alone, lab) = stage::lab("recorded", device, 256 << 20, "ext4");
    lab.set_fast(true).expect("fast");
    for name in ["one", "two"] {
        stage::write_lines(&lab.mount_point().join(name), 8 << 20);
    }
    lab.evict().expect("evicted");
    Some(Bench { lab, folder: stage::state(), _alone: alone })
}

/// What a recording is told to be.
struct Verified {
    identical: bool,
    inputs: u64,
    end: String,
    /// All entries, as `--show` has them.
    shown: String,
}

impl Bench {
    fn file(&self, name: &str) -> PathBuf {
        self.lab.mount_point().join(name)
    }

    fn recording(&self) -> PathBuf {
        self.folder.path().join("recording")
    }

    /// Runs a python program on the file, with these options of `bowwave run`, and replays what was recorded.
    fn run(&self, options: &[&str], program: &str, within: Option<&Cgroup>) -> Verified {
        self.lab.evict().expect("evicted");
        let mut run = match within {
            Some(cgroup) => cgroup.hold(&Command::new(BOWWAVE)),
            None => Command::new(BOWWAVE),
        };
        run.args(["run", "--strict", "--record"]).arg(self.recording());
        run.arg("--state").arg(self.folder.path()).args(options);
        run.args(["--", "python3", "-c", program]).arg(self.file("one"));
        let output = run.output().expect("it ran");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        self.verified()
    }

    /// A daemon that records.
    fn begin_daemon(&self) -> Daemon {
        self.lab.evict().expect("evicted");
        let recording = self.recording().to_string_lossy().into_owned();
        let options = ["--record", &recording];
        Daemon::begin(&mut managed::daemon(&self.lab, self.folder.path(), &options))
    }

    /// A python program that reads a file.
    fn begin(&self, (name, program): (&str, &str)) -> Own {
        let mut python = Command::new("python3");
        python.args(["-c", program]).arg(self.file(name)).stdin(Stdio::null());
        Own::start(&mut python)
    }

    fn verified(&self) -> Verified {
        Verified::of(&self.recording())
    }
}

impl Verified {
    /// Replays a recording.
    fn of(recording: &Path) -> Self {
        let replay = |options: &[&str]| {
            let mut command = Command::new(BOWWAVE);
            let output = command.arg("replay").args(options).arg(recording).output();
            let output = output.expect("it ran");
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
            said
        };
        let told = replay(&["--json", "--verify"]);
        let told: serde_json::Value = serde_json::from_str(&told).expect("JSON");
        Verified {
            identical: told["identical"] == true && told["lost_inputs"].as_u64().unwrap_or(0) == 0,
            inputs: told["inputs"].as_u64().expect("a number"),
            end: told["end"].as_str().unwrap_or_default().into(),
            shown: replay(&["--show"]),
        }
    }

    /// It is decided as it was, and shows what was to be recorded.
    fn is_of(&self, words: &[&str]) {
        assert!(self.identical, "it is decided otherwise");
        for word in words {
            assert!(self.shown.contains(word), "no {word} in {} inputs", self.inputs);
        }
    }
}

const BACKWARD: &str = "import os,sys
f,step=os.open(sys.argv[1],0),1<<16
for at in range(os.fstat(f).st_size-step,0,-step): os.pread(f,step,at)";

const RANDOM: &str = "import os,sys,random
f=os.open(sys.argv[1],0)
random.seed(7)
for _ in range(100): os.pread(f,4096,4096*random.randrange(2048))";

const FORWARD: &str = "import os,sys
f=os.open(sys.argv[1],0)
while os.read(f,1<<16): pass";

/// Backward, again and again.
const FOR_EVER: &str = "import os,sys
f,step=os.open(sys.argv[1],0),1<<16
while True:
    os.posix_fadvise(f,0,0,os.POSIX_FADV_DONTNEED)
    for at in range(os.fstat(f).st_size-step,0,-step): os.pread(f,step,at)";

/// Eight streams in turn.
const STREAMS: &str = "import os,sys
n,step=os.stat(sys.argv[1]).st_size//8,1<<14
fs=[os.open(sys.argv[1],0) for _ in range(8)]
for at in range(0,n,step):
    for k,f in enumerate(fs): os.pread(f,step,k*n+at)";

#[test]
fn a_backward_reader_on_a_hard_disk() {
    let Some(bench) = bench("hdd") else { return };
    bench.run(&[], BACKWARD, None).is_of(&["Access(", "-> [Read {", "Completed(Read"]);
}

#[test]
fn a_random_reader_and_one_that_drops_behind_on_a_network_volume() {
    let Some(bench) = bench("net") else { return };
    bench.run(&[], RANDOM, None).is_of(&["Access("]);
    let dropped = bench.run(&["--drop-behind"], FORWARD, None);
    dropped.is_of(&["Passed(", "Release {", "Completed(Released"]);
}

#[test]
fn streams_whose_windows_exceed_their_memory() {
    let Some(bench) = bench("net") else { return };
    // Bowwave, its helper and the reader need up to 24 MB of it, the windows 32.
    let Some(cgroup) = Cgroup::with_memory(Some(40 * MB as u64)) else { return };
    bench.lab.set_read_ahead_kb(4096).expect("set");
    let thrashing = bench.run(&[], STREAMS, Some(&cgroup));
    thrashing.is_of(&["SetWindow {", "Completed(WindowSet"]);
}

#[test]
fn two_programs_beside_a_daemon() {
    let Some(bench) = bench("net") else { return };
    let daemon = bench.begin_daemon();
    for mut reader in [("one", BACKWARD), ("two", FORWARD)].map(|it| bench.begin(it)) {
        assert!(reader.wait().expect("it ends").success());
    }
    daemon.end();
    let verified = bench.verified();
    verified.is_of(&["Access(", "-> [Read {"]);
    assert_eq!(verified.end, "clean");
}

#[test]
fn a_daemon_that_is_killed_in_mid_work() {
    let Some(bench) = bench("net") else { return };
    let mut daemon = bench.begin_daemon();
    let mut readers = [("one", FOR_EVER), ("two", FOR_EVER)].map(|it| bench.begin(it));
    stage::wait_until("some of their work is written", Duration::from_secs(60), || {
        fs::metadata(bench.recording()).expect("it is begun").len() >= 8192
    });
    daemon.child.kill().expect("it runs");
    daemon.child.wait().expect("it ends");
    let goes_on = |reader: &mut Own| reader.try_wait().expect("it is ours").is_none();
    assert!(readers.iter_mut().all(goes_on));
    let verified = bench.verified();
    verified.is_of(&["Access(", "-> [Read {"]);
    assert_ne!(verified.end, "clean");
}

#[test]
fn each_run_of_the_demonstration_under_bowwave() {
    let Some(_) = managed::possible() else { return };
    let _alone = stage::alone();
    let folder = stage::state();
    let recordings = folder.path().join("recordings");
    let mut demo = Command::new(BOWWAVE);
    demo.args(["demo", "--device", "net", "--only", "backward-4k,stride-4k-64k", "--rounds", "1"]);
    let output = demo.arg("--record").arg(&recordings).output().expect("it ran");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for pattern in ["backward-4k", "stride-4k-64k"] {
        let recording = recordings.join(format!("net-{pattern}-1.bowrec"));
        Verified::of(&recording).is_of(&["-> [Read {", "Completed(Read", "Finishing"]);
    }
}
