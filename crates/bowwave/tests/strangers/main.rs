//! Programs of another user that mean harm, on the running kernel: what they do costs nobody else anything.
//!
//! They run as `nobody`, beside a victim whose reads bowwave manages on a lab disk. What is asserted is counted,
//! never timed. Skipped where labs or eBPF do not work, unless BOWWAVE_REQUIRE_LIVE=1 makes that a failure.
//! BOWWAVE_TORTURE_SECONDS is how long each lasts (`make torture`), where it is not done once and for all.

#[path = "../backward/mod.rs"]
mod backward;
#[path = "../cgroup/mod.rs"]
mod cgroup;
mod crowds;
mod idle;
#[path = "../managed/mod.rs"]
mod managed;
mod opened;
#[path = "../own/mod.rs"]
mod own;
#[path = "../stage/mod.rs"]
mod stage;
mod traced;
#[path = "../windows/mod.rs"]
mod windows;

use std::fs::{self, File, Permissions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use cgroup::Cgroup;
use lab::LabGuard;
use managed::Daemon;
use opened::Opened;
use own::Own;
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
        Self::with_room(fs_type, 512 << 20)
    }

    /// The same, of so many bytes.
    fn with_room(fs_type: &str, bytes: u64) -> Option<Self> {
        managed::possible()?;
        let (alone, lab) = stage::lab("strangers", "net", bytes, fs_type);
        Some(Bench { lab, state: stage::state(), _alone: alone })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.lab.mount_point().join(name)
    }

    /// Files of `nobody`'s, cold.
    fn baits(&self, count: u64, bytes: usize) -> Vec<PathBuf> {
        self.written((0..count).map(|n| self.path(&format!("bait{n}"))).collect(), bytes)
    }

    /// As [`baits`](Self::baits), in a folder that `nobody` cannot list, so that nothing tells which comes next.
    fn hidden_baits(&self, count: u64, bytes: usize) -> Vec<PathBuf> {
        let folder = self.path("hidden");
        fs::create_dir(&folder).expect("room on the lab");
        fs::set_permissions(&folder, Permissions::from_mode(0o711)).expect("root decides");
        self.written((0..count).map(|n| folder.join(format!("bait{n}"))).collect(), bytes)
    }

    fn written(&self, paths: Vec<PathBuf>, bytes: usize) -> Vec<PathBuf> {
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
        let daemon = Daemon::begin(&mut managed::daemon(&self.lab, self.state.path(), &[]));
        managed::wait_measured(&self.lab, self.state.path());
        self.lab.set_fast(true).expect("fast");
        daemon
    }

    /// Inode numbers of the open files with a window of bowwave's.
    fn given_windows(&self) -> Vec<u64> {
        windows::noted(self.state.path())
    }

    fn requests(&self) -> u64 {
        self.lab.status().expect("counters").reads
    }
}

/// The most memory that a process has had so far.
fn peak_memory_kb(daemon: &Daemon) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", daemon.child.id()));
    let status = status.expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a line");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// Runs a program of `nobody`'s to its end.
fn run_by_nobody(program: &str, arguments: &[&Path]) {
    let status = begin_by_nobody(program, arguments).wait().expect("it ends");
    assert!(status.success(), "{status}");
}

/// Begins a program of `nobody`'s. Labs are closed to others, so it calls `drop_rights` once it has opened what it
/// wants.
fn begin_by_nobody(program: &str, arguments: &[&Path]) -> Own {
    let drop_rights = format!(
        "import os\n\
         def drop_rights():\n    \
             os.setgroups([]); os.setresgid(*[{NOBODY}] * 3); os.setresuid(*[{NOBODY}] * 3)\n"
    );
    let mut command = Command::new("python3");
    command.arg("-c").arg(drop_rights + program).args(arguments);
    Own::start(command.stdout(Stdio::piped()))
}

/// Reads 64 KiB of each file, so that the kernel reads ahead as much again; has that evicted, and comes to it when the
/// file has been idle for longer than bowwave remembers it: as slow readers do where memory is short.
const THRASH: &str = "
import mmap, os, sys, time
MADV_PAGEOUT = 21
opened = [(os.open(path, os.O_RDONLY), os.open(path, os.O_RDONLY)) for path in sys.argv[1:]]
drop_rights()
for f, mapped in opened:
    m = mmap.mmap(mapped, 128 << 10, prot=mmap.PROT_READ)
    os.close(mapped)
    os.pread(f, 64 << 10, 0)
    for page in range(16, 32):
        m[page * 4096]
    m.madvise(MADV_PAGEOUT, 64 << 10, 64 << 10)
