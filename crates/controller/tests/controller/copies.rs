//! Copies are read without look-ahead if a disk with a head cannot keep up with them.

use controller::behind::{Mode, Rules};
use controller::ids::{OpenFile, Target};
use controller::{
    Access, Advice, Command, Completed, Input, Options, Passed, WindowOutcome, WindowSetting,
};
use readahead::behind::Span;
use readahead::{DeviceCost, Past};

use crate::support::{
    Bench, MS, Machine, SECOND, VOLUME, memory, miss, passed, reads, reference, span,
};

const SOURCE: u64 = 1;
const DESTINATION: u64 = 2;
const COPIER: u32 = 1;

/// Memory for fewer bytes than a copy passes.
const MEMORY: u64 = 256 << 20;

fn behind() -> Options {
    Options { behind: Some(Rules::only(Mode::Auto)), ..Options::default() }
}

/// The copying process reads 64 KiB at `page`, through open file 9.
fn copied(machine: &mut Machine, page: u64) -> Access {
    let advice = machine.opened(OpenFile(9)).advice;
    Access { request_pages: 16, of: reference(SOURCE, COPIER), advice, ..miss(SOURCE, page) }
}

/// Reports the read of [`copied`] to the controller.
fn read(machine: &mut Machine, page: u64) {
    let access = copied(machine, page);
    machine.give(&Input::Access(access));
}

/// A machine on which process 1 has copied `pages`, none of which is on the disk yet.
fn copying(cost: DeviceCost, pages: u64) -> Machine {
    let mut machine = Machine::new(cost, behind());
    machine.give(&memory(MEMORY));
    machine.open(9, SOURCE, COPIER);
    machine.pass(SOURCE, COPIER, false, span(0, 4096));
    copy(&mut machine, 0, pages);
    machine
}

fn copy(machine: &mut Machine, from: u64, to: u64) {
    let mut at = from;
    while at < to {
        let step = Span { start: at, end: at + 1024 };
        machine.pass(SOURCE, COPIER, false, step);
        read(machine, at);
        machine.pass(DESTINATION, COPIER, true, step);
        at += 1024;
    }
}

fn settings(machine: &Machine) -> Vec<WindowSetting> {
    machine.asked(|command| match command {
        Command::SetWindow { target: Target::OpenFile(OpenFile(9)), setting, .. } => Some(*setting),
        _ => None,
    })
}

/// The disk has written everything, and passed pages may be dropped.
fn catch_up(machine: &mut Machine) {
    machine.clean(DESTINATION);
    machine.wait(500 * MS);
}

#[test]
fn a_copy_on_a_disk_with_a_head_is_held_until_it_pauses() {
    let mut machine = copying(DeviceCost::DISK, 40_000);
    machine.wait(100 * MS);
    assert_eq!(settings(&machine), [WindowSetting::NoLookAhead]);
    assert!(machine.opened(OpenFile(9)).advice.random);
    catch_up(&mut machine);
    copy(&mut machine, 40_960, 44_000);
    assert_eq!(settings(&machine).len(), 1, "it goes on, though the disk has caught up");
    machine.clean(DESTINATION);
    machine.wait(10 * SECOND);
    assert_eq!(settings(&machine), [WindowSetting::NoLookAhead, WindowSetting::Own]);
    assert!(!machine.opened(OpenFile(9)).advice.random);
}

#[test]
fn nothing_is_read_ahead_for_a_copy_that_is_held() {
    let mut machine = copying(DeviceCost::DISK, 40_000);
    machine.wait(100 * MS);
    let before = machine.log.len();
    for page in (50_000..60_000).rev().step_by(16) {
        read(&mut machine, page);
    }
    assert_eq!(reads(&machine.log[before..]), []);
    assert!(machine.controller.metrics().not_read.writes_too_fast > 0);
    assert_eq!(settings(&machine), [WindowSetting::NoLookAhead], "its random advice is ours");
}

