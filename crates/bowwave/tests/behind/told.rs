//! What `run` tells of drop-behind, beside what is cached.

use super::bench::{
    MB, OTHER_FILES_BYTES, bench, bytes, end, evict, is_about, is_gone, open_random, read,
    resident, summary_of, text,
};
use super::removals::Watched;

#[test]
fn what_was_dropped_and_what_stays_is_all_that_was_passed() {
    let Some(bench) = bench() else { return };
    let file = bench.cold("file", 96 * MB);
    let Some(mut watched) = Watched::new(&file) else { return };
    let other = open_random(&file);
    read(&other, 32 * MB, 56 * MB);
    read(&other, 90 * MB, 96 * MB);
    let done = summary_of(bench.run(&["--drop-behind"], &["cat", text(&file)]));
    let (stays, dropped) = (resident(&file), watched.dropped_by_bowwave());
    let reclaimed = watched.reclaimed();
    assert_eq!(bytes(&done, "left_bytes"), 0, "{done}");
    let (told_kept, told_dropped) = (bytes(&done, "kept_bytes"), bytes(&done, "dropped_bytes"));
    let most = 66 * MB;
    assert!(dropped <= most && dropped + reclaimed >= most * 99 / 100, "{dropped}: {done}");
    let told = dropped * 99 / 100..dropped + reclaimed + OTHER_FILES_BYTES;
    assert!(told.contains(&told_dropped), "{dropped} were dropped: {done}");
    assert!(told_kept.abs_diff(stays) <= MB + reclaimed, "{stays} stay: {done}");
    assert!(is_about(told_kept + told_dropped, 96 * MB), "{done}");
}

#[test]
fn what_was_read_ahead_for_a_reader_that_has_ended_goes_with_it() {
    let Some(bench) = bench() else { return };
    let file = bench.cold("file", 96 * MB);
    for size in ["1M", "50M"] {
        evict(&file);
        let head = ["head", "-c", size, text(&file)];
        let done = summary_of(bench.run(&["--drop-behind"], &head));
        assert!(is_gone(&file), "{size}: {} of {done}", resident(&file));
    }
}

#[test]
fn with_wait_nothing_is_left_of_a_copy() {
    let Some(bench) = bench() else { return };
    let (from, to) = (bench.cold("from", 48 * MB), bench.lab.mount_point().join("to"));
    bench.lab.set_fast(false).expect("slow");
    let done = summary_of(
        bench.run(&["--drop-behind", "--wait"], &["cp", "--reflink=never", text(&from), text(&to)]),
    );
    bench.lab.set_fast(true).expect("fast");
    assert_eq!(bytes(&done, "left_bytes"), 0, "{done}");
    assert!(is_gone(&from) && is_gone(&to), "{}, {}: {done}", resident(&from), resident(&to));
}

/// The daemon reads ahead for the same program, and lets nothing go behind it.
#[test]
fn beside_a_daemon_a_run_drops_what_either_has_read_ahead() {
    let Some(bench) = bench() else { return };
    let file = bench.cold("file", 96 * MB);
    // Where a device answers at once, nothing is read ahead.
    bench.lab.set_fast(false).expect("slow");
    let daemon = bench.daemon(&["--drop-behind", "never"]);
    let done = summary_of(bench.run(&["--drop-behind"], &["cat", text(&file)]));
    assert!(is_gone(&file), "{} of {done}", resident(&file));
    let of_daemon = end(daemon);
    assert!(bytes(&of_daemon, "read_ahead_bytes") > 0, "{of_daemon}");
}
