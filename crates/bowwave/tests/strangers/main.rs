//! Programs of another user that mean harm, on the running kernel: what they do costs nobody else anything.
//!
//! They run as `nobody`, beside a victim whose reads bowwave manages on a lab disk. What is asserted is counted,
//! never timed. Skipped where labs or eBPF do not work, unless BOWWAVE_REQUIRE_LIVE=1 makes that a failure.
//! BOWWAVE_TORTURE_SECONDS is how long each lasts (`make torture`), where it is not done once and for all.

#[path = "../led/mod.rs"]
mod led;
mod opened;
#[path = "../own/mod.rs"]
mod own;
#[path = "../stage/mod.rs"]
mod stage;

use std::fs::{self, File};
use std::io::{BufReader, Read};
use std::os::unix::fs::{FileExt, MetadataExt, chown};
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command};

use lab::LabGuard;
use opened::Opened;
use own::Own;
use rustix::process::{Pid, Signal, kill_process};
use stage::Alone;

const NOBODY: u32 = 65534;

struct Bench {
    lab: LabGuard,
    state: tempfile::TempDir,
    _alone: Alone,
}

/// How long a program of a stranger's goes on, in seconds.
fn seconds() -> String {
    std::env::var("BOWWAVE_TORTURE_SECONDS").unwrap_or_else(|_| "3".into())
}

impl Bench {
    /// An empty lab; `None` where labs or eBPF do not work.
    fn new(fs_type: &str) -> Option<Self> {
        led::possible()?;
        let (alone, lab) = stage::lab("strangers", "net", 512 << 20, fs_type);
        Some(Bench { lab, state: tempfile::tempdir().expect("a folder"), _alone: alone })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.lab.mount_point().join(name)
    }

    /// Files of `nobody`'s, cold.
    fn baits(&self, count: u64, bytes: usize) -> Vec<PathBuf> {
        let paths: Vec<PathBuf> = (0..count).map(|n| self.path(&format!("bait{n}"))).collect();
        self.lab.set_fast(true).expect("fast");
        for path in &paths {
            fs::write(path, vec![5; bytes]).expect("room on the lab");
            chown(path, Some(NOBODY), Some(NOBODY)).expect("root gives files away");
        }
        self.lab.evict().expect("evicted");
        paths
    }

    /// Bowwave, which has met the disk with its delays; that has none from then on.
    fn daemon(&self) -> Daemon {
        self.lab.set_fast(false).expect("slow");
        let (child, output) = led::begin(&mut led::daemon(&self.lab, self.state.path(), &[]));
        self.lab.set_fast(true).expect("fast");
        Daemon { child, output }
    }

    /// Inodes whose open files have a window that is not their own.
    fn given_windows(&self) -> Vec<u64> {
        let entries = fs::read_dir(self.state.path()).expect("it is there").flatten();
        let is_ledger =
            |e: &fs::DirEntry| e.file_name().to_string_lossy().starts_with("given-windows");
        let ledgers = entries.filter(is_ledger);
        let text: String =
            ledgers.filter_map(|ledger| fs::read_to_string(ledger.path()).ok()).collect();
        let entry = |line: &str| serde_json::from_str::<serde_json::Value>(line).ok();
        text.lines().filter_map(|line| entry(line)?["ino"].as_u64()).collect()
    }

    fn requests(&self) -> u64 {
        self.lab.status().expect("counters").reads
    }
}

struct Daemon {
    child: Own,
    output: BufReader<ChildStdout>,
}

impl Daemon {
    /// Ends it; gives what it says it did.
    fn stop(mut self) -> serde_json::Value {
        kill_process(Pid::from_child(&self.child), Signal::TERM).expect("it runs");
        let mut said = String::new();
        self.output.read_to_string(&mut said).expect("its last words");
        assert!(self.child.wait().expect("it ends").success(), "{said}");
        serde_json::from_str(said.lines().last().unwrap_or_default()).expect("its summary")
    }
}

/// Runs a program of `nobody`'s to its end. Labs are closed to others, so it calls `drop_rights` once it has opened
/// what it wants.
fn run_by_nobody(program: &str, arguments: &[&Path]) {
    let drop_rights = format!(
        "import os\n\
         def drop_rights():\n    \
             os.setgroups([]); os.setresgid(*[{NOBODY}] * 3); os.setresuid(*[{NOBODY}] * 3)\n"
    );
    let mut command = Command::new("python3");
    command.arg("-c").arg(drop_rights + program).args(arguments);
    let status = Own::start(&mut command).wait().expect("it ends");
    assert!(status.success(), "{status}");
}

/// Reads 64 KiB of each file, so that the kernel reads ahead as much again; has that evicted, and comes to it.
const THRASH: &str = "
import mmap, os, sys, time
MADV_PAGEOUT = 21
opened = [[os.open(path, os.O_RDONLY) for _ in range(2)] for path in sys.argv[1:]]
drop_rights()
for f, mapped in opened:
    m = mmap.mmap(mapped, 128 << 10, prot=mmap.PROT_READ)
    os.pread(f, 64 << 10, 0)
    for page in range(16, 32):
        m[page * 4096]
    m.madvise(MADV_PAGEOUT, 64 << 10, 64 << 10)
    time.sleep(0.02)
    os.pread(f, 4096, 64 << 10)