#[test]
fn a_copy_that_ends_is_let_go() {
    let mut machine = copying(DeviceCost::DISK, 40_000);
    machine.wait(100 * MS);
    machine.clean(DESTINATION);
    machine.exit(COPIER);
    machine.wait(10 * SECOND);
    assert_eq!(settings(&machine), [WindowSetting::NoLookAhead, WindowSetting::Own]);
    assert_eq!(machine.controller.status(machine.now).changed_windows, 0);
}

#[test]
fn who_has_closed_what_it_copies_is_not_given_anything_back() {
    let mut machine = copying(DeviceCost::DISK, 40_000);
    machine.wait(100 * MS);
    let closed = Completed::WindowSet {
        ticket: None,
        target: Target::OpenFile(OpenFile(9)),
        outcome: WindowOutcome::Own,
        during: (machine.now, machine.now),
    };
    machine.give(&Input::Completed(closed));
    assert_eq!(machine.controller.status(machine.now).changed_windows, 0);
    machine.wait(10 * SECOND);
    assert_eq!(settings(&machine), [WindowSetting::NoLookAhead]);
}

#[test]
fn where_nothing_has_a_head_the_copy_is_only_not_read_ahead() {
    let mut machine = copying(VOLUME, 40_000);
    machine.wait(100 * MS);
    assert_eq!(settings(&machine), []);
    let before = machine.log.len();
    for page in (50_000..60_000).rev().step_by(16) {
        read(&mut machine, page);
        machine.wait(MS);
    }
    assert_eq!(reads(&machine.log[before..]), [], "its writing catches up");
    catch_up(&mut machine);
    for page in (70_000..80_000).rev().step_by(16) {
        read(&mut machine, page);
        machine.wait(MS);
    }
    assert_ne!(reads(&machine.log[before..]), []);
}

#[test]
fn who_reads_much_and_writes_little_is_no_copy() {
    let mut machine = Machine::new(DeviceCost::DISK, behind());
    machine.give(&memory(MEMORY));
    machine.open(9, SOURCE, COPIER);
    machine.pass(SOURCE, COPIER, false, span(0, 99_000));
    machine.pass(DESTINATION, COPIER, true, span(0, 30_000));
    read(&mut machine, 99_100);
    machine.wait(100 * MS);
    assert_eq!(settings(&machine), []);
}

#[test]
fn who_asks_for_little_at_a_time_is_read_ahead() {
    let mut machine = copying(DeviceCost::DISK, 4096);
    let mut at = 4096;
    while at < 40_960 {
        let step = Span { start: at, end: at + 1024 };
        machine.pass(SOURCE, COPIER, false, step);
        let access = copied(&mut machine, at);
        machine.give(&Input::Access(Access { request_pages: 15, ..access }));
        machine.pass(DESTINATION, COPIER, true, step);
        at += 1024;
    }
    machine.wait(100 * MS);
    assert_eq!(settings(&machine), []);
    read(&mut machine, at);
    machine.wait(5 * MS);
    assert_eq!(settings(&machine), [WindowSetting::NoLookAhead]);
}

#[test]
fn who_advises_something_else_while_it_is_held_has_that_in_the_end() {
    let mut machine = copying(DeviceCost::DISK, 40_000);
    machine.wait(100 * MS);
    let advice = Advice { sequential: true, ..Advice::default() };
    machine.opened(OpenFile(9)).advice = advice;
    let kernel_window = 64;
    let access = copied(&mut machine, 50_000);
    machine.give(&Input::Access(Access { advice, kernel_window, ..access }));
    machine.wait(5 * MS);
    let all = settings(&machine);
    assert_eq!(all[..2], [WindowSetting::NoLookAhead, WindowSetting::Abandoned]);
    assert_ne!(all.last(), Some(&WindowSetting::Own));
}

#[test]
fn an_open_file_that_another_process_reads_as_well_stays_with_the_copy() {
    let mut machine = copying(DeviceCost::DISK, 40_000);
    machine.wait(100 * MS);
    for (n, tgid) in [2, COPIER, 2, COPIER].into_iter().enumerate() {
        let (of, page) = (reference(SOURCE, tgid), 50_000 + 500 * n as u64);
        let access = copied(&mut machine, page);
        machine.give(&Input::Access(Access { of, ..access }));
        machine.wait(5 * MS);
    }
    assert_eq!(settings(&machine), [WindowSetting::NoLookAhead]);
}

