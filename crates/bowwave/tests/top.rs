//! `bowwave top` counts what programs do, whichever way they read. The numbers are primes, so that none of them comes
//! about by chance. Needs root, FUSE and eBPF; elsewhere a test says why it is skipped, unless BOWWAVE_REQUIRE_LIVE=1
//! makes that a failure.

mod managed;
mod own;
mod stage;
mod ways;

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write, pipe};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::process::{ChildStdout, Command, Stdio};

use managed::Bench;
use own::Own;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{CpuSet, sched_getcpu, sched_setaffinity};
use serde_json::Value;
use stage::BOWWAVE;
use ways::{FILE_BYTES, file, installed, run};

/// Loading eBPF takes half a second, on a busy machine some.
const MOST_WAITING: Timespec = Timespec { tv_sec: 120, tv_nsec: 0 };

/// `bowwave top --json`, which counts from now on.
struct Top {
    child: Own,
    output: BufReader<ChildStdout>,
}

impl Top {
    fn begin(state: &Path) -> Top {
        let mut command = Command::new(BOWWAVE);
        command.args(["top", "--json", "--exact", "--interval", "3600", "--state"]).arg(state);
        let mut child = Own::start(command.stdout(Stdio::piped()));
        let output = BufReader::new(child.stdout.take().expect("piped"));
        let mut top = Top { child, output };
        assert_eq!(top.object()["ready"], true);
        top
    }

    /// The next object that it prints.
    fn object(&mut self) -> Value {
        let ready = PollFd::new(self.output.get_ref(), PollFlags::IN);
        assert_eq!(poll(&mut [ready], Some(&MOST_WAITING)), Ok(1), "it says nothing");
        let mut line = String::new();
        self.output.read_line(&mut line).expect("a line");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    /// Ends it, gives what it counted.
    fn end(mut self) -> Value {
        // A shell starts background jobs with SIGINT ignored, and bowwave keeps that.
        kill_process(Pid::from_child(&self.child), Signal::TERM).expect("it is not reaped");
        let counted = self.object();
        assert!(self.child.wait().expect("it ends").success());
        assert_eq!(counted["schema_version"], 1);
        assert_eq!(counted["seen_share"], 1.0);
        counted
    }
}

/// The row of that file.
fn row_of<'a>(counted: &'a Value, path: &Path) -> &'a Value {
    let inode = fs::metadata(path).expect("it is there").ino();
    let rows = counted["files"].as_array().expect("rows");
    let is_it = |row: &&Value| {
        row["inode"] == inode && row["path"].as_str().is_some_and(|name| Path::new(name) == path)
    };
    rows.iter().find(is_it).unwrap_or_else(|| panic!("{} is not in {counted:#}", path.display()))
}

#[test]
fn every_way_of_reading_is_counted_to_the_last_read_cold_and_cached() {
    let Some(bench) = Bench::of("top", 256 << 20) else { return };
    let paths = ways::ALL.map(|(_, name, ..)| file(&bench, name));
    let count = |temperature: &str| {
        let top = Top::begin(bench.state.path());
        ways::ALL.iter().zip(&paths).for_each(|((way, ..), path)| way(path));
        let counted = top.end();
        for ((_, name, reads, faults, pages), path) in ways::ALL.iter().zip(&paths) {
            let row = row_of(&counted, path);
            let told = ["reads", "faults", "pages"].map(|figure| row[figure].as_u64());
            assert_eq!(told, [Some(*reads), Some(*faults), Some(*pages)], "{temperature} {name}");
        }
        counted
    };
    bench.lab.evict().expect("evicted");
    let cold = count("cold");
    // Advised to be random, so the kernel reads nothing ahead.
    for (name, count) in [("pread", 23), ("mmap", 101)] {
        let row = row_of(&cold, &bench.lab.mount_point().join(name));
        let told = ["missing_pages", "kernel_pages"].map(|figure| row[figure].as_u64());
        assert_eq!(told, [Some(count); 2], "{name}: {row}");
        // Not each time: a page may come before a delayed thread begins to wait for it.
        assert!(row["stalls"].as_u64() >= Some(1), "{row}");
        assert!(row["stalled_s"].as_f64() > Some(0.0), "{row}");
        let bins = row["latencies"].as_array().expect("bins");
        let sum: u64 = bins.iter().filter_map(|bin| bin["stalls"].as_u64()).sum();
        assert_eq!(Some(sum), row["stalls"].as_u64());
    }
    let missed = |counted: &Value| -> Vec<Value> {
        let rows = paths.iter().map(|path| row_of(counted, path));
        let is_missed = |row: &&Value| {
            ["missing_pages", "kernel_pages", "stalls"].iter().any(|figure| row[figure] != 0)
                || row["hit_share"] != 1.0
        };
        rows.filter(is_missed).cloned().collect()
    };
    // The machine may have reclaimed a page meanwhile.
    let attempts: Vec<_> = (0..3).map(|_| missed(&count("cached"))).collect();
    assert!(attempts.contains(&Vec::new()), "{attempts:?}");
}

