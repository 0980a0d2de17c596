//! The kernel's own windows of single open files: set, given back, left alone.

use std::collections::BTreeMap;

use controller::ids::{BackingId, CgroupId, DeviceNumber, OpenFile, Target, Tgid, Ticket};
use controller::{
    Access, Advice, Charge, Command, Completed, Input, Kind, MemoryStats, Options, WindowOutcome,
    WindowSetting,
};
use readahead::{DeviceCost, Past};

use crate::support::{
    Bench, DEV, DISK, MS, Machine, SECOND, VOLUME, charging, facts, fault, file, miss, mounted,
    reference,
};

/// The first window that these commands request, and its target.
fn set(commands: &[Command]) -> Option<(Target, WindowSetting)> {
    commands.iter().find_map(|command| match command {
        Command::SetWindow { target, setting, .. } => Some((*target, *setting)),
        _ => None,
    })
}

fn open_file(number: u64) -> Target {
    Target::OpenFile(OpenFile(number))
}

const DONE: WindowOutcome = WindowOutcome::Set { own_pages: 32 };

/// A cgroup limit of this many bytes. A small one bounds windows below the kernel's own.
fn limited(file_bytes: u64) -> Input {
    Input::MemoryStats(MemoryStats::Cgroup {
        cgroup: CgroupId(0),
        file_bytes: Some(file_bytes),
        stalled_percent: 0.0,
    })
}

fn unlimited() -> Input {
    Input::MemoryStats(MemoryStats::Cgroup {
        cgroup: CgroupId(0),
        file_bytes: None,
        stalled_percent: 0.0,
    })
}

/// A bench in which the window of open file 9 was bounded to 16 pages.
fn bounded() -> Bench {
    let mut bench = Bench::new(VOLUME, Options::default());
    bench.on(&limited(512 << 10));
    let asked = set(&bench.access(miss(1, 500)));
    assert_eq!(asked, Some((open_file(9), WindowSetting::Bounded(16))));
    bench.window_set(open_file(9), DONE);
    bench
}

/// Page 500 of file `ino` through open file `number` was read ahead by the kernel, and evicted.
fn thrashed(bench: &mut Bench, ino: u64, number: u64) -> Vec<Command> {
    let open_file = Some(OpenFile(number));
    bench.access(Access { open_file, past: Past::EvictedUnused, ..miss(ino, 500) })
}

#[test]
fn under_thrashing_windows_are_bounded_one_a_millisecond_and_given_back_when_it_is_over() {
    let mut machine = Machine::new(VOLUME, Options::default());
    let opens: Vec<OpenFile> = (0..10).map(|n| machine.open(100 + n, 1 + n, 1)).collect();
    for open_file in &opens {
        machine.read(*open_file, 500, 1);
    }
    let evicted =
        Access { open_file: Some(opens[0]), past: Past::EvictedUnused, ..miss(11, 5_000) };
    machine.give(&Input::Access(evicted));
    machine.wait(5 * MS);
    let count = |machine: &Machine| {
        let asked = machine.asked(|command| match command {
            Command::SetWindow { target, setting, .. } => Some((*target, *setting)),
            _ => None,
        });
        asked.len()
    };
    assert!((4..=6).contains(&count(&machine)), "one a millisecond: {}", count(&machine));
    machine.wait(20 * MS);
    assert_eq!(machine.journal.len(), 10, "all that were heard of");
    assert!(opens.iter().all(|open_file| machine.opened(*open_file).window < 32));
    assert_eq!(machine.controller.status(machine.now).changed_windows, 10);
    // The window grows back within two hours.
    for _ in 0..8 {
        machine.now += 1_800 * SECOND;
        machine.give(&Input::Access(miss(50, 5)));
        machine.give(&Input::Tick);
        machine.wait(20 * MS);
    }
    assert_eq!(machine.journal, BTreeMap::new(), "given back");
    assert!(opens.iter().all(|open_file| machine.opened(*open_file).window == 32));
}

