//! Too much of something: small files, descriptors, processes. A victim beside it has most of its file read ahead.
//! With BOWWAVE_TORTURE_SECONDS the victim's speed is told, too, beside its speed without bowwave.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::cgroup::Cgroup;
use crate::opened::{self, Opened};
use crate::own::Own;
use crate::{Bench, backward, begin_by_nobody, peak_memory_kb, read_backward};

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

/// Holds half a million descriptors, at most so many in each process. In each the last one is of its file, which it
/// reads backward. They end with the first of them.
const DESCRIPTORS: &str = "
import ctypes, os, resource, sys
path, wanted, each = sys.argv[1], 500_000, int(sys.argv[2])
_, most = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
count = min(wanted, each, most - 1)
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
    victim_is_served(&bench, || begin_by_nobody(DESCRIPTORS, &[&bait, Path::new("500000")]));
}

/// Bowwave looks at 10,000 descriptors of a process, so it finds the last one of each, after all the others.
#[test]
fn nor_does_one_with_half_a_million_in_processes_whose_descriptors_bowwave_finds() {
    let Some(bench) = Bench::new("btrfs") else { return };
    let bait = bench.baits(1, 16 << 20).remove(0);
    let begin = || begin_by_nobody(DESCRIPTORS, &[&bait, Path::new("9990")]);
    victim_is_served(&bench, begin);
}

/// Several processes, each with a file that it reads backward. Below that file's descriptor are many of one `epoll` that
/// watches many more: the kernel takes long to tell about each of these in `/proc/PID/fdinfo`. They end with the first.
const EPOLL: &str = "
import ctypes, os, resource, select, sys
baits, watched = sys.argv[1:], 4000
_, most = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
high = min(most - 100, 20_000)
poll = select.epoll()
event = os.eventfd(0)
for number in range(high - watched, high):
    os.dup2(event, number)
    poll.register(number)
files = [os.dup2(os.open(bait, os.O_RDONLY), high + at) for at, bait in enumerate(baits)]
drop_rights()
while os.dup(poll.fileno()) < high - watched - 1:
    pass
PR_SET_PDEATHSIG, SIGKILL = 1, 9
for f in files[1:]:
    if os.fork() == 0:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, SIGKILL)
        break
else:
    f = files[0]
    print('ready', flush=True)
pages = os.fstat(f).st_size // 4096
while True:
    os.posix_fadvise(f, 0, 0, os.POSIX_FADV_DONTNEED)
    for page in range(pages - 16, 0, -16):
        os.pread(f, 65536, page * 4096)
";

