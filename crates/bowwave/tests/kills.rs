//! Bowwave killed at any moment, beside programs that go on: a copy of a file is a copy, a database is whole, and the
//! disk's window is as before. BOWWAVE_KILLS is how often (`make torture`), BOWWAVE_SEED where the moments come from.
//!
//! Needs root, FUSE and eBPF; elsewhere a test says why it is skipped, unless BOWWAVE_REQUIRE_LIVE=1 makes that a
//! failure.

mod led;
mod own;
mod stage;

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use lab::LabGuard;
use own::Own;
use rustix::fs::{Advice, fadvise};
use rustix::process::{Pid, Signal, kill_process};
use stage::Alone;

const FILE_BYTES: usize = 16 << 20;
const WINDOW_KB: u64 = 128;

struct Bench {
    lab: LabGuard,
    state: tempfile::TempDir,
    _alone: Alone,
}

impl Bench {
    /// A lab with a cold file; `None` where labs or eBPF do not work.
    fn new() -> Option<Self> {
        led::possible()?;
        let (alone, lab) = stage::lab("kills", "net", 256 << 20, "ext4");
        lab.set_fast(true).expect("fast");
        let bench = Bench { lab, state: stage::state(), _alone: alone };
        let bytes: Vec<u8> = (0..FILE_BYTES as u64 / 8).flat_map(u64::to_le_bytes).collect();
        fs::write(bench.path("file"), bytes).expect("room on the lab");
        bench.lab.evict().expect("evicted");
        bench.lab.set_read_ahead_kb(WINDOW_KB).expect("set");
        bench.lab.set_fast(false).expect("slow");
        Some(bench)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.lab.mount_point().join(name)
    }

    /// Bowwave, which gives windows to open files and drops pages.
    fn daemon(&self, state: &Path) -> Own {
        let options = ["--charge", "reader", "--drop-behind", "always"];
        led::begin(&mut led::daemon(&self.lab, state, &options)).0
    }

    fn window_kb(&self) -> u64 {
        self.lab.read_ahead_kb().expect("a window")
    }
}

fn stop(mut daemon: Own) {
    kill_process(Pid::from_child(&daemon), Signal::TERM).expect("it runs");
    assert!(daemon.wait().expect("it ends").success());
}

/// A number from the environment.
fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// Copies the file, which is cold, until it is over; tells how often.
fn copy(bench: &Bench, is_over: &AtomicBool) -> u32 {
    let (from, to) = (bench.path("file"), bench.path("copy"));
    let original = fs::read(&from).expect("read");
    let mut copies = 0;
    while !is_over.load(Ordering::Relaxed) {
        let file = File::open(&from).expect("it is there");
        fadvise(&file, 0, None, Advice::DontNeed).expect("advised");
        let cp = Command::new("cp").arg(&from).arg(&to).status().expect("it runs");
        assert!(cp.success(), "{cp}");
        assert!(fs::read(&to).expect("read") == original, "copy {copies} has other bytes");
        copies += 1;
    }
    copies
}

/// A database that SQLite writes and reads until it is over; tells how many rows it has in the end.
fn fill_database(bench: &Bench, is_over: &AtomicBool) -> u64 {
    let path = bench.path("database");
    let mut sqlite = Command::new("sqlite3");
    sqlite.arg("-bail").arg(&path).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut sqlite = Own::start(&mut sqlite);
    let mut words = sqlite.stdin.take().expect("piped");
    // No cache of its own, so that it reads what it has written.
    let first = "PRAGMA cache_size=10; CREATE TABLE t(key INTEGER PRIMARY KEY, value BLOB);\n";
    words.write_all(first.as_bytes()).expect("it listens");
    let mut rows = 0;
    while !is_over.load(Ordering::Relaxed) {
        let row = "INSERT INTO t(value) VALUES(randomblob(3000));\n";
        let all = format!("BEGIN;\n{}COMMIT; SELECT sum(length(value)) FROM t;\n", row.repeat(50));
        words.write_all(all.as_bytes()).expect("it listens");
        rows += 50;
    }
    drop(words);
    assert!(sqlite.wait().expect("it ends").success());
    let mut check = Command::new("sqlite3");
    let check = check.arg(&path).arg("PRAGMA integrity_check; SELECT count(*) FROM t;");
    let said = check.output().expect("it runs");
    assert_eq!(String::from_utf8_lossy(&said.stdout), format!("ok\n{rows}\n"));
    rows
}

