//! Today's kernel. "Tracepoints" are `readahead:*` of a 6.18 kernel on ext4.

use historical::Linux6;
use readahead::{Cause, Hint};

use crate::FILE_PAGES;
use crate::support::{Machine, causes};

fn linux(file_pages: u64, window: u32) -> Machine {
    Machine::new(Linux6::new(64), file_pages, window)
}

/// Tracepoints of a 6.18 kernel, `read_ahead_kb` 128.
#[test]
fn a_sequence_from_the_start_ramps_up_to_the_window() {
    let mut machine = linux(FILE_PAGES, 32);
    machine.scan(1, 0, 200, 1);
    assert_eq!(
        machine.first(10),
        [
            "initial@0 0+4-3",
            "sequential@1 4+8-8",
            "sequential@4 12+4-4",
            "sequential@12 16+8-8",
            "sequential@16 24+8-8",
            "sequential@24 32+16-16",
            "sequential@32 48+16-16",
            "sequential@48 64+32-32",
            "sequential@64 96+32-32",
            "sequential@96 128+32-32",
        ]
    );
}

/// Tracepoints of a 6.18 kernel, `read_ahead_kb` 8192.
#[test]
fn a_large_window_ramps_up_as_the_running_kernel_does() {
    let mut machine = linux(4000, 2048);
    machine.scan(1, 0, 150, 1);
    assert_eq!(
        machine.trace(),
        [
            "initial@0 0+4-3",
            "sequential@1 4+16-16",
            "sequential@4 20+60-60",
            "sequential@20 80+240-240",
            "sequential@80 320+448-448",
        ]
    );
}

/// Tracepoints of a 6.18 kernel: a window that would start beyond the end is not read.
#[test]
fn a_sequence_stops_at_the_end_of_the_file() {
    let mut machine = linux(4000, 2048);
    machine.scan(1, 3950, 4000, 1);
    assert_eq!(
        machine.trace(),
        [
            "random@3950 3950+1-0",
            "initial@3951 3951+4-3",
            "sequential@3952 3955+13-13",
            "sequential@3955 3968+32-32",
        ]
    );
}

/// Tracepoints of a 6.18 kernel.
#[test]
fn large_requests_keep_a_window_ahead() {
    let mut machine = linux(4000, 2048);
    machine.scan(1, 7, 407, 100);
    assert_eq!(
        machine.trace(),
        [
            "random@7 7+100-0",
            "initial@107 107+256-156",
            "sequential@207 363+509-509",
            "sequential@363 872+1016-1016",
        ]
    );
}

/// Tracepoints of a 6.18 kernel: whole-page reads of every other page count as a sequence, those of
/// every third page do not.
#[test]
fn every_other_page_is_taken_for_a_sequence() {
    let mut machine = linux(4000, 2048);
    for i in 0..8 {
        machine.read(1, 500 + 2 * i, 1);
    }
    assert_eq!(
        machine.trace(),
        [
            "random@500 500+1-0",
            "initial@502 502+4-3",
            "initial@506 506+4-3",
            "initial@510 510+4-3",
            "initial@514 514+4-3",
        ]
    );
    let mut machine = linux(4000, 2048);
    for i in 0..8 {
        machine.read(1, 500 + 3 * i, 1);
    }
    assert_eq!(causes(&machine.trace()), [Cause::Random; 8]);
}

/// Tracepoints of a 6.18 kernel, up to where its search for the next hole goes wrong.
#[test]
fn two_streams_through_one_open_file_are_known_by_their_history() {
    let mut machine = linux(4000, 2048);
    for page in 1..7 {
        machine.read(1, page, 1);
        machine.read(1, page + 1000, 1);
    }
    assert_eq!(
        machine.first(8),
        [
            "random@1 1+1-0",
            "random@1001 1001+1-0",
            "random@2 2+1-0",
            "random@1002 1002+1-0",
            "context@3 3+3-1",
            "context@1003 1003+3-1",
            "context@5 6+6-6",
            "context@1005 1006+2-2",
        ]
    );
}

#[test]
fn without_large_folios_ends_are_aligned_to_four_pages() {
    let policy = Linux6::new(64).with_largest_folio(0);
    let mut machine = Machine::new(policy, FILE_PAGES, 32);
    for page in 1..60 {
        machine.read(1, page, 1);
        machine.read(1, page + 1000, 1);
    }
    let stream = machine.trace_of(0..1000);
    assert_eq!(
        stream[..7],
        [
            "random@1 1+1-0",
            "random@2 2+1-0",
            "context@3 3+3-1",
            "context@5 6+2-2",
            "context@6 8+4-4",
            "context@8 12+8-8",
            "context@12 20+16-16",
        ]
    );
}

