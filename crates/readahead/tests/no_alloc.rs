//! Deciding allocates nothing, so that a policy can run in the event path of a busy machine.

#![allow(unsafe_code)] // a global allocator is an unsafe trait; the invariant is written there

#[path = "support/counting.rs"]
mod counting;
mod support;

use counting::allocations;
use readahead::{Plan, Trigger};
use support::mixture::{access, view};
use support::policies::adaptive;

#[test]
fn deciding_allocates_nothing() {
    let mut policy = adaptive();
    let mut plan = Plan::new();
    let mut actions = 0;
    let before = allocations();
    for n in 0..100_000_u64 {
        let trigger = if n.is_multiple_of(5) { Trigger::Mark } else { Trigger::Absent };
        plan.clear();
        policy.on_access(&access(n, trigger), &view(n), &mut plan);
        actions += plan.actions().len();
    }
    assert_eq!(allocations() - before, 0);
    assert!(actions > 1_000, "it was hardly exercised");
}
