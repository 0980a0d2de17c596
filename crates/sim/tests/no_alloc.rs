//! Reading what is cached allocates nothing, so that long runs cost their accesses and no more.

#![allow(unsafe_code)] // a global allocator is an unsafe trait; the invariant is written there

#[path = "../../readahead/tests/support/counting.rs"]
mod counting;

use std::sync::{Arc, Mutex};

use counting::allocations;
use readahead::{Adaptive, DeviceCost, Linux6, PAGE_BYTES, Policy};
use sim::{CpuCosts, Machine, Op, Parts, REACTION_NS, Reclaim};

const FILE_BYTES: u64 = 16 << 20;
const REQUEST_BYTES: u64 = 65_536;
const PASSES: u64 = 20;

/// Reads a file again and again; returns the allocations up to the end of each pass.
fn allocations_by_pass(with_bowwave: bool) -> Vec<u64> {
    let spec = device::load("hdd").expect("the catalogue has it");
    let policy: Box<dyn Policy> = Box::new(Adaptive::default());
    let mut machine = Machine::new(Parts {
        memory_pages: 4 * FILE_BYTES / PAGE_BYTES,
        kernel: Box::new(Linux6::new(64)),
        user: with_bowwave.then_some((policy, REACTION_NS)),
        kernel_window: 32,
        elevator: iosched::by_name("noop", 2560).expect("it is known"),
        device: spec.build(40 << 30),
        cost: DeviceCost::DISK,
        device_depth: 32,
        request_pages: 320,
        reclaim: Reclaim::UseOnceFirst,
        cpu: CpuCosts { call: 300, page: 400, decision: 200, wake: 5_000, ..CpuCosts::default() },
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
        // The first pass fills the cache; the second finds the last of its marks.
        assert_eq!(counts.last(), counts.get(1), "with bowwave: {with_bowwave}");
    }
}
