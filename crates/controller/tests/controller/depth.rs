//! How much is requested of a device at once, and its cost.

use controller::ids::{DeviceNumber, Ticket};
use controller::{
    Access, Command, Completed, DeviceFacts, DiskStats, Input, Interest, Options, Origin,
};
use readahead::{DeviceCost, PAGE_BYTES};

use crate::support::{Bench, DEV, DISK, MS, Machine, VOLUME, memory, miss, mounted, reads, span};

/// Starts one backward reader after another until nothing is read ahead for one. Returns the ticket and bytes of each
/// request.
fn fill(bench: &mut Bench) -> Vec<(Ticket, u64)> {
    let mut asked = Vec::new();
    let first = bench.controller.metrics().events;
    for ino in first..first + 1_000 {
        let before = asked.len();
        for page in [50_000, 49_999] {
            asked.extend(bench.access(miss(ino, page)).iter().filter_map(
                |command| match command {
                    Command::Read { ticket, span, .. } => {
                        Some((*ticket, span.pages() * PAGE_BYTES))
                    }
                    _ => None,
                },
            ));
        }
        if asked.len() == before {
            return asked;
        }
    }
    panic!("the device is never full")
}

#[test]
fn nothing_is_asked_of_a_full_device_and_it_is_asked_again_when_answers_come() {
    let mut bench = Bench::new(VOLUME, Options::default());
    let asked = fill(&mut bench);
    assert!(bench.controller.metrics().not_read.device_busy > 0);
    let device = &bench.controller.status(bench.now).devices[0];
    let bytes: u64 = asked.iter().map(|(_, bytes)| bytes).sum();
    assert_eq!(device.in_flight_bytes, bytes);
    assert!(bytes <= device.depth_bytes);
    for (ticket, _) in asked {
        bench.completed(Completed::Read { ticket, failed: None });
    }
    assert_eq!(bench.controller.status(bench.now).devices[0].in_flight_bytes, 0);
    assert!(!fill(&mut bench).is_empty());
}

#[test]
fn one_window_leaves_room_for_others() {
    let cost = DeviceCost { latency_s: 0.1, bandwidth: 100e6, concurrency: 32.0 };
    let mut bench = Bench::new(cost, Options::default());
    let share = bench.controller.status(bench.now).devices[0].depth_bytes / 8;
    let (mut longest, mut page) = (0, 90_000);
    while page > 4 {
        page -= 4;
        let mut window = 0;
        for command in bench.access(Access { request_pages: 4, ..miss(1, page) }) {
            let Command::Read { ticket, span, .. } = command else { continue };
            window += span.pages() * PAGE_BYTES;
            page = page.min(span.start);
            bench.completed(Completed::Read { ticket, failed: None });
        }
        longest = longest.max(window);
    }
    assert!(share * 3 / 4 < longest && longest <= share, "{longest} of {share}");
}

#[test]
fn what_is_in_flight_counts_as_well() {
    let mut bench = Bench::new(VOLUME, Options::default());
    let stats = DiskStats { our_bytes_in_flight: u64::MAX, ..DiskStats::default() };
    bench.on(&Input::DiskStats(DISK, stats));
    assert_eq!(fill(&mut bench), [], "submitted, and not there yet");
    bench.on(&Input::DiskStats(DISK, DiskStats { our_reads: 9, ..DiskStats::default() }));
    bench.on(&Input::DiskStats(DISK, stats));
    assert!(!fill(&mut bench).is_empty(), "counters that come late tell nothing");
}

#[test]
fn a_device_that_answers_nobody_is_asked_no_more() {
    let mut bench = Bench::new(VOLUME, Options::default());
    fill(&mut bench);
    bench.now += 3_600_000 * MS;
    assert_eq!(fill(&mut bench), []);
}