time.sleep(11.5)
for f, _ in opened:
    os.pread(f, 4096, 64 << 10)
    time.sleep(0.01)
";

/// Reads 20 MB of a file backward that are not cached.
fn read_backward(file: &File) {
    rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed).expect("advised");
    let mut part = vec![0; 64 << 10];
    for number in (0..backward::READS).rev() {
        file.read_exact_at(&mut part, (40 << 20) + (number << 16)).expect("read");
    }
}

#[test]
fn a_user_who_thrashes_on_purpose_bounds_nobody_elses_windows_and_reads() {
    let Some(bench) = Bench::new("ext4") else { return };
    let paths = bench.hidden_baits(60, 1 << 20);
    let victim = bench.path("victim");
    fs::write(&victim, vec![3; 64 << 20]).expect("room on the lab");
    bench.lab.evict().expect("evicted");
    let daemon = bench.daemon();
    let victim = File::open(victim).expect("it was written");
    // Bowwave knows it before anybody thrashes.
    victim.read_exact_at(&mut [0; 4096], 0).expect("read");
    run_by_nobody(THRASH, &paths.iter().map(PathBuf::as_path).collect::<Vec<_>>());
    // Each request takes its time, so that bowwave has some.
    bench.lab.set_fast(false).expect("slow");
    let requests = backward::fewest(|| {
        let before = bench.requests();
        read_backward(&victim);
        bench.requests() - before
    });
    let ino = victim.metadata().expect("metadata").ino();
    assert!(!bench.given_windows().contains(&ino), "its window was bounded");
    let summary = daemon.end();
    println!(
        "{requests} requests instead of {}; {} windows bounded, none of the victim's",
        backward::READS,
        summary["bounded_windows"]
    );
    assert!(summary["bounded_windows"].as_u64() > Some(0), "nobody thrashed: {summary}");
    assert!(requests < backward::MOST_MANAGED_READS, "{requests} requests: {summary}");
}

/// Has one descriptor lead now to a file that it reads, now to a device, a FIFO or a terminal, as fast as it can.
const FLIP: &str = "
import os, sys, threading, time
bait, fifo, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
held = os.open(bait, os.O_RDONLY)
os.dup2(held, 200)
os.close(held)
held = 200
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
    let Some(opened) = Opened::by(daemon.child.id()) else { return };
    run_by_nobody(FLIP, &[&paths[0], &fifo, Path::new(&seconds())]);
    let (calls, summary) = (opened.end(), daemon.end());
    let of_bait = |call: &&String| opened::result(call).ends_with("/bait0");
    assert!(calls.iter().any(|call| of_bait(&call)), "the trace is blind: {summary}");
    // A device or terminal is shown with its number; all else that it opens is in these folders.
    let is_known = |call: &&String| {
        let path = opened::result(call);
        let folders = ["/proc", "/sys", "/run/bowwave"];
        !path.contains('<') && folders.iter().any(|folder| Path::new(path).starts_with(folder))
    };
    let others: Vec<&String> = calls.iter().filter(|call| !is_known(call)).collect();
    println!("{} files opened, nothing else", calls.len());
    assert!(others.is_empty(), "{others:#?}");
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
        daemon.end();
    }
}

#[test]
fn for_a_walk_no_table_is_read_that_another_user_can_make_long() {
    let Some(bench) = Bench::new("ext4") else { return };
    bench.lab.set_fast(true).expect("fast");
    for folder in 0..5 {
        let folder = bench.path(&format!("tree/{folder}"));
        fs::create_dir_all(&folder).expect("room on the lab");
        for file in 0..40 {
            fs::write(folder.join(file.to_string()), [7; 6000]).expect("room on the lab");
        }
    }
    bench.lab.evict().expect("evicted");
    let daemon = bench.daemon();
    let Some(opened) = Opened::by(daemon.child.id()) else { return };
    bench.lab.set_fast(false).expect("slow");
    let mut grep = Command::new("grep");
    grep.args(["-r", "no such words"]).arg(bench.path("tree"));
    Own::start(&mut grep).wait().expect("it ends");
    let calls = opened.end();
    daemon.end();
    let of_tree = calls.iter().filter(|call| opened::result(call).contains("/tree/")).count();
    println!("{of_tree} files and folders of the tree opened");
    assert!(of_tree > 20, "nothing was read ahead: {calls:#?}");
    let tables = ["/proc/locks"];
    assert!(!calls.iter().any(|call| tables.contains(&opened::result(call))), "{calls:#?}");
}

