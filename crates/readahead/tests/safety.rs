//! What every policy promises, whatever it is told.

mod support;

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;

use readahead::{Access, Action, CacheView, DeviceCost, Page, Plan, Policy, Trigger};
use support::Machine;
use support::inputs::{accesses, cost, moment};
use support::liar::Liar;
use support::policies::{self, ALL, KERNELS, Make};

fn any_policy() -> impl Strategy<Value = Make> {
    proptest::sample::select(ALL.to_vec())
}

fn any_kernel() -> impl Strategy<Value = Make> {
    proptest::sample::select(KERNELS.to_vec())
}

/// What a policy answers to each access.
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

/// First page, and the page after the last, of what an action is about, if it is about pages.
fn extent(action: &Action) -> Option<(Page, Page)> {
    match *action {
        Action::Read { start, pages, .. }
        | Action::Rescue { start, pages }
        | Action::Demote { start, pages } => Some((start, start + pages)),
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
        make in any_policy(),
        accesses in accesses(),
    ) {
        let answers = answers(&mut *make(), &accesses);
        for ((access, _), actions) in accesses.iter().zip(&answers) {
            prop_assert!(actions.len() <= Plan::CAPACITY);
            for action in actions {
                let Some((first, end)) = extent(action) else { continue };
                prop_assert!(first < end, "{action:?} is empty");
                prop_assert!(end <= access.file_pages, "{action:?} for {access:?}");
            }
        }
    }

    /// But for one that was narrowed to a page, or came so, which may have what the kernel gives.
    #[test]
    fn the_kernels_windows_are_only_narrowed_and_given_back_and_never_closed(
        make in any_policy(),
        accesses in accesses(),
    ) {
        let answers = answers(&mut *make(), &accesses);
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
    fn the_same_history_gets_the_same_answers(make in any_policy(), accesses in accesses()) {
        let first = answers(&mut *make(), &accesses);
        let second = answers(&mut *make(), &accesses);
        prop_assert_eq!(first, second);
    }

    #[test]
    fn forgetting_at_any_moment_is_safe(
        make in any_policy(),
        accesses in accesses(),
        (now, idle) in (moment(), moment()),
    ) {
        let mut policy = make();
        answers(&mut *policy, &accesses);
        policy.forget_idle(now, idle);
        answers(&mut *policy, &accesses);
        policy.forget_idle(u64::MAX, 0);
    }

    #[test]
    fn adaptive_never_asks_for_more_than_there_is_room(accesses in accesses()) {
        let answers = answers(&mut *policies::adaptive(), &accesses);
        for ((_, view), actions) in accesses.iter().zip(&answers) {
            prop_assert!(pages(actions) <= view.room_pages);
        }
    }

    #[test]
    fn adaptive_keeps_count_of_what_it_asked(accesses in accesses()) {
        let mut policy = policies::adaptive();
        let asked: u64 = answers(&mut *policy, &accesses).iter().map(|a| pages(a)).sum();
        let tally = policy.tally();
        prop_assert!(tally.asked_pages + tally.dense_pages <= asked);
        prop_assert!(tally.used_pages + tally.wasted_pages <= tally.asked_pages);
        prop_assert!(tally.ahead_pages() * readahead::PAGE_BYTES <= policies::ALL_BYTES);
    }

    /// Runs that end where they like, of one file and on one device.
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

    #[test]
    fn linux_6_never_exceeds_the_larger_of_window_and_device_limit(
        window in 0..2_000u32,
        mut accesses in accesses(),
    ) {
        for (access, _) in &mut accesses {
            access.kernel_window = window;
        }
        for actions in answers(&mut *policies::linux_6(), &accesses) {
            prop_assert!(pages(&actions) <= u64::from(window.max(320)));
        }
    }

    /// A window and the one ahead of it; or one, and eight pages before a backward reader's.
    #[test]
    fn older_kernels_never_ask_for_more_than_two_windows_at_once(
        make in proptest::sample::select(policies::WITHIN_THE_WINDOW.to_vec()),
        window in 8..2_000u32,
        mut accesses in accesses(),
    ) {
        for (access, _) in &mut accesses {
            access.kernel_window = window;
        }
        for actions in answers(&mut *make(), &accesses) {
            prop_assert!(pages(&actions) <= 2 * u64::from(window), "{actions:?}");
        }
    }

    #[test]
    fn what_is_read_is_what_was_asked_cut_to_the_file(
        make in any_policy(),
        accesses in accesses(),
    ) {
        let mut policy = make();
        let mut plan = Plan::new();
        for (access, view) in &accesses {
            plan.clear();
            policy.on_access(access, view, &mut plan);
            let asked = plan.asked().iter().map(|asked| asked.within(access.file_pages));
            prop_assert_eq!(plan.pages(), asked.sum::<u64>());
        }
    }

    #[test]
    fn a_policy_that_wants_calls_names_a_page_further_on(
        make in any_policy(),
        accesses in accesses(),
    ) {
        let mut policy = make();
        let mut plan = Plan::new();
        for (access, view) in accesses.iter().filter(|(a, _)| a.trigger == Trigger::Call) {
            plan.clear();
            policy.on_access(access, view, &mut plan);
            prop_assert!(plan.next_call().is_none_or(|next| next > access.page));
            prop_assert!(plan.waits_for().is_none_or(|page| page < access.file_pages));
        }
    }

    /// A chunk of 256 pages, extended to the end of the file, and the request of an NFS client.
    #[test]
    fn adaptive_v16_never_exceeds_its_largest_chunk(
        make in proptest::sample::select(policies::V16.to_vec()),
        accesses in accesses(),
    ) {
        let (chunk, extension) = (256, 256 / 4 + 4);
        let as_is = |access: &Access, view: &Liar| {
            (view.ageing().inactive_and_free_pages < 2).then_some(u64::from(access.request.max(1)))
        };
        let answers = answers(&mut *make(), &accesses);
        for ((access, view), actions) in accesses.iter().zip(&answers) {
            let most = as_is(access, view).unwrap_or(2 * chunk + extension);
            prop_assert!(pages(actions) <= most, "{actions:?}");
        }
    }

}

// Whole reads of a file through a modelled page cache take longer.
proptest! {
    #![proptest_config(config(64))]

    #[test]
    fn a_sequence_is_read_once_and_not_asked_for_twice(
        make in any_policy(),
        (start, end) in (0..400u64, 400..6_000u64),
        request in 1..300u64,
        window in 1..600u32,
    ) {
        let mut machine = Machine::boxed(make(), end, window);
        machine.scan(1, start, end, request);
        // It believes the reader beyond what it has read ahead (vectors/stock.rs).
        let is_ahead_of_itself =
            machine.policy.name() == "stock-2.6.13" && request > u64::from(window);
        prop_assert!(
            is_ahead_of_itself || machine.cache.overlap_pages == 0,
            "{:?}", machine.trace()
        );
        prop_assert_eq!(machine.cache.unused_pages(), 0);
    }

    #[test]
    fn a_reader_that_stops_leaves_little_unread(
        make in any_kernel(),
        end in 1..4_000u64,
        request in 1..100u64,
    ) {
        let mut machine = Machine::boxed(make(), 100_000, 128);
        machine.scan(1, 0, end, request);
        prop_assert!(machine.cache.unused_pages() <= 2 * 256);
    }

    #[test]
    fn adaptive_leaves_no_more_unread_than_its_budget(end in 1..20_000u64, request in 1..100u64) {
        let mut machine = Machine::boxed(policies::adaptive(), 1_000_000, 32);
        machine.scan(1, 0, end, request);
        let unread = machine.cache.unused_pages() as u64 * readahead::PAGE_BYTES;
        prop_assert!(unread <= policies::ALONE_BYTES);
    }

    #[test]
    fn kernels_read_scattered_pages_as_requested(
        make in any_kernel(),
        order in Just((1..200u64).collect::<Vec<_>>()).prop_shuffle(),
        request in 1..20u64,
    ) {
        let mut machine = Machine::boxed(make(), 100_000, 32);
        for place in &order {
            machine.read(1, place * 300, request);
        }
        prop_assert_eq!(machine.cache.read_pages, order.len() as u64 * request);
    }

    #[test]
    fn readers_survive_any_reclaim(
        make in any_policy(),
        reads in vec((0..3u64, 0..2_000u64, 1..64u64), 1..60),
        evictions in vec((0..2_000u64, 0..2_000u64), 60),
        pressure in 0..10_000u64,
    ) {
        let mut machine = Machine::boxed(make(), 2_000, 32);
        machine.scanned_per_page = pressure;
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

/// Found in review: the search for a stride ended when the miss before, of another reader, lay so
/// far below that two steps back would leave the file.
#[test]
fn adaptive_recognises_a_stride_beside_a_reader_near_the_start_of_the_file() {
    let mut machine = Machine::boxed(policies::adaptive(), 100_000, 32);
    machine.cache.cost = DeviceCost { latency_s: 0.005, bandwidth: 500e6, concurrency: 32.0 };
    for page in [3_000, 4_000, 10, 5_000, 90, 6_000] {
        machine.read(1, page, 1);
    }
    assert!(machine.cache.is_cached(7_000));
}

/// What runs that were broken off had ahead counted against the budget for ten seconds: nothing was
/// read ahead for those that followed.
#[test]
fn runs_that_were_broken_off_leave_their_share_of_the_budget_to_the_next() {
    let mut machine = Machine::boxed(policies::adaptive(), 1_000_000, 32);
    machine.cache.cost = DeviceCost { latency_s: 0.005, bandwidth: 500e6, concurrency: 32.0 };
    for run in 1..=100 {
        for i in 0..64 {
            machine.read(1, 9_000 * run - 4 * i, 4);
        }
        let next = 9_000 * run - 4 * 64;
        assert!(machine.cache.is_cached(next), "nothing is ahead of the reader of run {run}");
        machine.wait_a_tenth();
    }
    let tally = machine.policy.tally();
    assert!(tally.wasted_pages * readahead::PAGE_BYTES > 2 * policies::AHEAD_BYTES, "{tally:?}");
}

/// What the body leaves may be less than the policy's own budget, of which next to nothing is out here.
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
