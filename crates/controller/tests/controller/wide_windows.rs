//! Wider windows of the kernel, on a device that answers before user space could help.

use controller::ids::{CgroupId, OpenFile, Target};
use controller::{
    Access, Command, DeviceFacts, DiskStats, Input, Kind, MemoryStats, Options, Origin,
    WindowOutcome, WindowSetting,
};
use readahead::{DeviceCost, PAGE_BYTES};

use crate::support::{Bench, DEV, DISK, MS, SECOND, WINDOW, facts, miss, mounted, reference};

/// A fast virtual disk: 100 us, 2 GB/s. An ample window has 1.6 MB.
const FAST: DeviceCost = DeviceCost { latency_s: 0.000_1, bandwidth: 2e9, concurrency: 32.0 };

const READER: Target = Target::OpenFile(OpenFile(9));

/// A reader comes to the kernel's mark on `page` in a window of `window` pages.
fn mark(page: u64, window: u32) -> Access {
    let previous = Some(page);
    Access { kind: Kind::KernelMark, previous, kernel_window: window, ..miss(1, page) }
}

/// Reads forward from page `from` for `pages` pages, an event for each window, as fast as the disk delivers them.
/// Returns the windows that were requested.
fn read(bench: &mut Bench, from: u64, pages: u64) -> Vec<WindowSetting> {
    let mut asked = Vec::new();
    for page in (from..from + pages).step_by(WINDOW as usize) {
        let commands = bench.after(MS / 16, &Input::Access(mark(page, WINDOW)));
        asked.extend(windows(&commands));
    }
    let stats = DiskStats { managed_reads: from + pages, ..DiskStats::default() };
    bench.on(&Input::DiskStats(DISK, stats));
    asked
}

fn windows(commands: &[Command]) -> Vec<WindowSetting> {
    let setting = |command: &Command| match command {
        Command::SetWindow { target: READER, setting, .. } => Some(*setting),
        _ => None,
    };
    commands.iter().filter_map(setting).collect()
}

fn foreground(reads: u64, us_each: u64) -> Input {
    let foreground_ns = reads * us_each * 1_000;
    Input::DiskStats(
        DISK,
        DiskStats { foreground_reads: reads, foreground_ns, ..DiskStats::default() },
    )
}

/// A bench whose reader has got a wider window.
fn widened() -> Bench {
    let mut bench = Bench::new(FAST, Options::default());
    assert_eq!(read(&mut bench, 0, 1024), []);
    let asked = windows(&bench.tick(6 * MS));
    assert!(matches!(asked[..], [WindowSetting::Larger(_)]), "{asked:?}");
    bench.window_set(READER, WindowOutcome::Set { own_pages: WINDOW });
    bench
}

#[test]
fn a_long_run_gets_a_wider_window_once_nobody_else_has_read_for_5_ms() {
    let mut bench = Bench::new(FAST, Options::default());
    let first = bench.after(MS / 16, &Input::Access(mark(0, WINDOW)));
    assert!(!first.contains(&Command::Count(DISK, true)), "one window is no run");
    assert_eq!(read(&mut bench, 32, 1024), [], "who else reads is not known yet");
    let asked = windows(&bench.tick(6 * MS));
    assert_eq!(asked, [WindowSetting::Larger(FAST.ample_pages() as u32)]);
}

#[test]
fn its_reads_are_counted_from_then_on_and_not_before() {
    let mut bench = Bench::new(FAST, Options::default());
    let counts = |commands: &[Command]| commands.contains(&Command::Count(DISK, true));
    let count = |bench: &mut Bench, from: u64| {
        let marks = (from..from + 512).step_by(32);
        marks.filter(|page| counts(&bench.access(mark(*page, WINDOW)))).count()
    };
    assert_eq!(count(&mut bench, 0), 1, "once");
    assert_eq!(count(&mut bench, 512), 0);
}