#[test]
fn a_program_that_has_given_advice_keeps_it() {
    let with = |change: fn(&mut Advice)| {
        let mut advice = Advice::default();
        change(&mut advice);
        Access { advice, ..miss(1, 700) }
    };
    for advised in [
        with(|advice| advice.random = true),
        with(|advice| advice.sequential = true),
        with(|advice| advice.noreuse = true),
    ] {
        let mut bench = bounded();
        let asked = set(&bench.access(advised));
        assert_eq!(asked, Some((open_file(9), WindowSetting::Abandoned)), "{advised:?}");
        bench.window_set(open_file(9), WindowOutcome::Own);
        bench.on(&unlimited());
        for page in 0..20 {
            let next = Access { page: 800 + 20 * page, ..advised };
            assert_eq!(set(&bench.access(next)), None, "nor set anew, nor given back");
        }
        assert_eq!(set(&bench.tick(20 * SECOND)), None);
    }
}

#[test]
fn a_program_that_has_given_advice_before_is_never_bounded() {
    let mut bench = Bench::new(VOLUME, Options::default());
    bench.on(&limited(512 << 10));
    for advice in [
        Advice { random: true, ..Advice::default() },
        Advice { sequential: true, ..Advice::default() },
        Advice { noreuse: true, ..Advice::default() },
    ] {
        assert_eq!(set(&bench.access(Access { advice, kernel_window: 64, ..miss(1, 500) })), None);
    }
}

#[test]
fn what_looks_like_advice_while_a_window_is_set_is_none() {
    let mut bench = Bench::new(VOLUME, Options::default());
    bench.on(&limited(512 << 10));
    bench.access(miss(1, 500));
    let sequential = Advice { sequential: true, ..Advice::default() };
    let other = Access { advice: sequential, open_file: Some(OpenFile(10)), ..miss(2, 500) };
    bench.access(other);
    let (ticket, target) = (bench.asked.get(&open_file(9)).copied(), open_file(9));
    let during = (bench.now, bench.now + 3 * MS);
    let next = bench.completed(Completed::WindowSet { ticket, target, outcome: DONE, during });
    let bounded = (open_file(10), WindowSetting::Bounded(16));
    assert_eq!(set(&next), Some(bounded), "it has not advised anything");
    bench.window_set(open_file(10), DONE);
    bench.access(Access { advice: sequential, ..miss(1, 700) });
    bench.on(&unlimited());
    let asked = set(&bench.access(miss(1, 900)));
    assert_eq!(asked, Some((open_file(9), WindowSetting::Own)), "still ours to give back");
}

#[test]
fn an_open_file_gets_its_window_back_once_and_only_as_a_whole() {
    let mut bench = bounded();
    bench.on(&limited(700 << 10));
    bench.tick(2 * SECOND);
    assert_eq!(set(&bench.access(miss(1, 700))), None, "never widened by a little");
    bench.on(&unlimited());
    let asked = set(&bench.access(miss(1, 900)));
    assert_eq!(asked, Some((open_file(9), WindowSetting::Own)));
    assert_eq!(set(&bench.tick(MS)), None, "it is under way");
    bench.window_set(open_file(9), WindowOutcome::Own);
    assert_eq!(set(&bench.access(miss(1, 1_100))), None);
    assert_eq!(bench.controller.status(bench.now).changed_windows, 0);
}

#[test]
fn a_window_that_cannot_be_set_is_left_alone_for_ten_seconds() {
    let mut bench = Bench::new(VOLUME, Options::default());
    bench.on(&limited(512 << 10));
    assert!(set(&bench.access(miss(1, 500))).is_some());
    bench.window_set(open_file(9), WindowOutcome::Failed);
    assert_eq!(bench.controller.metrics().refused_windows, 1);
    for page in 0..90 {
        bench.now += 100 * MS;
        assert_eq!(set(&bench.access(miss(1, 1_000 + 100 * page))), None, "{page}");
    }
    bench.now += SECOND;
    assert!(set(&bench.access(miss(1, 500))).is_some());
}

#[test]
fn what_cannot_be_given_back_is_tried_each_second() {
    let mut bench = bounded();
    bench.on(&unlimited());
    let own = Some((open_file(9), WindowSetting::Own));
    assert_eq!(set(&bench.access(miss(1, 900))), own);
    for _ in 0..20 {
        bench.window_set(open_file(9), WindowOutcome::Failed);
        assert_eq!(set(&bench.tick(SECOND / 2)), None);
        // Housekeeping finds it; the next input requests it.
        let tries = [bench.tick(SECOND), bench.tick(MS)].concat();
        assert_eq!(set(&tries), own);
    }
    bench.window_set(open_file(9), WindowOutcome::Own);
    assert_eq!(set(&bench.tick(5 * SECOND)), None);
}

