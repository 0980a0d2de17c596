//! What every policy guarantees for any accesses.

mod support;

use historical::{Access, KernelPolicy, KernelView, Plan, Trigger};
use proptest::collection::vec;
use proptest::prelude::*;
use readahead::{Action, Page};
use support::Machine;
use support::inputs::{accesses, moment};
use support::liar::Liar;
use support::policies::{self, ALL, KERNELS, Make};

/// All triggers of a kernel's policy.
const TRIGGERS: [Trigger; 3] = [Trigger::Absent, Trigger::Mark, Trigger::Call];

fn any_policy() -> impl Strategy<Value = Make> {
    proptest::sample::select(ALL.to_vec())
}

fn any_kernel() -> impl Strategy<Value = Make> {
    proptest::sample::select(KERNELS.to_vec())
}

/// The policy's answers to each access.
fn answers(policy: &mut dyn KernelPolicy, accesses: &[(Access, Liar)]) -> Vec<Vec<Action>> {
    let mut plan = Plan::new();
    let answer = |(access, view): &(Access, Liar)| {
        plan.clear();
        policy.on_access(access, view, &mut plan);
        plan.ahead().actions().to_vec()
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
        make in any_policy(),
        accesses in accesses(&TRIGGERS),
    ) {
        let answers = answers(&mut *make(), &accesses);
        for ((access, _), actions) in accesses.iter().zip(&answers) {
            prop_assert!(actions.len() <= readahead::Plan::CAPACITY);
            for action in actions {
                let Some((first, end)) = extent(action) else { continue };
                prop_assert!(first < end, "{action:?} is empty");
                prop_assert!(end <= access.file_pages, "{action:?} for {access:?}");
            }
        }
    }

    #[test]
    fn the_same_history_gets_the_same_answers(make in any_policy(), accesses in accesses(&TRIGGERS)) {
        let first = answers(&mut *make(), &accesses);
        let second = answers(&mut *make(), &accesses);
        prop_assert_eq!(first, second);
    }

    #[test]
    fn forgetting_at_any_moment_is_safe(
        make in any_policy(),
        accesses in accesses(&TRIGGERS),
        (now, idle) in (moment(), moment()),
    ) {
        let mut policy = make();
        answers(&mut *policy, &accesses);
        policy.forget_idle(now, idle);
        answers(&mut *policy, &accesses);
        policy.forget_idle(u64::MAX, 0);
    }

    #[test]
    fn linux_6_never_exceeds_the_larger_of_window_and_device_limit(
        window in 0..2_000u32,
        mut accesses in accesses(&TRIGGERS),
    ) {
        for (access, _) in &mut accesses {
            access.kernel_window = window;
        }
        for actions in answers(&mut *policies::linux_6(), &accesses) {
            prop_assert!(pages(&actions) <= u64::from(window.max(320)));
        }
    }

    /// Two windows; or one, and eight pages before a backward reader's.
    #[test]
    fn older_kernels_never_ask_for_more_than_two_windows_at_once(
        make in proptest::sample::select(policies::WITHIN_THE_WINDOW.to_vec()),
        window in 8..2_000u32,
        mut accesses in accesses(&TRIGGERS),
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
        accesses in accesses(&TRIGGERS),
    ) {
        let mut policy = make();
        let mut plan = Plan::new();
        for (access, view) in &accesses {
            plan.clear();
            policy.on_access(access, view, &mut plan);
            let asked = plan.asked().iter().map(|asked| asked.within(access.file_pages));
            prop_assert_eq!(plan.ahead().pages(), asked.sum::<u64>());
        }
    }

    #[test]
    fn what_a_kernel_moves_in_its_lists_lies_inside_the_file(
        make in any_policy(),
        accesses in accesses(&TRIGGERS),
    ) {
        let mut policy = make();
        let mut plan = Plan::new();
        for (access, view) in &accesses {
            plan.clear();
            policy.on_access(access, view, &mut plan);
            for range in [plan.rescued(), plan.demoted()].into_iter().flatten() {
                prop_assert!(range.pages > 0, "{range:?} is empty");
                prop_assert!(range.start + range.pages <= access.file_pages, "{range:?}");
            }
        }
    }

    #[test]
    fn a_policy_that_wants_calls_names_a_page_further_on(
        make in any_policy(),
        accesses in accesses(&TRIGGERS),
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

    /// A chunk of 256 pages, extended to the end of the file, plus the request of an NFS client.
    #[test]
    fn adaptive_v16_never_exceeds_its_largest_chunk(
        make in proptest::sample::select(policies::V16.to_vec()),
        accesses in accesses(&TRIGGERS),
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

// Fewer cases: reading whole files through a modelled page cache takes longer.
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
        // It assumes that the reader is beyond what was read ahead (vectors/stock.rs).
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
