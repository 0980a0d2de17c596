//! Bowwave alone is killed, again and again, at random moments: while it starts, manages reads, or ends. The programs
//! beside it go on and find what they have written; after the next start every window is as before.
//!
//! BOWWAVE_KILLS says how often (5, or 200 with BOWWAVE_TORTURE=1), BOWWAVE_SEED when. Skipped where labs or eBPF do
//! not work, unless BOWWAVE_REQUIRE_LIVE=1 makes that a failure.

mod managed;
mod own;
mod programs;
mod stage;
mod trial;
mod windows;

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use lab::LabGuard;
use managed::Daemon;
use own::Own;
use programs::Programs;
use rustix::fs::{Advice, fadvise};
use rustix::process::{Pid, Signal, kill_process};
use stage::Alone;
use trial::{Over, Random};

/// After so many, the programs end and windows are looked at.
const KILLS_IN_A_ROW: u64 = 10;

/// So many more are tried if none has left a window changed.
const MOST_MORE: u64 = 50;

/// Files that this test reads, and holds open.
const HELD: usize = 3;
const HELD_BYTES: usize = 12 << 20;

/// A daemon is killed no later after it was started, or after it was ready, which takes some tenths of a second.
const LONGEST_LIFE_US: u64 = 1_000_000;

/// After SIGTERM: it ends within some tenths of a second.
const LONGEST_END_US: u64 = 200_000;

struct Bench {
    lab: LabGuard,
    state: tempfile::TempDir,
    held: Vec<(PathBuf, Vec<u8>)>,
    _alone: Alone,
}

impl Bench {
    /// A lab with files on it, and a disk that bowwave has met; `None` where labs or eBPF do not work.
    fn new(seed: u64) -> Option<Self> {
        managed::possible()?;
        let (alone, lab) = stage::lab("kills", "net", 256 << 20, "ext4");
        lab.set_fast(true).expect("fast");
        let held = (0..HELD).map(|number| {
            let path = lab.mount_point().join(format!("held{number}"));
            let content = Random(seed + number as u64).noise(HELD_BYTES);
            fs::write(&path, &content).expect("room on the lab");
            (path, content)
        });
        let held = held.collect();
        lab.evict().expect("evicted");
        let bench = Bench { lab, state: stage::state(), held, _alone: alone };
        bench.recover();
        Some(bench)
    }

    /// A daemon starts, and ends in order.
    fn recover(&self) {
        Daemon::begin(&mut managed::daemon(&self.lab, self.state.path(), &[])).end();
    }

    /// A daemon that is killed at a random moment; whether it was, and whether it has left a window changed.
    fn kill(&self, random: &mut Random) -> (bool, bool) {
        let charge = ["reader", "reader", "bowwave"][random.below(3) as usize];
        let mode = ["always", "never"][random.below(2) as usize];
        let options = ["--charge", charge, "--drop-behind", mode];
        let mut daemon = Own::start(&mut managed::daemon(&self.lab, self.state.path(), &options));
        if random.below(2) == 0 {
            // It is at work.
            let output = daemon.stdout.as_mut().expect("piped");
            BufReader::new(output).read_line(&mut String::new()).expect("a line");
        }
        thread::sleep(Duration::from_micros(random.below(LONGEST_LIFE_US)));
        if random.below(4) == 0 {
            kill_process(Pid::from_child(&daemon), Signal::TERM).expect("it is not reaped");
            thread::sleep(Duration::from_micros(random.below(LONGEST_END_US)));
        }
        daemon.kill().expect("it is ours");
        let status = daemon.wait().expect("it ends");
        let is_killed = status.signal() == Some(libc::SIGKILL);
        assert!(
            is_killed || status.success() || status.signal() == Some(libc::SIGTERM),
            "{status}"
        );
        (is_killed, windows::left_over(&self.lab, self.state.path()) > 0)
    }
}

/// Reads it from end to end, cold, until it is over.
fn read(file: &File, content: &[u8], is_over: &AtomicBool) {
    let mut part = vec![0; 64 << 10];
    while !is_over.load(Ordering::Relaxed) {
        fadvise(file, 0, None, Advice::DontNeed).expect("advised");
        for (number, expected) in content.chunks(part.len()).enumerate() {
            let part = &mut part[..expected.len()];
            file.read_exact_at(part, (number << 16) as u64).expect("read");
            assert!(part == expected, "other bytes were read");
        }
    }
}

#[test]
fn programs_do_not_notice_random_kills_and_every_window_is_as_before() {
    let (seed, wanted) = (trial::seed(), trial::number("BOWWAVE_KILLS", 5, 200));
    let Some(bench) = Bench::new(seed) else { return };
    let mut random = Random(seed);
    let of_devices = windows::of_devices(&bench.lab);
    let (mut killed, mut left) = (0, 0);
    // On a busy machine none may come at a moment that counts.
    while killed < wanted || (left == 0 && killed < wanted + MOST_MORE) {
        let held: Vec<File> =
            bench.held.iter().map(|(path, _)| File::open(path).expect("it is there")).collect();
        let requests: Vec<u64> =
            held.iter().map(|file| windows::requests(&bench.lab, file)).collect();
        let folder = bench.lab.mount_point();
        let Some(programs) = Programs::begin(&folder, seed + killed) else { return };
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let _over = Over(&is_over);
            for (file, (_, content)) in held.iter().zip(&bench.held) {
                scope.spawn(|| read(file, content, &is_over));
            }
            let until = killed + KILLS_IN_A_ROW.min(wanted);
            while killed < until {
                let (is_killed, has_left) = bench.kill(&mut random);
                killed += u64::from(is_killed);
                left += u64::from(has_left);
            }
        });
        println!("{killed} kills, {left} of which left a window changed; {}", programs.end());
        bench.recover();
        for (file, requests) in held.iter().zip(requests) {
            let when = format!("seed {seed}, after {killed} kills");
            windows::are_as_before(&bench.lab, bench.state.path(), file, requests, &when);
        }
        windows::devices_are_as(
            &bench.lab,
            &of_devices,
            &format!("seed {seed}, after {killed} kills"),
        );
    }
    assert!(left > 0, "no kill has come while a window was changed");
}
