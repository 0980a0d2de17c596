//! Readers with an I/O priority of their own (`ionice`). Bowwave reads ahead with a reader's priority. For a reader in
//! the idle class it reads nothing ahead: a disk's scheduler gives such a reader short turns, and a turn in which much
//! is read ahead is long.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fs::{Advice, fadvise};

use crate::Bench;
use crate::crowds::ready;
use crate::own::Own;
use crate::stage::skipped;
use crate::traced::Traced;

/// Begin a reader that a scheduler serves when nobody else reads. A reader without a class of its own has the one that
/// goes with its place on the processor.
const IDLE: [&[&str]; 3] =
    [&["ionice", "-c", "3"], &["chrt", "--idle", "0"], &["chrt", "--reset-on-fork", "--idle", "0"]];
const LEAST_URGENT: &[&str] = &["ionice", "-c", "2", "-n", "7"];
const NICEST: &[&str] = &["nice", "-n", "19"];

/// That command, begun by another one.
fn begun_by(starter: &[&str], program: &str) -> Command {
    let mut command = Command::new(starter[0]);
    command.args(&starter[1..]).arg(program).stdout(Stdio::null());
    command
}

#[test]
fn nothing_is_read_ahead_for_who_reads_only_what_others_leave() {
    let Some(bench) = Bench::new("ext4") else { return };
    let bait = bench.baits(1, 8 << 20).remove(0);
    let reads_of = |starter: &[&str]| {
        bench.lab.evict().expect("evicted");
        let daemon = bench.daemon();
        bench.lab.set_fast(false).expect("slow");
        // What is read backward the kernel does not read ahead.
        let mut tac = begun_by(starter, "tac");
        assert!(Own::start(tac.arg(&bait)).wait().expect("it ends").success());
        let summary = daemon.end();
        let number = |value: &serde_json::Value| value.as_u64().expect("a number");
        (number(&summary["reads"]), number(&summary["not_read"]["limited_reader"]))
    };
    let (reads, left) = reads_of(LEAST_URGENT);
    assert!(reads > 0 && left == 0, "it is read for others: {reads}, {left}");
    for starter in IDLE {
        let (reads, left) = reads_of(starter);
        assert!(reads == 0 && left > 0, "{starter:?}: {reads}, {left}");
    }
}

#[test]
fn what_is_read_ahead_has_the_priority_of_its_reader() {
    let Some(bench) = Bench::new("ext4") else { return };
    let bait = bench.baits(1, 8 << 20);
    let tree = bench.hidden_baits(400, 4096);
    let Some(traced) = Traced::of(bench.lab.block_device()) else { return };
    let tac_and_cat = [("tac", &bait, "reads"), ("cat", &tree, "walk_files")];
    for (starter, (program, paths, figure)) in
        [LEAST_URGENT, NICEST].into_iter().flat_map(|it| tac_and_cat.map(|of| (it, of)))
    {
        bench.lab.evict().expect("evicted");
        let daemon = bench.daemon();
        bench.lab.set_fast(false).expect("slow");
        let mut reader = begun_by(starter, program);
        let bytes = traced.during(|| {
            assert!(Own::start(reader.args(paths)).wait().expect("it ends").success());
        });
        let summary = daemon.end();
        println!("{program}: {bytes:?}");
        assert!(summary[figure].as_u64() > Some(0), "{program}: nothing was read ahead: {summary}");
        let others: u64 = bytes.iter().filter(|(it, _)| *it != "be,7").map(|(_, more)| more).sum();
        assert!(others < bytes["be,7"] / 20, "{program}: {bytes:?}");
    }
}

/// Reads backward without end, cold.
const BACKWARD: &str = "
import os, sys
f = os.open(sys.argv[1], os.O_RDONLY)
parts = os.fstat(f).st_size >> 16
os.pread(f, 1 << 16, 0)
print('ready', flush=True)
while True:
    os.posix_fadvise(f, 0, 0, os.POSIX_FADV_DONTNEED)
    for part in reversed(range(parts)):
        os.pread(f, 1 << 16, part << 16)
";

/// What each of the two has to read. The busy one reads it once in a round.
const FILE_BYTES: usize = 96 << 20;

/// Rounds without bowwave, and with it. In the first ones bowwave learns how the files are read.
const STOCK_ROUNDS: usize = 3;
const ROUNDS: usize = 6;

/// The part of the disk that the busy reader may lose to the idle one because of bowwave.
const MOST_LOST: f64 = 0.05;

/// A disk that a reader keeps busy, beside one in the idle class.
struct Contest {
    traced: Traced,
    bench: Bench,
    busy: PathBuf,
    idle: PathBuf,
}

impl Contest {
    /// `None` where there is no scheduler that knows the idle class.
    fn new() -> Option<Self> {
        let bench = Bench::new("ext4")?;
        let device = bench.lab.block_device();
        let name = device.file_name().expect("a name");
        let scheduler = Path::new("/sys/block").join(name).join("queue/scheduler");
        if let Err(error) = fs::write(scheduler, "bfq") {
            return skipped(&format!("no bfq: {error}"));
        }
        let traced = Traced::of(device)?;
        let [busy, idle] = ["busy", "idle"].map(|name| bench.path(name));
        bench.written(vec![busy.clone(), idle.clone()], FILE_BYTES);
        Some(Contest { traced, bench, busy, idle })
    }

    /// What the disk reads for the idle reader, and for both, until the busy one has read its file: in bytes.
    fn round(&self) -> (u64, u64) {
        self.bench.lab.set_fast(false).expect("slow");
        let mut idle = begun_by(IDLE[0], "python3");
        idle.args(["-c", BACKWARD]).arg(&self.idle).stdout(Stdio::piped());
        let _idle = ready(Own::start(&mut idle));
        let mut busy = File::open(&self.busy).expect("it was written");
        fadvise(&busy, 0, None, Advice::DontNeed).expect("advised");
        let bytes = self.traced.during(|| {
            let mut part = vec![0; 1 << 20];
            while busy.read(&mut part).expect("read") > 0 {}
        });
        let of_idle = bytes.iter().filter(|(priority, _)| priority.starts_with("idle,"));
        let of_idle: u64 = of_idle.map(|(_, bytes)| bytes).sum();
        (of_idle, bytes.values().sum())
    }
}

#[test]
fn who_reads_only_what_others_leave_takes_nothing_from_them() {
    let Some(contest) = Contest::new() else { return };
    let mut of_idle = 0;
    let mut rounds = |count| {
        let mut part = || {
            let (idle, all) = contest.round();
            of_idle += idle;
            idle as f64 / all as f64
        };
        (0..count).map(|_| part()).collect::<Vec<f64>>()
    };
    let stock = rounds(STOCK_ROUNDS);
    let daemon = contest.bench.daemon();
    let managed = rounds(ROUNDS);
    let summary = daemon.end();
    println!("the idle reader's part: without bowwave {stock:.4?}, with it {managed:.4?}");
    assert!(summary["reads"].as_u64() > Some(0), "nothing was read ahead: {summary}");
    assert!(of_idle > 0, "the idle reader read nothing at all");
    let [stock, managed] = [stock, managed].map(|it| linux::median(it).expect("rounds"));
    assert!(managed <= stock + MOST_LOST, "{managed:.3} instead of {stock:.3}");
}
