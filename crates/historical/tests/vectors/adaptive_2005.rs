//! The first proposal, of September 2005. List and window give chunks of 32 to 256 pages.

use historical::Adaptive2005;
use readahead::{Cause, Hint};

use crate::FILE_PAGES;
use crate::support::{Machine, causes};

fn v1(ratio: u32) -> Machine {
    Machine::new(Adaptive2005::new(64, ratio), FILE_PAGES, 256)
}

fn ramp(ratio: u32, count: usize) -> Vec<String> {
    let mut machine = v1(ratio);
    machine.scan(1, 0, 1_000, 1);
    machine.published().into_iter().take(count).map(str::to_owned).collect()
}

#[test]
fn at_ratio_50_chunks_grow_by_half() {
    assert_eq!(
        ramp(50, 9),
        [
            "0+32=32",
            "32+32=32",
            "64+32=32",
            "96+48=48",
            "144+72=72",
            "216+108=108",
            "324+162=162",
            "486+244=244",
            "730+256=256",
        ]
    );
}

#[test]
fn at_ratio_100_chunks_double() {
    let doubling = ["0+32=32", "32+32=32", "64+64=64", "128+128=128", "256+256=256"];
    assert_eq!(ramp(100, 5), doubling);
}

#[test]
fn at_a_multiple_of_3_readers_wait_for_the_last_page() {
    let mut machine = v1(102);
    machine.scan(1, 0, 100, 1);
    assert_eq!(machine.waits, [31, 63, 128]);
    assert_eq!(machine.published(), ["0+32=32", "32+32=32", "64+65=65"]);
    let mut machine = v1(101);
    machine.scan(1, 0, 100, 1);
    assert_eq!(machine.waits, [0; 0]);
}

/// The page before must have been used, and it has been.
#[test]
fn a_second_page_starts_a_sequence_anywhere() {
    let mut machine = v1(50);
    machine.scan(1, 5_000, 5_040, 1);
    assert_eq!(
        machine.trace(),
        ["random@5000 5000+1-0", "context@5001 5001+32-0", "context@5033 5033+32-0"]
    );
}

#[test]
fn readers_of_one_open_file_do_not_disturb_each_other() {
    let mut machine = v1(50);
    for page in 0..150 {
        machine.read(1, 1_000 + page, 1);
        machine.read(1, 50_000 + page, 1);
    }
    let of = |from: u64, to: u64| machine.trace_of(from..to).len();
    assert_eq!(of(0, 50_000), of(50_000, FILE_PAGES));
    assert_eq!(causes(&machine.trace_of(0..50_000))[1..], [Cause::Context; 4]);
}

#[test]
fn pages_read_ahead_and_not_used_are_no_history() {
    let mut machine = v1(50);
    machine.read(1, 0, 1);
    machine.read(1, 32, 1);
    assert_eq!(machine.trace(), ["initial@0 0+32-0", "random@32 32+1-0"]);
}

/// Pages used twice must reach back at least by the fewest pages.
#[test]
fn a_history_of_active_pages_must_be_long_enough() {
    let mut machine = v1(100);
    machine.read(1, 1_000, 1);
    machine.read(1, 999, 1);
    machine.read(1, 1_000, 1);
    machine.read(1, 1_001, 1);
    assert_eq!(machine.trace().last(), Some(&"random@1001 1001+1-0"));
}

#[test]
fn a_request_larger_than_a_chunk_has_any_history() {
    let mut machine = v1(100);
    machine.read(1, 1_000, 600);
    assert_eq!(
        machine.trace(),
        ["random@1000 1000+256-0", "context@1256 1256+256-0", "context@1512 1512+256-0"]
    );
}

#[test]
fn a_small_request_before_a_used_page_is_taken_for_a_backward_reader() {
    let mut machine = v1(50);
    machine.read(1, 1_000, 2);
    machine.read(1, 998, 2);
    assert_eq!(machine.trace(), ["random@1000 1000+2-0", "backward@998 990+10-0"]);
    machine.read(2, 5, 1);
    machine.read(2, 4, 1);
    assert_eq!(machine.trace().last(), Some(&"backward@4 0+5-0"), "not before the file");
}

/// The call tells where the request began, although its first pages were cached. So its history
/// includes more than those pages, which a smaller request would just have used again.
#[test]
fn a_large_request_is_known_by_its_call() {
    let mut machine = v1(50);
    machine.scan(1, 700, 1_250, 1);
    machine.cache.evict(1_250, FILE_PAGES);
    machine.read(2, 1_000, 300);
    assert_eq!(machine.trace().last(), Some(&"context@1250 1250+256-0"));
    machine.cache.evict(1_250, FILE_PAGES);
    machine.read(3, 1_000, 256);
    assert_eq!(machine.trace().last(), Some(&"context@1250 1250+144-0"));
}

#[test]
fn a_chunk_that_met_cached_pages_keeps_them_all_for_another_round() {
    let mut machine = v1(50);
    machine.read(1, 1_010, 40);
    machine.read(2, 1_000, 1);
    machine.read(2, 1_001, 1);
    assert_eq!(
        machine.trace()[2..],
        ["context@1001 1001+32-0", "rescue@1001 1001+49"],
        "up to the first absent page"
    );
}

#[test]
fn little_memory_makes_small_chunks() {
    let mut machine = v1(50);
    machine.cache.ageing.inactive_and_free_pages = 0;
    machine.scan(1, 0, 40, 1);
    assert_eq!(machine.published(), ["0+8=8", "8+8=8", "16+8=8", "24+12=12", "36+16=16"]);
}

#[test]
fn mappings_are_read_around_unless_announced_sequential() {
    let mut machine = v1(50);
    machine.fault(1, 1_000, Hint::Normal);
    machine.fault(2, 5_000, Hint::Sequential);
    machine.fault(2, 5_001, Hint::Sequential);
    assert_eq!(
        machine.trace(),
        ["initial@1000 872+256-0", "random@5000 5000+1-0", "context@5001 5001+32-0"]
    );
}

#[test]
fn ratio_0_reads_requests_as_they_are() {
    let mut machine = v1(0);
    machine.scan(1, 0, 12, 3);
    assert_eq!(machine.published(), ["0+3=3", "3+3=3", "6+3=3", "9+3=3"]);
}