#[test]
fn a_short_run_gets_none_nor_does_a_short_file() {
    let mut bench = Bench::new(FAST, Options::default());
    assert_eq!(read(&mut bench, 0, 192), []);
    assert_eq!(windows(&bench.tick(60 * MS)), [], "768 KB");
    let file_bytes = 300 * PAGE_BYTES;
    let mut bench = Bench::new(FAST, Options::default());
    for page in (0..300).step_by(32) {
        bench.after(MS / 16, &Input::Access(Access { file_bytes, ..mark(page, WINDOW) }));
    }
    assert_eq!(windows(&bench.tick(60 * MS)), [], "1.2 MB");
}

#[test]
fn while_somebody_else_reads_there_is_none() {
    let mut bench = Bench::new(FAST, Options::default());
    read(&mut bench, 0, 1024);
    for step in 1..=100 {
        bench.on(&foreground(10 * step, 100));
        assert_eq!(windows(&bench.tick(50 * MS)), [], "{step}");
    }
    let asked: Vec<_> = (0..3).flat_map(|_| windows(&bench.tick(50 * MS))).collect();
    assert!(matches!(asked[..], [WindowSetting::Larger(_)]), "alone: {asked:?}");
}

#[test]
fn when_others_wait_longer_than_on_the_stock_kernel_it_is_given_back_for_10_s() {
    let mut bench = widened();
    let mut asked = Vec::new();
    for step in 1..=4 {
        bench.on(&foreground(10 * step, 5_000));
        asked.extend(windows(&bench.tick(50 * MS)));
    }
    assert_eq!(asked, [WindowSetting::Own]);
    bench.window_set(READER, WindowOutcome::Own);
    bench.now += 9 * SECOND;
    read(&mut bench, 2048, 1024);
    assert_eq!(windows(&bench.tick(50 * MS)), [], "not again at once");
    bench.now += SECOND;
    read(&mut bench, 4096, 1024);
    let asked: Vec<_> = (0..5).flat_map(|_| windows(&bench.tick(50 * MS))).collect();
    assert!(matches!(asked[..], [WindowSetting::Larger(_)]), "{asked:?}");
}

#[test]
fn others_who_wait_no_longer_than_on_the_stock_kernel_do_not_end_it() {
    let mut bench = widened();
    for step in 1..=20 {
        bench.on(&foreground(10 * step, 120));
        assert_eq!(windows(&bench.tick(50 * MS)), []);
    }
}

#[test]
fn a_reader_that_turns_to_other_places_gives_it_back() {
    let mut bench = widened();
    let elsewhere = Access { previous: Some(1024), ..miss(1, 50_000) };
    let mut asked = windows(&bench.access(elsewhere));
    asked.extend(windows(&bench.tick(MS)));
    assert_eq!(asked, [WindowSetting::Own]);
}

#[test]
fn an_idle_reader_gives_it_back_and_then_nothing_is_counted_any_more() {
    let mut bench = widened();
    let mut asked = Vec::new();
    let mut counts = Vec::new();
    for _ in 0..30 {
        let commands = bench.tick(SECOND);
        asked.extend(windows(&commands));
        if !asked.is_empty() && bench.asked.contains_key(&READER) {
            bench.window_set(READER, WindowOutcome::Own);
        }
        counts.extend(commands.into_iter().filter(|it| matches!(it, Command::Count(..))));
    }
    assert_eq!(asked, [WindowSetting::Own]);
    assert_eq!(counts, [Command::Count(DISK, false)]);
}

#[test]
fn where_nobody_can_count_who_else_reads_there_is_none() {
    let mut bench = Bench::empty(Options::default());
    bench.on(&mounted(DEV, DISK, DeviceFacts { is_counted: false, ..facts(FAST) }));
    read(&mut bench, 0, 4096);
    assert_eq!(windows(&bench.tick(60 * MS)), []);
}

