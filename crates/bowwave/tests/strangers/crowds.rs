//! Too much of something: small files, descriptors, processes. A victim beside it has most of its file read ahead.
//! With BOWWAVE_TORTURE_SECONDS the victim's speed is told, too, beside its speed without bowwave.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::time::{Duration, Instant};

use crate::cgroup::Cgroup;
use crate::own::Own;
use crate::stage::wait_until;
use crate::{Bench, MOST_WAITING, backward, begin_by_nobody, peak_memory_kb, read_backward};

/// What a daemon may need beside any crowd, in KiB.
const MOST_MEMORY_KB: u64 = 64 << 10;

/// `long` of them in `make torture`, else `short`.
fn many(short: usize, long: usize) -> usize {
    if std::env::var_os("BOWWAVE_TORTURE_SECONDS").is_some() { long } else { short }
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
fn a_user_who_reads_many_small_cold_files_slows_nobody_else_down() {
    // mkfs.ext4 makes room for a file every 16 KiB.
    let Some(bench) = Bench::with_room("ext4", 2 << 30) else { return };
    let folder = bench.path("small");
    bench.lab.set_fast(true).expect("fast");
    fs::create_dir(&folder).expect("room on the lab");
    for number in 0..many(4_000, 100_000) {
        fs::write(folder.join(number.to_string()), [7; 600]).expect("room on the lab");
    }
    victim_is_served(&bench, || begin_by_nobody(SMALL_FILES, &[&folder]));
}

/// Holds half a million descriptors, in as many processes as that needs. In each the last one is of its file, which it
/// reads backward. They end with the first of them.
const DESCRIPTORS: &str = "
import ctypes, os, resource, sys
path, wanted = sys.argv[1], 500_000
_, most = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
count = min(wanted, most - 1)
f, other = os.open(path, os.O_RDONLY), os.open('/dev/null', os.O_RDONLY)
drop_rights()
while os.dup(other) < count - 1:
    pass
os.dup2(f, count)
os.close(f)
PR_SET_PDEATHSIG, SIGKILL = 1, 9
for _ in range(-(-wanted // count) - 1):
    if os.fork() == 0:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, SIGKILL)
        break
else:
    print('ready', flush=True)
pages = os.fstat(count).st_size // 4096
while True:
    os.posix_fadvise(count, 0, 0, os.POSIX_FADV_DONTNEED)
    for page in range(pages - 16, 0, -16):
        os.pread(count, 65536, page * 4096)
";

#[test]
fn a_user_with_half_a_million_descriptors_slows_nobody_else_down() {
    // Its files are reached through the descriptors of their readers.
    let Some(bench) = Bench::new("btrfs") else { return };
    let bait = bench.baits(1, 16 << 20).remove(0);
    victim_is_served(&bench, || begin_by_nobody(DESCRIPTORS, &[&bait]));
}

/// Begins as many processes as it may; each reads something. Who may begin no other ends, except for the first.
const FORK_BOMB: &str = "
import os, random, signal, sys
path, cgroup = sys.argv[1:]
f = os.open(path, os.O_RDONLY)
with open(cgroup + '/cgroup.procs', 'w') as processes:
    processes.write(str(os.getpid()))
drop_rights()
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
print('ready', flush=True)
first, pages = os.getpid(), os.fstat(f).st_size // 4096
while True:
    try:
        os.fork()
    except BlockingIOError:
        if os.getpid() != first:
            os._exit(0)
        os.posix_fadvise(f, 0, 0, os.POSIX_FADV_DONTNEED)
    random.seed()
    os.pread(f, 65536, random.randrange(pages) * 4096)
";

#[test]
fn a_fork_bomb_slows_nobody_else_down() {
    let Some(bench) = Bench::new("ext4") else { return };
    let bait = bench.baits(1, 16 << 20).remove(0);
    let Some(crowd) = Cgroup::with_processes(many(64, 128)) else { return };
    victim_is_served(&bench, || begin_by_nobody(FORK_BOMB, &[&bait, crowd.folder()]));
}

/// A program beside the stranger reads backward; bowwave brings more of its file than it reads itself, needs little
/// memory, and ends in order.
fn victim_is_served(bench: &Bench, begin: impl Fn() -> Own) {
    let path = bench.path("victim");
    bench.lab.set_fast(true).expect("fast");
    fs::write(&path, vec![3; 64 << 20]).expect("room on the lab");
    bench.lab.evict().expect("evicted");
    let victim = Victim(File::open(path).expect("it was written"));
    let goes_on = std::env::var("BOWWAVE_TORTURE_SECONDS").ok().and_then(|text| text.parse().ok());
    let stock_s = goes_on.map(|_| {
        let _stranger = ready(begin());
        linux::median((0..PASSES_BY_ITSELF).map(|_| victim.pass().1)).unwrap_or(0.0)
    });
    let daemon = bench.daemon();
    let mut stranger = ready(begin());
    bench.lab.set_fast(false).expect("slow");
    let (mut least, mut times_s) = (u64::MAX, Vec::new());
    let (begun, goes_on) = (Instant::now(), Duration::from_secs(goes_on.unwrap_or(0)));
    wait_until("the victim is served", goes_on + MOST_WAITING, || {
        let (own_bytes, time_s) = victim.pass();
        least = least.min(own_bytes);
        times_s.push(time_s);
        least < VICTIM_BYTES / 2 && begun.elapsed() >= goes_on
    });
    assert!(stranger.try_wait().expect("it is ours").is_none(), "nobody was beside the victim");
    let memory_kb = peak_memory_kb(&daemon);
    let summary = daemon.end();
    println!(
        "{} passes, {} % of its file read by the victim itself; {memory_kb} KiB at most; {} events, {} lost",
        times_s.len(),
        least * 100 / VICTIM_BYTES,
        summary["events"],
        summary["lost_events"]
    );
    if let (Some(stock_s), Some(time_s)) = (stock_s, linux::median(times_s)) {
        println!(
            "a pass takes {time_s:.2} s, {stock_s:.2} s without bowwave: {:.2} times as fast",
            stock_s / time_s
        );
    }
    assert!(memory_kb < MOST_MEMORY_KB, "{memory_kb} KiB: {summary}");
}

/// Passes of the victim's without bowwave.
const PASSES_BY_ITSELF: usize = 3;

/// What the victim reads in a pass.
const VICTIM_BYTES: u64 = backward::READS << 16;

struct Victim(File);

impl Victim {
    /// Reads a part of its file backward, cold; gives the bytes that it has read itself, and the seconds.
    fn pass(&self) -> (u64, f64) {
        let (before, begun) = (own_bytes(), Instant::now());
        read_backward(&self.0);
        (own_bytes() - before, begun.elapsed().as_secs_f64())
    }
}

/// A stranger that has said that it is at it.
pub(crate) fn ready(mut stranger: Own) -> Own {
    let mut said = String::new();
    let words = stranger.stdout.take().expect("piped");
    BufReader::new(words).read_line(&mut said).expect("a line");
    assert_eq!(said, "ready\n");
    stranger
}

/// Bytes that this thread has had read from disks, by itself.
fn own_bytes() -> u64 {
    let text = fs::read_to_string("/proc/thread-self/io").expect("the kernel counts");
    let line = text.lines().find_map(|line| line.strip_prefix("read_bytes: ")).expect("a line");
    line.parse().expect("a number")
}
