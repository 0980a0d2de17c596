//! Decisions do not allocate, so that a policy can run in the event path of a busy machine.

#![allow(unsafe_code)] // a global allocator is an unsafe trait; the invariant is written there

#[path = "../../readahead/tests/support/counting.rs"]
mod counting;
mod support;

use counting::allocations;
use historical::{KernelPolicy, Plan, Trigger};
use support::mixture::{access, view};
use support::policies::ALL;

fn decide(policy: &mut dyn KernelPolicy, plan: &mut Plan) -> usize {
    let mut actions = 0;
    for n in 0..100_000 {
        let trigger = match n % 5 {
            0 => Trigger::Mark,
            1 | 2 => Trigger::Call,
            _ => Trigger::Absent,
        };
        plan.clear();
        policy.on_access(&access(n, trigger), &view(n), plan);
        actions += plan.ahead().actions().len();
    }
    actions
}

#[test]
fn deciding_allocates_nothing() {
    for make in ALL {
        let mut policy = make();
        let mut plan = Plan::new();
        let before = allocations();
        let actions = decide(&mut *policy, &mut plan);
        assert_eq!(allocations() - before, 0, "{}", policy.name());
        assert!(actions > 1_000, "{} was hardly exercised", policy.name());
    }
}
