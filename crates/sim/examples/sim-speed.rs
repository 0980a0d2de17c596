//! The simulator's speed: simulated page accesses per second, cached and not.

#[path = "../tests/support/mod.rs"]
mod support;

use std::time::Instant;

use historical::Linux6;
use readahead::{Adaptive, PAGE_BYTES};
use sim::{Bowwave, Listed, Machine, OnTop, Op, Parts};

const FILE_BYTES: u64 = 400 << 20;

fn machine(memory_bytes: u64) -> Machine {
    Machine::new(Parts {
        on_top: Some(OnTop::Bowwave(Bowwave::new(Box::new(Adaptive::default()), 1 << 30))),
        ..support::parts("hdd", memory_bytes / PAGE_BYTES, Box::new(Linux6::new(64)))
    })
}

/// Reads a file several times in requests of 64 KiB. Returns page accesses per real second.
fn rate(memory_bytes: u64, times: u64) -> f64 {
    let mut machine = machine(memory_bytes);
    let file = machine.add_file(FILE_BYTES);
    let open = machine.open(file);
    let pass = move |_| {
        (0..FILE_BYTES / 65_536).map(move |i| Op::Read { open, at: i * 65_536, bytes: 65_536 })
    };
    machine.spawn(0, Listed((0..times).flat_map(pass)));
    let start = Instant::now();
    machine.run();
    (times * FILE_BYTES / PAGE_BYTES) as f64 / start.elapsed().as_secs_f64()
}

fn main() {
    let million = |rate: f64| rate / 1e6;
    // One pass fills the cache; a hundred more are cached.
    println!("cached sequential: {:.1} million page accesses/s", million(rate(1 << 30, 101)));
    println!(
        "uncached, in memory of a quarter: {:.1} million page accesses/s",
        million(rate(FILE_BYTES / 4, 20))
    );
}
