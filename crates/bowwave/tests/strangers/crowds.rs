//! Too many of something: descriptors, processes, small files. A victim beside them has most of its file read ahead.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Advice, fadvise};
use rustix::process::{Pid, Signal, kill_process};

use crate::own::Own;
use crate::stage::skipped;
use crate::{BACKWARD_READS, Bench, begin_by_nobody, wait_until};

/// What a daemon may need beside any crowd, in KiB.
const MOST_MEMORY_KB: u64 = 64 << 10;

/// `long` of them in `make torture`, else `short`.
fn many(short: usize, long: usize) -> usize {
    if std::env::var_os("BOWWAVE_TORTURE_SECONDS").is_some() { long } else { short }
}

/// Reads backward, which the kernel does not read ahead, until it is killed; has so many descriptors that lead elsewhere.
const DESCRIPTORS: &str = "
import os, resource, sys
path, many = sys.argv[1], int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_NOFILE, (many + 100, many + 100))
first, other = os.open(path, os.O_RDONLY), os.open('/dev/null', os.O_RDONLY)
drop_rights()
for _ in range(many):
    os.dup(other)
f = os.dup(first)
os.close(first)
print('ready', flush=True)
pages = os.fstat(f).st_size // 4096
while True:
    os.posix_fadvise(f, 0, 0, os.POSIX_FADV_DONTNEED)
    for page in range(pages - 16, 0, -16):
        os.pread(f, 65536, page * 4096)
";

#[test]
fn a_user_with_half_a_million_descriptors_slows_nobody_else_down() {
    // Its files are reached through the descriptors of their readers.
    let Some(bench) = Bench::new("btrfs") else { return };
    let paths = bench.baits(1, 4 << 20);
    let number = many(20_000, 500_000).to_string();
    victim_is_served(&bench, || begin_by_nobody(DESCRIPTORS, &[&paths[0], Path::new(&number)]));
}

/// Starts processes as fast as it can; each reads at random.
const FORK_BOMB: &str = "
import os, random, sys
path, cgroup = sys.argv[1:]
f = os.open(path, os.O_RDONLY)
with open(cgroup + '/cgroup.procs', 'w') as processes:
    processes.write(str(os.getpid()))
drop_rights()
print('ready', flush=True)
pages = os.fstat(f).st_size // 4096
while True:
    try:
        if os.fork() > 0 and random.random() < 0.5:
            os._exit(0)
    except OSError:
        if random.random() < 0.1:
            os._exit(0)
    os.posix_fadvise(f, 0, 0, os.POSIX_FADV_DONTNEED)
    for _ in range(8):
        os.pread(f, 4096, random.randrange(pages) * 4096)
";

/// A cgroup with no more than 200 processes. They end with this.
struct Few(PathBuf);

impl Few {
    fn new() -> Option<Self> {
        let root = Path::new("/sys/fs/cgroup/pids");
        let root = if root.exists() { root } else { Path::new("/sys/fs/cgroup") };
        let folder = root.join(format!("bowwave-test-few-{}", std::process::id()));
        if fs::create_dir(&folder).is_err() {
            return skipped("no cgroup can be made");
        }
        let cgroup = Few(folder);
        if fs::write(cgroup.0.join("pids.max"), "200").is_err() {
            return skipped("processes cannot be limited");
        }
        Some(cgroup)
    }
}