#[test]
fn descriptors_that_take_long_to_tell_about_are_not_asked_about() {
    // Its files are reached through the descriptors of their readers.
    let Some(bench) = Bench::new("btrfs") else { return };
    // As many as bowwave has threads that read ahead, and some more.
    let baits = bench.baits(20, 4 << 20);
    let baits: Vec<_> = baits.iter().map(PathBuf::as_path).collect();
    let path = bench.path("victim");
    fs::write(&path, vec![3; 64 << 20]).expect("room on the lab");
    bench.lab.evict().expect("evicted");
    let daemon = bench.daemon();
    let Some(opened) = Opened::by(daemon.child.id()) else { return };
    let stranger = ready(begin_by_nobody(EPOLL, &baits));
    bench.lab.set_fast(false).expect("slow");
    let victim = Victim(File::open(&path).expect("it was written"));
    for _ in 0..3 {
        victim.pass();
    }
    drop(stranger);
    let (calls, own) = (opened.end(), format!("/proc/{}/", daemon.child.id()));
    daemon.end();
    let paths = || calls.iter().map(|call| opened::result(call));
    let reads = paths().filter(|path| path.ends_with("/victim")).count();
    println!("{reads} reads ahead for the victim");
    assert!(reads > 0, "the trace is blind");
    let told = paths().filter(|path| path.contains("/fdinfo/") && !path.starts_with(&own)).count();
    assert_eq!(told, 0, "descriptors that the kernel was asked about");
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

/// Reads eight files in each of some directories with very many, over and over.
const LARGE_DIRECTORIES: &str = "
import os, sys
folders = [os.path.join(sys.argv[1], name) for name in os.listdir(sys.argv[1])]
folders = [os.open(folder, os.O_RDONLY) for folder in folders]
drop_rights()
for round in range(1 << 30):
    for folder in folders:
        for name in range(8):
            f = os.open(str(name), os.O_RDONLY, dir_fd=folder)
            os.posix_fadvise(f, 0, 0, os.POSIX_FADV_DONTNEED)
            os.read(f, 4096)
            os.close(f)
    if round == 100:
        print('ready', flush=True)
";

/// Names of one file: anybody can have that many at once, on ext4 up to 65,000.
const LINKS: u64 = 52_000;

#[test]
fn a_user_who_reads_in_very_large_directories_leaves_room_for_those_of_others() {
    let Some(bench) = Bench::new("ext4") else { return };
    bench.lab.set_fast(true).expect("fast");
    let (large, own) = (bench.path("large"), bench.path("own"));
    for number in 0..6 {
        let folder = large.join(number.to_string());
        fs::create_dir_all(&folder).expect("room on the lab");
        let path = |file: u64| folder.join(file.to_string());
        (0..8).for_each(|file| fs::write(path(file), [7; 600]).expect("room on the lab"));
        let link = |file| fs::hard_link(path(0), path(file));
        (8..LINKS).for_each(|file| link(file).expect("room on the lab"));
    }
    fs::create_dir(&own).expect("room on the lab");
    let files: Vec<_> = (0..400).map(|number| own.join(number.to_string())).collect();
    files.iter().for_each(|file| fs::write(file, [7; 600]).expect("room on the lab"));
    bench.lab.evict().expect("evicted");
    let daemon = bench.daemon();
    let _stranger = ready(begin_by_nobody(LARGE_DIRECTORIES, &[&large]));
    bench.lab.set_fast(false).expect("slow");
    // On a busy machine, bowwave has listed the large directories late.
    let attempts = (0..3).map(|_| {
        let before = own_bytes();
        for path in &files {
            let file = File::open(path).expect("it was written");
            rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).expect("advised");
        }
        files.iter().for_each(|file| assert_eq!(fs::read(file).expect("read").len(), 600));
        (own_bytes() - before) / 4096
    });
    let attempts: Vec<u64> = attempts.collect();
    let read = attempts.iter().copied().min().expect("three");
    let summary = daemon.end();
    println!(
        "{attempts:?} of 400 files read by the victim itself; {} listings",
        summary["listings"]
    );
    assert!(read < 100, "{attempts:?} of 400 files: {summary}");
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
    // Bowwave meets the victim's file.
    victim.pass();
    let goes_on = Duration::from_secs(goes_on.unwrap_or(0));
    let (mut own, mut times_s) = victim.passes(goes_on);
    for _ in 1..SERIES {
        if ninth_tenth(&own) >= MOST_BY_ITSELF {
            (own, times_s) = victim.passes(goes_on);
        }
    }
    assert!(stranger.try_wait().expect("it is ours").is_none(), "nobody was beside the victim");
    let memory_kb = peak_memory_kb(&daemon);
    let summary = daemon.end();
    let [median, ninth_tenth] = [own[own.len() / 2], ninth_tenth(&own)];
    println!(
        "{} passes, read by the victim itself: {:.0} % of its file in the median, at most {:.0} % in 90 %; \
         {memory_kb} KiB at most; {} events, {} lost",
        own.len(),
        100.0 * median,
        100.0 * ninth_tenth,
        summary["events"],
        summary["lost_events"]
    );
    if let (Some(stock_s), Some(time_s)) = (stock_s, linux::median(times_s)) {
        println!(
            "a pass takes {time_s:.2} s, {stock_s:.2} s without bowwave: {:.2} times as fast",
            stock_s / time_s
        );
    }
    assert!(
        ninth_tenth < MOST_BY_ITSELF,
        "the victim itself has read {own:.2?} of its file: {summary}"
    );
    assert!(memory_kb < MOST_MEMORY_KB, "{memory_kb} KiB: {summary}");
}

/// Fewest passes of the victim's beside bowwave.
const LEAST_PASSES: usize = 9;

/// Most series of passes: where two processors do other work as well, bowwave may come late for one.
const SERIES: usize = 3;

/// The share of its file that the victim reads itself in nine tenths of its passes is less.
const MOST_BY_ITSELF: f64 = 0.5;

/// What nine tenths of some values, in ascending order, do not exceed.
fn ninth_tenth(sorted: &[f64]) -> f64 {
    sorted[(sorted.len() - 1) * 9 / 10]
}

/// Passes of the victim's without bowwave.
const PASSES_BY_ITSELF: usize = 3;

/// What the victim reads in a pass.
const VICTIM_BYTES: u64 = backward::READS << 16;

struct Victim(File);

impl Victim {
    /// Passes for that time: the shares of the file that it has read itself, in ascending order, and the seconds.
    fn passes(&self, time: Duration) -> (Vec<f64>, Vec<f64>) {
        let (mut own, mut times_s) = (Vec::new(), Vec::new());
        let begun = Instant::now();
        while own.len() < LEAST_PASSES || begun.elapsed() < time {
            let (own_bytes, time_s) = self.pass();
            own.push(own_bytes as f64 / VICTIM_BYTES as f64);
            times_s.push(time_s);
        }
        own.sort_by(f64::total_cmp);
        (own, times_s)
    }

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
