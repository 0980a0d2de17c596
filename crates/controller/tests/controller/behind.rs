//! Pages that streams have passed leave the cache, and no others.

use controller::behind::{Mode, Rule, Rules};
use controller::ids::StreamKey;
use controller::{Attributes, Command, Completed, Input, Nanos, Options, Passed};
use readahead::behind::Span;

use crate::support::{
    Bench, DEV, FILE_PAGES, MS, Machine, SECOND, VOLUME, file, memory, passed, reference, span,
};

/// Memory for fewer bytes than streams pass.
const MEMORY: u64 = 256 << 20;

fn with(rules: Rules) -> Options {
    Options { behind: Some(rules), ..Options::default() }
}

fn machine(mode: Mode) -> Machine {
    let mut machine = Machine::new(VOLUME, with(Rules::only(mode)));
    machine.give(&memory(MEMORY));
    machine
}

fn stream(ino: u64, tgid: u32, written: bool) -> StreamKey {
    StreamKey { file: file(ino), tgid, written }
}

fn released(machine: &Machine) -> Vec<Span> {
    machine.asked(|command| match command {
        Command::Release { span, .. } => Some(*span),
        _ => None,
    })
}

#[test]
fn a_large_file_that_is_streamed_through_leaves_the_cache_behind_its_reader() {
    let mut machine = machine(Mode::Auto);
    machine.pass(1, 1, false, span(0, 50_000));
    let cached = machine.cached(1, span(0, 50_000));
    assert!(cached < 8_192, "{cached} are kept for followers");
    machine.wait(5 * SECOND);
    assert_eq!(machine.cached(1, span(1024, 50_000)), 0, "it pauses: nobody follows");
    let dropped = machine.controller.metrics().dropped_bytes / 4096;
    assert!(dropped >= 48_000, "{dropped}");
}

#[test]
fn what_fits_half_of_memory_stays() {
    let mut machine = machine(Mode::Auto);
    machine.give(&memory(8 << 30));
    machine.pass(1, 1, false, span(0, 50_000));
    machine.exit(1);
    machine.wait(5 * SECOND);
    assert_eq!(machine.cached(1, span(0, 50_000)), 50_000);
    assert_eq!(released(&machine), []);
}

#[test]
fn always_means_every_file_and_never_none() {
    let mut always = machine(Mode::Always);
    assert!(always.log.contains(&Command::LookBehind(true)), "from the first access on");
    always.pass(1, 1, false, span(0, 3));
    always.exit(1);
    always.wait(2 * SECOND);
    assert_eq!(always.cached(1, span(0, 3)), 0);
    let mut never = machine(Mode::Never);
    never.pass(1, 1, false, span(0, 50_000));
    never.wait(5 * SECOND);
    assert_eq!(never.asked(|c| matches!(c, Command::LookBehind(_)).then_some(())), []);
    assert_eq!(released(&never), []);
}

#[test]
fn who_ends_within_its_first_step_has_been_announced_with_no_pages_and_is_dealt_with() {
    let mut machine = machine(Mode::Always);
    machine.give(&Input::Passed(passed(1, span(0, 0))));
    assert!(machine.controller.may_drop(), "it may be about to end");
    assert_eq!(machine.controller.status(machine.now).behind_streams, 1);
}

#[test]
fn accesses_are_watched_from_the_first_large_file_until_all_is_quiet() {
    let mut machine = machine(Mode::Auto);
    let looks = |machine: &Machine| {
        machine.asked(|command| match command {
            Command::LookBehind(is_on) => Some(*is_on),
            _ => None,
        })
    };
    assert_eq!(looks(&machine), [false]);
    machine.pass(1, 1, false, span(0, 20_000));
    assert_eq!(looks(&machine), [false, true]);
    machine.wait(90 * SECOND);
    assert_eq!(looks(&machine), [false, true, false]);
    let status = machine.controller.status(machine.now);
    assert_eq!(status.behind_streams, 0);
}