#[test]
fn an_answer_that_comes_twice_makes_room_once() {
    let mut bench = Bench::new(VOLUME, Options::default());
    let asked = fill(&mut bench);
    let all: u64 = asked.iter().map(|(_, bytes)| bytes).sum();
    let (ticket, bytes) = asked[0];
    for _ in 0..2 {
        bench.completed(Completed::Read { ticket, failed: None });
    }
    assert_eq!(bench.controller.status(bench.now).devices[0].in_flight_bytes, all - bytes);
}

#[test]
fn foreground_readers_that_wait_hold_the_depth_down() {
    let mut bench = Bench::new(VOLUME, Options::default());
    let depth = |bench: &Bench| bench.controller.status(bench.now).devices[0].depth_bytes;
    let most = depth(&bench);
    for step in 1..=40 {
        let stats = DiskStats {
            foreground_reads: step,
            foreground_ns: step * 500 * MS,
            ..DiskStats::default()
        };
        bench.on(&Input::DiskStats(DISK, stats));
        bench.now += 50 * MS;
        bench.access(miss(step, 1_000));
    }
    assert_eq!(depth(&bench), 1 << 20);
    for step in 1..=40 {
        bench.now += 50 * MS;
        bench.access(miss(step, 1_500));
    }
    assert_eq!(depth(&bench), most, "nobody else reads any more");
}

#[test]
fn a_disk_of_which_only_the_reads_of_before_tell_is_measured() {
    let learned = DeviceFacts { cost: VOLUME, origin: Origin::Learned, is_counted: false };
    let mut bench = Bench::empty(Options::default());
    assert!(bench.on(&mounted(DEV, DISK, learned)).contains(&Command::Probe(DISK)));
}

#[test]
fn a_guessed_disk_is_measured_and_its_events_follow_the_measurement() {
    let mut bench = Bench::empty(Options::default());
    let guess = DeviceFacts { cost: DeviceCost::DISK, origin: Origin::Guessed, is_counted: true };
    let commands = bench.on(&mounted(DEV, DISK, guess));
    let expected = [
        Command::Probe(DISK),
        Command::Count(DISK, true),
        Command::Watch(DEV, Some(Interest::All)),
    ];
    assert_eq!(commands, expected);
    let measured = Completed::Probed { backing: DISK, cost: Some(DeviceCost::FLASH) };
    let commands = bench.completed(measured);
    let most_window = DeviceCost::FLASH.ample_pages() as u32 / 2;
    let expected = [
        Command::Count(DISK, false),
        Command::Watch(DEV, Some(Interest::NotForward { most_window })),
    ];
    assert_eq!(commands, expected);
    assert_eq!(bench.controller.status(bench.now).devices[0].origin, "measured");
}

#[test]
fn what_cannot_be_probed_stays_a_guess_that_reads_correct() {
    let mut bench = Bench::empty(Options::default());
    let guess = DeviceFacts { cost: DeviceCost::DISK, origin: Origin::Guessed, is_counted: true };
    bench.on(&mounted(DEV, DISK, guess));
    assert_eq!(bench.completed(Completed::Probed { backing: DISK, cost: None }), []);
    let stats = DiskStats { seek_reads: 32, seek_ns: 32 * 100_000, ..DiskStats::default() };
    bench.on(&Input::DiskStats(DISK, stats));
    let commands = bench.access(miss(1, 7));
    let learned = DeviceCost { latency_s: 0.000_1, ..DeviceCost::FLASH };
    assert!(commands.contains(&Command::Remember(DISK, learned)), "{commands:?}");
    assert!(commands.contains(&Command::Count(DISK, false)));
    let most_window = learned.ample_pages() as u32 / 2;
    assert!(commands.contains(&Command::Watch(DEV, Some(Interest::NotForward { most_window }))));
    assert_eq!(bench.controller.status(bench.now).devices[0].origin, "learned");
}