#[test]
fn what_an_earlier_run_has_left_is_given_back_and_retried_while_it_fails() {
    let mut bench = Bench::empty(Options::default());
    let left = Completed::LeftBehind { entry: 3, file: file(1) };
    let target = Target::Recovered(3);
    let commands = bench.completed(left);
    let expected = Command::SetWindow {
        ticket: Ticket(1),
        target,
        file: file(1),
        of: None,
        kernel_window: 0,
        setting: WindowSetting::Own,
    };
    assert_eq!(commands, [expected]);
    bench.window_set(target, WindowOutcome::Failed);
    let tries = [bench.tick(2 * SECOND), bench.tick(MS)].concat();
    assert_eq!(set(&tries), Some((target, WindowSetting::Own)));
    assert_eq!(bench.controller.status(bench.now).changed_windows, 1);
    bench.window_set(target, WindowOutcome::Own);
    assert_eq!(bench.controller.status(bench.now).changed_windows, 0);
    assert_eq!(set(&bench.tick(5 * SECOND)), None);
}

#[test]
fn what_was_left_behind_and_is_told_of_twice_is_given_back_once() {
    let mut bench = Bench::empty(Options::default());
    let left = Completed::LeftBehind { entry: 3, file: file(1) };
    assert!(set(&bench.completed(left.clone())).is_some());
    bench.completed(left);
    bench.window_set(Target::Recovered(3), WindowOutcome::Own);
    assert_eq!(set(&bench.tick(20 * SECOND)), None);
    assert_eq!(bench.controller.status(bench.now).changed_windows, 0);
}

#[test]
fn windows_that_an_earlier_run_left_are_given_back_one_by_one() {
    let mut machine = Machine::empty(Options::default());
    for entry in 0..50 {
        machine.journal.insert(Target::Recovered(entry), 32);
    }
    for entry in 0..50 {
        machine.give(&Input::Completed(Completed::LeftBehind { entry, file: file(1) }));
    }
    machine.wait(100 * MS);
    assert_eq!(machine.journal, BTreeMap::new());
}

/// Another file system, on a separate disk, and a miss there through open file 20.
const OTHER_DEV: DeviceNumber = DeviceNumber { major: 7, minor: 2 };

fn elsewhere() -> Access {
    let mut access = Access { open_file: Some(OpenFile(20)), ..miss(3, 500) };
    access.of.file.dev = OTHER_DEV;
    access
}

#[test]
fn a_device_that_does_not_answer_delays_no_windows_of_other_devices() {
    let mut bench = Bench::new(VOLUME, Options::default());
    bench.on(&mounted(OTHER_DEV, BackingId(2), facts(VOLUME)));
    bench.on(&limited(512 << 10));
    assert!(set(&bench.access(miss(1, 500))).is_some());
    let sequential = Advice { sequential: true, ..Advice::default() };
    let told = bench.access(Access { advice: sequential, kernel_window: 64, ..elsewhere() });
    assert_eq!(set(&told), None, "its own advice is seen as such beside the other's change");
    bench.on(&Input::Unmounted(OTHER_DEV));
    bench.on(&mounted(OTHER_DEV, BackingId(2), facts(VOLUME)));
    let asked = set(&bench.access(elsewhere()));
    assert_eq!(asked, Some((open_file(20), WindowSetting::Bounded(16))));
    bench.window_set(open_file(20), DONE);
    bench.on(&unlimited());
    let asked = set(&bench.access(Access { page: 900, ..elsewhere() }));
    assert_eq!(asked, Some((open_file(20), WindowSetting::Own)), "and is given back");
}

#[test]
fn two_file_systems_of_one_disk_take_turns() {
    let mut bench = Bench::new(VOLUME, Options::default());
    bench.on(&mounted(OTHER_DEV, DISK, facts(VOLUME)));
    bench.on(&limited(512 << 10));
    for number in 9..12 {
        let open_file = Some(OpenFile(number));
        bench.access(Access { open_file, ..miss(number, 500) });
    }
    assert_eq!(set(&bench.access(elsewhere())), None, "one at a time");
    bench.now += MS;
    let next = set(&bench.window_set(open_file(9), DONE)).map(|(target, _)| target);
    assert_eq!(next, Some(open_file(20)), "before those that wait on the first");
    bench.now += MS;
    let next = set(&bench.window_set(open_file(20), DONE)).map(|(target, _)| target);
    assert_eq!(next, Some(open_file(10)));
}