#[test]
fn rules_apply_once_for_each_stream_and_then_to_the_pages_passed_meanwhile() {
    let rule =
        Rule { path: Some("/srv/**".into()), cgroup: None, command: None, mode: Mode::Always };
    let rules = Rules { mode: Mode::Never, rules: vec![rule] };
    let mut bench = Bench::new(VOLUME, with(rules));
    bench.on(&memory(MEMORY));
    let key = stream(1, 1, false);
    let commands = bench.on(&Input::Passed(passed(1, span(0, 1024))));
    let expected = [Command::WatchProcess(1, true), Command::Describe(key, reference(1, 1))];
    assert_eq!(commands, expected);
    assert_eq!(bench.on(&Input::Passed(passed(1, span(1024, 8192)))), []);
    let attributes = Attributes { path: "/srv/films/a.mkv".into(), ..Attributes::default() };
    let described = Completed::Described { stream: key, attributes };
    let commands = bench.completed(described.clone());
    let [Command::Release { span: released, .. }] = commands[..] else { panic!("{commands:?}") };
    assert_eq!(released, span(0, 4608 + 512), "but for what a follower may want");
    assert_eq!(bench.completed(described), [], "it is decided");
}

#[test]
fn streams_that_no_rule_fits_are_left_alone() {
    let rule = Rule {
        path: None,
        cgroup: Some("/backup.slice".into()),
        command: None,
        mode: Mode::Always,
    };
    let mut machine = Machine::new(VOLUME, with(Rules { mode: Mode::Never, rules: vec![rule] }));
    machine.attributes.cgroups = vec!["/user.slice".into()];
    machine.pass(1, 1, false, span(0, 50_000));
    machine.exit(1);
    machine.wait(5 * SECOND);
    assert_eq!(released(&machine), []);
    machine.attributes.cgroups = vec!["/backup.slice/nightly".into()];
    machine.pass(2, 2, false, span(0, 5_000));
    machine.exit(2);
    machine.wait(5 * SECOND);
    assert_eq!(machine.cached(2, span(0, 5_000)), 0);
}

#[test]
fn processes_that_are_not_managed_keep_their_pages() {
    let mut bench = Bench::new(VOLUME, with(Rules::only(Mode::Always)));
    for n in 0..40 {
        let step = span(1024 * n, 1024 * (n + 1));
        let foreground = Passed { foreground: true, ..passed(1, step) };
        let commands = bench.after(MS, &Input::Passed(foreground));
        assert!(commands.iter().all(|command| !matches!(command, Command::Release { .. })));
    }
}

#[test]
fn a_close_follower_finds_the_pages_of_the_one_before() {
    let mut machine = machine(Mode::Auto);
    for step in 0..40 {
        let pages = |behind: u64| {
            let start = (1024 * (step + 4_u64)).saturating_sub(1024 * behind);
            span(start, start + 1024)
        };
        machine.pass(1, 1, false, pages(0));
        let follower = pages(2);
        let cached = machine.cached(1, follower);
        assert_eq!(cached, if step < 2 { cached } else { 1024 }, "step {step}");
        machine.pass(1, 2, false, follower);
    }
    machine.exit(1);
    machine.wait(SECOND / 2);
    assert!(machine.cached(1, span(0, 44 * 1024)) > 0, "the follower is still close");
}

/// Process 1 reads a part of a file and ends. Returns whether the pages ahead of it that nobody used are dropped. If it
/// is not alone, process 7 has read another part of the file, far away.
fn drops_unused(is_alone: bool) -> bool {
    let mut machine = machine(Mode::Auto);
    if !is_alone {
        machine.pass(1, 7, false, span(60_000, 70_000));
    }
    machine.pass(1, 1, false, span(0, 20_480));
    machine.exit(1);
    machine.wait(SECOND / 2);
    let drops = machine.asked(|command| match command {
        Command::Release { stream, drops_unused, .. } if stream.tgid == 1 => Some(*drops_unused),
        _ => None,
    });
    assert!(drops.len() > 1, "{drops:?}");
    drops.contains(&true)
}

#[test]
fn what_an_ended_reader_has_left_unread_goes_if_it_was_alone() {
    assert!(drops_unused(true));
    assert!(!drops_unused(false), "it may be for the other one");
}

#[test]
fn what_cannot_go_is_tried_again_ever_later_and_in_the_end_left() {
    let mut machine = machine(Mode::Auto);
    let held = span(1024, 1536);
    machine.hold(1, held, true);
    machine.pass(1, 1, false, span(0, 16_384));
    let tries = |machine: &Machine| {
        released(machine).iter().filter(|released| released.end <= 1536).count()
    };
    machine.wait(300 * MS);
    assert!(tries(&machine) >= 2, "{:?}", released(&machine));
    let left = machine.controller.metrics().left_bytes;
    assert_eq!(left, 512 * 4096);
    machine.wait(5 * SECOND);
    assert!(machine.controller.has_left_overs(), "ten tries take half a minute");
    machine.wait(600 * SECOND);
    let in_the_end = tries(&machine);
    assert!(in_the_end <= 24, "{in_the_end} tries");
    machine.wait(600 * SECOND);
    assert_eq!(tries(&machine), in_the_end, "they are left");
    assert!(!machine.controller.has_left_overs());
    assert_eq!(machine.controller.metrics().left_bytes, 512 * 4096);
}

