//! A lab disk, processes in memory cgroups, and bowwave beside them.

mod removals;

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use demo::worker::hand::{Done, Job};
use lab::{LabGuard, Options};

use crate::own::Own;
pub(crate) use removals::Removals;

pub(crate) const BOWWAVE: &str = env!("CARGO_BIN_EXE_bowwave");
pub(crate) const PAGE_BYTES: u64 = 4096;

/// Labs are loop devices and real-time threads: one at a time.
static ONE_LAB: Mutex<()> = Mutex::new(());

pub(crate) struct Bench {
    pub(crate) lab: LabGuard,
    pub(crate) state: tempfile::TempDir,
    _alone: MutexGuard<'static, ()>,
}

impl Bench {
    /// An empty lab, without its delays; `None` where labs or eBPF do not work.
    pub(crate) fn new(device: &str) -> Option<Self> {
        let able = Command::new(BOWWAVE).arg("doctor").output().expect("bowwave runs");
        if !able.status.success() || !fs::exists("/dev/fuse").unwrap_or(false) {
            return skipped(&String::from_utf8_lossy(&able.stdout));
        }
        let alone = ONE_LAB.lock().unwrap_or_else(PoisonError::into_inner);
        let lab = LabGuard::up(&Options {
            name: format!("thrash-{}", std::process::id()),
            device: device.into(),
            size_bytes: 512 << 20,
            fs_type: "ext4".into(),
            scheduler: None,
            server: Some(PathBuf::from(BOWWAVE)),
        })
        .expect("a lab");
        lab.set_fast(true).expect("fast");
        let state = tempfile::tempdir().expect("a folder");
        Some(Bench { lab, state, _alone: alone })
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.lab.mount_point().join(name)
    }

    /// The disk's own window.
    pub(crate) fn window_kb(&self) -> String {
        let name = self.lab.block_device().file_name().expect("a name").to_owned();
        let knob = Path::new("/sys/block").join(name).join("queue/read_ahead_kb");
        fs::read_to_string(knob).expect("a window")
    }

    /// Bowwave, leading this lab's files, in a cgroup if one is given.
    pub(crate) fn daemon(&self, arguments: &[&str], cgroup: Option<&Cgroup>) -> Daemon {
        let mut command = Command::new(BOWWAVE);
        command.args(["daemon", "--json", "--path"]).arg(self.lab.mount_point());
        command.arg("--state").arg(self.state.path()).args(arguments).stdout(Stdio::piped());
        if let Some(cgroup) = cgroup {
            cgroup.begin_in(&mut command);
        }
        let mut child = Own::start(&mut command);
        let mut output = BufReader::new(child.stdout.take().expect("piped"));
        let mut line = String::new();
        output.read_line(&mut line).expect("a line");
        assert!(line.contains("\"ready\":true"), "{line}");
        Daemon { child, output }
    }
}

fn skipped<T>(reason: &str) -> Option<T> {
    assert!(std::env::var_os("BOWWAVE_REQUIRE_LIVE").is_none(), "cannot test live:\n{reason}");
    eprintln!("skipped: {reason}");
    None
}

pub(crate) struct Daemon {
    child: Own,
    output: BufReader<ChildStdout>,
}

impl Daemon {
    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// Ends it; gives what it says it did.
    pub(crate) fn stop(mut self) -> serde_json::Value {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it runs");
        let mut said = String::new();
        self.output.read_to_string(&mut said).expect("its last words");
        assert!(self.child.wait().expect("it ends").success(), "{said}");
        serde_json::from_str(said.lines().last().unwrap_or_default()).expect("its summary")
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

/// A linear congruential generator (Knuth's MMIX).
pub(crate) struct Random(pub u64);

impl Random {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 32) % bound
    }
}
