//! What holds for any inputs.
//!
//! [`crate::support`]'s law checks every command: it is within the file, on a mounted volume and within the device's
//! depth; one window at a time changes on a device; nothing is given back twice; nothing is dropped that its stream has
//! not passed.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use controller::behind::{Mode, Rules};
use controller::ids::{BackingId, CgroupId, OpenFile, StartId, StreamKey, Target, Ticket};
use controller::{
    Access, Advice, Attributes, Charge, Command, Completed, DeviceFacts, DirectoryRef, DiskStats,
    EntryKind, Failure, FileMiss, Found, Input, Kind, Listing, MemoryStats, Mounted, Nanos,
    Options, Origin, Passed, RememberedFile, RememberedRange, Version, WindowOutcome,
    WindowSetting,
};
use proptest::collection::vec;
use proptest::prelude::*;
use readahead::behind::Span;
use readahead::{DeviceCost, History, Past};

use crate::support::{
    DEV, DISK, FILE_PAGES, MS, Machine, Manners, SECOND, VOLUME, adaptive, facts, file, memory,
    miss, mounted, reference,
};

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

/// What happens on a machine.
#[derive(Clone, Debug)]
enum Event {
    /// A run of `count` reads of `pages` pages each, whose starts are `step` pages apart.
    Reads {
        open: u64,
        start: u64,
        step: i64,
        pages: u64,
        count: u64,
    },
    /// Pages that the kernel had read ahead are gone.
    Evicted {
        open: u64,
        page: u64,
        past: Past,
    },
    /// `count` page faults that are `step` pages apart.
    Faults {
        ino: u64,
        start: u64,
        step: u64,
        count: u64,
    },
    Advice {
        open: u64,
        advice: Advice,
    },
    Passes {
        ino: u64,
        tgid: u32,
        written: bool,
        start: u64,
        pages: u64,
    },
    Written {
        ino: u64,
    },
    InUse {
        ino: u64,
        start: u64,
        held: bool,
    },
    Exit(u32),
    Remount,
    Limit {
        file_bytes: Option<u64>,
        stalled_percent: f64,
    },
    Foreground {
        reads: u64,
        ms: u64,
    },
    LeftBehind,
    Wait(Nanos),
}

fn advice() -> impl Strategy<Value = Advice> {
    (any::<bool>(), any::<bool>(), any::<bool>()).prop_map(|(random, sequential, noreuse)| Advice {
        random,
        sequential,
        noreuse,
    })
}

fn event() -> impl Strategy<Value = Event> {
    let steps = prop_oneof![Just(4_i64), Just(-4), Just(64), Just(-300), -5_000..5_000_i64];
    let reads = (1..7u64, 0..FILE_PAGES, steps, 1..40u64, 1..60u64).prop_map(
        |(open, start, step, pages, count)| Event::Reads { open, start, step, pages, count },
    );
    let evicted = (1..7u64, 0..FILE_PAGES, past()).prop_map(|(open, page, past)| Event::Evicted {
        open,
        page,
        past,
    });
    let faults = (1..4u64, 0..FILE_PAGES, 1..9_000u64, 1..30u64)
        .prop_map(|(ino, start, step, count)| Event::Faults { ino, start, step, count });
    let advised = (1..7u64, advice()).prop_map(|(open, advice)| Event::Advice { open, advice });
    let passes = (1..4u64, 1..4u32, any::<bool>(), 0..40_000u64, 1..20_000u64).prop_map(
        |(ino, tgid, written, start, pages)| Event::Passes { ino, tgid, written, start, pages },
    );
    let held = (1..4u64, 0..40_000u64, any::<bool>()).prop_map(|(ino, start, held)| Event::InUse {
        ino,
        start,
        held,
    });
    let limit = (proptest::option::of(1u64 << 18..1 << 30), 0.0..99.0)
        .prop_map(|(file_bytes, stalled_percent)| Event::Limit { file_bytes, stalled_percent });
    let waits = prop_oneof![0..3 * MS, 0..SECOND, 0..15 * SECOND];
    prop_oneof![
        6 => reads,
        2 => evicted,
        1 => faults,
        1 => advised,
        4 => passes,
        1 => (1..4u64).prop_map(|ino| Event::Written { ino }),
        1 => held,
        1 => (1..4u32).prop_map(Event::Exit),
        1 => Just(Event::Remount),
        1 => limit,
        1 => (0..9u64, 0..900u64).prop_map(|(reads, ms)| Event::Foreground { reads, ms }),
        1 => Just(Event::LeftBehind),
        4 => waits.prop_map(Event::Wait),
    ]
}