";

/// Requests that a backward reader of 20 MB in 64 KiB reads makes by itself.
const BACKWARD_READS: u64 = 320;

#[test]
fn a_user_who_thrashes_on_purpose_bounds_nobody_elses_windows_and_reads() {
    let Some(bench) = Bench::new("ext4") else { return };
    let paths = bench.baits(60, 1 << 20);
    let victim = bench.path("victim");
    fs::write(&victim, vec![3; 64 << 20]).expect("room on the lab");
    bench.lab.evict().expect("evicted");
    let daemon = bench.daemon();
    let victim = File::open(victim).expect("it was written");
    let mut part = vec![0; 64 << 10];
    // Bowwave knows it before anybody thrashes.
    victim.read_exact_at(&mut part[..4096], 0).expect("read");
    run_by_nobody(THRASH, &paths.iter().map(PathBuf::as_path).collect::<Vec<_>>());
    let before = bench.requests();
    for number in (0..BACKWARD_READS).rev() {
        victim.read_exact_at(&mut part, (40 << 20) + (number << 16)).expect("read");
    }
    let requests = bench.requests() - before;
    let ino = victim.metadata().expect("metadata").ino();
    assert!(!bench.given_windows().contains(&ino), "its window was bounded");
    let summary = daemon.stop();
    assert!(summary["bounded_windows"].as_u64() > Some(0), "nobody thrashed: {summary}");
    assert!(requests < BACKWARD_READS / 2, "{requests} requests: {summary}");
}

/// Has one descriptor lead now to a file that it reads, now to a device, a FIFO or a terminal, as fast as it can.
const FLIP: &str = "
import os, sys, threading, time
bait, fifo, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
held = os.dup2(os.open(bait, os.O_RDONLY), 200)
master, terminal = os.openpty()
others = [os.open('/dev/null', os.O_RDONLY), os.open(fifo, os.O_RDWR), terminal]
drop_rights()
sys.setswitchinterval(1e-5)
until = time.monotonic() + seconds
def flip():
    while time.monotonic() < until:
        for other in others:
            os.dup2(held, 100)
            os.dup2(other, 100)
flipping = threading.Thread(target=flip)
flipping.start()
pages = os.fstat(held).st_size // 4096
while time.monotonic() < until:
    os.posix_fadvise(held, 0, 0, os.POSIX_FADV_DONTNEED)
    for page in range(pages - 16, 0, -16):
        os.pread(held, 65536, page * 4096)
flipping.join()
";

#[test]
fn whatever_a_descriptor_leads_to_by_then_nothing_but_files_is_opened() {
    // Its files are reached through the descriptors of their readers.
    let Some(bench) = Bench::new("btrfs") else { return };
    let paths = bench.baits(1, 4 << 20);
    let fifo = bench.state.path().join("fifo");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &fifo,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .expect("a FIFO");
    let daemon = bench.daemon();
    let Some(mut opened) = Opened::on_file_systems_of(&[Path::new("/dev"), &fifo]) else { return };
    run_by_nobody(FLIP, &[&paths[0], &fifo, Path::new(&seconds())]);
    File::open("/dev/null").expect("it is there");
    let by = opened.other_than_regular();
    assert!(by.contains(&std::process::id()), "the trace is blind");
    assert!(!by.contains(&daemon.child.id()), "bowwave opened a device, a FIFO or a terminal");
    let summary = daemon.stop();
    assert!(summary["reads"].as_u64() > Some(0), "it opened nothing at all: {summary}");
}

/// Reads a file that it holds a write lease on; fails if that is broken before another process opens the file.
const LEASE: &str = "
import fcntl, os, signal, subprocess, sys, time
path = sys.argv[1]
f = os.open(path, os.O_RDONLY)
os.fchown(f, os.getuid(), -1)
broken = []
signal.signal(signal.SIGIO, lambda *_: broken.append(time.monotonic()))
fcntl.fcntl(f, fcntl.F_SETLEASE, fcntl.F_WRLCK)
for page in range(os.fstat(f).st_size // 4096 - 16, 0, -16):
    os.pread(f, 65536, page * 4096)
time.sleep(0.1)
assert not broken, 'the lease was broken'
other = os.fork()
if other == 0:
    try:
        os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except BlockingIOError:
        pass
    os._exit(0)
os.waitpid(other, 0)
assert broken, 'a lease that another process cannot break shows nothing'
";

#[test]
fn write_leases_are_not_broken() {
    for fs_type in ["ext4", "btrfs"] {
        let Some(bench) = Bench::new(fs_type) else { return };
        let paths = bench.baits(1, 16 << 20);
        let daemon = bench.daemon();
        run_by_nobody(LEASE, &[&paths[0]]);
        daemon.stop();
    }
}
