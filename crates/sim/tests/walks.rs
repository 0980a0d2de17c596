//! Programs that read one file after another, under the controller that runs live.

mod support;

use historical::Linux6;
use proptest::prelude::*;
use readahead::adaptive::Limits;
use readahead::{Adaptive, Cause, PAGE_BYTES};
use sim::{Bowwave, DirectoryIndex, FileIndex, Listed, Machine, Named, OnTop, Op, Parts};

/// 512 MiB, as much as all trees need.
const MEMORY_PAGES: u64 = 1 << 17;

/// Bytes of each file.
const FILE_BYTES: u64 = 3 * PAGE_BYTES;

fn machine(device: &str, with_bowwave: bool) -> Machine {
    let on_top = with_bowwave.then(|| {
        let policy = Box::new(Adaptive::new(Limits::default()));
        OnTop::Bowwave(Bowwave::new(policy, 1 << 26))
    });
    let cost = device::load(device).expect("the catalogue has it").cost();
    let parts = support::parts(device, MEMORY_PAGES, Box::new(Linux6::new(64)));
    let mut machine = Machine::new(Parts { on_top, cost, ..parts });
    machine.keep_log();
    machine
}

/// A tree of `directories` with `files` files each, one directory below the other. Its order of `readdir` is neither
/// that of the names nor that of the places.
fn tree(machine: &mut Machine, directories: u64, files: u64) -> DirectoryIndex {
    let top = machine.add_top();
    let mut directory = top;
    for level in 0..directories {
        let added: Vec<FileIndex> = (0..files).map(|_| machine.add_file(FILE_BYTES)).collect();
        for n in 0..files {
            let name = format!("{:05}.c", n * 61 % files);
            machine.name_file(directory, &name, added[(n * 31 % files) as usize]);
        }
        if level + 1 < directories {
            directory = machine.add_directory(directory, "below");
        }
    }
    top
}

/// The files below a directory as `grep -r` reads them.
fn walk(machine: &Machine, directory: DirectoryIndex) -> Vec<FileIndex> {
    let entries = machine.entries(directory).iter();
    let below = entries.flat_map(|(_, named)| match named {
        Named::File(file) => vec![*file],
        Named::Directory(below) => walk(machine, *below),
    });
    below.collect()
}

/// What a program does that reads these files whole.
fn reads(machine: &mut Machine, files: &[FileIndex]) -> Vec<Op> {
    let visit = |file: &FileIndex| {
        let open = machine.open(*file);
        let read = Op::Read { open, at: 0, bytes: FILE_BYTES };
        [Op::LookUp { ns: 20_000 }, read, Op::Compute { ns: 10_000 }]
    };
    files.iter().flat_map(visit).collect()
}

/// Starts such a program. Returns its number.
fn read(machine: &mut Machine, files: &[FileIndex]) -> usize {
    let ops = reads(machine, files);
    machine.spawn(0, Listed(ops.into_iter()))
}

fn resident(machine: &Machine, files: &[FileIndex]) -> u64 {
    files.iter().map(|file| machine.resident_pages(*file)).sum()
}

#[test]
fn the_files_of_a_walk_are_read_ahead_and_no_others() {
    for device in ["hdd", "net"] {
        let mut machine = machine(device, true);
        let [mine, other] = [tree(&mut machine, 5, 100), tree(&mut machine, 5, 100)];
        let [mine, other] = [walk(&machine, mine), walk(&machine, other)];
        let program = read(&mut machine, &mine);
        machine.run();
        assert_eq!(machine.matrix().pages_read() * PAGE_BYTES, 500 * FILE_BYTES, "{device}");
        assert_eq!(resident(&machine, &other), 0, "{device}");
        let misses = machine.matrix().misses;
        assert!(
            misses < 25,
            "{device}: {misses} files were not requested before their reader came"
        );
        let outcome = machine.outcome(program);
        assert_eq!(outcome.pages * PAGE_BYTES, 500 * FILE_BYTES);
    }
}

