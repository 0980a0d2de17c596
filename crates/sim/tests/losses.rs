//! How much bowwave can lose: on any workload its time should exceed the stock kernel's by at most 3 % and its credit.
//!
//! An adversary starts from generated workloads and climbs towards greater losses: it changes one number at a time and
//! keeps what is worse for bowwave. `LOSS_STEPS=2000 cargo test --release -p bowwave-sim --test losses -- --nocapture`
//! climbs for longer, and prints the worst workload.
//!
//! Several readers lose more on devices that serve one access at a time: pages read ahead for one delay the others,
//! which no account records.

use readahead::PAGE_BYTES;
use sim::scripts::random::Random;
use sim::{Listed, Machine, MachineSpec, Op, OpenFile};

/// Seconds that may be lost on an unknown volume.
const CREDIT_S: f64 = 1.0;

/// A lone reader may take this many times the stock kernel's time.
const TIMES: f64 = 1.03;

/// The same for several readers.
const TIMES_BESIDE: f64 = 1.5;

/// Steps of a climb by default.
const STEPS: u64 = 60;

/// Starts of climbs on each machine.
const STARTS: u64 = 3;

/// Pages of each file: 64, 512 and 16 MB.
const FILES: [u64; 3] = [16_384, 131_072, 4_096];

/// Most pages that one process reads, so that a climb ends.
const MOST_PAGES: u64 = 12_000;

/// A part of a process's reads. Any numbers are valid.
#[derive(Clone, Copy, Debug)]
struct Part {
    kind: u64,
    file: u64,
    /// Where it begins.
    at: u64,
    /// Accesses.
    count: u64,
    /// Pages of each.
    each: u64,
    /// Pages from one access to the next, or the range of their places.
    span: u64,
}

/// The parts of each process, one after the other.
type Workload = Vec<Vec<Part>>;

impl Part {
    fn any(random: &mut Random) -> Self {
        let number = |random: &mut Random, most_log2: u64| {
            let log2 = random.below(most_log2);
            random.below(1 << log2)
        };
        Part {
            kind: random.below(7),
            file: random.below(3),
            at: random.below(1 << 17),
            count: number(random, 12),
            each: number(random, 7),
            span: number(random, 17),
        }
    }

    /// First page and pages of each access.
    fn accesses(&self) -> Vec<(u64, u64)> {
        let pages = FILES[self.file as usize % FILES.len()];
        let each = self.each.clamp(1, 64);
        let count = self.count.clamp(1, 4096).min(MOST_PAGES / each);
        let span = self.span.max(each);
        let mut random = Random::new(self.at ^ span);
        let at = self.at % pages;
        let place = |number: u64, random: &mut Random| match self.kind {
            0 | 1 => at + number * each,
            2 => at + pages - number * each % pages,
            3 => at + number * (each + span % 512),
            4 => at + pages - number * (each + span % 512) % pages,
            // Anywhere in a part of the file.
            5 => at + random.below(span),
            // Some places are read more often than others.
            _ => {
                let rank = (span as f64).powf(random.unit()) as u64;
                at + rank.wrapping_mul(2_654_435_761) % span
            }
        };
        let one = |number| place(number, &mut random) % pages;
        (0..count).map(one).map(|page| (page, each.min(pages - page))).collect()
    }
}

fn any_workload(processes: u64, random: &mut Random) -> Workload {
    (0..processes).map(|_| (0..=random.below(4)).map(|_| Part::any(random)).collect()).collect()
}

/// The same with one change.
fn changed(workload: &Workload, random: &mut Random) -> Workload {
    let mut changed = workload.clone();
    let process = random.below(changed.len() as u64) as usize;
    let parts = &mut changed[process];
    let at = random.below(parts.len() as u64) as usize;
    let other = Part::any(random);
    let nudge = |number: u64, random: &mut Random| number * (50 + random.below(150)) / 100;
    match random.below(10) {
        0 => parts.push(other),
        1 => parts[at] = other,
        2 if parts.len() > 1 => drop(parts.remove(at)),
        3 => parts[at].kind = other.kind,
        4 => parts[at].at = other.at,
        5 => parts[at].count = nudge(parts[at].count, random),
        6 => parts[at].each = other.each,
        7 => parts[at].span = nudge(parts[at].span, random),
        8 => parts.insert(at, Part { at: other.at, ..parts[at] }),
        _ => parts[at].count = other.count,
    }
    changed
}

