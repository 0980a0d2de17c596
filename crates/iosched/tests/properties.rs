//! What every elevator guarantees for any requests.

use std::collections::{BTreeMap, VecDeque};

use iosched::{
    Command, Direction, Dispatch, Elevator, NAMES, Nanos, ProcessId, Request, RequestId, Sector,
    by_name,
};
use proptest::collection::vec;
use proptest::prelude::*;

const MAX_SECTORS: u32 = 64;
const MS: Nanos = 1_000_000;

/// Time of one command.
const SERVICE: Nanos = MS;

/// A request, and the time between the one before it and itself.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    gap: Nanos,
    request: Request,
    /// Whether it is the process's last one.
    exits: bool,
}

fn arrival() -> impl Strategy<Value = Arrival> {
    let gap = prop_oneof![4 => Just(0), 3 => 0..2 * MS, 1 => 0..200 * MS];
    let start = prop_oneof![4 => (0..40u64).prop_map(|page| 8 * page), 1 => 0..(1u64 << 32)];
    let sectors = prop_oneof![3 => Just(8), 1 => 1..=MAX_SECTORS];
    (gap, start, sectors, 0..6u32, 0..4u8, prop::bool::weighted(0.02)).prop_map(
        |(gap, start, sectors, process, kind, exits)| Arrival {
            gap,
            request: Request {
                id: RequestId(0),
                process: ProcessId(process),
                start,
                sectors,
                direction: if kind < 2 { Direction::Read } else { Direction::Write },
                is_sync: kind < 3,
            },
            exits,
        },
    )
}

fn arrivals(most: usize) -> impl Strategy<Value = Vec<Arrival>> {
    vec(arrival(), 1..most).prop_map(|mut arrivals| {
        for (id, arrival) in (0..).zip(&mut arrivals) {
            arrival.request.id = RequestId(id);
        }
        arrivals
    })
}

/// A device with a queue that takes a millisecond per command.
struct Body {
    elevator: Box<dyn Elevator>,
    now: Nanos,
    in_flight: VecDeque<(Nanos, Command)>,
    added: BTreeMap<RequestId, (Nanos, Request)>,
    /// Dispatched commands with their times.
    log: Vec<(Nanos, Command)>,
}

impl Body {
    fn new(name: &str) -> Self {
        Body {
            elevator: by_name(name, MAX_SECTORS).unwrap(),
            now: 0,
            in_flight: VecDeque::new(),
            added: BTreeMap::new(),
            log: Vec::new(),
        }
    }

    fn add(&mut self, request: Request) {
        self.added.insert(request.id, (self.now, request));
        let queued = self.elevator.queued();
        self.elevator.add(self.now, request);
        assert_eq!(self.elevator.queued(), queued + 1);
    }

    /// Fills the device's queue. Returns when to ask again.
    fn fill(&mut self, depth: usize) -> Option<Nanos> {
        while self.in_flight.len() < depth {
            let queued = self.elevator.queued();
            match self.elevator.dispatch(self.now) {
                Dispatch::Command(command) => {
                    assert_eq!(self.elevator.queued(), queued - command.requests.count());
                    self.log.push((self.now, command.clone()));
                    self.in_flight.push_back((self.now + SERVICE, command));
                }
                Dispatch::WaitUntil(until) => {
                    assert!(until > self.now, "waits for the past");
                    assert!(queued > 0, "waits for nothing");
                    let is_timed = until != iosched::UNTIL_COMPLETION;
                    assert!(is_timed || !self.in_flight.is_empty(), "waits for ever");
                    return Some(until);
                }
                Dispatch::Empty => {
                    assert_eq!(queued, 0, "empty, and yet something is queued");
                    return None;
                }
            }
        }
        None
    }

    /// Lets time pass until `until`, or until all is done.
    fn run(&mut self, until: Nanos, depth: usize) {
        loop {
            let ask_again = self.fill(depth);
            let done = self.in_flight.front().map(|&(at, _)| at);
            let Some(at) = [done, ask_again].into_iter().flatten().min().filter(|&at| at <= until)
            else {
                break;
            };
            self.now = at;
            if done == Some(at)
                && let Some((_, command)) = self.in_flight.pop_front()
            {
                self.elevator.completed(at, &command);
            }
        }
        if until != Nanos::MAX {
            self.now = until;
        }
    }
}

