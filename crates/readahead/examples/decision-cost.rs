//! What a decision costs: nanoseconds per policy call, the best of seven rounds.

use std::hint::black_box;
use std::time::Instant;

use readahead::{
    Access, CacheView, FileId, Hint, NAMES, OpenFileId, Plan, Policy, Trigger, Via, VolumeId,
    by_name,
};

/// A cache in which nothing is evicted.
struct Cached;

impl CacheView for Cached {
    fn cached_in(&self, _start: u64, pages: u64) -> u64 {
        pages
    }
}

const DECISIONS: u64 = 200_000;
const ROUNDS: usize = 7;

/// Open files that are followed.
const OPEN_FILES: usize = 1024;

fn access(n: u64, page: u64) -> Access {
    Access {
        file: FileId(1),
        volume: VolumeId(1),
        open_file: OpenFileId(1),
        page,
        request: 1,
        previous: page.checked_sub(1),
        trigger: if n == 0 { Trigger::Absent } else { Trigger::Mark },
        via: Via::Read,
        hint: Hint::Normal,
        file_pages: 1 << 40,
        kernel_window: 32,
        now: n * 50_000,
    }
}

fn best_ns(policy: &mut dyn Policy, page: impl Fn(u64) -> u64) -> f64 {
    let mut plan = Plan::new();
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let started = Instant::now();
        for n in 0..DECISIONS {
            plan.clear();
            policy.on_access(black_box(&access(n, page(n))), &Cached, &mut plan);
            black_box(&plan);
        }
        best = best.min(started.elapsed().as_nanos() as f64 / DECISIONS as f64);
    }
    best
}

fn main() {
    println!("{:<18}{:>14}{:>12}   ns per decision", "policy", "sequential", "random");
    for name in NAMES {
        let build = || by_name(name, OPEN_FILES).expect("it is one of the names");
        let sequential = best_ns(&mut *build(), |n| n * 32);
        let random = best_ns(&mut *build(), |n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 24);
        println!("{name:<18}{sequential:>14.0}{random:>12.0}");
    }
}