#[test]
fn a_slow_device_is_served_by_bowwave_itself() {
    let slow = DeviceCost { latency_s: 0.001, ..FAST };
    let mut bench = Bench::new(slow, Options::default());
    read(&mut bench, 0, 4096);
    assert_eq!(windows(&bench.tick(60 * MS)), []);
}

#[test]
fn in_a_small_memory_cgroup_it_is_smaller() {
    let mut bench = Bench::new(FAST, Options::default());
    let stats = MemoryStats::Cgroup {
        cgroup: CgroupId(0),
        file_bytes: Some(8 << 20),
        stalled_percent: 0.0,
    };
    bench.on(&Input::MemoryStats(stats));
    read(&mut bench, 0, 1024);
    let asked = windows(&bench.tick(60 * MS));
    assert!(matches!(asked[..], [WindowSetting::Larger(pages)] if pages <= 256), "{asked:?}");
}

#[test]
fn whoever_gives_it_up_while_others_wait_gets_none_through_another_open_file_either() {
    let mut bench = widened();
    for step in 1..=4 {
        bench.on(&foreground(10 * step, 5_000));
        bench.tick(50 * MS);
    }
    bench.window_set(READER, WindowOutcome::Own);
    bench.access(Access { previous: Some(1024), ..miss(1, 50_000) });
    bench.tick(50 * MS);
    let mut asked = Vec::new();
    for page in (0..4096).step_by(WINDOW as usize) {
        let other =
            Access { open_file: Some(OpenFile(10)), of: reference(2, 1), ..mark(page, WINDOW) };
        asked.extend(bench.after(MS / 16, &Input::Access(other)));
    }
    for _ in 0..100 {
        asked.extend(bench.tick(50 * MS));
    }
    assert!(!asked.iter().any(|it| matches!(it, Command::SetWindow { .. })), "{asked:?}");
}

#[test]
fn a_seek_before_the_run_does_not_matter() {
    let mut bench = Bench::new(FAST, Options::default());
    bench.access(Access { previous: Some(0), ..miss(1, 50_000) });
    read(&mut bench, 50_016, 1024);
    let asked = windows(&bench.tick(6 * MS));
    assert!(matches!(asked[..], [WindowSetting::Larger(_)]), "{asked:?}");
}

#[test]
fn a_program_that_sets_its_own_window_again_keeps_that_and_is_muted() {
    let mut bench = widened();
    bench.now += MS;
    let mut asked = Vec::new();
    let mut is_muted = false;
    for page in (2048..4096).step_by(WINDOW as usize) {
        let commands = bench.after(MS / 16, &Input::Access(mark(page, WINDOW)));
        asked.extend(windows(&commands));
        is_muted |= commands.iter().any(|command| match command {
            Command::Listen(_, listening) => listening.muted_until > 0,
            _ => false,
        });
    }
    assert!(asked.iter().all(|setting| *setting == WindowSetting::Own), "{asked:?}");
    assert!(is_muted, "its marks lead to nothing");
}

#[test]
fn what_was_learned_survives_that_counting_ends_and_begins_again() {
    let mut bench = Bench::empty(Options::default());
    let guess = DeviceFacts { cost: FAST, origin: Origin::Learned, is_counted: true };
    bench.on(&mounted(DEV, DISK, guess));
    let seeks = |reads: u64| {
        let (seek_reads, seek_ns) = (reads, reads * 120_000);
        Input::DiskStats(DISK, DiskStats { seek_reads, seek_ns, ..DiskStats::default() })
    };
    for round in 0..3 {
        read(&mut bench, 4096 * round, 1024);
        for reads in [6400, 6432, 6464] {
            bench.on(&seeks(reads / (round + 1)));
            let learned = bench.tick(50 * MS);
            let is_note = |it: &Command| matches!(it, Command::Remember(..));
            assert!(!learned.iter().any(is_note), "120 us is more than it had: {learned:?}");
        }
        bench.closed(READER);
        (0..30).for_each(|_| drop(bench.tick(SECOND)));
    }
}
