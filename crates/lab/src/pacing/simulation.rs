//! Simulates readers, a device and a machine with late replies, without a clock.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use device::{Nanos, Request};

use super::Pacing;
use crate::injected::{Injected, Random};
use crate::status::Status;

const US: Nanos = 1000;

/// Time from a reply to the reader's next request on an idle machine.
const GO_ON: Nanos = 40 * US;

/// Bytes of the device.
const SIZE: u64 = 4 << 30;

/// Seed of the places of random readers; any number will do.
const PLACES: u64 = 0x9e37_79b9_7f4a_7c15;

/// How a reader reads.
#[derive(Clone, Copy, Debug)]
struct Reader {
    /// Bytes of each request.
    bytes: u64,
    /// Number of requests.
    count: u64,
    /// Most requests in flight.
    ahead: u64,
    /// Time from the arrival of bytes to the next request.
    think: Nanos,
    is_random: bool,
}

/// The state of a reader.
struct Progress {
    reader: Reader,
    asked: u64,
    /// Chunks that have arrived and are not processed.
    arrived: BTreeSet<u64>,
    /// Chunks that the reader has processed.
    used: u64,
    is_thinking: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The timing thread wakes.
    Wake,
    /// A reader, by its number, has processed a chunk.
    Used(usize),
}

/// Readers and a device on a machine with late replies.
struct Machine {
    now: Nanos,
    pacing: Pacing,
    injected: Injected,
    /// The event for which the timing thread sleeps: when it is due, and when the thread wakes.
    sleep: Option<(Nanos, Nanos)>,
    events: BinaryHeap<Reverse<(Nanos, Event)>>,
    readers: Vec<Progress>,
    /// Reader and chunk of each request.
    requests: Vec<(usize, u64)>,
}

impl Machine {
    fn new(device: &str, readers: &[Reader], late_us: f64, seed: u64) -> Self {
        let spec = device::load(device).expect("it is in the catalogue");
        let progress = |reader: &Reader| Progress {
            reader: *reader,
            asked: 0,
            arrived: BTreeSet::new(),
            used: 0,
            is_thinking: false,
        };
        Machine {
            now: 0,
            pacing: Pacing::new(spec.build(SIZE), spec.is_rotational()),
            injected: Injected::new(late_us, seed),
            sleep: None,
            events: BinaryHeap::new(),
            readers: readers.iter().map(progress).collect(),
            requests: Vec::new(),
        }
    }

    /// Runs the readers to their ends. Returns how long that took, in microseconds, and the bound of the error.
    fn run(mut self) -> (f64, f64) {
        (0..self.readers.len()).for_each(|who| self.go_on(who));
        self.fall_asleep();
        while let Some(Reverse((at, event))) = self.events.pop() {
            self.now = at;
            match event {
                Event::Wake => self.wake(),
                Event::Used(who) => {
                    self.readers[who].used += 1;
                    self.readers[who].is_thinking = false;
                    self.go_on(who);
                }
            }
            self.fall_asleep();
        }
        assert!(self.readers.iter().all(|one| one.used == one.reader.count));
        let lateness = self.pacing.lateness();
        let status = Status {
            lost_us: lateness.lost_us,
            spread_us2: lateness.spread_us2,
            ..Status::default()
        };
        (self.now as f64 * 1e-3, status.error_us())
    }

    /// Sleeps as the timing thread does.
    fn fall_asleep(&mut self) {
        let earlier = |due: &Nanos| self.sleep.is_none_or(|(asleep_for, _)| asleep_for > *due);
        if let Some(due) = self.pacing.next_due().filter(earlier) {
            let wake = due.max(self.now) + self.injected.next();
            self.sleep = Some((due, wake));
            self.events.push(Reverse((wake, Event::Wake)));
        }
    }

    fn wake(&mut self) {
        if self.sleep.is_some_and(|(_, wake)| wake <= self.now) {
            self.sleep = None;
        }
        let replies = self.pacing.take_due(self.now);
        replies.iter().for_each(|reply| self.pacing.sent(*reply, self.now));
        for reply in replies {
            let (who, chunk) = self.requests[reply.id as usize];
            self.readers[who].arrived.insert(chunk);
            self.go_on(who);
        }
    }

