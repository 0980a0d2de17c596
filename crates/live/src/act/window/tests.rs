//! Windows that are given, taken back and owed.

use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;

use super::*;
use crate::knob::tests::some_knob;
use crate::knob::{Borrowed, Knob};
use crate::observe::FileKey;
use crate::sys;

const FILE: FileKey = FileKey { dev: DeviceNumber { major: 7, minor: 1 }, ino: 131 };

fn event(tgid: u32, open_file: u64, now: u64) -> Event {
    Event { open_file, now, kernel_window: 16, ..Event::miss(FILE, tgid) }
}

/// With open file 9 of this process bounded.
fn windows(state: &Path) -> Windows {
    let mut windows = Windows::recover(state);
    let given = Given::to(&event(std::process::id(), 9, 0), 3, Path::new("/none"), true);
    windows.ledger.note(9, given.expect("this process runs")).expect("written");
    windows
}

#[test]
fn what_looks_like_advice_while_a_window_is_set_is_none() {
    let state = tempfile::tempdir().expect("a folder");
    let mut windows = windows(state.path());
    let (from, file) = (sys::monotonic_ns(), tempfile::tempfile().expect("a file").into());
    assert!(windows.setting.set(&file, Path::new("/none"), 4).is_err(), "no such knob");
    let during = (from..).find(|at| windows.setting.was_set(*at)).expect("it was noted");
    windows.hear(&Event { advised_sequential: true, ..event(1, 9, during) });
    assert!(windows.ledger.may_widen(9, |_| true), "still ours to give back");
}

#[test]
fn a_program_that_has_given_advice_keeps_it() {
    let state = tempfile::tempdir().expect("a folder");
    let with = |change: fn(&mut Event)| {
        let mut event = event(1, 9, 300);
        change(&mut event);
        event
    };
    for advised in [
        with(|event| event.advised_sequential = true),
        with(|event| event.advised_random = true),
        with(|event| event.advised_noreuse = true),
    ] {
        let mut windows = windows(state.path());
        windows.hear(&event(1, 9, 300));
        windows.hear(&advised);
        assert!(windows.heard.is_empty(), "it is not bounded any more: {advised:?}");
        assert!(windows.ledger.get(9).is_none(), "nor taken back: {advised:?}");
    }
    let noreuse = with(|event| event.advised_noreuse = true);
    assert!(windows(state.path()).lend(&noreuse, Path::new("/none"), 4096).is_err());
}

#[test]
fn what_cannot_be_given_back_now_is_given_back_later() {
    let Some(knob) = some_knob().filter(Knob::is_writable) else { return };
    let state = tempfile::tempdir().expect("a folder");
    let file = tempfile::tempfile().expect("a file");
    let about = file.metadata().expect("metadata");
    let dev = DeviceNumber { major: libc::major(about.dev()), minor: libc::minor(about.dev()) };
    let kernel_window = (knob.kb().expect("a window") * 1024 / PAGE_BYTES) as u32;
    let key = FileKey { dev, ino: about.ino() };
    let event = Event { file: key, kernel_window, ..event(std::process::id(), 9, 0) };
    let given = Given::to(&event, file.as_raw_fd(), knob.path(), true).expect("it runs");
    let left = state.path().join("given-windows-0.jsonl");
    Ledger::open(left.clone()).note(9, given).expect("written");

    let other = Borrowed::take(knob.clone(), state.path()).expect("it is free");
    let mut windows = Windows::recover(state.path());
    assert_eq!((windows.ledger.all().len(), windows.owed.len()), (1, 1), "somebody sets it");
    assert!(windows.give(&event, knob.path(), 4, true).is_err(), "its own is not known");
    assert_eq!(windows.ledger.all().len(), 1);
    windows.tidy(1, None);
    drop(windows);
    let own = given::own_ledger(state.path());
    assert!(own.exists() && !left.exists(), "the next start finds it");

    let mut windows = Windows::recover(state.path());
    drop(other);
    windows.tidy(1, None);
    assert!(windows.owed.is_empty() && !own.exists(), "given back");
}

#[test]
fn processes_are_forgotten_with_their_files() {
    let state = tempfile::tempdir().expect("a folder");
    let mut windows = Windows::recover(state.path());
    for tgid in 1..100 {
        let event = event(tgid, tgid.into(), u64::from(tgid) * PATIENCE_NS);
        windows.hear(&event);
        windows.fit(&event, Some(32));
        windows.tidy(event.now, None);
        assert!(windows.of_process.len() <= 2, "{} processes", windows.of_process.len());
    }
}