fn play(name: &str, arrivals: &[Arrival], depth: usize) -> Body {
    let mut body = Body::new(name);
    for arrival in arrivals {
        body.run(body.now + arrival.gap, depth);
        body.add(arrival.request);
        if arrival.exits {
            body.elevator.exited(body.now, arrival.request.process);
        }
    }
    body.run(Nanos::MAX, depth);
    body
}

/// A command consists of its requests in order, without gaps.
fn assert_is_union(command: &Command, added: &BTreeMap<RequestId, (Nanos, Request)>) {
    let mut end = command.start;
    for id in command.requests.iter() {
        let (_, request) = &added[&id];
        assert_eq!(request.start, end, "a gap in {command:?}");
        assert_eq!(request.direction, command.direction);
        end += Sector::from(request.sectors);
    }
    assert_eq!(command.start + Sector::from(command.sectors), end);
    assert!(command.sectors <= MAX_SECTORS);
}

/// Longest wait, with up to sixteen requests queued and a millisecond each, of reads and of
/// asynchronous writes; `None` if the historical elevator has no bound.
fn longest_wait(name: &str) -> Option<[Nanos; 2]> {
    let [read, write] = match name {
        // All requests queued before.
        "noop" => [20, 20],
        // One turn of all six processes for each earlier request of its own.
        "base-2.5.61" => [100, 100],
        // 2048 / 16 insertions may pass a read, 8192 / 16 a write, and one request after another.
        "linus" => [700, 700],
        // Expiry, plus a batch for each older request, and half as many of writes.
        "deadline" | "mq-deadline" => [1_200, 5_800],
        // An expiry check each 50 ms, waits of 40 ms, and batches of writes with at least one write
        // each.
        "anticipatory" => [2_500, 12_000],
        // The timeouts and idling of seven queues for each older request.
        "bfq" => [2_500, 4_000],
        // A returning process goes to the head again, so the others may wait without end.
        "cfq-1" => return None,
        other => panic!("no bound for {other}"),
    };
    Some([read * MS, write * MS])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn every_request_is_dispatched_once_in_commands_that_are_the_union_of_theirs(
        arrivals in arrivals(120), depth in 1..5usize,
    ) {
        for name in NAMES {
            let body = play(name, &arrivals, depth);
            let mut left = body.added.clone();
            for (_, command) in &body.log {
                assert_is_union(command, &body.added);
                for id in command.requests.iter() {
                    prop_assert!(left.remove(&id).is_some(), "{name}: {id:?} twice");
                }
            }
            prop_assert!(left.is_empty(), "{name} keeps {left:?}");
            prop_assert_eq!(body.elevator.queued(), 0);
        }
    }

    #[test]
    fn the_same_requests_are_served_in_the_same_order(
        arrivals in arrivals(80), depth in 1..5usize,
    ) {
        for name in NAMES {
            prop_assert_eq!(play(name, &arrivals, depth).log, play(name, &arrivals, depth).log);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6, ..ProptestConfig::default() })]

    #[test]
    fn nobody_waits_longer_than_the_elevator_promises_while_others_keep_coming(
        pattern in arrivals(200),
    ) {
        for name in NAMES {
            let Some([of_sync, of_async]) = longest_wait(name) else { continue };
            let mut body = Body::new(name);
            let mut stream = pattern.iter().cycle().zip(0..);
            while body.now < 8_000 * MS {
                while body.elevator.queued() + body.in_flight.len() < 16 {
                    let (arrival, id) = stream.next().unwrap();
                    body.add(Request { id: RequestId(id), ..arrival.request });
                }
                body.run(body.now + SERVICE, 1);
            }
            body.run(Nanos::MAX, 1);
            for (at, command) in &body.log {
                for id in command.requests.iter() {
                    let (added, request) = body.added[&id];
                    let longest = if request.is_sync && request.direction == Direction::Read {
                        of_sync
                    } else {
                        of_async.max(of_sync)
                    };
                    prop_assert!(at - added <= longest, "{name}: {} ms", (at - added) / MS);
                }
            }
        }
    }
}
