//! Reading cached pages allocates nothing, so that long runs cost no more than their accesses.

#![allow(unsafe_code)] // a global allocator is an unsafe trait; the invariant is written there

#[path = "../../readahead/tests/support/counting.rs"]
mod counting;
mod support;

use std::sync::{Arc, Mutex};

use counting::allocations;
use historical::Linux6;
use readahead::{Adaptive, PAGE_BYTES};
use sim::{Bowwave, Machine, OnTop, Op, Parts};

const FILE_BYTES: u64 = 16 << 20;
const REQUEST_BYTES: u64 = 65_536;
const PASSES: u64 = 20;

/// Reads a file repeatedly. Returns the allocations up to the end of each pass.
fn allocations_by_pass(with_bowwave: bool) -> Vec<u64> {
    let bowwave = Bowwave::new(Box::new(Adaptive::default()), 1 << 30);
    let mut machine = Machine::new(Parts {
        on_top: with_bowwave.then_some(OnTop::Bowwave(bowwave)),
        ..support::parts("hdd", 4 * FILE_BYTES / PAGE_BYTES, Box::new(Linux6::new(64)))
    });
    let file = machine.add_file(FILE_BYTES);
    let open = machine.open(file);
    let counts = Arc::new(Mutex::new(Vec::with_capacity(PASSES as usize)));
    let noted = Arc::clone(&counts);
    let mut done = 0;
    machine.spawn(0, move |_| {
        let at = done * REQUEST_BYTES % FILE_BYTES;
        if at == 0 && done > 0 {
            noted.lock().expect("nobody panicked").push(allocations());
        }
        if done == PASSES * (FILE_BYTES / REQUEST_BYTES) {
            return Op::Exit;
        }
        done += 1;
        Op::Read { open, at, bytes: REQUEST_BYTES }
    });
    machine.run();
    std::mem::take(&mut *counts.lock().expect("nobody panicked"))
}

#[test]
fn cached_sequential_reading_allocates_nothing() {
    for with_bowwave in [false, true] {
        let counts = allocations_by_pass(with_bowwave);
        assert_eq!(counts.len() as u64, PASSES);
        // The first pass fills the cache, and the second touches the last mark of the first. What allocates after that
        // would allocate in each pass.
        assert_eq!(counts.last(), counts.get(1), "with bowwave: {with_bowwave}");
    }
}
