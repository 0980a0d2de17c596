//! Windows that are given, taken back and owed.

use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{FileExt, MetadataExt};

use linux::knob::{Borrowed, Knob};
use linux::sys;
use readahead::FileKey;
use rustix::fs::{Advice, fadvise};

use super::*;

const FILE: FileKey = FileKey { dev: DeviceNumber { major: 7, minor: 1 }, ino: 131 };

fn event(tgid: u32, open_file: u64, now: u64) -> Event {
    Event { open_file, now, kernel_window: 16, request_pages: 16, ..Event::miss(FILE, tgid) }
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
        windows.bound_all(1);
        windows.fit(&advised, Some(1));
        assert!(windows.waiting.is_empty(), "it is not bounded any more: {advised:?}");
        assert!(windows.ledger.get(9).is_none(), "nor taken back: {advised:?}");
    }
    let noreuse = with(|event| event.advised_noreuse = true);
    assert!(windows(state.path()).lend(&noreuse, Path::new("/none"), 4096).is_err());
}

#[test]
fn what_cannot_be_given_back_now_is_given_back_later() {
    let state = tempfile::tempdir().expect("a folder");
    let Some((windows, file, event, knob)) = read_by_us(state.path()) else { return };
    drop(windows);
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

/// A file of this process, open file 9, on a device with a window.
fn read_by_us(state: &Path) -> Option<(Windows, std::fs::File, Event, Knob)> {
    let Some(knob) = Knob::any().filter(Knob::is_writable) else {
        assert!(std::env::var_os("BOWWAVE_REQUIRE_LIVE").is_none(), "no window may be set here");
        eprintln!("skipped: no window may be set here; root may");
        return None;
    };
    let file = tempfile::tempfile().expect("a file");
    let about = file.metadata().expect("metadata");
    let dev = DeviceNumber::from_stat(about.dev());
    let kernel_window = (knob.kb().expect("a window") * 1024 / PAGE_BYTES) as u32;
    let key = FileKey { dev, ino: about.ino() };
    let event = Event { file: key, kernel_window, ..event(std::process::id(), 9, 0) };
    Some((Windows::recover(state), file, event, knob))
}

/// Pages that come when so many of a cold file are read at once. `None` where files lie on no disk.
fn pages_with(file: &std::fs::File, asked: u64) -> Option<u64> {
    if linux::mounts::of_path(&std::env::temp_dir()).is_err() {
        eprintln!("skipped: temporary files are on no disk; set TMPDIR to a folder on one");
        return None;
    }
    let pages = 8 * asked.max(32);
    file.set_len(0).expect("it may be written");
    let content = vec![1; (pages * PAGE_BYTES) as usize];
    file.write_all_at(&content, 0).expect("room");
    file.sync_all().expect("on the disk");
    sys::drop_pages(file.as_fd(), 0, pages).expect("dropped");
    file.read_exact_at(&mut vec![0; (asked * PAGE_BYTES) as usize], 0).expect("it is there");
    Some(sys::cached_pages(file.as_fd(), 0, pages).expect("one's own file"))
}

/// All that is to be done at once, a millisecond each.
fn go_on(windows: &mut Windows, knob: &Knob, from_ms: u64) {
    (from_ms..from_ms + 10).for_each(|ms| {
        windows.go_on(ms * 1_000_000, |_| Some(knob.path()));
    });
}

#[test]
fn who_is_held_reads_without_look_ahead_until_it_is_not() {
    let state = tempfile::tempdir().expect("a folder");
    let Some((mut windows, file, event, knob)) = read_by_us(state.path()) else { return };
    let sequential =
        Event { advised_sequential: true, kernel_window: 2 * event.kernel_window, ..event };
    // One page shows whether there is a window; one as long as the device's, whether it is twice that.
    let of_sequential = event.kernel_window.into();
    for (event, asked, begin) in [(event, 1, [10, 30]), (sequential, of_sequential, [50, 70])] {
        if event.advised_sequential {
            fadvise(&file, 0, None, Advice::Sequential).expect("advised");
        }
        windows.hear(&event);
        let whole = pages_with(&file, asked);
        assert!(whole.is_none_or(|pages| pages > asked), "the kernel reads ahead");
        for from_ms in begin {
            windows.hold(&HashSet::from([(event.tgid, event.file)]));
            go_on(&mut windows, &knob, from_ms);
            assert!(windows.is_held(&event) && windows.ledger.get(9).is_some());
            assert!(pages_with(&file, asked).is_none_or(|pages| pages == asked));
            windows.hear(&Event { advised_random: true, now: u64::MAX, ..event });
            windows.hear(&Event { now: 1, ..event });
            windows.fit(&event, None);
            assert!(windows.ledger.get(9).is_some(), "the advice is ours");
            windows.hold(&HashSet::new());
            go_on(&mut windows, &knob, from_ms + 10);
            assert!(!windows.is_held(&event) && windows.ledger.get(9).is_none());
            assert_eq!(pages_with(&file, asked), whole);
        }
    }
}

#[test]
fn what_is_heard_of_once_it_is_to_be_held_is_held_and_what_comes_too_late_is_not() {
    let state = tempfile::tempdir().expect("a folder");
    let Some((mut windows, _file, event, knob)) = read_by_us(state.path()) else { return };
    windows.hold(&HashSet::from([(event.tgid, event.file)]));
    windows.hear(&event);
    windows.hold(&HashSet::new());
    go_on(&mut windows, &knob, 10);
    assert!(!windows.is_held(&event), "it was over");
    windows.hold(&HashSet::from([(event.tgid, event.file)]));
    windows.hear(&event);
    go_on(&mut windows, &knob, 20);
    assert!(windows.is_held(&event));
}

#[test]
fn who_is_held_while_its_window_cannot_be_given_back_is_still_known() {
    let state = tempfile::tempdir().expect("a folder");
    let Some((mut windows, _file, event, knob)) = read_by_us(state.path()) else { return };
    windows.hear(&event);
    windows.hold(&HashSet::from([(event.tgid, event.file)]));
    go_on(&mut windows, &knob, 10);
    let other = Borrowed::take(knob.clone(), state.path()).expect("it is free");
    windows.hold(&HashSet::new());
    go_on(&mut windows, &knob, 20);
    windows.hear(&Event { advised_random: true, ..event });
    assert!(windows.is_held(&event) && windows.ledger.get(9).is_some());
    drop(other);
    windows.tidy(1, None);
    assert!(!windows.is_held(&event) && windows.ledger.get(9).is_none());
}

#[test]
fn who_advises_something_else_while_it_is_held_has_that_in_the_end() {
    let state = tempfile::tempdir().expect("a folder");
    let Some((mut windows, file, event, knob)) = read_by_us(state.path()) else { return };
    windows.hear(&event);
    windows.hold(&HashSet::from([(event.tgid, event.file)]));
    go_on(&mut windows, &knob, 10);
    assert!(windows.is_held(&event));
    fadvise(&file, 0, None, Advice::Normal).expect("advised");
    fadvise(&file, 0, None, Advice::Sequential).expect("advised");
    let (asked, kernel_window) = (event.kernel_window.into(), 2 * event.kernel_window);
    let whole = pages_with(&file, asked);
    let now = sys::monotonic_ns();
    windows.hear(&Event { advised_sequential: true, kernel_window, now, ..event });
    let was_let_go = !windows.is_held(&event) && windows.ledger.get(9).is_none();
    assert!(was_let_go, "until it is advised anew");
    windows.go_on(now + PAUSE_NS, |_| Some(knob.path()));
    assert!(windows.is_held(&event));
    windows.hold(&HashSet::new());
    windows.go_on(now + 2 * PAUSE_NS, |_| Some(knob.path()));
    assert_eq!(pages_with(&file, asked), whole);
}

#[test]
fn what_is_closed_is_let_go_at_once_and_opened_again_is_another_one() {
    let state = tempfile::tempdir().expect("a folder");
    let Some((mut windows, file, event, knob)) = read_by_us(state.path()) else { return };
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let mut other = Some(std::fs::File::open(&path).expect("opened once more"));
    // Only that one leads to the file.
    let moved = rustix::io::fcntl_dupfd_cloexec(&file, 0).expect("one more");
    drop((file, moved));
    windows.hear(&event);
    windows.hold(&HashSet::from([(event.tgid, event.file)]));
    go_on(&mut windows, &knob, 10);
    assert!(windows.is_held(&event));
    drop(other.take());
    go_on(&mut windows, &knob, 40);
    assert!(!windows.is_held(&event) && windows.ledger.get(9).is_none());
}

#[test]
fn who_asks_for_little_at_a_time_is_read_ahead() {
    let state = tempfile::tempdir().expect("a folder");
    let Some((mut windows, _file, event, knob)) = read_by_us(state.path()) else { return };
    for (request_pages, is_held) in [(15, false), (16, true)] {
        windows.hear(&Event { request_pages, ..event });
        windows.hold(&HashSet::new());
        windows.hold(&HashSet::from([(event.tgid, event.file)]));
        go_on(&mut windows, &knob, 10);
        assert_eq!(windows.is_held(&event), is_held, "{request_pages} pages");
    }
}

#[test]
fn an_open_file_that_another_process_has_too_is_given_its_window_back_when_its_reader_has_ended() {
    let state = tempfile::tempdir().expect("a folder");
    let Some((mut windows, file, event, knob)) = read_by_us(state.path()) else { return };
    let mut other = std::process::Command::new("sleep");
    let mut reader =
        other.arg("1000").stdin(file.try_clone().expect("one more")).spawn().expect("sleep");
    let whole = pages_with(&file, 1);
    windows.hear(&Event { tgid: reader.id(), ..event });
    windows.hold(&HashSet::from([(reader.id(), event.file)]));
    go_on(&mut windows, &knob, 10);
    reader.kill().expect("it sleeps");
    reader.wait().expect("it ended");
    let was_held = windows.is_held(&event);
    windows.hold(&HashSet::new());
    go_on(&mut windows, &knob, 20);
    assert!(was_held && !windows.is_held(&event));
    assert_eq!(pages_with(&file, 1), whole);
}

#[test]
fn who_is_held_is_not_bounded_as_well() {
    let state = tempfile::tempdir().expect("a folder");
    let Some((mut windows, _file, event, knob)) = read_by_us(state.path()) else { return };
    windows.hear(&event);
    windows.hold(&HashSet::from([(event.tgid, event.file)]));
    go_on(&mut windows, &knob, 10);
    windows.bound_all(1);
    windows.fit(&event, Some(1));
    go_on(&mut windows, &knob, 20);
    assert!(windows.is_held(&event) && windows.bounded.is_empty());
}

#[test]
fn what_a_killed_run_held_is_given_its_window_back_by_the_next() {
    let state = tempfile::tempdir().expect("a folder");
    let Some((mut windows, file, event, knob)) = read_by_us(state.path()) else { return };
    let whole = pages_with(&file, 1);
    windows.hear(&event);
    windows.hold(&HashSet::from([(event.tgid, event.file)]));
    go_on(&mut windows, &knob, 10);
    assert!(pages_with(&file, 1).is_none_or(|pages| pages == 1));
    std::mem::forget(windows);
    drop(Windows::recover(state.path()));
    assert_eq!(pages_with(&file, 1), whole);
}