#[test]
fn programs_go_on_and_nothing_is_left_however_often_bowwave_is_killed() {
    let Some(bench) = Bench::new() else { return };
    if Command::new("sqlite3").arg("-version").stdout(Stdio::null()).status().is_err() {
        return stage::skipped("no sqlite3").unwrap_or_default();
    }
    let (kills, seed) = (number("BOWWAVE_KILLS", 5), number("BOWWAVE_SEED", 1));
    let (is_over, mut random) = (AtomicBool::new(false), seed);
    let (copies, rows) = thread::scope(|scope| {
        let copying = scope.spawn(|| copy(&bench, &is_over));
        let filling = scope.spawn(|| fill_database(&bench, &is_over));
        for _ in 0..kills {
            let mut daemon = bench.daemon(bench.state.path());
            // A linear congruential generator (Knuth's MMIX).
            random = random.wrapping_mul(6_364_136_223_846_793_005);
            random = random.wrapping_add(1_442_695_040_888_963_407);
            thread::sleep(Duration::from_micros((random >> 33) % 500_000));
            daemon.kill().expect("it runs");
            daemon.wait().expect("it ends");
            assert!(!copying.is_finished() && !filling.is_finished(), "a program has failed");
        }
        is_over.store(true, Ordering::Relaxed);
        (copying.join().expect("no panic"), filling.join().expect("no panic"))
    });
    stop(bench.daemon(bench.state.path()));
    println!("seed {seed}: {kills} kills, {copies} copies, {rows} rows");
    assert_eq!(bench.window_kb(), WINDOW_KB);
    assert_eq!(fs::read_dir(linux::knob::JOURNALS).map_or(0, Iterator::count), 0);
    let left = fs::read_dir(bench.state.path()).expect("it is there").flatten();
    let is_ledger = |e: &fs::DirEntry| e.file_name().to_string_lossy().starts_with("given-windows");
    assert_eq!(left.filter(is_ledger).count(), 0);
    assert!(copies > 0 && rows > 0);
}

/// Between a check of the number and its writing are microseconds in which a write of somebody else is lost.
const TRIES: u32 = 3;

#[test]
fn the_window_that_an_administrator_sets_beside_two_bowwaves_stands() {
    let Some(bench) = Bench::new() else { return };
    let other_state = stage::state();
    let stands = (0..TRIES).any(|_| {
        let daemons = [bench.daemon(bench.state.path()), bench.daemon(other_state.path())];
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            // Each open file is given a window, and so the device's is another one for a moment, again and again.
            scope.spawn(|| {
                let mut part = vec![0; 64 << 10];
                while !is_over.load(Ordering::Relaxed) {
                    let file = File::open(bench.path("file")).expect("it is there");
                    fadvise(&file, 0, None, Advice::DontNeed).expect("advised");
                    for offset in (0..FILE_BYTES).step_by(part.len()) {
                        file.read_exact_at(&mut part, offset as u64).expect("read");
                    }
                }
            });
            for kb in [256, 64, 1024, 192] {
                thread::sleep(Duration::from_millis(500));
                bench.lab.set_read_ahead_kb(kb).expect("set");
            }
            thread::sleep(Duration::from_millis(500));
            is_over.store(true, Ordering::Relaxed);
        });
        daemons.into_iter().for_each(stop);
        bench.window_kb() == 192
    });
    assert!(stands, "{} KiB", bench.window_kb());
}
