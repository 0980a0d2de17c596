//! What `adaptive` guarantees for any accesses.

mod support;

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;
use readahead::{Access, Action, CacheView, DeviceCost, Page, Plan, Policy, Trigger};
use support::Machine;
use support::inputs::{accesses, cost, moment};
use support::liar::Liar;
use support::policies;

const TRIGGERS: [Trigger; 2] = [Trigger::Absent, Trigger::Mark];

/// The policy's answers to each access.
fn answers(policy: &mut dyn Policy, accesses: &[(Access, Liar)]) -> Vec<Vec<Action>> {
    let mut plan = Plan::new();
    let answer = |(access, view): &(Access, Liar)| {
        plan.clear();
        policy.on_access(access, view, &mut plan);
        plan.actions().to_vec()
    };
    accesses.iter().map(answer).collect()
}

fn pages(actions: &[Action]) -> u64 {
    let pages = |action: &Action| match action {
        Action::Read { pages, .. } => *pages,
        _ => 0,
    };
    actions.iter().map(pages).sum()
}

/// First page, and page after the last, of an action, if it concerns pages.
fn extent(action: &Action) -> Option<(Page, Page)> {
    match *action {
        Action::Read { start, pages, .. } => Some((start, start + pages)),
        Action::Mark(mark) => Some((mark.first, mark.last + 1)),
        Action::KernelWindow { .. } => None,
    }
}

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config(512))]

    #[test]
    fn whatever_it_is_told_a_policy_stays_inside_the_file(
        accesses in accesses(&TRIGGERS),
    ) {
        let answers = answers(&mut *policies::adaptive(), &accesses);
        for ((access, _), actions) in accesses.iter().zip(&answers) {
            prop_assert!(actions.len() <= Plan::CAPACITY);
            for action in actions {
                let Some((first, end)) = extent(action) else { continue };
                prop_assert!(first < end, "{action:?} is empty");
                prop_assert!(end <= access.file_pages, "{action:?} for {access:?}");
            }
        }
    }

    /// Except for a window of one page, which may get the kernel's size.
    #[test]
    fn the_kernels_windows_are_only_narrowed_and_given_back_and_never_closed(
        accesses in accesses(&TRIGGERS),
    ) {
        let answers = answers(&mut *policies::adaptive(), &accesses);
        let mut widest = BTreeMap::new();
        for ((access, _), actions) in accesses.iter().zip(&answers) {
            let now = access.kernel_window;
            let widest = widest.entry(access.open_file).or_insert(support::KERNEL_WINDOW);
            *widest = now.max(*widest);
            let allowed = if now > 1 { 1..=now - 1 } else { 2..=*widest };
            for action in actions {
                if let Action::KernelWindow { pages } = action {
                    prop_assert!(allowed.contains(pages), "{pages} for {access:?}");
                }
            }
        }
    }

    #[test]
    fn the_same_history_gets_the_same_answers(accesses in accesses(&TRIGGERS)) {
        let first = answers(&mut *policies::adaptive(), &accesses);
        let second = answers(&mut *policies::adaptive(), &accesses);
        prop_assert_eq!(first, second);
    }

    #[test]
    fn forgetting_at_any_moment_is_safe(
        accesses in accesses(&TRIGGERS),
        (now, idle) in (moment(), moment()),
    ) {
        let mut policy = policies::adaptive();
        answers(&mut *policy, &accesses);
        policy.forget_idle(now, idle);
        answers(&mut *policy, &accesses);
        policy.forget_idle(u64::MAX, 0);
    }

    #[test]
    fn adaptive_never_asks_for_more_than_there_is_room(accesses in accesses(&TRIGGERS)) {
        let answers = answers(&mut *policies::adaptive(), &accesses);
        for ((_, view), actions) in accesses.iter().zip(&answers) {
            prop_assert!(pages(actions) <= view.room_pages);
        }
    }

    #[test]
    fn adaptive_keeps_count_of_what_it_asked(accesses in accesses(&TRIGGERS)) {
        let mut policy = policies::adaptive();
        let asked: u64 = answers(&mut *policy, &accesses).iter().map(|a| pages(a)).sum();
        let tally = policy.tally();
        prop_assert!(tally.asked_pages + tally.dense_pages <= asked);
        prop_assert!(tally.used_pages + tally.wasted_pages <= tally.asked_pages);
        prop_assert!(tally.ahead_pages() * readahead::PAGE_BYTES <= policies::ALL_BYTES);
    }

    /// Runs of any length, in one file and on one device.
    #[test]
    fn however_runs_end_adaptive_keeps_to_its_budget(
        runs in vec((0..100u64, 1..200u64, any::<bool>(), 0..3u64), 1..12),
        cost in cost(),
    ) {
        let mut machine = Machine::boxed(policies::adaptive(), 500_000, 32);
        machine.cache.cost = cost;
        for (place, length, is_backward, seconds) in runs {
            for i in 0..length {
                let page = if is_backward { length - 1 - i } else { i };
                machine.read(1, 4_000 * place + 1_000 + page, 1);
                let tally = machine.policy.tally();
                prop_assert!(tally.used_pages + tally.wasted_pages <= tally.asked_pages);
                prop_assert!(tally.ahead_pages() * readahead::PAGE_BYTES <= policies::ALL_BYTES);
            }
            (0..seconds).for_each(|_| machine.wait_a_second());
        }
    }
}