    /// Lets a reader request what it may, and begin to process what has arrived.
    fn go_on(&mut self, who: usize) {
        let room = SIZE / self.readers.len() as u64;
        let one = &mut self.readers[who];
        while one.asked < one.reader.count.min(one.used + one.reader.ahead) {
            let chunk = one.asked;
            one.asked += 1;
            let place = if one.reader.is_random {
                let mut random = Random(((who as u64) << 32 | chunk) ^ PLACES);
                random.unit();
                (random.unit() * (room / one.reader.bytes) as f64) as u64
            } else {
                chunk
            };
            let offset = room * who as u64 + place * one.reader.bytes;
            let id = self.requests.len() as u64;
            self.requests.push((who, chunk));
            self.pacing.submit(self.now, Request { id, offset, bytes: one.reader.bytes });
        }
        if !one.is_thinking && one.arrived.remove(&one.used) {
            one.is_thinking = true;
            self.events.push(Reverse((self.now + GO_ON + one.reader.think, Event::Used(who))));
        }
    }
}

fn one_of<T: Copy>(random: &mut Random, choice: &[T]) -> T {
    choice[(random.unit() * choice.len() as f64) as usize]
}

/// 1 to 16 equal readers, or with one of another kind among them.
fn any_readers(random: &mut Random) -> Vec<Reader> {
    let count = one_of(random, &[1, 1, 1, 2, 4, 8, 16]);
    let ahead = one_of(random, &[1, 1, 2, 4, 8]);
    // The kernel reads ahead in pieces of at least 64 KiB.
    let smallest = if ahead > 1 { 65_536 } else { 4096 };
    let alike = Reader {
        bytes: smallest << (random.unit() * 5.0) as u32,
        count: 60 + (random.unit() * 200.0) as u64,
        ahead,
        think: one_of(random, &[0, 0, 100, 500, 3000]) * US,
        is_random: random.unit() < 0.5,
    };
    let mut readers = vec![alike; count];
    if random.unit() < 0.5 {
        readers[0].ahead = 1;
        readers[0].think = (random.unit() * 1000.0) as Nanos * US;
    }
    readers
}

/// Number of rows. The test prints the share of rows within their bound, in whole percent, rounded up.
const ROWS: u64 = 150;

fn share_within(device: &str, late_us: f64) -> f64 {
    let mut random = Random(7);
    let mut within = 0;
    let (mut bounds, mut errors) = (Vec::new(), Vec::new());
    for seed in 0..ROWS {
        let readers = any_readers(&mut random);
        let (quiet_us, no_bound) = Machine::new(device, &readers, 0.0, seed).run();
        assert_eq!(no_bound, 0.0, "a machine that is never late makes no error");
        let (late_us, bound_us) = Machine::new(device, &readers, late_us, seed).run();
        let bound = (bound_us / late_us * 100.0).ceil() / 100.0;
        let error = (late_us - quiet_us).abs() / late_us;
        within += u64::from(error <= bound);
        bounds.push(bound);
        errors.push(error);
    }
    let middle = |values: &mut Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values[values.len() / 2] * 100.0
    };
    eprintln!(
        "{device}, {late_us} us late: {within} of {ROWS} within; median bound {:.1} %, error {:.1} %",
        middle(&mut bounds),
        middle(&mut errors)
    );
    within as f64 / ROWS as f64
}

#[test]
fn nineteen_rows_in_twenty_lie_within_their_bounds_however_late_replies_are() {
    for device in ["hdd", "net", "ssd", "raid5-backup"] {
        let shares = [200.0, 400.0, 1000.0].map(|late_us| share_within(device, late_us));
        let mean = shares.iter().sum::<f64>() / shares.len() as f64;
        assert!(mean >= 0.95, "{device}: {shares:?}");
    }
}

/// One reader that sends each request `think` microseconds after the last reply.
fn synchronous(think: Nanos) -> [Reader; 1] {
    [Reader { bytes: 4096, count: 200, ahead: 1, think: think * US, is_random: true }]
}

#[test]
fn lateness_does_not_add_up_for_a_reader_that_waits_for_each_reply() {
    for device in ["hdd", "net"] {
        let (quiet_us, _) = Machine::new(device, &synchronous(0), 0.0, 1).run();
        let (late_us, bound_us) = Machine::new(device, &synchronous(0), 400.0, 1).run();
        // 200 replies that are 400 us late add up to 80,000 us.
        assert!((late_us - quiet_us).abs() < 5000.0, "{device}: {quiet_us} and {late_us}");
        assert!(bound_us < 5000.0, "{device}: {bound_us}");
    }
}

#[test]
fn a_reader_that_thinks_for_long_gets_no_credit_and_its_bound_says_so() {
    let (quiet_us, _) = Machine::new("net", &synchronous(5000), 0.0, 1).run();
    let (late_us, bound_us) = Machine::new("net", &synchronous(5000), 400.0, 1).run();
    assert!(late_us - quiet_us > 40_000.0, "{quiet_us} and {late_us}");
    assert!(bound_us >= late_us - quiet_us, "{bound_us}");
}
