//! When a file is muted.

use controller::{Access, Command, Completed, Failure, Input, Kind, Options};
use readahead::DeviceCost;

use crate::support::{Bench, MS, SECOND, VOLUME, batch, file, miss};

/// Misses without a pattern: each is farther from the one before.
fn scattered(n: u64) -> Access {
    Access { file_bytes: 1 << 50, ..miss(1, 10_000 * (n + 1) * (n + 2)) }
}

fn muted_until(commands: &[Command]) -> Option<u64> {
    commands.iter().find_map(|command| match command {
        Command::Listen(_, listening) => Some(listening.muted_until).filter(|until| *until > 0),
        _ => None,
    })
}

/// For each time that the file is muted: how many misses were reported before, and for how many milliseconds it is
/// muted.
fn silences(cost: DeviceCost) -> Vec<(u64, u64)> {
    let mut bench = Bench::new(cost, Options::default());
    let (mut heard, mut silences) = (0, Vec::new());
    for n in 0..2000 {
        heard += 1;
        let commands = bench.access(scattered(n));
        if let Some(until) = muted_until(&commands) {
            silences.push((heard, (until - bench.now) / MS));
            (heard, bench.now) = (0, until);
        }
    }
    silences
}

#[test]
fn a_file_read_at_random_on_a_fast_device_is_muted_for_longer_and_longer() {
    let silences = silences(DeviceCost::FLASH);
    assert_eq!(silences[..4], [(16, 5), (3, 10), (3, 20), (3, 40)]);
    assert_eq!(silences.last().map(|(_, ms)| *ms), Some(640));
}

#[test]
fn a_file_on_a_slow_device_is_reported_until_dense_reading_would_show() {
    let cost = DeviceCost { latency_s: 0.001, bandwidth: 1e9, concurrency: 8.0 };
    assert_eq!(silences(cost)[..2], [(1024, 5), (256, 10)]);
}

#[test]
fn a_file_with_read_ahead_is_reported_again_as_at_first() {
    let mut bench = Bench::new(VOLUME, Options::default());
    for n in 0..40 {
        bench.access(scattered(n));
    }
    bench.access(miss(1, 5_000));
    let commands = bench.access(miss(1, 4_999));
    let commands = [commands, bench.access(miss(1, 4_998))].concat();
    let ticket = batch(&commands);
    bench.completed(Completed::Read { ticket: ticket.expect("it is read"), failed: None });
    let muted = (0..30).filter(|n| {
        let commands = bench.access(scattered(100 + n));
        muted_until(&commands).is_some()
    });
    assert_eq!(muted.count(), 0);
}

/// A backward reader whose reads ahead all fail: how many were tried, and how often its file was muted.
fn reads_and_mutes(failure: Failure) -> (u64, u64) {
    let mut bench = Bench::new(VOLUME, Options::default());
    let mut reads = 0;
    for page in (0..400).map(|n| 50_000 - n) {
        let commands = bench.access(miss(1, page));
        let Some(ticket) = batch(&commands) else { continue };
        reads += 1;
        bench.completed(Completed::Read { ticket, failed: Some(failure) });
    }
    let metrics = bench.controller.metrics();
    assert_eq!(metrics.failed_reads, reads);
    (reads, metrics.muted)
}

#[test]
fn a_file_that_nothing_can_be_read_of_is_muted() {
    let (reads, mutes) = reads_and_mutes(Failure::NotOpened);
    assert!(mutes > 0, "{reads} reads");
}

#[test]
fn a_file_is_not_muted_because_no_thread_was_free_to_read_it() {
    let (reads, mutes) = reads_and_mutes(Failure::Refused);
    assert!(reads > 0 && mutes == 0, "{reads} reads, muted {mutes} times");
}

#[test]
fn touched_marks_mute_nobody() {
    let mut bench = Bench::new(DeviceCost::FLASH, Options::default());
    for n in 0..100 {
        let miss = scattered(n);
        let mark = Some((miss.page, miss.page));
        let touched = Access { kind: Kind::Mark, mark, ..miss };
        assert_eq!(muted_until(&bench.access(touched)), None);
    }
}

#[test]
fn a_file_that_is_not_read_any_more_is_forgotten() {
    let mut bench = Bench::new(VOLUME, Options::default());
    bench.access(miss(1, 50_000));
    bench.access(miss(1, 49_999));
    assert_eq!(bench.tick(SECOND), []);
    let forgotten = Command::Listen(file(1), Default::default());
    assert_eq!(bench.tick(11 * SECOND), [forgotten], "nor its marks");
    assert_eq!(bench.controller.status(bench.now).files, 0);
}

#[test]
fn a_hundred_thousand_files_are_forgotten_in_silence() {
    let mut bench = Bench::new(VOLUME, Options::default());
    for ino in 0..100_000 {
        bench.on(&Input::Access(miss(ino, 7)));
        bench.now += MS / 100;
    }
    bench.tick(SECOND);
    bench.tick(11 * SECOND);
    bench.tick(11 * SECOND);
    let status = bench.controller.status(bench.now);
    assert_eq!((status.files, status.changed_windows), (0, 0));
    assert_eq!(bench.tick(SECOND), [], "nothing is left to tell of");
}