#[test]
fn a_disk_that_delivers_more_than_any_that_rotates_is_flash() {
    let mut bench = Bench::empty(Options::default());
    let guess = DeviceFacts { cost: DeviceCost::DISK, origin: Origin::Guessed, is_counted: true };
    bench.on(&mounted(DEV, DISK, guess));
    let bytes = |bytes: u64| Input::DiskStats(DISK, DiskStats { bytes, ..DiskStats::default() });
    bench.access(miss(1, 7));
    bench.on(&bytes(3 << 20));
    bench.now += 9 * MS;
    assert_eq!(bench.access(miss(2, 7)).iter().filter(|it| is_note(it)).count(), 0, "300 MB/s");
    bench.on(&bytes(23 << 20));
    bench.now += 9 * MS;
    let commands = bench.access(miss(3, 7));
    let noted = commands.iter().find_map(|command| match command {
        Command::Remember(DISK, cost) => Some(*cost),
        _ => None,
    });
    let noted = noted.expect("2 GB/s");
    assert_eq!(noted.latency_s, DeviceCost::FLASH.latency_s);
    assert!((2.0e9..2.2e9).contains(&noted.bandwidth), "{noted:?}");
}

/// Whether it notes what a device costs, as flash.
fn is_note(command: &Command) -> bool {
    matches!(command, Command::Remember(_, cost) if cost.outpaces_user_space())
}

#[test]
fn what_was_measured_or_can_only_be_assumed_is_not_probed() {
    for origin in [Origin::Measured, Origin::Assumed] {
        let mut bench = Bench::empty(Options::default());
        let device = DeviceFacts { cost: VOLUME, origin, is_counted: false };
        let commands = bench.on(&mounted(DEV, DISK, device));
        assert_eq!(commands, [Command::Watch(DEV, Some(Interest::All))], "{origin:?}");
    }
}

#[test]
fn a_cost_that_is_none_is_taken_for_a_disks() {
    for broken in [f64::NAN, f64::INFINITY, f64::MAX, -1.0, 0.0] {
        for cost in [
            DeviceCost { latency_s: broken, ..VOLUME },
            DeviceCost { bandwidth: broken, ..VOLUME },
            DeviceCost { concurrency: broken, ..VOLUME },
        ] {
            let mut machine = Machine::empty(Options::default());
            let device = DeviceFacts { cost, origin: Origin::Measured, is_counted: true };
            machine.give(&mounted(DEV, DISK, device));
            let device = machine.controller.status(0).devices[0].clone();
            assert_eq!(device.latency_ms, DeviceCost::DISK.latency_s * 1e3, "{cost:?}");
            machine.give(&Input::Completed(Completed::Probed { backing: DISK, cost: Some(cost) }));
            assert_eq!(machine.controller.status(0).devices[0].latency_ms, device.latency_ms);
            let open_file = machine.open(9, 1, 1);
            machine.wait(60 * MS);
            for n in 0..100 {
                machine.read(open_file, 60_000 - 4 * n, 4);
                machine.wait(5 * MS);
            }
            assert!(machine.cached(1, span(0, 59_600)) > 0, "it is read ahead: {cost:?}");
        }
    }
}

#[test]
fn file_systems_on_one_disk_share_its_depth() {
    let mut bench = Bench::new(VOLUME, Options::default());
    let other = DeviceNumber { major: 7, minor: 2 };
    bench.on(&mounted(other, DISK, crate::support::facts(VOLUME)));
    fill(&mut bench);
    let on = |page| {
        let mut access = miss(1, page);
        access.of.file.dev = other;
        access
    };
    bench.access(on(50_000));
    assert_eq!(reads(&bench.access(on(49_999))), []);
    assert_eq!(bench.controller.status(bench.now).devices[0].volumes, ["7:1", "7:2"]);
}

#[test]
fn memory_that_is_told_of_before_any_device_is_kept() {
    let mut bench = Bench::empty(Options::default());
    assert_eq!(bench.on(&memory(1 << 30)), []);
    assert_eq!(bench.controller.status(0).budget_bytes, 128 << 20);
}