#[test]
fn a_file_cached_from_its_start_counts_double() {
    let mut machine = linux(FILE_PAGES, 32);
    machine.read(1, 1, 5);
    machine.cache.evict(6, FILE_PAGES);
    machine.read(1, 0, 1);
    machine.cache.evict(6, FILE_PAGES);
    machine.read(2, 6, 1);
    let last = machine.trace().pop().map(str::to_owned);
    assert_eq!(last.as_deref(), Some("context@6 6+13-1"));
}

#[test]
fn an_evicted_window_starts_over() {
    let mut machine = linux(FILE_PAGES, 32);
    machine.scan(1, 0, 40, 1);
    machine.cache.evict(40, FILE_PAGES);
    machine.read(1, 40, 1);
    let last = machine.trace().pop().map(str::to_owned);
    assert_eq!(last.as_deref(), Some("initial@40 40+4-3"));
}

/// Tracepoints of a 6.18 kernel, `read_ahead_kb` 128 and `max_sectors_kb` 1280.
#[test]
fn a_request_beyond_the_window_counts_as_the_window() {
    let mut machine = linux(FILE_PAGES, 32);
    machine.scan(1, 0, 200, 100);
    assert_eq!(
        machine.trace(),
        ["initial@0 0+100-50", "sequential@50 100+100-100", "sequential@100 200+100-100",]
    );
}

/// Tracepoints of a 6.18 kernel, `read_ahead_kb` 128 and `max_sectors_kb` 1280.
#[test]
fn a_request_beyond_the_devices_limit_is_read_by_that_limit() {
    let mut machine = linux(FILE_PAGES, 32);
    machine.read(1, 2000, 400);
    assert_eq!(
        machine.trace(),
        [
            "initial@2000 2000+320-160",
            "sequential@2160 2320+320-320",
            "sequential@2320 2640+320-320",
        ]
    );
}

#[test]
fn a_device_with_a_small_limit_leaves_the_window_as_it_is() {
    let policy = Linux6::new(64).with_largest_request(16);
    let mut machine = Machine::new(policy, FILE_PAGES, 32);
    machine.read(1, 2000, 100);
    assert_eq!(machine.first(1), ["initial@2000 2000+32-16"]);
}

#[test]
fn announced_random_reading_is_read_as_requested() {
    let mut machine = linux(FILE_PAGES, 32);
    machine.hint = Hint::Random;
    machine.read(1, 0, 1);
    machine.read(1, 1, 100);
    machine.read(1, 101, 800);
    assert_eq!(
        machine.trace(),
        [
            "random@0 0+1-0",
            "random@1 1+100-0",
            "random@101 101+320-0",
            "random@421 421+320-0",
            "random@741 741+160-0",
        ]
    );
}

#[test]
fn read_ahead_switched_off_reads_single_pages() {
    let mut machine = linux(FILE_PAGES, 0);
    machine.read(1, 0, 3);
    assert_eq!(machine.trace(), ["random@0 0+1-0", "random@1 1+1-0", "random@2 2+1-0"]);
}

/// Tracepoints of a 6.18 kernel, `read_ahead_kb` 128.
#[test]
fn a_fault_reads_around_and_a_scan_of_the_mapping_goes_on() {
    let mut machine = linux(FILE_PAGES, 32);
    for page in 1000..1080 {
        machine.fault(1, page, Hint::Normal);
    }
    assert_eq!(
        machine.first(5),
        [
            "initial@1000 984+32-8",
            "sequential@1008 1016+32-32",
            "sequential@1016 1048+24-24",
            "sequential@1048 1072+16-16",
            "sequential@1072 1088+32-32",
        ]
    );
}

/// Tracepoint of a 6.18 kernel: faults leave no position behind.
#[test]
fn an_announced_scan_of_a_mapping_reads_whole_windows() {
    let mut machine = linux(FILE_PAGES, 2048);
    machine.fault(1, 100, Hint::Sequential);
    machine.fault(1, 2148, Hint::Sequential);
    assert_eq!(machine.trace(), ["random@100 100+2048-0", "random@2148 2148+2048-0"]);
    let mut machine = linux(FILE_PAGES, 2048);
    machine.fault(1, 0, Hint::Sequential);
    assert_eq!(machine.trace(), ["initial@0 0+2048-1024"]);
}

/// Tracepoints of a 6.18 kernel: 600 random faults in 100 MiB read 477 windows; the other pages lay in them.
#[test]
fn a_mapping_read_at_random_is_read_around_without_end() {
    let mut machine = linux(FILE_PAGES, 32);
    for i in 0..300 {
        machine.fault(1, 1000 + 331 * i, Hint::Normal);
    }
    assert_eq!(machine.trace().len(), 300);
    machine.fault(2, 500, Hint::Random);
    assert_eq!(machine.trace().len(), 300, "announced random: left alone");
}