#[test]
fn only_one_of_two_open_files_of_a_copy_loses_its_look_ahead() {
    let mut machine = copying(DeviceCost::DISK, 40_000);
    machine.wait(100 * MS);
    let second = OpenFile(10);
    let through_second = |machine: &mut Machine, page| {
        let access = copied(machine, page);
        let advice = Advice::default();
        machine.give(&Input::Access(Access { open_file: Some(second), advice, ..access }));
        machine.wait(5 * MS);
    };
    machine.open(10, SOURCE, COPIER);
    through_second(&mut machine, 50_000);
    assert_eq!(settings(&machine), [WindowSetting::NoLookAhead]);
    assert!(!machine.opened(second).advice.random);
    let closed = Completed::WindowSet {
        ticket: None,
        target: Target::OpenFile(OpenFile(9)),
        outcome: WindowOutcome::Own,
        during: (machine.now, machine.now),
    };
    machine.give(&Input::Completed(closed));
    through_second(&mut machine, 51_000);
    assert!(machine.opened(second).advice.random, "it is the only one now");
}

#[test]
fn an_open_file_that_may_be_closed_gets_no_advice_before_its_next_access() {
    let mut machine = Machine::new(DeviceCost::DISK, behind());
    machine.give(&memory(MEMORY));
    machine.open(9, SOURCE, COPIER);
    read(&mut machine, 0);
    machine.wait(1_100 * MS);
    for n in 0..40 {
        let step = span(1024 * n, 1024 * (n + 1));
        machine.pass(SOURCE, COPIER, false, step);
        machine.pass(DESTINATION, COPIER, true, step);
    }
    machine.wait(100 * MS);
    assert_eq!(settings(&machine), []);
    read(&mut machine, 41_000);
    machine.wait(5 * MS);
    assert_eq!(settings(&machine), [WindowSetting::NoLookAhead]);
}

#[test]
fn copies_of_others_keep_no_copy_from_losing_its_look_ahead() {
    let mut bench = Bench::new(DeviceCost::DISK, behind());
    bench.on(&memory(MEMORY));
    let copiers = 1..=80;
    for tgid in copiers.clone() {
        for n in 0..11 {
            let step = passed(tgid.into(), span(4096 * n, 4096 * (n + 1)));
            let read = Passed { of: reference(tgid.into(), tgid), ..step };
            let of = reference(1_000 + u64::from(tgid), tgid);
            bench.on(&Input::Passed(read));
            bench.on(&Input::Passed(Passed { of, written: true, ..read }));
        }
    }
    bench.tick(50 * MS);
    let mut held = 0;
    for tgid in copiers {
        let (of, open_file) = (reference(tgid.into(), tgid), Some(OpenFile(tgid.into())));
        let mut commands = bench.access(Access { of, open_file, ..miss(1, 5) });
        commands.extend(bench.access(Access { of, open_file, request_pages: 16, ..miss(1, 9) }));
        commands.extend(bench.tick(MS));
        for command in commands {
            let Command::SetWindow { target, setting, .. } = command else { continue };
            assert_eq!(setting, WindowSetting::NoLookAhead);
            held += 1;
            let outcome = WindowOutcome::Set { own_pages: 32 };
            bench.window_set(target, outcome);
        }
    }
    assert_eq!(held, 80);
}

#[test]
fn who_is_held_is_not_bounded_as_well() {
    let mut machine = copying(DeviceCost::DISK, 40_000);
    machine.wait(100 * MS);
    let other = Access { open_file: Some(OpenFile(50)), past: Past::EvictedUnused, ..miss(7, 500) };
    machine.give(&Input::Access(other));
    machine.wait(20 * MS);
    let targets = machine.asked(|command| match command {
        Command::SetWindow { target, setting, .. } => Some((*target, *setting)),
        _ => None,
    });
    let of_copy = targets.iter().filter(|(target, _)| *target == Target::OpenFile(OpenFile(9)));
    assert_eq!(of_copy.count(), 1, "{targets:?}");
}