#[test]
fn a_late_answer_counts_until_another_change_is_requested() {
    for (outcome, changed) in [(DONE, 1), (WindowOutcome::Failed, 0), (WindowOutcome::Own, 0)] {
        let mut bench = Bench::new(VOLUME, Options::default());
        bench.on(&limited(512 << 10));
        bench.access(miss(1, 500));
        bench.tick(11 * SECOND);
        let status = bench.controller.status(bench.now);
        assert_eq!(status.changed_windows, 1, "it may have been set");
        bench.window_set(open_file(9), outcome);
        let status = bench.controller.status(bench.now);
        assert_eq!(status.changed_windows, changed, "{outcome:?}");
    }
}

#[test]
fn a_late_answer_to_an_earlier_change_tells_nothing() {
    let mut bench = bounded();
    bench.on(&unlimited());
    bench.access(miss(1, 900));
    let first = bench.asked[&open_file(9)];
    bench.tick(11 * SECOND);
    let again = [bench.tick(2 * SECOND), bench.tick(MS)].concat();
    assert_eq!(set(&again), Some((open_file(9), WindowSetting::Own)));
    let (ticket, during) = (Some(first), (0, 0));
    let outcome = WindowOutcome::Failed;
    bench.completed(Completed::WindowSet { ticket, target: open_file(9), outcome, during });
    bench.window_set(open_file(9), WindowOutcome::Own);
    assert_eq!(bench.controller.status(bench.now).changed_windows, 0);
    assert_eq!(set(&bench.tick(5 * SECOND)), None);
}

#[test]
fn a_file_closed_during_a_change_gets_no_window_back() {
    let mut bench = bounded();
    bench.on(&unlimited());
    bench.access(miss(1, 900));
    bench.closed(open_file(9));
    assert_eq!(bench.controller.status(bench.now).changed_windows, 0);
    bench.window_set(open_file(9), WindowOutcome::Own);
    assert_eq!(set(&[bench.tick(20 * SECOND), bench.tick(MS)].concat()), None);
}

#[test]
fn a_missing_answer_blocks_its_device_for_ten_seconds() {
    let mut bench = Bench::new(VOLUME, Options::default());
    bench.on(&limited(512 << 10));
    assert!(set(&bench.access(miss(1, 500))).is_some());
    let other = Access { open_file: Some(OpenFile(10)), ..miss(2, 500) };
    assert_eq!(set(&bench.access(other)), None, "one at a time");
    assert!(bench.controller.next_tick(bench.now) >= bench.now + SECOND, "nothing can be done");
    bench.tick(11 * SECOND);
    bench.on(&limited(512 << 10));
    assert_eq!(set(&bench.access(other)).map(|(target, _)| target), Some(open_file(10)));
}

#[test]
fn what_may_have_been_set_is_given_back_though_no_answer_came() {
    let mut bench = Bench::new(VOLUME, Options::default());
    bench.on(&limited(512 << 10));
    assert!(set(&bench.access(miss(1, 500))).is_some());
    let (ticket, target) = (bench.asked.get(&open_file(9)).copied(), open_file(9));
    bench.on(&unlimited());
    bench.tick(11 * SECOND);
    let commands = [bench.access(miss(1, 700)), bench.tick(MS)].concat();
    assert_eq!(set(&commands), Some((open_file(9), WindowSetting::Own)));
    let late = Completed::WindowSet { ticket, target, outcome: DONE, during: (0, 0) };
    let late = [bench.completed(late), bench.tick(MS)].concat();
    assert_eq!(set(&late), None, "of the first one, which tells nothing");
    // The second one is not answered either.
    let commands = [bench.tick(11 * SECOND), bench.tick(2 * SECOND), bench.tick(MS)].concat();
    assert_eq!(set(&commands), Some((open_file(9), WindowSetting::Own)));
}

