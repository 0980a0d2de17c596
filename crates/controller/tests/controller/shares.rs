//! One group of readers fills a table of the controller's: others find room all the same.

use std::collections::BTreeSet;

use controller::behind::{Mode, Rules};
use controller::ids::{CgroupId, OpenFile, StreamKey, Target};
use controller::{Access, Command, Completed, Input, MemoryStats, Options, Passed, WindowOutcome};
use proptest::prelude::*;
use readahead::DeviceCost;

use crate::support::{Bench, MS, VOLUME, file, miss, passed, reference, span};
use crate::walks::{CGROUP, Forest, Sort};

const STRANGER: CgroupId = CgroupId(9);

/// A stranger reads eight files in each of some large directories, over and over. Returns for how many of the 400 files
/// of another program in one directory that program waits then.
fn waits_beside(large: &[u64], cost: DeviceCost) -> u32 {
    let mut forest = Forest::new(cost);
    let own = forest.folder(1_000, None, 400);
    let folders: Vec<(u64, u64)> = (1..)
        .zip(large)
        .map(|(n, files)| (forest.folder(n * 1_000_000, None, *files), *files))
        .collect();
    forest.cgroup = STRANGER;
    for round in 0..4 {
        for (folder, files) in &folders {
            let files = (0..8).map(|n| folder + 1 + (round * 8 + n) * 1_237 % files);
            forest.read_all(66, files.map(|ino| (*folder, ino)));
        }
    }
    forest.cgroup = CGROUP;
    let before = forest.waits;
    forest.read_all(7, forest.walk(own, Sort::Name, false));
    forest.waits - before
}

#[test]
fn directories_of_a_stranger_leave_room_for_those_of_others() {
    let waits = waits_beside(&[52_000; 6], VOLUME);
    assert!(waits <= 10, "{waits} waits for 400 files");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(6) })]

    #[test]
    fn whatever_directories_a_stranger_has_listed(
        large in proptest::collection::vec(prop_oneof![100..5_000u64, 30_000..65_536u64], 1..9),
    ) {
        let waits = waits_beside(&large, VOLUME);
        prop_assert!(waits <= 10, "{waits} waits for 400 files");
    }
}

#[test]
fn streams_of_a_stranger_leave_room_for_those_of_others_and_are_bounded() {
    const FILES: usize = 40_000;
    const ROOM: usize = 8192;
    let options = Options { behind: Some(Rules::only(Mode::Auto)), ..Options::default() };
    let mut bench = Bench::new(VOLUME, options);
    bench.on(&Input::Passed(passed(1, span(0, 1))));
    let own = StreamKey { file: file(1), tgid: 1, written: false };
    bench.on(&Input::Passed(passed(1, span(0, 1))));
    let mut forgotten = BTreeSet::new();
    for ino in 10..10 + FILES as u64 {
        bench.now += MS / 20;
        let of = reference(ino, 66);
        let stranger = Passed { of, cgroup: STRANGER, ..passed(ino, span(0, 1)) };
        for command in bench.on(&Input::Passed(stranger)) {
            if let Command::ForgetStream(key) = command {
                forgotten.insert(key);
            }
        }
    }
    assert!(!forgotten.contains(&own), "another group's stream was forgotten");
    assert!(forgotten.len() >= FILES - ROOM, "{} of {FILES} are forgotten", forgotten.len());
}

/// The memory of that cgroup allows files of so many bytes.
fn limit(cgroup: CgroupId, file_bytes: u64) -> Input {
    let file_bytes = Some(file_bytes);
    Input::MemoryStats(MemoryStats::Cgroup { cgroup, file_bytes, stalled_percent: 0.0 })
}

/// Answers each change of a window, and what follows. Returns how many were of the open file.
fn set_windows(bench: &mut Bench, commands: Vec<Command>, open_file: OpenFile) -> usize {
    let mut of_it = 0;
    for command in commands {
        let Command::SetWindow { ticket, target, setting, .. } = command else { continue };
        of_it += usize::from(target == Target::OpenFile(open_file));
        let outcome = match setting {
            controller::WindowSetting::Own => WindowOutcome::Own,
            _ => WindowOutcome::Set { own_pages: 32 },
        };
        let (ticket, during) = (Some(ticket), (0, 0));
        let more = bench.completed(Completed::WindowSet { ticket, target, outcome, during });
        of_it += set_windows(bench, more, open_file);
    }
    of_it
}

/// A stranger has more open files than there is room for, and reads all of them over and over; their windows are
/// bounded if it has little memory. Returns how often the window of another reader's open file is changed.
fn windows_beside_a_stranger(has_little: bool) -> usize {
    const OWN: OpenFile = OpenFile(1);
    let mut bench = Bench::new(VOLUME, Options::default());
    bench.on(&limit(CGROUP, 256 << 10));
    if has_little {
        bench.on(&limit(STRANGER, 256 << 10));
    }
    let stranger = |n: u64| Access {
        of: reference(100 + n, 66),
        open_file: Some(OpenFile(1_000 + n)),
        cgroup: STRANGER,
        ..miss(100 + n, 50_000)
    };
    for n in 0..5_000 {
        let commands = bench.access(stranger(n));
        set_windows(&mut bench, commands, OWN);
    }
    let mut of_own = 0;
    for n in 0..100 {
        let own = Access { open_file: Some(OWN), cgroup: CGROUP, ..miss(1, 4 * n) };
        let next = (0..20).map(|more| stranger(5_000 + 20 * n + more));
        for access in std::iter::once(own).chain(next) {
            let commands = bench.access(access);
            of_own += set_windows(&mut bench, commands, OWN);
        }
    }
    of_own
}

#[test]
fn open_files_of_a_stranger_leave_room_for_those_of_others() {
    assert!(windows_beside_a_stranger(false) > 0, "it was never bounded");
}

#[test]
fn so_do_those_whose_windows_have_to_be_given_back_first() {
    assert!(windows_beside_a_stranger(true) > 0, "it was never bounded");
}

#[test]
fn files_of_a_stranger_take_no_marks_of_others_away() {
    let mut bench = Bench::new(VOLUME, Options::default());
    for n in 0..20 {
        bench.access(Access { cgroup: CGROUP, ..miss(1, 90_000 - n) });
    }
    let mut forgotten = Vec::new();
    for n in 0..20_000 {
        let of = reference(100 + n, 66);
        let access =
            Access { of, open_file: Some(OpenFile(100 + n)), cgroup: STRANGER, ..miss(1, 0) };
        let commands = bench.after(MS / 20, &Input::Access(access));
        forgotten.extend(commands.into_iter().filter_map(|command| match command {
            Command::Listen(file, listening) if listening.marked_chunks == 0 => Some(file),
            _ => None,
        }));
    }
    assert!(forgotten.len() > 10_000, "the stranger's own: {}", forgotten.len());
    assert!(!forgotten.contains(&file(1)));
}