#[test]
fn reads_of_io_uring_are_counted_to_the_last_one() {
    let Some(bench) = Bench::of("top-uring", 128 << 20) else { return };
    let Some(path) = ways::file_for_io_uring(&bench) else { return };
    for temperature in ["cold", "cached"] {
        let top = Top::begin(bench.state.path());
        let (has_succeeded, error) = ways::read_by_io_uring(&path, &bench);
        assert!(has_succeeded, "{error}");
        let counted = top.end();
        let row = row_of(&counted, &path);
        let told = ["reads", "pages"].map(|figure| row[figure].as_u64());
        assert_eq!(told, [Some(17); 2], "{temperature}: {row}");
    }
}

/// Keeps this thread on its processor: each processor compares only the accesses that it has seen itself.
fn stay_on_this_processor() {
    let mut one = CpuSet::new();
    one.set(sched_getcpu());
    sched_setaffinity(None, &one).expect("its own thread");
}

#[test]
fn the_order_in_which_a_stream_reads_is_told() {
    let Some(bench) = Bench::of("top-orders", 256 << 20) else { return };
    const PART: u64 = 65536;
    // Places in parts; then how many steps lie forward, backward, as far apart as the one before, and anywhere else.
    let orders: [(&str, Vec<u64>, [u64; 4]); 4] = [
        ("forward", (0..23).collect(), [22, 0, 0, 0]),
        ("backward", (0..19).rev().collect(), [0, 18, 0, 0]),
        ("strided", (0..17).map(|n| n * 3).collect(), [0, 0, 15, 1]),
        ("random", (2..=11).map(|n| n * n).collect(), [0, 0, 0, 9]),
    ];
    let paths = orders.each_ref().map(|(name, ..)| file(&bench, name));
    bench.lab.evict().expect("evicted");
    let top = Top::begin(bench.state.path());
    stay_on_this_processor();
    for ((_, places, _), path) in orders.iter().zip(&paths) {
        let file = File::open(path).expect("opened");
        let mut part = [0; PART as usize];
        places.iter().for_each(|n| file.read_exact_at(&mut part, n * PART).expect("read"));
    }
    let counted = top.end();
    for ((pattern, places, steps), path) in orders.iter().zip(&paths) {
        let inode = fs::metadata(path).expect("it is there").ino();
        let streams = counted["streams"].as_array().expect("rows");
        let is_it = |row: &&Value| row["inode"] == inode && row["pid"] == std::process::id();
        let row = streams.iter().find(is_it).unwrap_or_else(|| panic!("{pattern}: {counted:#}"));
        assert_eq!(row["path"].as_str().map(Path::new), Some(path.as_path()));
        assert_eq!(row["reads"], places.len());
        let told =
            ["forward", "backward", "strided", "random"].map(|way| row["steps"][way].as_u64());
        assert_eq!(told, steps.map(Some), "{row}");
        assert_eq!(row["pattern"], *pattern);
    }
}

/// A folder that is mounted at another place, too.
struct Bound(tempfile::TempDir);

