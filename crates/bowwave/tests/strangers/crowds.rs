//! Too many small files. A victim beside their reader has most of its file read ahead.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::time::{Duration, Instant};

use crate::own::Own;
use crate::{Bench, MOST_WAITING, backward, begin_by_nobody, read_backward, wait_until};

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
    let (mut least, mut passes) = (u64::MAX, 0);
    let goes_on = std::env::var("BOWWAVE_TORTURE_SECONDS").ok().and_then(|text| text.parse().ok());
    let bytes = backward::READS << 16;
    let (begun, goes_on) = (Instant::now(), Duration::from_secs(goes_on.unwrap_or(0)));
    wait_until("the victim is served", goes_on + MOST_WAITING, || {
        let before = own_bytes();
        read_backward(&victim);
        least = least.min(own_bytes() - before);
        passes += 1;
        least < bytes / 2 && begun.elapsed() >= goes_on
    });
    assert!(stranger.try_wait().expect("it is ours").is_none(), "nobody was beside the victim");
    let memory_kb = daemon.peak_memory_kb();
    let summary = daemon.stop();
    let share = least * 100 / bytes;
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