impl Drop for Few {
    fn drop(&mut self) {
        let _ = fs::write(self.0.join("pids.max"), "0");
        for _ in 0..1000 {
            let processes = fs::read_to_string(self.0.join("cgroup.procs")).unwrap_or_default();
            for pid in processes.lines().filter_map(|line| Pid::from_raw(line.parse().ok()?)) {
                let _ = kill_process(pid, Signal::KILL);
            }
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        eprintln!("{} could not be removed", self.0.display());
    }
}

#[test]
fn a_fork_bomb_within_a_limit_slows_nobody_else_down() {
    let Some(bench) = Bench::new("ext4") else { return };
    let Some(cgroup) = Few::new() else { return };
    let paths = bench.baits(1, 4 << 20);
    victim_is_served(&bench, || begin_by_nobody(FORK_BOMB, &[&paths[0], &cgroup.0]));
    let events = fs::read_to_string(cgroup.0.join("pids.events")).expect("it is there");
    assert_ne!(events.trim(), "max 0", "it was no bomb");
}

/// Reads small files one after the other, in no order.
const SMALL_FILES: &str = "
import os, random, sys
os.chdir(sys.argv[1])
folder = os.open('.', os.O_RDONLY)
drop_rights()
names = [name for name in os.listdir(folder)]
print('ready', flush=True)
while True:
    random.shuffle(names)
    for name in names:
        f = os.open(name, os.O_RDONLY)
        os.read(f, 4096)
        os.posix_fadvise(f, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(f)
";

#[test]
fn a_user_who_reads_a_hundred_thousand_small_cold_files_slows_nobody_else_down() {
    let Some(bench) = Bench::new("ext4") else { return };
    let folder = bench.path("small");
    bench.lab.set_fast(true).expect("fast");
    fs::create_dir(&folder).expect("room on the lab");
    for number in 0..many(4_000, 100_000) {
        fs::write(folder.join(number.to_string()), [7; 600]).expect("room on the lab");
    }
    victim_is_served(&bench, || begin_by_nobody(SMALL_FILES, &[&folder]));
}

/// A program beside the stranger reads backward; bowwave brings more of its file than it reads itself, needs little
/// memory, and ends in order.
fn victim_is_served(bench: &Bench, begin: impl FnOnce() -> Own) {
    let path = bench.path("victim");
    fs::write(&path, vec![3; 64 << 20]).expect("room on the lab");
    bench.lab.evict().expect("evicted");
    let daemon = bench.daemon();
    let mut stranger = begin();
    let mut said = String::new();
    let words = stranger.stdout.take().expect("piped");
    BufReader::new(words).read_line(&mut said).expect("a line");
    assert_eq!(said, "ready\n");
    bench.lab.set_fast(false).expect("slow");
    let victim = File::open(path).expect("it was written");
    let (mut part, mut least, mut passes) = (vec![0; 64 << 10], u64::MAX, 0);
    let goes_on = std::env::var("BOWWAVE_TORTURE_SECONDS").ok().and_then(|text| text.parse().ok());
    let (begun, goes_on) = (std::time::Instant::now(), goes_on.unwrap_or(0));
    wait_until("the victim is served", || {
        fadvise(&victim, 0, None, Advice::DontNeed).expect("advised");
        let before = own_bytes();
        for number in (0..BACKWARD_READS).rev() {
            victim.read_exact_at(&mut part, (40 << 20) + (number << 16)).expect("read");
        }
        least = least.min(own_bytes() - before);
        passes += 1;
        least < BACKWARD_READS * part.len() as u64 / 2 && begun.elapsed().as_secs() >= goes_on
    });
    let memory_kb = daemon.peak_memory_kb();
    let summary = daemon.stop();
    let share = least * 100 / (BACKWARD_READS * part.len() as u64);
    println!(
        "{passes} passes, {share} % of its file read by the victim itself; {memory_kb} KiB at most; \
         {} events, {} lost",
        summary["events"], summary["lost_events"]
    );
    assert!(memory_kb < MOST_MEMORY_KB, "{memory_kb} KiB: {summary}");
}

/// Bytes that this thread has had read from disks, by itself.
fn own_bytes() -> u64 {
    let text = fs::read_to_string("/proc/thread-self/io").expect("the kernel counts");
    let line = text.lines().find_map(|line| line.strip_prefix("read_bytes: ")).expect("a line");
    line.parse().expect("a number")
}