impl Bound {
    fn to(folder: &Path) -> Self {
        let place = tempfile::tempdir().expect("a folder");
        run(Command::new("mount").arg("--bind").arg(folder).arg(place.path()));
        Bound(place)
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        // If it fails, the lab says that it is still in use.
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

#[test]
fn a_file_has_its_path_below_what_is_mounted_now() {
    let Some(bench) = Bench::of("top-mounts", 128 << 20) else { return };
    let folder = bench.lab.mount_point().join("ann");
    fs::create_dir(&folder).expect("room on the lab");
    stage::write_lines(&folder.join("notes"), 1 << 20);
    let top = Top::begin(bench.state.path());
    let bound = Bound::to(&folder);
    run(Command::new("umount").arg(bench.lab.mount_point()));
    let path = bound.0.path().join("notes");
    fs::read(&path).expect("it is there");
    let counted = top.end();
    assert!(row_of(&counted, &path)["pages"].as_u64() >= Some(256));
}

#[test]
fn a_process_that_ended_long_ago_has_its_name_and_its_reads() {
    let Some(bench) = Bench::of("top-ended", 128 << 20) else { return };
    let path = file(&bench, "ended");
    let top = Top::begin(bench.state.path());
    let mut dd = Command::new("dd");
    dd.args(["of=/dev/null", "bs=4096", "count=13"]).arg(format!("if={}", path.display()));
    let mut dd = Own::start(dd.stderr(Stdio::null()));
    let pid = dd.id();
    assert!(dd.wait().expect("it ends").success());
    let counted = top.end();
    let processes = counted["processes"].as_array().expect("rows");
    let row = processes.iter().find(|row| row["pid"] == pid).expect("it is there");
    assert_eq!(row["name"], "dd");
    // It has read its program and libraries, too.
    assert!(row["reads"].as_u64() >= Some(13), "{row}");
    assert_eq!(row_of(&counted, &path)["reads"], 13);
    let volume = &row_of(&counted, &path)["volume"];
    let devices = counted["devices"].as_array().expect("rows");
    let device = devices.iter().find(|row| row["volume"] == *volume).expect("it is there");
    assert_eq!(device["reads"], 13);
    let place = bench.lab.mount_point();
    assert!(
        device["name"].as_str().is_some_and(|name| name.ends_with(place.to_str().expect("text")))
    );
}

#[test]
fn what_a_running_bowwave_brings_is_told_apart() {
    let Some(bench) = Bench::of("top-beside", 128 << 20) else { return };
    let path = file(&bench, "backward");
    bench.lab.evict().expect("evicted");
    let daemon = managed::Daemon::begin(&mut managed::daemon(&bench.lab, bench.state.path(), &[]));
    let top = Top::begin(bench.state.path());
    let file = File::open(&path).expect("opened");
    let mut part = [0; 65536];
    (0..FILE_BYTES / 65536).rev().for_each(|n| {
        file.read_exact_at(&mut part, n * 65536).expect("read");
    });
    let counted = top.end();
    let row = row_of(&counted, &path);
    assert_eq!(row["managed"], "managed");
    let pages = |figure: &str| row[figure].as_u64().expect("a number");
    assert_eq!((pages("reads"), pages("pages")), (128, 2048));
    // How many each of them brings is a race.
    assert!(pages("bowwave_pages") > 0, "{row}");
    assert_eq!(pages("bowwave_pages") + pages("kernel_pages"), 2048, "each once");
    let processes = counted["processes"].as_array().expect("rows");
    let reader = processes.iter().find(|row| row["pid"] == std::process::id()).expect("it reads");
    // Other tests of this process may read as well.
    assert!(reader["bowwave_pages"].as_u64() >= row["bowwave_pages"].as_u64(), "{reader} {row}");
    daemon.end();
}

#[test]
fn keys_are_obeyed_in_a_terminal_which_is_left_as_it_was() {
    if managed::possible().and_then(|()| installed("script")).is_none() {
        return;
    }
    let state = stage::state();
    let line = format!("stty -g && {BOWWAVE} top --state {} && stty -g", state.path().display());
    let mut script = Command::new("script");
    script.args(["--quiet", "--return", "--command", &line, "/dev/null"]);
    let mut script = Own::start(script.stdin(Stdio::piped()).stdout(Stdio::piped()));
    let mut keys = script.stdin.take().expect("piped");
    let mut output = script.stdout.take().expect("piped");
    let mut bytes = Vec::new();
    // Reads until that text, or until the end.
    let mut read_until = |what: Option<&str>| {
        loop {
            let shown = String::from_utf8_lossy(&bytes).into_owned();
            if what.is_some_and(|what| shown.contains(what)) {
                return shown;
            }
            let ready = PollFd::new(&output, PollFlags::IN);
            assert_eq!(poll(&mut [ready], Some(&MOST_WAITING)), Ok(1), "{what:?}: {shown}");
            let mut more = [0; 4096];
            let count = output.read(&mut more).expect("read");
            if count == 0 {
                assert_eq!(what, None, "{shown}");
                return shown;
            }
            bytes.extend_from_slice(&more[..count]);
        }
    };
    read_until(Some("by process, most wait first"));
    keys.write_all(b"fs").expect("it listens");
    read_until(Some("by file, most reads first"));
    keys.write_all(b"/nothing has this name\r").expect("it listens");
    read_until(Some("only nothing has this name"));
    keys.write_all(b"q").expect("it listens");
    let shown = read_until(None);
    assert!(script.wait().expect("it ends").success(), "{shown}");
    let (before, drawn) = shown.split_once("\u{1b}[?1049h").expect("the alternate screen");
    let (_, after) = drawn.split_once("\u{1b}[?1049l").expect("and back");
    assert!(before.contains(':'), "modes of the terminal: {before}");
    assert_eq!(after.trim(), before.trim());
}

#[test]
fn pictures_are_printed_for_a_file_and_their_number_is_kept() {
    if managed::possible().is_none() {
        return;
    }
    let state = stage::state();
    let mut top = Command::new(BOWWAVE);
    top.args(["top", "--batch", "-n", "2", "--state"]).arg(state.path());
    let (has_succeeded, text, error) = run(&mut top);
    assert!(has_succeeded, "{error}");
    assert_eq!(text.matches("bowwave top  by process").count(), 2, "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn the_last_picture_of_a_terminal_is_drawn() {
    if managed::possible().and_then(|()| installed("script")).is_none() {
        return;
    }
    let state = stage::state();
    let line = format!("{BOWWAVE} top -n 1 --state {}", state.path().display());
    // Its end would be a key.
    let (_typing, input) = pipe().expect("a pipe");
    let mut script = Command::new("script");
    script.args(["--quiet", "--return", "--command", &line, "/dev/null"]).stdin(input);
    let (has_succeeded, shown, error) = run(&mut script);
    assert!(has_succeeded, "{error}");
    assert!(shown.contains("counting ...") && shown.contains("/s stalls"), "{shown}");
}

#[test]
fn it_ends_when_nobody_reads_what_it_prints() {
    if managed::possible().is_none() {
        return;
    }
    let Top { mut child, output } = Top::begin(stage::state().path());
    drop(output);
    assert_eq!(child.wait().expect("it ends").code(), Some(141), "as if by SIGPIPE");
}