/// Open file `n` belongs to file and process 1 to 3, two to each.
fn opened(machine: &mut Machine, n: u64) -> OpenFile {
    let number = OpenFile(n);
    if !machine.is_open(number) {
        let ino = 1 + n % 3;
        machine.open(n, ino, ino as u32);
    }
    number
}

fn happen(machine: &mut Machine, event: &Event) {
    match *event {
        Event::Reads { open, start, step, pages, count } => {
            let open_file = opened(machine, open);
            let mut at = start as i64;
            for _ in 0..count {
                if (0..FILE_PAGES as i64).contains(&at) {
                    machine.read(open_file, at as u64, pages);
                }
                at += step;
            }
        }
        Event::Evicted { open, page, past } => {
            let open_file = Some(opened(machine, open));
            let of = reference(1 + open % 3, 1 + (open % 3) as u32);
            let access = Access { open_file, of, past, ..miss(of.file.ino, page) };
            machine.give(&Input::Access(access));
        }
        Event::Faults { ino, start, step, count } => {
            for n in 0..count {
                let page = (start + n * step) % FILE_PAGES;
                machine.give(&Input::Access(crate::support::fault(ino, page)));
                machine.wait(MS);
            }
        }
        Event::Advice { open, advice } => {
            let open_file = opened(machine, open);
            machine.opened(open_file).advice = advice;
        }
        Event::Passes { ino, tgid, written, start, pages } => {
            let pages = Span { start, end: start + pages };
            machine.pass(ino, tgid, written, pages);
        }
        Event::Written { ino } => machine.clean(ino),
        Event::InUse { ino, start, held } => {
            machine.hold(ino, Span { start, end: start + 600 }, held);
        }
        Event::Exit(tgid) => machine.exit(tgid),
        Event::Remount => {
            machine.unmount(DEV);
            machine.give(&mounted(DEV, DISK, facts(VOLUME)));
        }
        Event::Limit { file_bytes, stalled_percent } => {
            let cgroup = CgroupId(0);
            let limit = MemoryStats::Cgroup { cgroup, file_bytes, stalled_percent };
            machine.give(&Input::MemoryStats(limit));
        }
        Event::Foreground { reads, ms } => {
            machine.stats.foreground_reads += reads;
            machine.stats.foreground_ns += reads * ms * MS;
        }
        Event::LeftBehind => {
            machine.left_behind += 1;
            let entry = machine.left_behind;
            machine.journal.insert(Target::Recovered(entry), 32);
            let left = Completed::LeftBehind { entry, file: file(1) };
            machine.give(&Input::Completed(left));
        }
        Event::Wait(ns) => machine.wait(ns),
    }
    let status = machine.controller.status(machine.now);
    assert!(status.ahead_bytes <= status.budget_bytes, "{status:?}");
}

fn options() -> impl Strategy<Value = Options> {
    let charge = prop_oneof![Just(Charge::Bowwave), Just(Charge::Reader)];
    let mode = prop_oneof![Just(Mode::Auto), Just(Mode::Always), Just(Mode::Never)];
    (charge, mode).prop_map(|(charge, mode)| Options { charge, behind: Some(Rules::only(mode)) })
}

fn machine(options: Options, cost: DeviceCost, manners: Manners) -> Machine {
    let mut machine = Machine::new(cost, options);
    machine.manners = manners;
    machine.give(&memory(256 << 20));
    machine
}

/// Everything works again, every file is read to its end, and an hour or two pass.
fn come_to_rest(machine: &mut Machine) {
    machine.manners = Manners::Orderly;
    (1..4).for_each(|ino| {
        machine.clean(ino);
        machine.hold(ino, Span { start: 0, end: FILE_PAGES }, false);
    });
    let cgroup = CgroupId(0);
    let unlimited = MemoryStats::Cgroup { cgroup, file_bytes: None, stalled_percent: 0.0 };
    for _ in 0..8 {
        machine.give(&Input::MemoryStats(unlimited));
        machine.give(&Input::Access(Access { open_file: None, ..miss(50, 5) }));
        machine.wait(40 * SECOND);
        machine.now += 1_800 * SECOND;
        machine.give(&Input::Tick);
    }
    (1..4).for_each(|ino| machine.exit(ino));
    machine.wait(60 * SECOND);
}

