//! A lab disk, processes in memory cgroups, and bowwave beside them.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};

use demo::worker::jobs::{Done, Job};
use lab::LabGuard;

use crate::cgroup::Cgroup;
use crate::managed::{self, Daemon};
use crate::own::Own;
use crate::stage::{self, Alone, BOWWAVE};

pub(crate) struct Bench {
    pub(crate) lab: LabGuard,
    pub(crate) state: tempfile::TempDir,
    _alone: Alone,
}

impl Bench {
    /// An empty lab, without its delays; `None` where labs or eBPF do not work.
    pub(crate) fn new(device: &str) -> Option<Self> {
        managed::possible()?;
        let (alone, lab) = stage::lab("thrash", device, 512 << 20, "ext4");
        lab.set_fast(true).expect("fast");
        let state = stage::state();
        Some(Bench { lab, state, _alone: alone })
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.lab.mount_point().join(name)
    }

    /// The disk's own window.
    pub(crate) fn window_kb(&self) -> u64 {
        self.lab.read_ahead_kb().expect("a window")
    }

    /// Has a daemon measure the disk with its delays; it has none afterwards. A disk that outpaces user space would be
    /// left to the kernel.
    pub(crate) fn measure_disk(&self) {
        self.lab.set_fast(false).expect("slow");
        let daemon = self.daemon(&[], None);
        managed::wait_measured(&self.lab, self.state.path());
        daemon.end();
        self.lab.set_fast(true).expect("fast");
    }

    /// A daemon that manages reads of this lab's files, in a cgroup if one is given.
    pub(crate) fn daemon(&self, arguments: &[&str], cgroup: Option<&Cgroup>) -> Daemon {
        let mut command = managed::daemon(&self.lab, self.state.path(), arguments);
        if let Some(cgroup) = cgroup {
            cgroup.begin_in(&mut command);
        }
        Daemon::begin(&mut command)
    }
}

/// A process that reads as it is told.
pub(crate) struct Hand {
    /// Killed with this.
    _child: Own,
    jobs: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Hand {
    pub(crate) fn new(cgroup: &Cgroup) -> Self {
        let mut command = Command::new(BOWWAVE);
        command.args(["demo", "--hand"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        cgroup.begin_in(&mut command);
        let mut child = Own::start(&mut command);
        let jobs = child.stdin.take().expect("piped");
        let answers = BufReader::new(child.stdout.take().expect("piped"));
        Hand { _child: child, jobs, answers }
    }

    pub(crate) fn tell(&mut self, job: &Job) {
        let line = serde_json::to_string(job).expect("JSON") + "\n";
        self.jobs.write_all(line.as_bytes()).expect("it listens");
    }

    pub(crate) fn answer(&mut self) -> Done {
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("it answers");
        serde_json::from_str(&line).expect("an answer")
    }

    pub(crate) fn perform(&mut self, job: &Job) -> Done {
        self.tell(job);
        self.answer()
    }
}

/// Which pages of a file are in the page cache.
pub(crate) fn cached_pages(path: &Path) -> Vec<bool> {
    demo::resident(&File::open(path).expect("it is there")).expect("the kernel tells")
}

/// When this process started, in ticks since boot.
pub(crate) fn start_time() -> u64 {
    let stat = fs::read_to_string("/proc/self/stat").expect("/proc");
    let (_, behind_name) = stat.rsplit_once(')').expect("a name");
    let field = behind_name.split_ascii_whitespace().nth(19).expect("22 fields");
    field.parse().expect("a number")
}
