//! Programs of another user that mean harm, on the running kernel: what they do costs nobody else anything.
//!
//! They run as `nobody`, beside a victim whose reads bowwave manages on a lab disk. What is asserted is counted,
//! never timed. Skipped where labs or eBPF do not work, unless BOWWAVE_REQUIRE_LIVE=1 makes that a failure.

mod led;
mod machine;
mod own;
mod stage;

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use machine::Bench;
use own::Own;

const NOBODY: u32 = 65534;

/// A program of `nobody`'s.
fn by_nobody(program: &str, arguments: &[&Path]) -> Own {
    let mut command = Command::new("python3");
    command.args(["-c", program]).args(arguments).uid(NOBODY).gid(NOBODY);
    Own::start(&mut command)
}

/// Files of `nobody`'s, cold.
fn baits(bench: &Bench, count: u64, bytes: usize) -> Vec<PathBuf> {
    let paths: Vec<PathBuf> = (0..count).map(|n| bench.path(&format!("bait{n}"))).collect();
    for path in &paths {
        fs::write(path, vec![5; bytes]).expect("room on the lab");
        chown(path, Some(NOBODY), Some(NOBODY)).expect("root gives files away");
    }
    bench.lab.evict().expect("evicted");
    paths
}

/// Reads 64 KiB of each file, so that the kernel reads ahead as much again; has that evicted, and comes to it.
const THRASH: &str = "
import mmap, os, sys, time
MADV_PAGEOUT = 21
for path in sys.argv[1:]:
    f = os.open(path, os.O_RDONLY)
    m = mmap.mmap(os.open(path, os.O_RDONLY), 128 << 10, prot=mmap.PROT_READ)
    os.pread(f, 64 << 10, 0)
    for page in range(16, 32):
        m[page * 4096]
    m.madvise(MADV_PAGEOUT, 64 << 10, 64 << 10)
    time.sleep(0.02)
    os.pread(f, 4096, 64 << 10)
";

/// Inodes whose open files have a window that is not their own.
fn given_windows(state: &Path) -> Vec<u64> {
    let ledgers = fs::read_dir(state).expect("it is there").flatten();
    let ledgers = ledgers.filter(|e| e.file_name().to_string_lossy().starts_with("given-windows"));
    let text: String =
        ledgers.filter_map(|ledger| fs::read_to_string(ledger.path()).ok()).collect();
    let given = |line: &str| serde_json::from_str::<serde_json::Value>(line).ok()?["ino"].as_u64();
    text.lines().filter_map(given).collect()
}

/// Requests that a backward reader of 20 MB in 64 KiB reads makes by itself.
const BACKWARD_READS: u64 = 320;

#[test]
fn a_user_who_thrashes_on_purpose_bounds_nobody_elses_windows_and_reads() {
    let Some(bench) = Bench::new("net") else { return };
    let victim = bench.path("victim");
    fs::write(&victim, vec![3; 64 << 20]).expect("room on the lab");
    let paths = baits(&bench, 60, 1 << 20);
    bench.lab.set_fast(false).expect("slow");
    let daemon = bench.daemon(&[], None);
    bench.lab.set_fast(true).expect("fast");
    let victim = File::open(victim).expect("it was written");
    let mut part = vec![0; 64 << 10];
    // It is read in a row before, and after.
    victim.read_exact_at(&mut part[..4096], 0).expect("read");
    let arguments: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
    let ended = by_nobody(THRASH, &arguments).wait().expect("it ends");
    assert!(ended.success(), "{ended}");
    let before = bench.lab.status().expect("counters");
    for number in (0..BACKWARD_READS).rev() {
        victim.read_exact_at(&mut part, (40 << 20) + (number << 16)).expect("read");
    }
    let requests = bench.lab.status().expect("counters").since(&before).reads;
    let ino = victim.metadata().expect("metadata").ino();
    assert!(!given_windows(bench.state.path()).contains(&ino), "its window was bounded");
    let summary = daemon.stop();
    assert!(summary["bounded_windows"].as_u64() > Some(0), "nobody thrashed: {summary}");
    assert!(requests < BACKWARD_READS / 2, "{requests} requests: {summary}");
}
