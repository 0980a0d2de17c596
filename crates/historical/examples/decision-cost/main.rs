//! The cost of a decision: nanoseconds per policy call and per 4 KiB read.
//!
//! A driver reads page by page and tells the policy about absent pages, marks and, if it wants
//! them, calls. Reads that find their page count too; for most policies they cost nothing. Then the
//! same accesses are told to a fresh policy in each round, and only that is timed, so the driver's
//! own work does not count. The result is the best round's time for the later half of the accesses
//! on a quiet machine. The policy's memory is in the processor's cache then; in a busy system it
//! may not be.
//!
//! `sequential`, `backward` and `streams` read from a disk, `strided` from a network volume. Their
//! decisions belong to streams: nearly each one finds a mark, sizes a window and sets the next
//! mark. A decision of `random` is a miss that belongs to no stream: the policy compares it with
//! all recent misses and counts it in the regions around it.
//!
//! Names of policies or patterns as arguments restrict the measurement to these, for use with a
//! profiler.

// An example measures and prints; the crate does not.
#![allow(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types)]

mod body;

use std::hint::black_box;
use std::time::Instant;

use body::{Driven, View};
use historical::{KernelPolicy, NAMES, Trigger, by_name};
use readahead::adaptive::Limits;
use readahead::{Access, Adaptive, DeviceCost, Page, Plan, Policy};

/// Reads per pattern: enough for a thousand decisions in each.
const READS: u64 = 1 << 18;

/// The best of these counts: in some, the machine does something else.
const ROUNDS: usize = 40;

/// Number of open files that policies track.
const OPEN_FILES: usize = 1024;

/// Number of streams read in turn.
const STREAMS: u64 = 16;

/// Pages between the starts of two strided reads.
const STRIDE: u64 = 64;

/// Number of random reads over 64 GiB. The policy is told about each.
const SCATTERED: u64 = 1 << 14;

const SCATTERED_OVER_PAGES: u64 = 1 << 24;

/// A network volume, as in `bowwave demo`.
const VOLUME: DeviceCost = DeviceCost { latency_s: 0.005, bandwidth: 500e6, concurrency: 32.0 };

/// What to read, and from which device.
struct Pattern {
    name: &'static str,
    cost: DeviceCost,
    reads: u64,
    /// The page of the read with this number.
    page: fn(u64) -> Page,
}

const PATTERNS: [Pattern; 5] = [
    Pattern { name: "sequential", cost: DeviceCost::DISK, reads: READS, page: |n| n },
    Pattern { name: "backward", cost: DeviceCost::DISK, reads: READS, page: |n| READS - n },
    Pattern {
        name: "streams",
        cost: DeviceCost::DISK,
        reads: READS,
        page: |n| n % STREAMS * READS + n / STREAMS,
    },
    Pattern { name: "strided", cost: VOLUME, reads: READS, page: |n| (n + 1) * STRIDE },
    Pattern {
        name: "random",
        cost: DeviceCost::DISK,
        reads: SCATTERED,
        page: |n| mixed(n) % SCATTERED_OVER_PAGES,
    },
];

/// A number unrelated to its neighbours'. (Multiples of one number have equal distances and would
/// look like a stride.)
fn mixed(n: u64) -> u64 {
    let mixed = (n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed ^ (mixed >> 31)
}

/// A kernel's policy and its plan.
struct Kernels(Box<dyn KernelPolicy>, historical::Plan);

impl Driven for Kernels {
    type Access = Access<Trigger>;

    fn ask(&mut self, access: &Self::Access, view: &View) -> &Plan {
        self.1.clear();
        self.0.on_access(access, view, &mut self.1);
        self.1.ahead()
    }

    fn wants_calls(&self) -> bool {
        self.0.wants_calls()
    }

    fn heard(access: Access<Trigger>) -> Option<Self::Access> {
        Some(access)
    }
}

/// Bowwave's policy and its plan.
struct Bowwaves(Adaptive, Plan);

impl Driven for Bowwaves {
    type Access = Access;

    fn ask(&mut self, access: &Access, view: &View) -> &Plan {
        self.1.clear();
        self.0.on_access(access, view, &mut self.1);
        &self.1
    }

    fn heard(access: Access<Trigger>) -> Option<Access> {
        let trigger = match access.trigger {
            Trigger::Absent => readahead::Trigger::Absent,
            Trigger::Mark => readahead::Trigger::Mark,
            Trigger::Call => return None,
        };
        let Access { file, volume, open_file, page, request, previous, .. } = access;
        let Access { via, hint, file_pages, kernel_window, now, .. } = access;
        Some(Access {
            file,
            volume,
            open_file,
            page,
            request,
            previous,
            trigger,
            via,
            hint,
            file_pages,
            kernel_window,
            now,
        })
    }
}

/// The cost of a pattern for a policy: nanoseconds per decision and per read.
fn cost<D: Driven>(build: &dyn Fn() -> D, pattern: &Pattern) -> (f64, f64) {
    let view = View { cost: pattern.cost };
    let told = body::told(build(), (0..pattern.reads).map(pattern.page), &view);
    let ns = best_s(build, &told, &view) * 1e9;
    (ns, ns * told.len() as f64 / pattern.reads as f64)
}

/// Seconds per decision that a fresh policy needs for the later half of the accesses, in the best
/// round.
fn best_s<D: Driven>(build: &dyn Fn() -> D, told: &[D::Access], view: &View) -> f64 {
    let round = || {
        let mut policy = build();
        let mut seconds = |told: &[D::Access]| {
            let started = Instant::now();
            for access in told {
                black_box(policy.ask(black_box(access), view));
            }
            started.elapsed().as_secs_f64() / told.len() as f64
        };
        let (first, rest) = told.split_at(told.len() / 2);
        seconds(first);
        seconds(rest)
    };
    std::iter::repeat_with(round).take(ROUNDS).fold(f64::INFINITY, f64::min)
}

fn main() {
    let asked: Vec<String> = std::env::args().skip(1).collect();
    let is_asked = |name: &str| asked.iter().any(|other| other == name);
    let names = || NAMES.into_iter().chain(["adaptive"]);
    let some_policies = names().any(is_asked);
    let policies = names().filter(|name| !some_policies || is_asked(name));
    let some_patterns = PATTERNS.iter().any(|pattern| is_asked(pattern.name));
    let patterns = || PATTERNS.iter().filter(|pattern| !some_patterns || is_asked(pattern.name));
    println!("ns a decision / ns a read of 4 KiB");
    print!("{:<18}", "policy");
    patterns().for_each(|pattern| print!("{:>16}", pattern.name));
    println!();
    for name in policies {
        print!("{name:<18}");
        for pattern in patterns() {
            let (decision, read) = match by_name(name, OPEN_FILES) {
                None => cost(&bowwaves, pattern),
                Some(_) => cost(&|| kernels(name), pattern),
            };
            print!("{decision:>8.0} /{read:>6.1}");
        }
        println!();
    }
}

fn bowwaves() -> Bowwaves {
    let limits = Limits { files: OPEN_FILES, ..Limits::default() };
    Bowwaves(Adaptive::new(limits), Plan::new())
}

fn kernels(name: &str) -> Kernels {
    let policy = by_name(name, OPEN_FILES).expect("it is one of the names");
    Kernels(policy, historical::Plan::new())
}
