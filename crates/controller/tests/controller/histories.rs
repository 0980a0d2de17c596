//! What a volume's files have shown outlasts their readers, but not the volume.

use controller::{Input, Options};
use readahead::History;

use crate::support::{DEV, DISK, FILE_PAGES, Machine, SECOND, VOLUME, facts, mounted};

/// How the files of the volume were read, as it would be written down.
fn history(machine: &Machine) -> Option<String> {
    let mut histories = machine.controller.histories();
    let (dev, history) = histories.next()?;
    assert_eq!((dev, histories.next()), (DEV, None));
    Some(serde_json::to_string(history).expect("JSON"))
}

/// A machine on which some files were read to their ends.
fn taught() -> Machine {
    let mut machine = Machine::new(VOLUME, Options::default());
    for ino in 1..4 {
        let open_file = machine.open(ino, ino, 1);
        for n in 0..FILE_PAGES.div_ceil(256) {
            machine.read(open_file, 256 * n, 256);
        }
    }
    machine
}

#[test]
fn it_outlasts_the_readers() {
    let mut machine = taught();
    let shown = history(&machine).expect("they were read");
    assert_ne!(shown, serde_json::to_string(&History::default()).expect("JSON"));
    machine.wait(60 * SECOND);
    assert_eq!(history(&machine), Some(shown));
}

#[test]
fn a_volume_that_is_mounted_with_the_number_of_another_begins_with_nothing() {
    let mut machine = taught();
    machine.unmount(DEV);
    assert_eq!(history(&machine), None, "it is not managed");
    machine.give(&mounted(DEV, DISK, facts(VOLUME)));
    assert_eq!(history(&machine), None, "nothing is known");
}

#[test]
fn what_is_told_of_a_volume_after_it_was_unmounted_counts_for_nothing() {
    let shown = history(&taught()).expect("they were read");
    let known: Box<History> = serde_json::from_str(&shown).expect("a history");
    let mut machine = Machine::new(VOLUME, Options::default());
    machine.unmount(DEV);
    machine.give(&Input::History(DEV, known));
    machine.give(&mounted(DEV, DISK, facts(VOLUME)));
    assert_eq!(history(&machine), None);
}

#[test]
fn a_volume_that_is_told_again_keeps_it() {
    let mut machine = taught();
    let shown = history(&machine);
    machine.give(&mounted(DEV, DISK, facts(VOLUME)));
    assert_eq!(history(&machine), shown);
}

#[test]
fn it_is_told_to_the_next_controller_which_then_reads_more_at_once() {
    let shown = history(&taught()).expect("they were read");
    let at_once = |known: Option<&str>| {
        let mut machine = Machine::new(VOLUME, Options::default());
        if let Some(known) = known {
            let known = serde_json::from_str(known).expect("a history");
            machine.give(&Input::History(DEV, Box::new(known)));
            assert_eq!(history(&machine).as_deref(), Some(&*shown));
        }
        let open_file = machine.open(9, 9, 1);
        machine.read(open_file, 0, 64);
        machine.controller.metrics().read_ahead_bytes
    };
    assert!(at_once(Some(&shown)) > at_once(None));
}