#[test]
fn what_is_let_go_of_by_others_leaves_at_the_next_try() {
    let mut machine = machine(Mode::Auto);
    let held = span(1024, 1536);
    machine.hold(1, held, true);
    machine.pass(1, 1, false, span(0, 16_384));
    machine.wait(SECOND);
    machine.hold(1, held, false);
    machine.wait(10 * SECOND);
    assert_eq!(machine.cached(1, held), 0);
    assert_eq!(machine.controller.metrics().left_bytes, 0);
}

#[test]
fn what_is_written_is_written_out_step_by_step_and_goes_once_it_is_clean() {
    let mut machine = machine(Mode::Auto);
    machine.pass(1, 1, true, span(0, 30_000));
    let steps = machine.asked(|command| match command {
        Command::WriteOut { span, .. } => Some(*span),
        _ => None,
    });
    assert!(steps.len() > 4 && steps[0].start == 1024, "{steps:?}");
    let cached = machine.cached(1, span(0, 30_000));
    assert_eq!(cached, 30_000, "the disk has taken nothing yet");
    machine.clean(1);
    machine.wait(5 * SECOND);
    assert_eq!(machine.cached(1, span(1024, 30_000)), 0);
}

#[test]
fn writing_is_waited_for_at_the_end() {
    let mut machine = machine(Mode::Always);
    machine.pass(1, 1, true, span(0, 3_000));
    machine.exit(1);
    machine.controller.finish();
    machine.give(&Input::Tick);
    machine.wait(1_000 * SECOND);
    assert!(machine.controller.has_left_overs(), "the disk is slow");
    machine.clean(1);
    machine.wait(SECOND);
    assert!(!machine.controller.has_left_overs());
    assert_eq!(machine.cached(1, span(0, 3_000)), 0);
}

#[test]
fn writing_is_given_up_after_ten_minutes_of_tries_else() {
    let mut machine = machine(Mode::Always);
    machine.pass(1, 1, true, span(0, 3_000));
    machine.exit(1);
    machine.wait(1_000 * SECOND);
    assert!(!machine.controller.has_left_overs());
    assert_eq!(machine.controller.metrics().left_bytes, 3_000 * 4096);
}

#[test]
fn what_was_left_on_a_volume_is_not_left_on_the_next_one_with_its_number() {
    let mut machine = machine(Mode::Auto);
    machine.hold(1, span(0, 16_384), true);
    machine.pass(1, 1, false, span(0, 16_384));
    machine.wait(10 * MS);
    assert!(machine.controller.has_left_overs());
    machine.unmount(DEV);
    assert!(!machine.controller.has_left_overs());
    let before = machine.log.len();
    machine.give(&crate::support::mounted(
        DEV,
        crate::support::DISK,
        crate::support::facts(VOLUME),
    ));
    machine.wait(60 * SECOND);
    let after = &machine.log[before..];
    assert!(after.iter().all(|command| !matches!(command, Command::Release { .. })));
}

#[test]
fn unmounting_a_volume_without_streams_forgets_nothing_of_others() {
    let other = controller::ids::DeviceNumber { major: 0, minor: 77 };
    for (unmounted, forgets) in [(other, false), (DEV, true)] {
        let mut machine = machine(Mode::Auto);
        let device = crate::support::facts(VOLUME);
        machine.give(&crate::support::mounted(other, crate::support::DISK, device));
        machine.pass(1, 1, false, span(0, 16_384));
        let before = machine.log.len();
        machine.unmount(unmounted);
        let is_forgotten = machine.log[before..].contains(&Command::LookBehind(false));
        assert_eq!(is_forgotten, forgets);
    }
}

#[test]
fn a_release_answered_after_the_unmount_leaves_nothing_to_do() {
    let mut machine = machine(Mode::Auto);
    machine.turn_off();
    machine.pass(1, 1, false, span(0, 16_384));
    machine.turn_on();
    let ticket = machine.asked(|command| match command {
        Command::Release { ticket, .. } => Some(*ticket),
        _ => None,
    });
    assert_ne!(ticket, [], "{:?}", machine.log);
    machine.unmount(DEV);
    for ticket in ticket {
        let left = vec![(span(0, 512), 512)];
        let released = Completed::Released { ticket, dropped_pages: 7, kept_pages: 1, left };
        machine.give(&Input::Completed(released.clone()));
        machine.give(&Input::Completed(released));
    }
    assert!(!machine.controller.has_left_overs());
}