#[test]
fn an_answer_that_comes_twice_is_one_answer() {
    let mut bench = bounded();
    bench.window_set(open_file(9), DONE);
    bench.window_set(open_file(9), WindowOutcome::Failed);
    assert_eq!(bench.controller.status(bench.now).changed_windows, 1);
    assert_eq!(bench.controller.metrics().bounded_windows, 1);
    bench.window_set(open_file(77), DONE);
    assert_eq!(bench.controller.status(bench.now).changed_windows, 1, "nobody knows that one");
}

#[test]
fn who_has_closed_its_file_is_not_asked_again_each_millisecond() {
    let mut machine = Machine::new(VOLUME, Options::default());
    machine.give(&limited(512 << 10));
    machine.give(&Input::Access(miss(1, 500)));
    machine.wait(100 * MS);
    assert_eq!(machine.asked(|c| matches!(c, Command::SetWindow { .. }).then_some(())).len(), 1);
}

#[test]
fn who_has_ended_is_not_given_anything_back() {
    let mut bench = bounded();
    bench.closed(open_file(9));
    assert_eq!(bench.controller.status(bench.now).changed_windows, 0);
    bench.on(&unlimited());
    assert_eq!(set(&[bench.tick(20 * SECOND), bench.tick(MS)].concat()), None);
}

#[test]
fn an_address_that_is_given_to_another_file_is_another_open_file() {
    let mut bench = bounded();
    bench.on(&unlimited());
    assert_eq!(set(&bench.access(miss(2, 500))), None, "it has its own window");
    assert_eq!(bench.controller.status(bench.now).changed_windows, 0);
}

#[test]
fn a_file_of_an_unmounted_volume_gets_no_window_back() {
    let mut bench = bounded();
    bench.on(&Input::Unmounted(DEV));
    bench.on(&unlimited());
    assert_eq!(set(&bench.tick(20 * SECOND)), None);
    assert_eq!(bench.controller.status(bench.now).changed_windows, 0);
}

#[test]
fn a_mapped_file_has_a_narrow_window_while_it_is_read_at_random() {
    let mut bench = Bench::empty(Options::default());
    let cost = DeviceCost { latency_s: 0.000_5, bandwidth: 50e6, concurrency: 32.0 };
    bench.on(&mounted(DEV, DISK, facts(cost)));
    let target = Target::Mapping(1, file(1));
    let far = |n: u64| Access { file_bytes: 1 << 50, ..fault(1, 10_000 * n * (n + 1)) };
    let narrowed = (0..40).find_map(|n| set(&bench.access(far(n))));
    assert_eq!(narrowed, Some((target, WindowSetting::Bounded(1))));
    bench.window_set(target, DONE);
    for n in 40..80 {
        assert_eq!(set(&bench.access(far(n))), None, "it stays so");
    }
    let over = [bench.tick(11 * SECOND), bench.tick(MS)].concat();
    assert_eq!(set(&over), Some((target, WindowSetting::Own)));
}

#[test]
fn a_larger_window_that_nobody_reads_through_is_given_back() {
    let mut machine = Machine::new(VOLUME, charging(Charge::Reader));
    let open_file = machine.open(9, 1, 1);
    (0..2_000).for_each(|n| {
        machine.read(open_file, 4 * n, 4);
    });
    assert!(machine.opened(open_file).window > 32);
    machine.wait(15 * SECOND);
    assert_eq!(machine.opened(open_file).window, 32);
    assert_eq!(machine.controller.status(machine.now).changed_windows, 0);
    (2_000..3_000).for_each(|n| {
        machine.read(open_file, 4 * n, 4);
    });
    assert!(machine.opened(open_file).window > 32, "it reads on, and is given a larger one again");
}

#[test]
fn a_reader_with_little_room_in_its_cgroup_gets_read_ahead_but_no_larger_window() {
    let mut machine = Machine::new(VOLUME, charging(Charge::Reader));
    machine.give(&limited(6 << 20));
    let open_file = machine.open(9, 1, 1);
    machine.opened(open_file).window = 256;
    (0..2_000).for_each(|n| {
        machine.read(open_file, 4 * n, 4);
    });
    assert_eq!(machine.opened(open_file).window, 128);
    let larger = machine.asked(|command| match command {
        Command::SetWindow { setting: WindowSetting::Larger(pages), .. } => Some(*pages),
        _ => None,
    });
    assert!(larger.is_empty(), "{larger:?}");
    assert!(machine.asked(|c| matches!(c, Command::Read { .. }).then_some(())).len() > 10);
}

