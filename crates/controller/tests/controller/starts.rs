//! Starts that a daemon remembers: some processes belong to one, others do not.

use controller::behind::{Mode, Rules};
use controller::ids::{StartId, Tgid};
use controller::{Command, Input, Options, Passed};

use crate::remembered::{LET_GO, Start, inos, irregular, list};
use crate::support::{Bench, DEV, SECOND, VOLUME, passed, reference, span};

const ID: StartId = StartId(1);
const OTHER: StartId = StartId(2);

/// A machine on which this is known of two starts.
fn machine(lists: [Vec<controller::RememberedFile>; 2]) -> Start {
    let mut start = Start::idle(Bench::new(VOLUME, Options::default()));
    start.lists = [ID, OTHER].into_iter().zip(lists).collect();
    start
}

fn join(start: &mut Start, id: StartId, tgid: Tgid) {
    start.tell(&Input::Joined(id, tgid));
}

/// Time passes.
fn wait(start: &mut Start, seconds: u64) {
    for _ in 0..seconds {
        start.bench.now += SECOND;
        start.tell(&Input::Tick);
    }
}

/// Of the files of a list, those that no start was seen to use.
fn in_vain(list: &[controller::RememberedFile]) -> Vec<u64> {
    let vain = list.iter().filter(|of| of.ranges.iter().all(|range| range.starts_in_vain > 0));
    vain.map(|of| of.file.ino).collect()
}

#[test]
fn a_process_waits_for_hardly_any_file_of_its_list() {
    let mut start = machine([list(irregular(300)), Vec::new()]);
    join(&mut start, ID, 1);
    start.process_reads(1, irregular(300));
    assert_eq!(start.waits, 1, "for the first one");
    wait(&mut start, LET_GO / SECOND);
    assert_eq!(inos(&start.kept[&ID]), irregular(300).collect::<Vec<_>>());
    assert_eq!(in_vain(&start.kept[&ID]), [0; 0]);
    let metrics = start.bench.controller.metrics();
    assert_eq!((metrics.remembered_ranges, metrics.remembered_used), (299, 299), "it has ended");
}

#[test]
fn other_processes_have_no_part_in_a_start() {
    let mut start = machine([list(irregular(300)), Vec::new()]);
    join(&mut start, ID, 1);
    start.process_reads(2, 5000..5100);
    assert_eq!(start.asked, [0; 0], "the command has come to nothing");
    start.process_reads(2, irregular(300).take(20));
    assert_eq!(start.asked, [0; 0], "another process has come to it");
    start.process_reads(1, irregular(300).skip(20));
    assert!(!start.asked.is_empty());
    wait(&mut start, LET_GO / SECOND);
    assert!(inos(&start.kept[&ID]).iter().all(|ino| *ino < 5000), "{:?}", start.kept);
}

#[test]
fn each_start_has_a_list_of_its_own() {
    let mut start = machine([list(0..100), list(500..600)]);
    join(&mut start, ID, 1);
    join(&mut start, OTHER, 2);
    for (one, other) in (0..100).zip(500..600) {
        start.process_reads(1, [one]);
        start.process_reads(2, [other]);
    }
    assert_eq!(start.waits, 2, "for the first one of each");
    wait(&mut start, LET_GO / SECOND);
    assert_eq!(inos(&start.kept[&ID]), (0..100).collect::<Vec<_>>());
    assert_eq!(inos(&start.kept[&OTHER]), (500..600).collect::<Vec<_>>());
}

#[test]
fn what_a_process_reads_before_its_list_has_come_counts_as_well() {
    let mut start = machine([Vec::new(), Vec::new()]);
    start.lists.clear();
    join(&mut start, ID, 1);
    start.process_reads(1, irregular(300).take(5));
    assert_eq!(start.asked, [0; 0]);
    let recalled = controller::Completed::Recalled { start: ID, list: list(irregular(300)) };
    start.tell(&Input::Completed(recalled));
    assert!(start.asked.len() >= 16, "it has come to five of them: {:?}", start.asked);
    start.process_reads(1, irregular(300).skip(5));
    assert_eq!(start.waits, 5);
}

#[test]
fn a_first_start_is_kept_in_its_order() {
    let mut start = machine([Vec::new(), Vec::new()]);
    join(&mut start, ID, 1);
    start.process_reads(1, irregular(100));
    wait(&mut start, LET_GO / SECOND);
    assert_eq!(inos(&start.kept[&ID]), irregular(100).collect::<Vec<_>>());
}

#[test]
fn a_start_whose_list_never_comes_keeps_nothing() {
    let mut start = machine([Vec::new(), Vec::new()]);
    start.lists.clear();
    join(&mut start, ID, 1);
    start.process_reads(1, irregular(100));
    wait(&mut start, LET_GO / SECOND);
    assert_eq!(start.kept[&ID], [], "the list on the disk stays");
}