#[test]
fn a_file_system_that_does_not_answer_gets_no_more_and_delays_no_other() {
    let mut bench = Bench::new(VOLUME, with(Rules::only(Mode::Always)));
    let other = controller::ids::DeviceNumber { major: 0, minor: 77 };
    let device = crate::support::facts(VOLUME);
    bench.on(&crate::support::mounted(other, crate::support::DISK, device));
    let pass = |bench: &mut Bench, ino: u64, dev| {
        let mut all = Vec::new();
        for n in 0..8 {
            let mut passed = passed(ino, span(1024 * n, 1024 * (n + 1)));
            passed.of.file.dev = dev;
            all.extend(bench.on(&Input::Passed(passed)));
        }
        all.iter().filter(|command| matches!(command, Command::Release { .. })).count()
    };
    let asked: usize = (1..200).map(|ino| pass(&mut bench, ino, DEV)).sum();
    assert_eq!(asked, 384);
    assert!(pass(&mut bench, 1, other) > 0);
}

#[test]
fn what_had_to_wait_for_room_is_asked_for_when_there_is_some() {
    let mut machine = machine(Mode::Always);
    machine.turn_off();
    for ino in 1..200 {
        for n in 0..4 {
            let step = Passed { ..passed(ino, span(1024 * n, 1024 * (n + 1))) };
            machine.give(&Input::Passed(step));
        }
    }
    let first = machine.asked(|command| match command {
        Command::Release { ticket, span, .. } => Some((*ticket, *span)),
        _ => None,
    });
    machine.turn_on();
    for (ticket, span) in first {
        let dropped_pages = span.pages();
        let left = Vec::new();
        let released = Completed::Released { ticket, dropped_pages, kept_pages: 0, left };
        machine.give(&Input::Completed(released));
    }
    machine.wait(200 * MS);
    let stays = machine.controller.metrics().left_bytes;
    assert_eq!(stays, 0, "all of it was asked for");
}

#[test]
fn a_slow_reader_is_asked_for_its_place_and_has_not_paused_while_it_continues() {
    let mut machine = machine(Mode::Auto);
    machine.pass(1, 1, false, span(0, 20_480));
    let key = stream(1, 1, false);
    let mut bench = Bench::new(VOLUME, with(Rules::only(Mode::Auto)));
    bench.on(&memory(MEMORY));
    for n in 0..20 {
        bench.on(&Input::Passed(passed(1, span(1024 * n, 1024 * (n + 1)))));
    }
    for n in 0..10 {
        let commands = bench.tick(1_100 * MS);
        assert!(commands.contains(&Command::Touched(key)), "{commands:?}");
        let touched = Some(span(0, 19_500 + 100 * n));
        bench.completed(Completed::Touched { stream: key, span: touched });
        let commands = bench.tick(50 * MS);
        assert!(commands.iter().all(|command| !matches!(command, Command::Release { .. })));
    }
    bench.tick(1_100 * MS);
    let touched = Some(span(0, 20_400));
    bench.completed(Completed::Touched { stream: key, span: touched });
    let commands = bench.tick(50 * MS);
    assert!(commands.iter().any(|command| matches!(command, Command::Release { .. })), "it rests");
}

/// How many of these pages of a file are cached this long after a process has passed them.
fn cached_after(pages: Span, time: Nanos) -> u64 {
    let mut machine = machine(Mode::Always);
    machine.pass(1, 1, false, pages);
    machine.wait(time);
    machine.cached(1, pages)
}

#[test]
fn who_has_come_to_the_end_of_its_file_keeps_nothing_for_followers() {
    let elsewhere = span(0, 2048);
    assert_eq!(cached_after(span(FILE_PAGES - 2048, FILE_PAGES), 500 * MS), 0);
    assert!(cached_after(elsewhere, 500 * MS) > 0, "it may go on");
    assert_eq!(cached_after(elsewhere, 2 * SECOND), 0, "it has paused");
}