proptest! {
    #![proptest_config(config(64))]

    #[test]
    fn on_a_working_machine_every_command_keeps_the_law_and_nothing_is_left(
        options in options(),
        disk in any::<bool>(),
        events in vec(event(), 1..25),
    ) {
        let cost = if disk { DeviceCost::DISK } else { VOLUME };
        let mut machine = machine(options, cost, Manners::Orderly);
        events.iter().for_each(|event| happen(&mut machine, event));
        come_to_rest(&mut machine);
        is_at_rest(&machine);
        prop_assert!(!machine.controller.has_left_overs());
    }

    #[test]
    fn every_command_keeps_the_law_with_late_lost_repeated_or_wrong_answers(
        options in options(),
        seed in any::<u64>(),
        disk in any::<bool>(),
        events in vec(event(), 1..25),
    ) {
        let cost = if disk { DeviceCost::DISK } else { VOLUME };
        let mut machine = machine(options, cost, Manners::Hostile(seed));
        events.iter().for_each(|event| happen(&mut machine, event));
        come_to_rest(&mut machine);
        is_at_rest(&machine);
    }
}

/// Checks that each open file has its own window again, except where a program's advice has replaced it, and that
/// nothing is remembered.
fn is_at_rest(machine: &Machine) {
    let abandoned = machine.asked(|command| match command {
        Command::SetWindow { target, setting: WindowSetting::Abandoned, .. } => Some(*target),
        _ => None,
    });
    let abandoned: BTreeSet<Target> = abandoned.into_iter().collect();
    let left = machine.journal.keys().filter(|target| !abandoned.contains(target));
    assert_eq!(left.collect::<Vec<_>>(), Vec::<&Target>::new(), "not given back");
    let status = machine.controller.status(machine.now);
    let kept = (status.files, status.changed_windows, status.behind_streams);
    assert_eq!(kept, (0, 0, 0), "{status:?}");
}

/// A number, extreme ones included.
fn number() -> BoxedStrategy<u64> {
    prop_oneof![
        3 => 0..40u64,
        3 => 990..1_100u64,
        1 => Just(u64::MAX),
        1 => Just(1 << 51),
        1 => any::<u64>(),
    ]
    .boxed()
}

fn real() -> BoxedStrategy<f64> {
    let odd = [f64::NAN, f64::INFINITY, -1.0, 0.0, f64::MIN_POSITIVE, f64::MAX];
    prop_oneof![1e-6..1e9, proptest::sample::select(odd.to_vec())].boxed()
}

fn wild_cost() -> BoxedStrategy<DeviceCost> {
    let wild = (real(), real(), real()).prop_map(|(latency_s, bandwidth, concurrency)| {
        DeviceCost { latency_s, bandwidth, concurrency }
    });
    prop_oneof![2 => Just(VOLUME), 1 => Just(DeviceCost::DISK), 1 => wild].boxed()
}

/// Any numbers that a file can contain.
fn wild_history() -> BoxedStrategy<Box<History>> {
    let count = || prop_oneof![0.0..40f32, Just(-1.0), Just(f32::MAX)];
    let bins = vec((0..96u8, count(), count(), any::<u32>()), 0..8);
    let parts = ((count(), count()), (count(), count(), count()), bins);
    let history = parts.prop_map(|((begun, ended), (misses, forward, backward), curve)| {
        let completion_rate = serde_json::json!({ "begun": begun, "ended": ended });
        let starts = serde_json::json!({ "misses": misses, "forward": forward, "backward": backward });
        let text = serde_json::json!({ "completion_rate": completion_rate, "starts": starts, "curve": curve });
        Box::new(serde_json::from_value(text).expect("a history"))
    });
    history.boxed()
}