#[test]
fn idle_open_files_are_forgotten() {
    let mut machine = Machine::new(VOLUME, Options::default());
    machine.give(&limited(512 << 10));
    for round in 0..4_u64 {
        for n in 0..2_000 {
            let number = 10_000 * round + n;
            let (open_file, of) = (Some(OpenFile(number)), reference(n, 1 + n as Tgid));
            machine.open(number, n, of.tgid);
            machine.give(&Input::Access(Access { open_file, of, ..miss(n, 500) }));
            machine.wait(MS);
        }
        (0..12).for_each(|_| {
            machine.give(&limited(512 << 10));
            machine.wait(SECOND);
        });
        let kept = machine.controller.status(machine.now).changed_windows;
        assert!((2_000..4_096).contains(&kept), "{kept}");
    }
    let open_file = machine.open(99_999, 5, 7);
    machine.read(open_file, 500, 1);
    machine.wait(SECOND);
    assert_eq!(machine.opened(open_file).window, 16, "there is room for a further one");
}

#[test]
fn a_bound_reaches_at_once_the_readers_that_came_while_it_was_looked_up() {
    let mut bench = Bench::new(VOLUME, Options::default());
    let other = Access { open_file: Some(OpenFile(10)), ..miss(2, 500) };
    bench.access(other);
    let commands = thrashed(&mut bench, 1, 9);
    let asked = set(&commands);
    assert!(matches!(asked, Some((_, WindowSetting::Bounded(pages))) if pages < 32), "{asked:?}");
}

/// What is asked for when a reader of 300 pages at once, from `page` on, meets the kernel's own mark in the second
/// half.
fn asked_of_a_long_request(bench: &mut Bench, page: u64) -> Option<(Target, WindowSetting)> {
    let first = Access { request_pages: 300, ..miss(1, page) };
    let mark = Access { kind: Kind::KernelMark, page: page + 150, request_pages: 150, ..first };
    let mut commands = bench.access(first);
    commands.extend(bench.access(mark));
    assert!(!commands.iter().any(|command| matches!(command, Command::Read { .. })));
    set(&commands)
}

#[test]
fn a_request_that_the_kernel_takes_for_a_sequence_is_read_whole_from_the_third_on() {
    let mut bench = Bench::new(VOLUME, Options::default());
    assert_eq!(asked_of_a_long_request(&mut bench, 5_000), None, "it may be the only one");
    let asked = asked_of_a_long_request(&mut bench, 9_000);
    assert_eq!(asked, Some((open_file(9), WindowSetting::Larger(300))));
}

#[test]
fn long_requests_among_short_ones_change_no_window() {
    let mut bench = Bench::new(VOLUME, Options::default());
    for page in [5_000, 20_000, 9_000, 30_000] {
        assert_eq!(asked_of_a_long_request(&mut bench, page), None);
        assert_eq!(set(&bench.access(miss(1, page + 2_000))), None);
    }
}

#[test]
fn no_window_is_larger_than_a_cgroup_leaves() {
    let mut bench = Bench::new(VOLUME, Options::default());
    bench.on(&limited(6 << 20));
    for page in [5_000, 9_000, 20_000] {
        assert_eq!(asked_of_a_long_request(&mut bench, page), None);
    }
}

#[test]
fn a_larger_window_goes_when_its_cgroup_leaves_less() {
    let mut machine = Machine::new(VOLUME, Options::default());
    let reader = machine.open(9, 1, 1);
    let first = |page| Access { request_pages: 300, ..miss(1, page) };
    for page in [5_000, 9_000] {
        machine.give(&Input::Access(first(page)));
        let mark =
            Access { kind: Kind::KernelMark, page: page + 150, request_pages: 150, ..first(page) };
        machine.give(&Input::Access(mark));
    }
    machine.wait(SECOND);
    assert_eq!(machine.opened(reader).window, 300);
    machine.give(&limited(6 << 20));
    machine.give(&Input::Access(first(20_000)));
    machine.wait(SECOND);
    assert!(machine.opened(reader).window <= 32, "{}", machine.opened(reader).window);
}
