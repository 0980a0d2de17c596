//! What `adaptive` leaves to the kernel, and what it does not.

mod support;

use readahead::DeviceCost;
use support::Machine;
use support::policies;

/// A memory card: 3.3 pages pass in the time of a visit.
const CARD: DeviceCost = DeviceCost { latency_s: 0.000_402, bandwidth: 34e6, concurrency: 1.0 };

/// What is asked for while `[0, end)` is read in requests of four pages, in windows of 128 KiB.
fn asked(end: u64) -> u64 {
    let mut machine = Machine::boxed(policies::adaptive(), 100_000, 32);
    machine.cache.cost = CARD;
    machine.scan(1, 0, end, 4);
    machine.policy.tally().asked_pages
}

#[test]
fn a_run_is_left_to_the_kernel_until_it_deserves_a_larger_window_than_the_kernels() {
    assert_eq!(asked(64), 0);
    assert!(asked(20_000) > 15_000);
}
