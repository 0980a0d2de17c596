//! The memory budget.

use controller::ids::{CgroupId, OpenFile, Target};
use controller::{Access, Command, Input, MemoryStats, Options, WindowSetting};
use readahead::PAGE_BYTES;

use crate::support::{Bench, MS, Machine, SECOND, VOLUME, memory, miss, reads};

/// The most bytes that many backward readers have ahead together.
fn most_ahead(machine: &mut Machine) -> u64 {
    let opens: Vec<OpenFile> = (0..8).map(|n| machine.open(100 + n, 1 + n, 1)).collect();
    for n in 0..400 {
        for open_file in &opens {
            machine.read(*open_file, 90_000 - 4 * n, 4);
        }
    }
    machine.controller.metrics().most_ahead_bytes
}

#[test]
fn no_more_is_ahead_than_the_budget() {
    for available_bytes in [64 << 20, 256 << 20, 1 << 30] {
        let mut machine = Machine::new(VOLUME, Options::default());
        machine.give(&memory(available_bytes));
        let budget = machine.controller.status(0).budget_bytes;
        assert_eq!(budget, available_bytes / 8);
        let ahead = most_ahead(&mut machine);
        assert!(0 < ahead && ahead <= budget, "{ahead} of {budget}");
    }
}

#[test]
fn before_anything_is_known_of_memory_there_is_next_to_none() {
    let out = &mut Vec::new();
    let controller = crate::support::adaptive(Options::default(), out);
    assert_eq!(controller.status(0).budget_bytes, 4 << 20);
}

fn cgroup(file_bytes: Option<u64>, stalled_percent: f64) -> Input {
    let cgroup = CgroupId(0);
    Input::MemoryStats(MemoryStats::Cgroup { cgroup, file_bytes, stalled_percent })
}

#[test]
fn a_reader_in_a_small_cgroup_has_small_windows() {
    let mut machine = Machine::new(VOLUME, Options::default());
    machine.give(&cgroup(Some(8 << 20), 0.0));
    most_ahead(&mut machine);
    let longest = machine.asked(|command| match command {
        Command::Read { span, .. } => Some(span.pages() * PAGE_BYTES),
        _ => None,
    });
    assert!(longest.iter().max().is_some_and(|bytes| *bytes <= 1 << 20), "{longest:?}");
}

#[test]
fn the_kernels_windows_are_bounded_in_a_small_cgroup_and_given_back_when_it_grows() {
    let mut machine = Machine::new(VOLUME, Options::default());
    machine.give(&cgroup(Some(512 << 10), 0.0));
    let open_file = machine.open(9, 1, 1);
    machine.read(open_file, 500, 1);
    machine.wait(MS);
    let bounded = machine.opened(open_file).window;
    assert_eq!(bounded, 16, "a quarter of it, in two windows");
    machine.give(&cgroup(None, 0.0));
    machine.read(open_file, 900, 1);
    machine.wait(2 * MS);
    assert_eq!(machine.opened(open_file).window, 32);
}

#[test]
fn who_is_not_heard_of_again_has_its_window_back_when_its_cgroup_grows() {
    let mut machine = Machine::new(VOLUME, Options::default());
    machine.give(&cgroup(Some(512 << 10), 0.0));
    let open_file = machine.open(9, 1, 1);
    machine.read(open_file, 500, 1);
    machine.wait(20 * SECOND);
    assert_eq!(machine.opened(open_file).window, 16, "a slow reader is not thrashed by its pauses");
    machine.give(&cgroup(None, 0.0));
    machine.wait(2 * SECOND);
    assert_eq!(machine.opened(open_file).window, 32);
}

#[test]
fn cgroups_that_wait_for_memory_are_read_less() {
    let ahead = |stalled| {
        let mut machine = Machine::new(VOLUME, Options::default());
        machine.give(&memory(256 << 20));
        machine.give(&cgroup(None, stalled));
        most_ahead(&mut machine)
    };
    let (calm, braked, odd) = (ahead(0.0), ahead(80.0), ahead(f64::NAN));
    assert!(braked < calm / 4, "{braked} {calm}");
    assert_eq!(odd, calm, "nobody has measured any");
    assert_eq!(ahead(f64::INFINITY), 0);
}

#[test]
fn who_is_left_no_memory_is_read_nothing_and_that_is_counted() {
    let mut bench = Bench::new(VOLUME, Options::default());
    bench.on(&cgroup(None, f64::INFINITY));
    bench.access(miss(1, 50_000));
    assert_eq!(reads(&bench.access(miss(1, 49_999))), []);
    assert_eq!(bench.controller.metrics().not_read.memory_full, 2);
}

#[test]
fn the_bound_of_a_process_follows_its_cgroup_for_all_that_it_reads() {
    let mut machine = Machine::new(VOLUME, Options::default());
    let opens: Vec<OpenFile> = (0..20).map(|n| machine.open(100 + n, 1 + n, 1)).collect();
    for open_file in &opens {
        machine.read(*open_file, 500, 1);
    }
    machine.give(&cgroup(Some(512 << 10), 0.0));
    machine.read(opens[0], 5_000, 1);
    machine.wait(100 * MS);
    let bounded = machine.asked(|command| match command {
        Command::SetWindow { target: Target::OpenFile(it), setting, .. } => Some((*it, *setting)),
        _ => None,
    });
    assert_eq!(bounded.len(), 20, "also those that are not heard of again");
    assert!(bounded.iter().all(|(_, setting)| *setting == WindowSetting::Bounded(16)));
}

#[test]
fn pauses_of_any_length_are_survived() {
    let mut bench = Bench::new(VOLUME, Options::default());
    for now in [1, u64::MAX / 2, u64::MAX, 0, u64::MAX] {
        for ino in 0..3 {
            bench.now = now;
            bench.on(&Input::Access(Access { cgroup: CgroupId(ino as u32 % 2), ..miss(ino, 7) }));
            bench.on(&Input::Tick);
        }
    }
    bench.now = SECOND;
    bench.tick(SECOND);
}
