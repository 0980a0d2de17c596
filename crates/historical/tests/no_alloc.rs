//! Decisions do not allocate, so that a policy may run in the event path of a busy machine.

#![allow(unsafe_code)] // a global allocator is an unsafe trait; the invariant is written there

#[path = "../../readahead/tests/support/counting.rs"]
mod counting;
mod support;

use counting::allocations;
use historical::{Access, KernelPolicy, Plan, Trigger};
use readahead::{DeviceCost, FileId, Hint, OpenFileId, Via, VolumeId};
use support::liar::Liar;
use support::policies::ALL;

fn allocations_of(work: impl FnOnce()) -> u64 {
    let before = allocations();
    work();
    allocations() - before
}

/// The n-th access of a mix: sequences forward and backward, strides, random and dense reads,
/// faults, over more files than the policy tracks.
fn access(n: u64) -> Access {
    let scattered = n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20;
    let step = n / 8;
    let page = match n % 8 {
        0 => step,
        1 => 500_000_u64.saturating_sub(step),
        2 => 600_000 + 64 * step,
        3 => 900_000 - 64 * (step % 10_000),
        4 => scattered % 1_000_000,
        5 => 700_000 + scattered % 512,
        _ => 100_000 + step,
    };
    let file = if n % 8 == 4 { scattered % 500 } else { n % 4 };
    Access {
        file: FileId(file),
        volume: VolumeId(1),
        open_file: OpenFileId(file),
        page,
        request: 1 + (scattered % 40) as u32,
        previous: page.checked_sub(1),
        trigger: match n % 5 {
            0 => Trigger::Mark,
            1 | 2 => Trigger::Call,
            _ => Trigger::Absent,
        },
        via: if n % 8 == 7 { Via::Mmap } else { Via::Read },
        hint: Hint::Normal,
        file_pages: 1_000_000,
        kernel_window: 32,
        now: n * 1_000,
    }
}

fn decide(policy: &mut dyn KernelPolicy, plan: &mut Plan) -> usize {
    let mut actions = 0;
    for n in 0..100_000 {
        let view = Liar {
            seed: n,
            bluntness: 6,
            cost: if n % 2 == 0 { DeviceCost::FLASH } else { DeviceCost::DISK },
            room_pages: 100_000,
            thrashing: 20_000,
        };
        plan.clear();
        policy.on_access(&access(n), &view, plan);
        actions += plan.ahead.actions().len();
    }
    actions
}

#[test]
fn deciding_allocates_nothing() {
    for make in ALL {
        let mut policy = make();
        let mut plan = Plan::new();
        let mut actions = 0;
        let allocations = allocations_of(|| actions = decide(&mut *policy, &mut plan));
        assert!(actions > 1_000, "{} was hardly exercised", policy.name());
        assert_eq!(allocations, 0, "{}", policy.name());
    }
}