fn wild_access() -> BoxedStrategy<Access> {
    let kinds = [Kind::Miss, Kind::KernelMark, Kind::Mark, Kind::Fault];
    let how = (
        proptest::sample::select(kinds.to_vec()),
        any::<bool>(),
        advice(),
        prop_oneof![0..40u32, any::<u32>()],
        prop_oneof![Just(32u32), any::<u32>()],
        past(),
    );
    let place = (1..4u64, number(), number(), proptest::option::of(number()));
    let others = (proptest::option::of(0..5u64), proptest::option::of((number(), number())));
    (how, place, others, 0..3u32)
        .prop_map(|(how, place, (open_file, mark), cgroup)| {
            let (kind, mapped, advice, request_pages, kernel_window, past) = how;
            let (ino, page, file_bytes, previous) = place;
            Access {
                kind,
                of: reference(ino, cgroup),
                open_file: open_file.map(OpenFile),
                cgroup: CgroupId(cgroup),
                page,
                request_pages,
                previous,
                file_bytes: if file_bytes < 40 { u64::MAX } else { file_bytes },
                kernel_window,
                mapped,
                advice,
                past,
                mark,
            }
        })
        .boxed()
}

fn past() -> impl Strategy<Value = Past> {
    use Past::{Evicted, EvictedNext, EvictedUnused, Unknown};
    prop_oneof![Just(Unknown), Just(Evicted), Just(EvictedNext), Just(EvictedUnused)]
}

fn wild_span() -> impl Strategy<Value = Span> {
    (number(), number()).prop_map(|(start, end)| Span { start, end })
}

fn stream() -> impl Strategy<Value = StreamKey> {
    (1..4u64, 0..3u32, any::<bool>()).prop_map(|(ino, tgid, written)| StreamKey {
        file: file(ino),
        tgid,
        written,
    })
}

fn wild_stats() -> BoxedStrategy<DiskStats> {
    proptest::array::uniform10(number())
        .prop_map(|n| DiskStats {
            foreground_reads: n[0],
            foreground_ns: n[1],
            managed_reads: n[2],
            managed_ns: n[3],
            seek_reads: n[4],
            seek_ns: n[5],
            our_reads: n[6],
            our_bytes: n[7],
            our_bytes_in_flight: n[8],
            bytes: n[9],
        })
        .boxed()
}

fn target() -> impl Strategy<Value = Target> {
    prop_oneof![
        (0..5u64).prop_map(|n| Target::OpenFile(OpenFile(n))),
        (0..3u32, 1..4u64).prop_map(|(tgid, ino)| Target::Mapping(tgid, file(ino))),
        (0..3u32).prop_map(Target::Recovered),
    ]
}

fn outcome() -> impl Strategy<Value = WindowOutcome> {
    prop_oneof![
        any::<u32>().prop_map(|own_pages| WindowOutcome::Set { own_pages }),
        Just(WindowOutcome::Own),
        Just(WindowOutcome::Failed),
    ]
}

fn wild_directory() -> impl Strategy<Value = DirectoryRef> {
    (1..4u64, 0..2u32).prop_map(|(ino, generation)| DirectoryRef { key: file(ino), generation })
}

/// Entries whose inodes and ranks may be repeated; directories that contain themselves.
fn wild_listing() -> impl Strategy<Value = Listing> {
    let kinds = [EntryKind::File, EntryKind::Directory, EntryKind::Other];
    let entry =
        (1..8u64, any::<u32>(), 0..3u32, proptest::sample::select(kinds.to_vec())).prop_map(
            |(ino, name_rank, suffix, kind)| controller::Entry { ino, name_rank, suffix, kind },
        );
    (wild_directory(), proptest::option::of(wild_directory()), vec(entry, 0..20)).prop_map(
        |(directory, parent, entries)| Listing { directory, parent, entries: entries.into() },
    )
}

fn wild_file_miss() -> impl Strategy<Value = FileMiss> {
    (1..8u64, 0..3u32, wild_directory(), number(), any::<u32>()).prop_map(
        |(ino, tgid, directory, file_bytes, request_pages)| FileMiss {
            of: reference(ino, tgid),
            cgroup: CgroupId(tgid),
            directory,
            file_bytes,
            request_pages,
        },
    )
}