#[test]
fn a_mark_that_another_program_touches_says_nothing_about_the_list() {
    let mut start = machine([list(0..100), Vec::new()]);
    join(&mut start, ID, 1);
    start.process_reads(1, 0..1);
    assert!(start.asked.contains(&10));
    start.process_reads(2, 10..12);
    wait(&mut start, LET_GO / SECOND);
    let vain = in_vain(&start.kept[&ID]);
    assert!(!vain.contains(&10) && !vain.contains(&11) && vain.contains(&12), "{vain:?}");
}

#[test]
fn a_start_ends_with_its_processes_but_not_at_once() {
    let mut start = machine([list(0..10), Vec::new()]);
    for tgid in [1, 2] {
        join(&mut start, ID, tgid);
    }
    assert_eq!(start.watched.iter().copied().collect::<Vec<_>>(), [1, 2]);
    start.process_reads(1, 0..10);
    start.tell(&Input::Exited(1));
    wait(&mut start, 10);
    assert!(start.kept.is_empty(), "process 2 goes on");
    start.tell(&Input::Exited(2));
    wait(&mut start, 2);
    assert_eq!(inos(&start.kept[&ID]), (0..10).collect::<Vec<_>>());
    join(&mut start, OTHER, 3);
    start.tell(&Input::Exited(3));
    wait(&mut start, 3);
    assert!(!start.kept.contains_key(&OTHER), "another process may come");
    wait(&mut start, 3);
    assert!(start.kept.contains_key(&OTHER));
}

#[test]
fn there_is_room_for_so_many_starts_and_no_more() {
    let mut start = machine([Vec::new(), Vec::new()]);
    for number in 1..100 {
        join(&mut start, StartId(number), number);
    }
    assert_eq!(start.watched.len(), 16);
    wait(&mut start, LET_GO / SECOND);
    assert_eq!(start.kept.len(), 16);
    assert!(start.watched.is_empty(), "their processes take no room for long");
    join(&mut start, StartId(100), 100);
    assert!(start.watched.contains(&100), "there is room again");
}

#[test]
fn a_start_with_very_many_processes_leaves_room_for_those_of_others() {
    let mut start = machine([Vec::new(), Vec::new()]);
    for tgid in 1..2000 {
        join(&mut start, ID, tgid);
    }
    assert_eq!(start.watched.len(), 64);
    join(&mut start, OTHER, 5000);
    assert!(start.watched.contains(&5000));
}

/// A machine whose drop-behind watches all readers.
fn machine_with_drop_behind() -> Bench {
    let rules = Rules { mode: Mode::Always, ..Rules::default() };
    Bench::new(VOLUME, Options { behind: Some(rules), ..Options::default() })
}

/// The processes that these commands begin or end to watch.
fn watches(commands: Vec<Command>) -> Vec<(Tgid, bool)> {
    let watch = |command| match command {
        Command::WatchProcess(tgid, is_watched) => Some((tgid, is_watched)),
        _ => None,
    };
    commands.into_iter().filter_map(watch).collect()
}

#[test]
fn the_end_of_a_start_does_not_end_the_watch_of_drop_behind() {
    let mut bench = machine_with_drop_behind();
    for tgid in [1, 2] {
        bench.on(&Input::Joined(ID, tgid));
    }
    bench.on(&Input::Passed(Passed { of: reference(7, 1), ..passed(7, span(0, 1024)) }));
    bench.now += LET_GO;
    assert_eq!(watches(bench.on(&Input::Tick)), [(2, false)], "process 1 has a stream");
}

#[test]
fn drop_behind_does_not_end_the_watch_of_a_process_of_a_start() {
    let mut bench = machine_with_drop_behind();
    bench.on(&Input::Joined(ID, 1));
    let mut watched = Vec::new();
    let mut note = |commands: Vec<Command>| watched.extend(watches(commands));
    for tgid in [1, 2] {
        let of = reference(7, tgid);
        note(bench.on(&Input::Passed(Passed { of, ..passed(7, span(0, 1024)) })));
    }
    note(bench.on(&Input::Unmounted(DEV)));
    bench.now += SECOND;
    note(bench.on(&Input::Tick));
    assert!(watched.contains(&(2, false)), "its stream is forgotten: {watched:?}");
    assert!(!watched.contains(&(1, false)), "it may go on: {watched:?}");
}

#[test]
fn while_all_processes_belong_to_one_start_none_joins_another() {
    let mut start = machine([list(0..10), Vec::new()]);
    start.tell(&Input::Remembered(list(0..10)));
    let commands = start.bench.on(&Input::Joined(ID, 1));
    assert!(!commands.iter().any(|command| matches!(command, Command::Recall(_))), "{commands:?}");
}
