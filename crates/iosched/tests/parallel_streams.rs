//! Ten processes each read a file from start to end: the comparison of February 2003, on a small
//! model of its disk.
//!
//! ```text
//!   window n            window n + 1
//!   [ 64 KiB ][ 60 ]    [ 64 KiB ][ 60 ]      31 pages each, which the disk splits into two requests
//!     ^ reading its second page submits window n + 1
//! ```
//!
//! Published times with 128 KiB windows: 28 to 35 s with anticipation, 37 s on 2.4, 92 s with CFQ
//! (in two groups of five) and 133 s on 2.5.61.

mod support;

use std::collections::BTreeMap;

use iosched::{
    Command, Direction, Dispatch, Elevator, Nanos, ProcessId, Request, RequestId, Sector, by_name,
};
use support::disk::Disk;

const PROCESSES: usize = 10;

/// Distance between the starts of two files: 100 MiB.
const FILE_DISTANCE: Sector = 100 << 11;

/// Pages of a window, and of its first request; its second one has the rest.
const WINDOW: u64 = 31;
const FIRST: u64 = 16;
const PAGE_SECTORS: u64 = 8;
const MAX_SECTORS: u32 = 128;

/// Time from a completion to the reader's next system call.
const WAKE_UP: Nanos = 30_000;

const SECOND: f64 = 1e9;

/// A reader that proceeds window by window, half by half.
#[derive(Clone, Copy, Default)]
struct Reader {
    /// Halves of windows submitted, completed in order, and read.
    submitted: u64,
    completed: u64,
    read: u64,
    done: Option<Nanos>,
}

struct Run {
    elevator: Box<dyn Elevator>,
    readers: [Reader; PROCESSES],
    /// Windows of each file.
    windows: u64,
    /// When readers wake up.
    wakes: BTreeMap<(Nanos, usize), ()>,
}

impl Run {
    fn submit_window(&mut self, now: Nanos, process: usize) {
        let reader = &mut self.readers[process];
        let window = reader.submitted / 2;
        if window == self.windows {
            return;
        }
        reader.submitted += 2;
        let file = FILE_DISTANCE * process as Sector;
        let start = file + window * WINDOW * PAGE_SECTORS;
        for (half, (page, pages)) in (0..).zip([(0, FIRST), (FIRST, WINDOW - FIRST)]) {
            let request = Request {
                id: RequestId(process as u64 * 1_000_000 + window * 2 + half),
                process: ProcessId(u32::try_from(process).unwrap()),
                start: start + page * PAGE_SECTORS,
                sectors: u32::try_from(pages * PAGE_SECTORS).unwrap(),
                direction: Direction::Read,
                is_sync: true,
            };
            self.elevator.add(now, request);
        }
    }

    /// Reads everything available. Touching a window submits the next one.
    fn wake(&mut self, now: Nanos, process: usize) {
        while self.readers[process].read < self.readers[process].completed {
            let touches_window = self.readers[process].read.is_multiple_of(2);
            self.readers[process].read += 1;
            if touches_window {
                self.submit_window(now, process);
            }
        }
        let reader = &mut self.readers[process];
        if reader.read == 2 * self.windows && reader.done.is_none() {
            reader.done = Some(now);
            self.elevator.exited(now, ProcessId(u32::try_from(process).unwrap()));
        }
    }

    fn complete(&mut self, now: Nanos, command: &Command) {
        self.elevator.completed(now, command);
        for request in command.requests.iter() {
            let process = (request.0 / 1_000_000) as usize;
            self.readers[process].completed += 1;
            self.wakes.insert((now + WAKE_UP, process), ());
        }
    }

    /// When each process finished, sorted.
    fn finish(mut self) -> Vec<Nanos> {
        let mut disk = Disk::new();
        let mut running: Option<(Nanos, Command)> = None;
        let mut now = 0;
        for process in 0..PROCESSES {
            self.submit_window(0, process);
        }
        while self.readers.iter().any(|reader| reader.done.is_none()) {
            let mut ask_again = None;
            if running.is_none() {
                match self.elevator.dispatch(now) {
                    Dispatch::Command(command) => {
                        running = Some((disk.serve(now, &command), command));
                    }
                    Dispatch::WaitUntil(until) => ask_again = Some(until),
                    Dispatch::Empty => {}
                }
            }
            let done = running.as_ref().map(|&(done, _)| done);
            let wake = self.wakes.first_key_value().map(|(&(at, _), ())| at);
            now = [done, wake, ask_again].into_iter().flatten().min().expect("a stalled run");
            if done == Some(now) {
                let (_, command) = running.take().expect("it was there");
                self.complete(now, &command);
            }
            while let Some(entry) = self.wakes.first_entry().filter(|entry| entry.key().0 <= now) {
                let (_, process) = *entry.key();
                entry.remove();
                self.wake(now, process);
            }
        }
        let mut times: Vec<Nanos> = self.readers.iter().filter_map(|reader| reader.done).collect();
        times.sort_unstable();
        times
    }
}

/// When each process has read its file, in seconds, sorted.
fn run(name: &str, mebibytes: u64) -> Vec<f64> {
    let run = Run {
        elevator: by_name(name, MAX_SECTORS).unwrap(),
        readers: [Reader::default(); PROCESSES],
        windows: mebibytes * 256 / WINDOW,
        wakes: BTreeMap::new(),
    };
    let times: Vec<f64> = run.finish().into_iter().map(|at| at as f64 / SECOND).collect();
    let list: Vec<String> = times.iter().map(|time| format!("{time:.2}")).collect();
    println!("{name:12} {mebibytes:3} MiB  {}", list.join(" "));
    times
}

fn total(name: &str, mebibytes: u64) -> f64 {
    run(name, mebibytes)[PROCESSES - 1]
}

/// File size of the original comparison: the bursts of 2.4 are longer than small files.
const FILE_MIB: u64 = 100;

#[test]
fn the_elevators_come_in_the_published_order() {
    let [anticipatory, linus, cfq, base] =
        ["anticipatory", "linus", "cfq-1", "base-2.5.61"].map(|name| total(name, FILE_MIB));
    assert!(anticipatory < linus, "{anticipatory} {linus}");
    assert!(linus < cfq, "{linus} {cfq}");
    assert!(cfq < base, "{cfq} {base}");
}

#[test]
fn cfq_finishes_in_two_groups_of_five() {
    let times = run("cfq-1", FILE_MIB);
    let within_first = times[4] - times[0];
    let between = times[5] - times[4];
    assert!(between > 3.0 * within_first, "{times:?}");
}

#[test]
fn small_files_show_it_too() {
    let [anticipatory, cfq, base] =
        ["anticipatory", "cfq-1", "base-2.5.61"].map(|name| total(name, 4));
    assert!(anticipatory < cfq && cfq < base, "{anticipatory} {cfq} {base}");
    for name in ["linus", "noop", "deadline", "mq-deadline", "bfq"] {
        assert!(total(name, 4) <= base, "{name}");
    }
}