/// Ranges may overlap, be empty or end before they start.
fn wild_remembered() -> impl Strategy<Value = RememberedFile> {
    let version = (number(), any::<i64>());
    let version = version.prop_map(|(bytes, changed_ns)| Version { bytes, changed_ns });
    let range = (wild_span(), any::<u8>())
        .prop_map(|(pages, starts_in_vain)| RememberedRange { pages, starts_in_vain });
    (1..8u64, 0..2u32, proptest::option::weighted(0.9, version), vec(range, 0..30)).prop_map(
        |(ino, generation, version, ranges)| RememberedFile {
            file: file(ino),
            generation,
            version,
            ranges,
        },
    )
}

/// Answers to any command, requested or not.
fn wild_answer() -> BoxedStrategy<Completed> {
    let ticket = || (0..60u64).prop_map(Ticket);
    let left = vec((wild_span(), number()), 0..4);
    let founds = [Found::Gone, Found::Cached, Found::Read];
    prop_oneof![
        (ticket(), any::<bool>()).prop_map(|(ticket, failed)| Completed::Read {
            ticket,
            failed: failed.then_some(Failure::Errno(5)),
        }),
        (0..4u32, proptest::option::of(wild_cost()))
            .prop_map(|(backing, cost)| Completed::Probed { backing: BackingId(backing), cost }),
        (proptest::option::of(ticket()), target(), outcome(), (number(), number())).prop_map(
            |(ticket, target, outcome, during)| Completed::WindowSet {
                ticket,
                target,
                outcome,
                during,
            }
        ),
        (ticket(), number(), number(), left).prop_map(
            |(ticket, dropped_pages, kept_pages, left)| Completed::Released {
                ticket,
                dropped_pages,
                kept_pages,
                left,
            }
        ),
        ticket().prop_map(|ticket| Completed::WroteOut { ticket }),
        (ticket(), proptest::option::of(wild_listing()))
            .prop_map(|(ticket, listing)| Completed::Listed { ticket, listing }),
        (ticket(), any::<u32>(), number())
            .prop_map(|(ticket, files, bytes)| Completed::FilesRead { ticket, files, bytes }),
        (ticket(), vec(proptest::sample::select(founds.to_vec()), 0..20))
            .prop_map(|(ticket, found)| Completed::RememberedRead { ticket, found }),
        (0..20u32, vec(wild_remembered(), 0..8))
            .prop_map(|(start, list)| Completed::Recalled { start: StartId(start), list }),
        stream()
            .prop_map(|stream| Completed::Described { stream, attributes: Attributes::default() }),
        (stream(), proptest::option::of(wild_span()))
            .prop_map(|(stream, span)| Completed::Touched { stream, span }),
        (0..3u32, 1..4u64)
            .prop_map(|(entry, ino)| Completed::LeftBehind { entry, file: file(ino) }),
    ]
    .boxed()
}

fn wild_input() -> BoxedStrategy<Input> {
    let origins = [Origin::Measured, Origin::Learned, Origin::Guessed, Origin::Assumed];
    let origin = proptest::sample::select(origins.to_vec());
    let devs = || (1..3u32).prop_map(|minor| controller::ids::DeviceNumber { minor, ..DEV });
    let mounts = (devs(), 0..3u32, wild_cost(), origin, any::<bool>()).prop_map(
        |(dev, backing, cost, origin, is_counted)| {
            let device = DeviceFacts { cost, origin, is_counted };
            Input::Mounted(Mounted { dev, backing: BackingId(backing), device })
        },
    );
    let passes = (stream(), wild_span(), number(), any::<bool>()).prop_map(
        |(stream, span, file_bytes, mapped)| {
            let of = reference(stream.file.ino, stream.tgid);
            let written = stream.written;
            Input::Passed(Passed {
                of,
                written,
                mapped,
                file_bytes,
                ..crate::support::passed(1, span)
            })
        },
    );
    let option = || proptest::option::of(number());
    let machine = (option(), option()).prop_map(|(available_bytes, own_cgroup_bytes)| {
        Input::MemoryStats(MemoryStats::Machine { available_bytes, own_cgroup_bytes })
    });
    let cgroup = (0..3u32, option(), real()).prop_map(|(cgroup, file_bytes, stalled_percent)| {
        let cgroup = CgroupId(cgroup);
        Input::MemoryStats(MemoryStats::Cgroup { cgroup, file_bytes, stalled_percent })
    });
    prop_oneof![
        8 => wild_access().prop_map(Input::Access),
        6 => wild_file_miss().prop_map(Input::FileMiss),
        6 => passes,
        6 => wild_answer().prop_map(Input::Completed),
        2 => (0..3u32, wild_stats()).prop_map(|(id, stats)| Input::DiskStats(BackingId(id), stats)),
        1 => machine,
        1 => cgroup,
        1 => mounts,
        1 => vec(wild_remembered(), 0..8).prop_map(Input::Remembered),
        1 => (devs(), wild_history()).prop_map(|(dev, history)| Input::History(dev, history)),
        1 => devs().prop_map(Input::Unmounted),
        1 => (0..3u32).prop_map(Input::Exited),
        1 => (0..20u32, 0..3u32).prop_map(|(start, tgid)| Input::Joined(StartId(start), tgid)),
        4 => Just(Input::Tick),
    ]
    .boxed()
}