// Reading a whole file through a modelled page cache takes longer.
proptest! {
    #![proptest_config(config(64))]

    #[test]
    fn a_sequence_is_read_once_and_not_asked_for_twice(
        (start, end) in (0..400u64, 400..6_000u64),
        request in 1..300u64,
        window in 1..600u32,
    ) {
        let mut machine = Machine::boxed(policies::adaptive(), end, window);
        machine.scan(1, start, end, request);
        prop_assert!(machine.cache.overlap_pages == 0, "{:?}", machine.trace());
        prop_assert_eq!(machine.cache.unused_pages(), 0);
    }

    #[test]
    fn adaptive_leaves_no_more_unread_than_its_budget(end in 1..20_000u64, request in 1..100u64) {
        let mut machine = Machine::boxed(policies::adaptive(), 1_000_000, 32);
        machine.scan(1, 0, end, request);
        let unread = machine.cache.unused_pages() as u64 * readahead::PAGE_BYTES;
        prop_assert!(unread <= policies::ALONE_BYTES);
    }

    #[test]
    fn readers_survive_any_reclaim(
        reads in vec((0..3u64, 0..2_000u64, 1..64u64), 1..60),
        evictions in vec((0..2_000u64, 0..2_000u64), 60),
    ) {
        let mut machine = Machine::boxed(policies::adaptive(), 2_000, 32);
        for ((open_file, start, pages), (from, to)) in reads.iter().zip(&evictions) {
            machine.scan(*open_file, *start, (start + pages).min(2_000), 7);
            machine.cache.evict(*from, *to);
        }
    }
}

/// Found by `adaptive_keeps_count_of_what_it_asked`: pages between a late request and the reader
/// were counted as used and as wasted.
#[test]
fn adaptive_counts_no_page_twice_when_a_late_request_finds_its_window_evicted() {
    let mut machine = Machine::boxed(policies::adaptive(), 100_000, 1);
    machine.cache.cost = DeviceCost { latency_s: 0.005, bandwidth: 500e6, concurrency: 32.0 };
    machine.scan(1, 0, 100, 1);
    machine.cache.evict(100, 101);
    machine.cache.room_pages = 0;
    machine.read(1, 100, 1); // absent, which tells where the reader is
    machine.wait_a_second();
    machine.cache.evict(0, 100_000);
    machine.read(1, 90, 1);
    let tally = machine.policy.tally();
    assert!(tally.asked_pages > 100, "{tally:?}");
    assert_eq!(tally.used_pages + tally.wasted_pages, tally.asked_pages);
}

/// Found in review: the search for a stride ended when the previous miss, of another reader, was so far below that two
/// steps back would leave the file.
#[test]
fn adaptive_recognises_a_stride_beside_a_reader_near_the_start_of_the_file() {
    let mut machine = Machine::boxed(policies::adaptive(), 100_000, 32);
    machine.cache.cost = DeviceCost { latency_s: 0.005, bandwidth: 500e6, concurrency: 32.0 };
    for page in [3_000, 4_000, 10, 5_000, 90, 6_000] {
        machine.read(1, page, 1);
    }
    assert!(machine.cache.is_cached(7_000));
}

/// A defect that was found: pages ahead of broken-off runs counted against the budget for ten seconds, so nothing was
/// read ahead for the next runs.
#[test]
fn broken_off_runs_leave_their_share_of_the_budget_to_the_next() {
    let mut machine = Machine::boxed(policies::adaptive(), 1_000_000, 32);
    machine.cache.cost = DeviceCost { latency_s: 0.005, bandwidth: 500e6, concurrency: 32.0 };
    for run in 1..=100 {
        // Of different lengths, so that the policy does not learn where they end.
        for i in 0..64 + run * 37 % 101 {
            let next = 9_000 * run - 4 * i;
            let is_ahead = machine.cache.is_cached(next);
            assert!(is_ahead || !(16..32).contains(&i), "nothing was ahead of run {run} at {i}");
            machine.read(1, next, 4);
        }
        machine.wait_a_tenth();
    }
    let tally = machine.policy.tally();
    assert!(tally.wasted_pages * readahead::PAGE_BYTES > 2 * policies::AHEAD_BYTES, "{tally:?}");
}

/// The body's room may be less than the policy's own budget, of which almost nothing is used here.
#[test]
fn where_the_body_has_no_room_readers_that_have_stopped_give_up_their_share() {
    let mut machine = Machine::boxed(policies::adaptive(), 1_000_000, 32);
    machine.cache.cost = DeviceCost { latency_s: 0.005, bandwidth: 500e6, concurrency: 32.0 };
    for i in 0..64 {
        machine.read(1, 9_000 - 4 * i, 4);
    }
    assert!(machine.policy.tally().ahead_pages() > 0);
    machine.wait_a_second();
    machine.cache.room_pages = 0;
    machine.read(1, 500_000, 1);
    assert_eq!(machine.policy.tally().ahead_pages(), 0);
}