/// Reads a page of each of many files that are all hole, so that no disk slows it down, and then the next page of each.
const MANY_FILES: &str = "
import os, resource, sys, time
folder, seconds = sys.argv[1], float(sys.argv[2])
resource.setrlimit(resource.RLIMIT_NOFILE, (20000, 20000))
names = [os.path.join(folder, name) for name in os.listdir(folder) if name.startswith('hole')]
files = [os.open(name, os.O_RDONLY) for name in names]
drop_rights()
until, page = time.monotonic() + seconds, 1
while time.monotonic() < until:
    for f in files:
        os.pread(f, 1, page * 65536)
    page += 7
";

#[test]
fn a_user_who_reports_more_than_anybody_could_read_takes_nobody_elses_events() {
    let Some(bench) = Bench::new("ext4") else { return };
    bench.lab.set_fast(true).expect("fast");
    for number in 0..8_000 {
        let hole = File::create(bench.path(&format!("hole{number}"))).expect("room on the lab");
        hole.set_len(16 << 30).expect("it takes no room");
    }
    let victim = bench.path("victim");
    fs::write(&victim, vec![3; 64 << 20]).expect("room on the lab");
    bench.lab.evict().expect("evicted");
    let daemon = bench.daemon();
    let folder = bench.lab.mount_point().to_owned();
    let stranger = std::thread::spawn(move || {
        run_by_nobody(MANY_FILES, &[&folder, Path::new(&seconds())]);
    });
    bench.lab.set_fast(false).expect("slow");
    let victim = File::open(victim).expect("it was written");
    let mut requests = Vec::new();
    while requests.is_empty() || !stranger.is_finished() {
        let before = bench.requests();
        read_backward(&victim);
        requests.push((bench.requests() - before) as f64);
    }
    stranger.join().expect("it ends");
    let summary = daemon.end();
    println!("{requests:?} requests");
    let requests = linux::median(requests).expect("passes") as u64;
    println!(
        "{requests} requests instead of {}, in the median; {} events, {} dropped",
        backward::READS,
        summary["events"],
        summary["lost_events"]
    );
    assert!(summary["lost_events"].as_u64() > Some(0), "it was too slow: {summary}");
    assert!(requests < backward::MOST_MANAGED_READS, "{requests} requests: {summary}");
}

#[test]
fn in_a_container_run_says_why_it_does_not_work_and_the_command_runs() {
    let unshare = ["--pid", "--fork", "--mount-proc"];
    if !Command::new("unshare").args(unshare).arg("true").status().is_ok_and(|it| it.success()) {
        return stage::skipped("no PID namespaces").unwrap_or_default();
    }
    let mut run = Command::new("unshare");
    run.args(unshare).args([stage::BOWWAVE, "run", "--", "sh", "-c", "read line; exit 7"]);
    let mut run = Own::start(run.stdin(Stdio::piped()).stderr(Stdio::piped()));
    let mut notes = BufReader::new(run.stderr.take().expect("piped"));
    let mut told = String::new();
    notes.read_line(&mut told).expect("it says why");
    assert!(told.contains("--pid=host") && told.contains("runs without"), "{told}");
    drop(run.stdin.take());
    assert_eq!(run.wait().expect("it ends").code(), Some(7));
}

#[test]
fn nothing_is_read_ahead_for_who_may_read_only_so_much_in_a_second() {
    let Some(bench) = Bench::new("ext4") else { return };
    let paths = bench.baits(1, 8 << 20);
    let device = fs::metadata(&paths[0]).expect("it was written").dev();
    let Some(cgroup) = Cgroup::with_bandwidth(device, 10_000_000) else { return };
    // The shell goes there itself; what is read backwards the kernel does not read ahead.
    let script = "echo $$ > \"$1\"/cgroup.procs && exec tac \"$0\" > /dev/null";
    let reads_in = |cgroup: &Path| {
        bench.lab.evict().expect("evicted");
        let daemon = bench.daemon();
        bench.lab.set_fast(false).expect("slow");
        let mut tac = Command::new("sh");
        tac.args(["-c", script]).arg(&paths[0]).arg(cgroup);
        assert!(Own::start(&mut tac).wait().expect("it ends").success());
        daemon.end()["reads"].as_u64()
    };
    assert!(reads_in(Path::new("/sys/fs/cgroup/blkio")) > Some(0), "it is read for elsewhere");
    assert_eq!(reads_in(cgroup.folder()), Some(0));
}
