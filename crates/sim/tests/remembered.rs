//! Starts of a command that bowwave remembers, under the controller that runs live.

mod support;

use controller::{REMEMBERED_RANGES, RememberedFile, Version};
use historical::Linux6;
use readahead::adaptive::Limits;
use readahead::{Adaptive, PAGE_BYTES};
use sim::{Bowwave, FileIndex, Listed, Machine, OnTop, Op, Parts};

/// 256 MiB, more than all files need.
const MEMORY_PAGES: u64 = 1 << 16;

/// Files of the command. It reads the first pages of each, in an order that no directory has.
const FILES: u64 = 400;
const FILE_BYTES: u64 = 5 * PAGE_BYTES;

/// A machine with the files, and the command's operations, which begin with a pause of `pause_ns` after a tenth of the
/// files.
fn machine(device: &str, pause_ns: u64) -> (Machine, Vec<FileIndex>) {
    let policy = Box::new(Adaptive::new(Limits::default()));
    let on_top = Some(OnTop::Bowwave(Bowwave::new(policy, 1 << 26)));
    let cost = device::load(device).expect("the catalogue has it").cost();
    let parts = support::parts(device, MEMORY_PAGES, Box::new(Linux6::new(64)));
    let mut machine = Machine::new(Parts { on_top, cost, ..parts });
    machine.keep_log();
    let files: Vec<FileIndex> = (0..FILES).map(|_| machine.add_file(FILE_BYTES)).collect();
    let mut ops = Vec::new();
    for number in 0..FILES {
        let open = machine.open(files[(number * 7919 % FILES) as usize]);
        ops.push(Op::Read { open, at: 0, bytes: FILE_BYTES });
        ops.push(Op::Compute { ns: 50_000 });
        if number == FILES / 10 {
            ops.push(Op::Compute { ns: pause_ns });
        }
    }
    machine.spawn(0, Listed(ops.into_iter()));
    (machine, files)
}

/// A start with this list; gives the seconds that the command waits, and the next list.
fn start(device: &str, list: Vec<RememberedFile>) -> (f64, Vec<RememberedFile>, Machine) {
    let (mut machine, _) = machine(device, 0);
    machine.begin_start(list);
    machine.run();
    (machine.outcome(0).stalled as f64 * 1e-9, machine.remembered(), machine)
}

fn pages(list: &[RememberedFile]) -> u64 {
    let ranges = list.iter().flat_map(|file| &file.ranges);
    ranges.map(|range| range.pages.pages()).sum()
}

#[test]
fn a_second_start_waits_for_little_and_reads_no_more() {
    for (device, most) in [("net", 0.15), ("hdd", 0.6)] {
        let (first, list, _) = start(device, Vec::new());
        assert_eq!(pages(&list) * PAGE_BYTES, FILES * FILE_BYTES, "{device}");
        let (second, again, machine) = start(device, list.clone());
        assert!(second < most * first, "{device}: {first} s, then {second} s");
        assert_eq!(machine.matrix().pages_read() * PAGE_BYTES, FILES * FILE_BYTES, "{device}");
        assert_eq!(again, list, "{device}: the third start is like the second");
    }
}

#[test]
fn a_disk_reads_a_start_in_the_order_of_the_places() {
    let (_, list, _) = start("hdd", Vec::new());
    let (_, _, machine) = start("hdd", list);
    let asked: Vec<u32> = machine.log().iter().map(|decision| decision.file).collect();
    let longest = asked.chunk_by(|one, next| one < next).map(<[u32]>::len).max();
    assert!(longest >= Some(100), "{asked:?}");
}

#[test]
fn of_a_stale_list_only_what_is_still_the_same_helps() {
    let (first, list, _) = start("net", Vec::new());
    let waits = |changed: usize| {
        let mut stale = list.clone();
        for file in stale.iter_mut().step_by(changed) {
            file.version = Some(Version { bytes: 1, changed_ns: 0 });
        }
        let (waited, next, machine) = start("net", stale);
        assert_eq!(machine.matrix().pages_read() * PAGE_BYTES, FILES * FILE_BYTES);
        assert_eq!(pages(&next) * PAGE_BYTES, FILES * FILE_BYTES, "all is listed again");
        waited
    };
    let (second, _, _) = start("net", list.clone());
    let (tenth, half, all) = (waits(10), waits(2), waits(1));
    assert!(second < tenth && tenth < half && half < all, "{second} {tenth} {half} {all}");
    assert!((all / first - 1.0).abs() < 0.05, "{first} s without a list, {all} s");
    assert!((0.4..0.6).contains(&(half / first)), "{first} s without a list, {half} s");
}

#[test]
fn a_start_is_noted_for_half_a_minute() {
    let (mut machine, _) = machine("net", 30_000_000_000);
    machine.begin_start(Vec::new());
    machine.run();
    let list = machine.remembered();
    assert_eq!(list.len() as u64, FILES / 10 + 1);
    assert!(pages(&list) < REMEMBERED_RANGES as u64);
}

#[test]
fn a_list_of_other_files_is_of_no_use_and_does_no_harm() {
    let (first, list, _) = start("net", Vec::new());
    let mut foreign = list;
    foreign.iter_mut().for_each(|file| file.file.ino += FILES);
    let (waited, _, machine) = start("net", foreign);
    assert_eq!(machine.matrix().pages_read() * PAGE_BYTES, FILES * FILE_BYTES);
    assert!((waited / first - 1.0).abs() < 0.05, "{first} s without a list, {waited} s");
}
