//! Two bowwaves with two state folders change the window of one device, and an administrator sets it meanwhile: what
//! the administrator has set last stands.
//!
//! BOWWAVE_WRITES says how often (20, or 2000 with BOWWAVE_TORTURE=1), BOWWAVE_SEED when. Skipped where labs or eBPF do
//! not work, unless BOWWAVE_REQUIRE_LIVE=1 makes that a failure.

// Steps are compiled in only where tests are.
#![cfg(debug_assertions)]

mod managed;
mod own;
mod stage;
mod trial;

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use lab::LabGuard;
use managed::Daemon;
use rustix::fs::{Advice, fadvise};
use rustix::process::Signal;
use stage::{Alone, wait_until};
use tempfile::TempDir;
use trial::{Over, Random};

const FILE_BYTES: u64 = 4 << 20;

/// What comes sooner or later comes within that time, also on a busy machine.
const MOST_WAITING: Duration = Duration::from_secs(60);

struct Bench {
    lab: LabGuard,
    states: [TempDir; 2],
    _alone: Alone,
}

impl Bench {
    /// A lab with two files; `None` where labs or eBPF do not work.
    fn new() -> Option<Self> {
        managed::possible()?;
        let (alone, lab) = stage::lab("administrator", "net", 128 << 20, "ext4");
        lab.set_fast(true).expect("fast");
        for name in ["one", "other"] {
            let bytes = vec![5; FILE_BYTES as usize];
            fs::write(lab.mount_point().join(name), bytes).expect("room on the lab");
        }
        lab.evict().expect("evicted");
        Some(Bench { lab, states: [stage::state(), stage::state()], _alone: alone })
    }

    fn open(&self, name: &str) -> File {
        File::open(self.lab.mount_point().join(name)).expect("it was written")
    }

    /// One of the two. It changes the windows of open files; at that step it stops itself, if there is one.
    fn daemon(&self, number: usize, stops_at: Option<&str>) -> Daemon {
        let options = ["--charge", "reader"];
        let mut command = managed::daemon(&self.lab, self.states[number].path(), &options);
        if let Some(step) = stops_at {
            command.env("BOWWAVE_STOP_AT", step);
        }
        Daemon::begin(&mut command)
    }

    /// How many windows that one of the two says it could not set.
    fn refused_windows(&self, number: usize) -> u64 {
        let status = managed::status(self.states[number].path());
        status["metrics"]["refused_windows"].as_u64().unwrap_or(0)
    }

    fn window_kb(&self) -> u64 {
        self.lab.read_ahead_kb().expect("a window")
    }
}

fn is_stopped(daemon: &Daemon) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", daemon.child.id())).expect("it runs");
    let (_, behind_name) = stat.rsplit_once(')').expect("a name");
    behind_name.trim_start().starts_with('T')
}

/// Reads a file cold, from end to end.
fn read(file: &File) {
    fadvise(file, 0, None, Advice::DontNeed).expect("advised");
    let mut part = vec![0; 64 << 10];
    for offset in (0..FILE_BYTES).step_by(part.len()) {
        file.read_exact_at(&mut part, offset).expect("read");
    }
}

/// From borrowing the device's window to giving it back.
const BORROWED: [&str; 6] =
    ["knob-locked", "knob-journalled", "knob-noted", "knob-set", "window-copied", "knob-restored"];

#[test]
fn what_an_administrator_sets_while_a_bowwave_has_the_window_stands_and_another_one_waits() {
    let Some(bench) = Bench::new() else { return };
    for (number, step) in BORROWED.into_iter().enumerate() {
        // With BOWWAVE_TORTURE both, else by turns.
        let is_tried = |is_killed: &bool| trial::is_long() || *is_killed == (number % 2 == 1);
        for is_killed in [false, true].into_iter().filter(is_tried) {
            let when = format!("stopped at {step}, killed: {is_killed}");
            let human_kb = 256 + 16 * number as u64 + 8 * u64::from(is_killed);
            let (stopped, other) = (bench.daemon(0, Some(step)), bench.daemon(1, None));
            wait_until(&format!("it is {when}"), MOST_WAITING, || {
                read(&bench.open("one"));
                is_stopped(&stopped)
            });
            let taken_kb = bench.window_kb();
            wait_until(&format!("{when}, the other one is refused"), MOST_WAITING, || {
                let other = bench.open("other");
                read(&other);
                assert_eq!(bench.window_kb(), taken_kb, "{when}: the other one does not wait");
                // Still open: the window of a closed file is not refused.
                bench.refused_windows(1) > 0
            });
            bench.lab.set_read_ahead_kb(human_kb).expect("set");
            if is_killed {
                drop(stopped);
                read(&bench.open("other"));
            } else {
                stopped.signal(Signal::CONT);
                read(&bench.open("other"));
                stopped.end();
            }
            other.end();
            assert_eq!(bench.window_kb(), human_kb, "{when}");
            bench.daemon(0, None).end();
            assert_eq!(bench.window_kb(), human_kb, "{when}, and started again");
        }
    }
}

/// So often an administrator looks for what was set, beside windows that are taken for some microseconds.
const LOOKS: usize = 50;

/// Looks are so far apart.
const BETWEEN_LOOKS: Duration = Duration::from_millis(2);

/// Sets the device's window; whether it is that at most looks.
fn stands(bench: &Bench, kb: u64) -> bool {
    bench.lab.set_read_ahead_kb(kb).expect("set");
    let looks = (0..LOOKS).map(|_| {
        thread::sleep(BETWEEN_LOOKS);
        bench.window_kb()
    });
    looks.filter(|seen| *seen == kb).count() * 2 > LOOKS
}

#[test]
fn what_an_administrator_sets_while_two_bowwaves_set_windows_stands() {
    let (seed, writes) = (trial::seed(), trial::number("BOWWAVE_WRITES", 20, 2000));
    let Some(bench) = Bench::new() else { return };
    let mut random = Random(seed);
    let daemons = [bench.daemon(0, None), bench.daemon(1, None)];
    let is_over = AtomicBool::new(false);
    let (mut lost, mut last_kb) = (0, 0);
    thread::scope(|scope| {
        let _over = Over(&is_over);
        for name in ["one", "other"] {
            let (bench, is_over) = (&bench, &is_over);
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    read(&bench.open(name));
                }
            });
        }
        for write in 0..writes {
            thread::sleep(Duration::from_micros(random.below(50_000)));
            // No number twice in a row, and none that bowwave would set.
            last_kb = 20 + 4 * (write % 2) + 8 * random.below(8);
            wait_until("what was set stands", MOST_WAITING, || {
                let stands = stands(&bench, last_kb);
                lost += u64::from(!stands);
                stands
            });
        }
    });
    let refused = daemons.map(|daemon| daemon.end()["refused_windows"].as_u64().unwrap_or(0));
    println!("{writes} writes, {lost} lost; {refused:?} windows could not be set by the two");
    assert_eq!(bench.window_kb(), last_kb, "seed {seed}: the last value that somebody has set");
    // Between the moment when a bowwave looks and that when it sets.
    assert!(lost <= 1 + writes / 100, "seed {seed}: {lost} of {writes} writes were lost");
    for number in [0, 1] {
        bench.daemon(number, None).end();
        assert_eq!(bench.window_kb(), last_kb, "seed {seed}, and started again");
    }
}