#[test]
fn who_has_read_the_end_of_its_file_first_is_not_at_the_end_afterwards() {
    let mut machine = machine(Mode::Always);
    machine.pass(1, 1, false, span(FILE_PAGES - 1, FILE_PAGES));
    machine.pass(1, 1, false, span(0, 2048));
    machine.wait(500 * MS);
    assert!(machine.cached(1, span(0, 2048)) > 0, "it may go on");
}

#[test]
fn a_question_that_is_not_answered_is_asked_again() {
    let mut bench = Bench::new(VOLUME, with(Rules::only(Mode::Always)));
    let key = stream(1, 1, false);
    bench.on(&Input::Passed(passed(1, span(0, 1024))));
    bench.on(&Input::Exited(1));
    assert!(bench.tick(50 * MS).contains(&Command::Touched(key)));
    assert!(!bench.tick(SECOND).contains(&Command::Touched(key)));
    assert!(bench.tick(10 * SECOND).contains(&Command::Touched(key)));
    let touched = Completed::Touched { stream: key, span: Some(span(0, 1024)) };
    bench.completed(touched.clone());
    let commands = bench.tick(50 * MS);
    assert!(commands.contains(&Command::ForgetStream(key)), "{commands:?}");
    assert_eq!(bench.completed(touched), [], "nobody asks any more");
}

#[test]
fn processes_are_watched_for_as_long_as_they_stream() {
    let mut machine = machine(Mode::Auto);
    machine.pass(1, 5, false, span(0, 20_000));
    machine.wait(120 * SECOND);
    let watches = machine.asked(|command| match command {
        Command::WatchProcess(tgid, is_on) => Some((*tgid, *is_on)),
        _ => None,
    });
    assert_eq!(watches, [(5, true), (5, false)]);
}

#[test]
fn mapped_pages_stay_unless_everything_goes() {
    for (mode, goes) in [(Mode::Auto, false), (Mode::Always, true)] {
        let mut bench = Bench::new(VOLUME, with(Rules::only(mode)));
        bench.on(&memory(MEMORY));
        let mut releases = Vec::new();
        for n in 0..20 {
            let mapped = Passed { mapped: true, ..passed(1, span(1024 * n, 1024 * (n + 1))) };
            releases.extend(bench.on(&Input::Passed(mapped)));
        }
        let unmaps = releases.iter().filter(|c| matches!(c, Command::Release { unmaps: true, .. }));
        assert_eq!(unmaps.count() > 0, goes, "{mode:?}");
        assert_eq!(bench.controller.metrics().kept_bytes > 0, !goes);
    }
}

#[test]
fn what_is_said_to_be_left_is_no_more_than_was_asked_for() {
    let mut bench = Bench::new(VOLUME, with(Rules::only(Mode::Always)));
    let mut ticket = None;
    for n in 0..8 {
        for command in bench.on(&Input::Passed(passed(1, span(1024 * n, 1024 * (n + 1))))) {
            if let Command::Release { ticket: it, span, .. } = command {
                ticket = Some((it, span));
            }
        }
    }
    let (ticket, asked) = ticket.expect("one");
    let left = vec![(span(0, u64::MAX), u64::MAX), (span(9, 3), 7)];
    let (dropped_pages, kept_pages) = (u64::MAX, u64::MAX);
    bench.completed(Completed::Released { ticket, dropped_pages, kept_pages, left });
    let metrics = bench.controller.metrics();
    let bytes = asked.pages() * 4096;
    assert_eq!((metrics.dropped_bytes, metrics.left_bytes), (bytes, bytes));
    for command in bench.tick(SECOND) {
        if let Command::Release { span, .. } = command {
            assert_eq!(span, asked);
        }
    }
}

#[test]
fn a_body_that_cannot_drop_behind_is_asked_for_nothing_of_it() {
    let mut bench = Bench::new(VOLUME, Options::default());
    assert_eq!(bench.on(&Input::Passed(passed(1, span(0, 1024)))), []);
    let touched = Completed::Touched { stream: stream(1, 1, false), span: None };
    assert_eq!(bench.completed(touched), []);
    bench.controller.finish();
    assert!(!bench.controller.has_left_overs());
}

#[test]
fn a_stream_is_heard_of_from_its_first_page_on() {
    let mut machine = machine(Mode::Auto);
    let begins = Input::Passed(Passed { span: span(0, 0), ..passed(1, span(0, 1)) });
    machine.give(&begins);
    let looks = |machine: &Machine| machine.log.contains(&Command::LookBehind(true));
    assert!(looks(&machine), "a large file was read");
    machine.give(&begins);
    assert!(machine.log.contains(&Command::WatchProcess(1, true)));
}
