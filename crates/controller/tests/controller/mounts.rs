//! File systems that come and go.

use controller::ids::{BackingId, DeviceNumber};
use controller::{Command, Completed, Input, Interest, Options};
use readahead::Balance;

use crate::support::{Bench, DEV, DISK, Machine, SECOND, VOLUME, facts, miss, mounted, reads};

const OTHER: DeviceNumber = DeviceNumber { major: 7, minor: 2 };

#[test]
fn a_file_of_no_managed_volume_leads_to_no_command() {
    let mut bench = Bench::empty(Options::default());
    for page in (0..100).rev() {
        assert_eq!(bench.access(miss(1, page)), []);
    }
    assert_eq!(bench.controller.metrics().events, 100);
}

#[test]
fn after_it_was_unmounted_nothing_is_asked_of_a_volume() {
    let mut machine = Machine::new(VOLUME, Options::default());
    let open_file = machine.open(9, 1, 1);
    for n in 0..100 {
        machine.read(open_file, 60_000 - 4 * n, 4);
    }
    assert!(machine.controller.status(machine.now).files > 0);
    let before = machine.log.len();
    machine.unmount(DEV);
    machine.give(&Input::Access(miss(1, 100)));
    machine.wait(30 * SECOND);
    let expected = [Command::Watch(DEV, None), Command::Count(DISK, false)];
    assert_eq!(machine.log[before..], expected);
}

#[test]
fn what_was_saved_on_a_volume_counts_after_it_was_unmounted_and_not_for_its_successor() {
    let mut machine = Machine::new(VOLUME, Options::default());
    let read_backward = |machine: &mut Machine, ino| {
        let open_file = machine.open(ino, ino, 1);
        for n in 0..1000 {
            machine.read(open_file, 60_000 - 4 * n, 4);
        }
        let metrics = machine.controller.metrics();
        (metrics.earned_s, metrics.spent_s)
    };
    let once = read_backward(&mut machine, 1);
    assert!(once.0 > once.1 && once.1 > 0.0, "{once:?}");
    machine.unmount(DEV);
    let metrics = machine.controller.metrics();
    assert_eq!((metrics.earned_s, metrics.spent_s), once);

    machine.give(&mounted(DEV, DISK, facts(VOLUME)));
    let status = machine.controller.status(machine.now);
    assert_eq!(status.devices[0].accounts[0], Balance::default());
    let twice = read_backward(&mut machine, 2);
    for (once, twice) in [(once.0, twice.0), (once.1, twice.1)] {
        assert!(twice > 1.9 * once && twice < 2.1 * once, "{once} {twice}");
    }
}

#[test]
fn a_disk_is_counted_for_as_long_as_a_volume_lies_on_it() {
    let mut bench = Bench::new(VOLUME, Options::default());
    let commands = bench.on(&mounted(OTHER, DISK, facts(VOLUME)));
    assert_eq!(commands, [Command::Watch(OTHER, Some(Interest::All))]);
    assert_eq!(bench.on(&Input::Unmounted(DEV)), [Command::Watch(DEV, None)]);
    let commands = bench.on(&Input::Unmounted(OTHER));
    assert_eq!(commands, [Command::Watch(OTHER, None), Command::Count(DISK, false)]);
    assert_eq!(bench.on(&Input::Unmounted(OTHER)), [], "once");
    assert_eq!(bench.controller.status(0).devices.len(), 0);
}

#[test]
fn a_volume_that_lies_on_another_disk_now_leaves_its_old_one() {
    let mut bench = Bench::new(VOLUME, Options::default());
    for backing in 2..100 {
        let commands = bench.on(&mounted(DEV, BackingId(backing), facts(VOLUME)));
        assert!(commands.contains(&Command::Count(BackingId(backing - 1), false)));
        assert_eq!(bench.controller.status(0).devices.len(), 1);
    }
}

#[test]
fn a_volume_mounted_anew_is_read_ahead_again() {
    let mut bench = Bench::new(VOLUME, Options::default());
    bench.on(&Input::Unmounted(DEV));
    bench.on(&mounted(DEV, DISK, facts(VOLUME)));
    bench.access(miss(2, 50_000));
    assert_eq!(reads(&bench.access(miss(2, 49_999))).len(), 1);
}

#[test]
fn a_device_that_nobody_knows_changes_nothing() {
    let mut bench = Bench::new(VOLUME, Options::default());
    let unknown = BackingId(77);
    assert_eq!(bench.completed(Completed::Probed { backing: unknown, cost: Some(VOLUME) }), []);
    assert_eq!(bench.on(&Input::DiskStats(unknown, Default::default())), []);
    assert_eq!(bench.on(&Input::Unmounted(OTHER)), []);
    assert_eq!(bench.on(&Input::Exited(4)), []);
}

#[test]
fn files_of_an_unmounted_volume_are_forgotten_without_commands() {
    let mut bench = Bench::new(VOLUME, Options::default());
    bench.access(miss(1, 50_000));
    bench.access(miss(1, 49_999));
    bench.on(&Input::Unmounted(DEV));
    assert_eq!(bench.tick(20 * SECOND), []);
}