#[test]
fn a_disk_reads_the_next_files_in_the_order_of_their_places() {
    let mut machine = machine("hdd", true);
    let top = tree(&mut machine, 1, 200);
    let files = walk(&machine, top);
    read(&mut machine, &files);
    machine.run();
    let log = machine.log().iter().filter(|decision| decision.cause == Cause::Initial);
    let places: Vec<u32> = log.map(|decision| decision.file).collect();
    let longest = places.chunk_by(|one, next| one < next).map(<[u32]>::len).max();
    assert!(longest >= Some(50), "{places:?}");
}

/// Pages of a directory in memory after a program has read its first files and waited for `ns`, and something else has
/// gone on for a second.
fn resident_after(device: &str, files: usize, ns: u64) -> u64 {
    let mut machine = machine(device, true);
    let top = tree(&mut machine, 1, 100);
    let all = walk(&machine, top);
    let mut ops = reads(&mut machine, &all[..files]);
    ops.push(Op::Compute { ns });
    machine.spawn(0, Listed(ops.into_iter()));
    machine.spawn(0, Listed([Op::SleepUntil { at: 1_000_000_000 }].into_iter()));
    machine.run();
    resident(&machine, &all)
}

#[test]
fn nothing_more_is_read_for_a_program_that_has_ended() {
    for device in ["hdd", "net"] {
        let both =
            |files| (resident_after(device, files, 0), resident_after(device, files, 1_000_000));
        let all: Vec<(u64, u64)> = (3..40).map(both).collect();
        assert!(all.iter().all(|(at_once, lingering)| at_once <= lingering), "{device}: {all:?}");
        assert!(all.iter().any(|(at_once, lingering)| at_once < lingering), "{device}: {all:?}");
    }
}

#[test]
fn for_a_program_that_stops_after_three_files_16_more_are_read_at_most() {
    for device in ["hdd", "net"] {
        let files = resident_after(device, 3, 1_000_000) * PAGE_BYTES / FILE_BYTES;
        assert!(files <= 3 + 16, "{device}: {files}");
    }
}

#[test]
fn a_program_may_request_what_it_will_read() {
    let mut machine = machine("net", false);
    let top = tree(&mut machine, 1, 32);
    let files = walk(&machine, top);
    let opens: Vec<_> = files.iter().map(|file| machine.open(*file)).collect();
    let wants = opens.iter().map(|open| Op::WillNeed { open: *open, at: 0, bytes: FILE_BYTES });
    let reads = opens.iter().map(|open| Op::Read { open: *open, at: 0, bytes: FILE_BYTES });
    let ops: Vec<Op> = wants.chain(reads).collect();
    let program = machine.spawn(0, Listed(ops.into_iter()));
    machine.run();
    let ms = machine.outcome(program).ended / 1_000_000;
    assert!((5..10).contains(&ms), "32 accesses of 5 ms at once took {ms} ms");
    assert_eq!(machine.matrix().misses, 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn any_walk_is_the_same_each_time_and_reads_no_more_than_its_trees(
        device in prop::sample::select(vec!["hdd", "net", "ssd"]),
        directories in 1..6u64, files in 1..80u64,
        steps in prop::collection::vec(any::<prop::sample::Index>(), 1..200), in_order in any::<bool>(),
    ) {
        let run = || {
            let mut machine = machine(device, true);
            let top = tree(&mut machine, directories, files);
            let all = walk(&machine, top);
            let mut chosen: Vec<usize> = steps.iter().map(|step| step.index(all.len())).collect();
            if in_order {
                chosen.sort_unstable();
            }
            let chosen: Vec<FileIndex> = chosen.into_iter().map(|index| all[index]).collect();
            let program = read(&mut machine, &chosen);
            machine.run();
            prop_assert!(machine.matrix().pages_read() <= all.len() as u64 * 3);
            prop_assert_eq!(machine.outcome(program).pages, chosen.len() as u64 * 3);
            Ok((machine.outcome(program).clone(), machine.log().to_vec(), machine.matrix().clone()))
        };
        prop_assert_eq!(run()?, run()?);
    }
}