/// Inputs with their times, which may stand still, leap, or run backwards.
fn wild_inputs() -> impl Strategy<Value = Vec<(Nanos, Input)>> {
    let moment = prop_oneof![0..20 * SECOND, any::<u64>()];
    vec((moment, wild_input()), 1..120)
}

/// All commands of a controller.
fn asked(options: &Options, inputs: &[(Nanos, Input)]) -> Vec<Command> {
    let mut out = Vec::new();
    let mut controller = adaptive(options.clone(), &mut out);
    let start = [memory(1 << 30), mounted(DEV, DISK, facts(VOLUME))].map(|input| (0, input));
    for (now, input) in start.iter().chain(inputs) {
        controller.on(*now, input, &mut out);
        assert!(controller.next_tick(*now) >= *now);
        controller.metrics();
        controller.status(*now);
        controller.remembered();
    }
    controller.finish();
    controller.on(u64::MAX, &Input::Tick, &mut out);
    out
}

proptest! {
    #![proptest_config(config(512))]

    #[test]
    fn any_inputs_are_accepted_and_the_same_inputs_give_the_same_commands(
        options in options(),
        inputs in wild_inputs(),
    ) {
        prop_assert_eq!(asked(&options, &inputs), asked(&options, &inputs));
    }
}

/// A hash of all commands after a fixed history of all kinds of inputs.
fn digest() -> u64 {
    let mut machine = machine(
        Options { charge: Charge::Bowwave, behind: Some(Rules::only(Mode::Auto)) },
        DeviceCost::DISK,
        Manners::Hostile(7),
    );
    for n in 1..120_u64 {
        let start = n * 1_237 % 60_000;
        let step = [4, -4, 300][n as usize % 3];
        let event = match n % 4 {
            0 => Event::Passes {
                ino: 1 + n % 3,
                tgid: 1 + n as u32 % 3,
                written: n % 8 == 0,
                start: 0,
                pages: 20_000,
            },
            1 => Event::Evicted {
                open: n % 6,
                page: start,
                past: [Past::Unknown, Past::EvictedUnused][(n % 2) as usize],
            },
            _ => Event::Reads { open: n % 6, start, step, pages: 4, count: 40 },
        };
        happen(&mut machine, &event);
    }
    let asked = machine.log.len();
    assert!(asked > 200, "hardly anything was asked for: {asked}");
    let mut hasher = DefaultHasher::new();
    format!("{:?}", machine.log).hash(&mut hasher);
    hasher.finish()
}

/// The environment variable that tells a child process of the next test to print its digest.
const ASKED_FOR: &str = "CONTROLLER_DIGEST";

#[test]
#[allow(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types)] // a test may start itself
fn two_processes_ask_for_the_same_in_the_same_order() {
    if std::env::var_os(ASKED_FOR).is_some() {
        println!("digest {}", digest());
        return;
    }
    let own = std::env::current_exe().expect("this test");
    let digests = [(); 2].map(|()| {
        let mut child = std::process::Command::new(&own);
        let name = "properties::two_processes_ask_for_the_same_in_the_same_order";
        child.args(["--exact", name, "--nocapture"]).env(ASKED_FOR, "1");
        let output = child.output().expect("it runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let digest = text.split("digest ").nth(1).and_then(|rest| rest.lines().next());
        digest.unwrap_or_else(|| panic!("no digest: {text}")).to_owned()
    });
    assert_eq!(digests[0], digests[1]);
}
