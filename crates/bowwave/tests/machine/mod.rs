//! A lab disk, processes in memory cgroups, and bowwave beside them.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};

use demo::worker::jobs::{Done, Job};
use lab::LabGuard;

use crate::managed::{self, Daemon};
use crate::own::Own;
use crate::stage::{self, Alone, BOWWAVE, skipped};

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

    /// A daemon that manages reads of this lab's files, in a cgroup if one is given.
    pub(crate) fn daemon(&self, arguments: &[&str], cgroup: Option<&Cgroup>) -> Daemon {
        let mut command = managed::daemon(&self.lab, self.state.path(), arguments);
        if let Some(cgroup) = cgroup {
            cgroup.begin_in(&mut command);
        }
        Daemon::begin(&mut command)
    }
}

/// A memory cgroup; its processes must be gone before it is.
pub(crate) struct Cgroup(PathBuf);

impl Cgroup {
    /// `None` where none can be made.
    pub(crate) fn new(name: &str, limit: Option<u64>) -> Option<Self> {
        let (root, file) = if Path::new("/sys/fs/cgroup/memory/memory.limit_in_bytes").exists() {
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
        } else {
            ("/sys/fs/cgroup", "memory.max")
        };
        let folder = Path::new(root).join(format!("bowwave-test-{name}-{}", std::process::id()));
        if let Err(error) = fs::create_dir(&folder) {
            return skipped(&format!("no memory cgroup can be made: {error}"));
        }
        let cgroup = Cgroup(folder);
        if let Some(bytes) = limit
            && let Err(error) = fs::write(cgroup.0.join(file), bytes.to_string())
        {
            return skipped(&format!("no memory cgroup can be limited: {error}"));
        }
        Some(cgroup)
    }

    /// Has the command begin its life here.
    #[allow(unsafe_code)]
    fn begin_in(&self, command: &mut Command) {
        let processes = File::options().write(true).open(self.0.join("cgroup.procs"));
        let processes = processes.expect("a cgroup takes processes");
        // SAFETY: one system call on a descriptor that the closure owns; nothing is allocated.
        unsafe {
            command.pre_exec(move || Ok(rustix::io::write(&processes, b"0").map(drop)?));
        }
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // A process that has just been reaped may hold its cgroup for a moment longer.
        for _ in 0..100 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        eprintln!("{} could not be removed", self.0.display());
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