fn machine(device: &str, memory_mb: f64) -> MachineSpec {
    let (elevator, depth) = match device {
        "net" | "ssd" => ("noop", 64),
        "hdd" => ("mq-deadline", 32),
        _ => ("mq-deadline", 1),
    };
    let text = format!(
        r#"
        device = "{device}"
        device_gb = 40.0
        device_depth = {depth}
        request_kb = 1280
        memory_mb = {memory_mb:.1}
        readahead_kb = 128
        elevator = "{elevator}"
        reclaim = "use-once-first"
        cpu = {{ call_us = 0.3, page_us = 0.4, fault_us = 0.5, decision_us = 0.2, wake_us = 5.0 }}
        "#
    );
    toml::from_str(&text).expect("it is a machine")
}

/// Seconds until the last process ends.
fn seconds(mut machine: Machine, workload: &Workload) -> f64 {
    let files: Vec<_> = FILES.iter().map(|pages| machine.add_file(pages * PAGE_BYTES)).collect();
    let mut processes = Vec::new();
    for parts in workload {
        let opens: Vec<OpenFile> = files.iter().map(|file| machine.open(*file)).collect();
        let ops = |part: &Part| {
            let open = opens[part.file as usize % FILES.len()];
            let op = move |(page, pages): (u64, u64)| Op::Read {
                open,
                at: page * PAGE_BYTES,
                bytes: pages * PAGE_BYTES,
            };
            part.accesses().into_iter().map(op).collect::<Vec<Op>>()
        };
        let ops: Vec<Op> = parts.iter().flat_map(ops).collect();
        processes.push(machine.spawn(0, Listed(ops.into_iter())));
    }
    machine.run();
    let ended = processes.into_iter().map(|process| machine.outcome(process).ended).max();
    ended.unwrap_or(0) as f64 * 1e-9
}

/// Seconds of the stock kernel, and of bowwave.
#[derive(Clone, Copy, Debug)]
struct Times {
    stock: f64,
    ours: f64,
}

impl Times {
    fn of(spec: &MachineSpec, workload: &Workload) -> Self {
        let time = |policy| seconds(spec.build(policy).expect("it can be built"), workload);
        Times { stock: time("linux-6"), ours: time("adaptive") }
    }

    /// Seconds lost beyond `times` the stock kernel's time.
    fn lost(&self, times: f64) -> f64 {
        self.ours - times * self.stock
    }
}

/// The workload found on a machine that loses most beyond `bound` times the stock kernel's time.
fn climb(
    spec: &MachineSpec,
    processes: u64,
    bound: f64,
    seed: u64,
    steps: u64,
) -> (Times, Workload) {
    let mut random = Random::new(seed);
    let mut workload = any_workload(processes, &mut random);
    let mut worst = Times::of(spec, &workload);
    for _ in 0..steps {
        let other = changed(&workload, &mut random);
        let times = Times::of(spec, &other);
        if times.lost(bound) > worst.lost(bound) {
            (worst, workload) = (times, other);
        }
    }
    (worst, workload)
}

/// Climbs on every machine. Returns each one that loses more than `credit_s` beyond `times` the stock kernel's time.
fn beyond(processes: u64, times: f64, credit_s: f64) -> Vec<String> {
    let steps = std::env::var("LOSS_STEPS").ok().and_then(|steps| steps.parse().ok());
    let steps = steps.unwrap_or(STEPS);
    let mut beyond = Vec::new();
    for memory_mb in [1000.0, 16.0] {
        for device in ["hdd", "hdd-fifo", "net", "sd", "ssd"] {
            let spec = machine(device, memory_mb);
            let climbs = (0..STARTS).map(|seed| climb(&spec, processes, times, seed, steps));
            let worst = climbs.max_by(|(a, _), (b, _)| a.lost(times).total_cmp(&b.lost(times)));
            let (worst, workload) = worst.expect("there are some");
            let found = format!(
                "{processes} on {device}, {memory_mb} MB: {:.3} s, stock {:.3} s, {:+.3} s beyond {times} times that",
                worst.ours,
                worst.stock,
                worst.lost(times)
            );
            println!("{found}: {workload:?}");
            if worst.lost(times) > credit_s {
                beyond.push(found);
            }
        }
    }
    beyond
}

#[test]
fn beside_a_lone_reader_bowwave_loses_no_more_than_its_credit() {
    let beyond = beyond(1, TIMES, CREDIT_S);
    assert!(beyond.is_empty(), "{beyond:#?}");
}

/// The bound that holds so far; the goal is 3 %.
#[test]
fn with_several_readers_bowwave_loses_at_most_half_of_the_time_and_its_credit() {
    let beyond = beyond(3, TIMES_BESIDE, CREDIT_S);
    assert!(beyond.is_empty(), "{beyond:#?}");
}
