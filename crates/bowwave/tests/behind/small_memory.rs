//! A memory cgroup stands in for a small machine.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::bench::{MB, bench, bench_with, comes_true, evict, resident, summary_of, text};
use crate::cgroup::Cgroup;
use crate::own::Own;
use crate::removals::Watched;

/// Reads the file within the cgroup, thrice: its pages are active then, and charged there.
fn work_with(cgroup: &Cgroup, file: &Path) {
    for _ in 0..3 {
        let mut cat = Command::new("cat");
        let status = cgroup.hold(cat.arg(file)).status().expect("it runs");
        assert!(status.success());
    }
}

const WORKING_SET_BYTES: u64 = 32 * MB;

/// A program that reads a large file here and there may come again, whatever the file's size.
#[test]
fn what_is_read_at_random_stays_unless_everything_shall_go() {
    let Some(bench) = bench() else { return };
    let Some(cgroup) = Cgroup::with_memory(Some(128 * MB)) else { return };
    let file = bench.cold("large", 64 * MB);
    let Some(mut watched) = Watched::new(&file) else { return };
    // 200 blocks of 64 KiB.
    let script = "open F, $ARGV[0]; for (0..199) { sysseek F, 65536 * ($_ * 7919 % 1024), 0; \
                  sysread F, $b, 65536 }";
    let command = ["perl", "-e", script, text(&file)];
    let done = summary_of(cgroup.hold(&bench.run(&["--drop-behind=auto"], &command)));
    let kept = watched.kept();
    assert!(kept >= 200 * 65536, "{kept} bytes, {done}: {}", watched.story());
}

/// Copies, and then reads the first page when it is told to, behind which the kernel reads on.
const COPY_AND_STAY: &str = "import os,sys
a,b=os.open(sys.argv[1],0),os.open(sys.argv[2],os.O_WRONLY|os.O_CREAT)
n,at=os.fstat(a).st_size,0
while at<n: at+=os.sendfile(b,a,at,n-at)
print('copied',flush=True)
sys.stdin.readline()
os.pread(a,4096,0)
print('read',flush=True)";

/// Whether bowwave owes an open file of it something.
fn is_listed(state: &Path, file: &Path) -> bool {
    let ino = fs::metadata(file).expect("it is there").ino();
    let ledgers = fs::read_dir(state).expect("a folder").flatten();
    let texts = ledgers.filter_map(|entry| fs::read_to_string(entry.path()).ok());
    texts.into_iter().any(|text| text.contains(&format!("\"ino\":{ino},")))
}

#[test]
fn a_copy_on_one_disk_is_read_without_look_ahead_until_it_has_ended_and_nobody_elses_pages_go() {
    let Some(bench) = bench_with("hdd", "ext4") else { return };
    // The disk may be 32 MB behind; so much and more has to find room beside the working set.
    let Some(cgroup) = Cgroup::with_memory(Some(256 * MB)) else { return };
    let (large, copy) = (bench.cold("large", 300 * MB), bench.lab.mount_point().join("copy"));
    let working_set = bench.cold("working-set", WORKING_SET_BYTES);
    let Some(mut watched) = Watched::new(&working_set) else { return };
    work_with(&cgroup, &working_set);
    // Where a whole machine has much to write, the kernel itself slows writers down.
    rustix::fs::sync();
    // With the kernel's 128 KiB, a disk reads no faster than it can write meanwhile.
    bench.lab.set_read_ahead_kb(4096).expect("a window");
    bench.lab.set_fast(false).expect("slow");
    let written_before = bench.lab.status().expect("counters").bytes_written;
    let bytes_behind = || {
        let written = bench.lab.status().expect("counters").bytes_written - written_before;
        fs::metadata(&copy).map_or(0, |copied| copied.len().saturating_sub(written))
    };
    let python = ["python3", "-c", COPY_AND_STAY, text(&large), text(&copy)];
    let mut run = cgroup.hold(&bench.run(&["--drop-behind"], &python));
    let mut copier = Own::start(run.stdin(Stdio::piped()).stdout(Stdio::piped()));
    let mut said = BufReader::new(copier.stdout.take().expect("piped")).lines();
    let (copied, is_copied) = mpsc::channel();
    let listener = thread::spawn(move || {
        copied.send(said.next()).expect("this test waits");
        said.next()
    });
    let (mut was_held, mut most_behind) = (false, 0);
    while is_copied.recv_timeout(Duration::from_millis(20)).is_err() {
        was_held |= is_listed(bench.state.path(), &large);
        most_behind = most_behind.max(bytes_behind());
    }
    assert!(
        was_held,
        "the disk was {most_behind} bytes behind, but its look-ahead went on; the copier {}",
        copier.try_wait().map_or_else(|e| e.to_string(), |ended| format!("ended: {ended:?}"))
    );
    bench.lab.set_fast(true).expect("fast");
    let is_free = comes_true(|| !is_listed(bench.state.path(), &large));
    assert!(is_free, "it has not been given its window back");
    evict(&large);
    copier.stdin.take().expect("piped").write_all(b"\n").expect("it waits");
    assert!(listener.join().expect("it listens").is_some_and(|line| line.is_ok()), "it has read");
    assert!(resident(&large) > 4096, "the kernel looks ahead again");
    assert!(copier.wait().expect("it ended").success());
    let left = watched.kept() as f64 / WORKING_SET_BYTES as f64;
    assert!(left >= 0.99, "{left} of the working set: {}", watched.story());
    assert!(fs::read(&copy).expect("read") == fs::read(&large).expect("read"));
}

#[test]
fn what_is_read_ahead_is_charged_to_the_cgroup_of_run_and_to_that_of_the_daemon() {
    let Some(bench) = bench() else { return };
    let Some(cgroup) = Cgroup::with_memory(Some(256 * MB)) else { return };
    let file = bench.cold("file", 48 * MB);
    let Some(mut watched) = Watched::new(&file) else { return };
    let read = ["tac", text(&file)];
    summary_of(cgroup.hold(&bench.run(&["--drop-behind=never"], &read)));
    let charged = cgroup.charged() + watched.reclaimed();
    assert!(charged >= 47 * MB, "{charged} bytes");

    evict(&file);
    let before = cgroup.charged();
    // On a device that answers at once, who reads more depends on who gets the processor.
    bench.lab.set_fast(false).expect("slow");
    let daemon = bench.daemon(&[]);
    let mut reader = Command::new("tac");
    let status = cgroup.hold(reader.arg(&file)).status().expect("it runs");
    drop(daemon);
    assert!(status.success());
    let kept = watched.kept();
    assert!(kept >= 47 * MB, "{kept} bytes: {}", watched.story());
    let of_reader = cgroup.charged().saturating_sub(before);
    assert!(of_reader <= 24 * MB, "{of_reader} of 48 MB are charged to the reader");
}
