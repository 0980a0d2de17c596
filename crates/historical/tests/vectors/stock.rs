//! The two windows of 2.6.13 to 2.6.22.

use StockRelease::{Linux2_6_13, Linux2_6_17};
use historical::{Stock, StockRelease};
use readahead::{Cause, Hint};

use crate::FILE_PAGES;
use crate::support::{Machine, causes};

fn stock(release: StockRelease, window: u32) -> Machine {
    Machine::new(Stock::new(64, release), FILE_PAGES, window)
}

/// The chunks of page by page reading from the file's start.
fn ramp(release: StockRelease, window: u32, count: usize) -> Vec<String> {
    let mut machine = stock(release, window);
    machine.scan(1, 0, 600, 1);
    machine.published().into_iter().take(count).map(str::to_owned).collect()
}

#[test]
fn until_2_6_16_one_page_starts_with_one_or_a_quarter_of_the_window() {
    let large = ["0+1=1", "1+4=4", "5+16=16", "21+32=32", "53+64=64", "117+128=128"];
    assert_eq!(ramp(Linux2_6_13, 256, 6), large);
    assert_eq!(ramp(Linux2_6_13, 32, 4), ["0+8=8", "8+16=16", "24+32=32", "56+32=32"]);
}

#[test]
fn since_2_6_17_one_page_starts_with_four() {
    assert_eq!(
        ramp(Linux2_6_17, 256, 7),
        ["0+4=4", "4+16=16", "20+32=32", "52+64=64", "116+128=128", "244+256=256", "500+256=256"]
    );
    assert_eq!(ramp(Linux2_6_17, 32, 5), ["0+4=4", "4+8=8", "12+16=16", "28+32=32", "60+32=32"]);
}

/// The second read finds no ahead window, and is in it once it exists.
#[test]
fn the_second_page_brings_two_windows_at_once() {
    let mut machine = stock(Linux2_6_13, 256);
    machine.scan(1, 0, 6, 1);
    assert_eq!(
        machine.trace(),
        ["initial@0 0+1-0", "sequential@1 1+4-0", "sequential@1 5+16-0", "sequential@5 21+32-0"]
    );
}

/// Requests larger than a window: the policy assumes the reader a window beyond the read-ahead. The
/// reader itself reads what lies between, and all of that is requested once more.
#[test]
fn until_2_6_16_what_the_reader_has_read_by_itself_is_asked_for_again() {
    let scanned = |release| {
        let mut machine = stock(release, 173);
        machine.scan(1, 1, 400, 175);
        machine
    };
    let machine = scanned(Linux2_6_13);
    assert_eq!(
        machine.trace(),
        [
            "random@1 1+173-0",
            "initial@174 174+4-0",
            "sequential@176 178+16-0",
            "sequential@176 194+32-0",
            "sequential@349 226+30-0",
            "sequential@351 256+28-0",
        ]
    );
    assert_eq!(machine.cache.overlap_pages, 30 + 28);
    assert_eq!(scanned(Linux2_6_17).cache.overlap_pages, 0);
}

#[test]
fn a_request_as_large_as_the_window_gets_two_at_once() {
    let mut machine = stock(Linux2_6_17, 32);
    machine.read(1, 0, 100);
    assert_eq!(
        machine.trace(),
        [
            "initial@0 0+32-0",
            "sequential@0 32+32-0",
            "sequential@32 64+32-0",
            "sequential@64 96+32-0",
            "sequential@96 128+32-0",
        ]
    );
}

/// The policy assumes that the reader has passed the ahead window, and with it the page where it
/// would request more.
#[test]
fn until_2_6_16_a_large_request_outruns_small_windows() {
    let read_one_and_64 = |release| {
        let mut machine = stock(release, 256);
        machine.read(1, 0, 1);
        machine.read(1, 1, 64);
        machine
    };
    let older = read_one_and_64(Linux2_6_13);
    assert_eq!(older.published(), ["0+1=1", "1+4=4", "5+16=16"]);
    assert_eq!(older.cache.read_pages, 65, "44 of them one by one");
    let newer = read_one_and_64(Linux2_6_17);
    assert_eq!(newer.published(), ["0+4=4", "4+16=16", "20+32=32", "52+64=64"]);
}

#[test]
fn a_random_read_is_the_request_as_far_as_a_window_reaches() {
    let mut machine = stock(Linux2_6_17, 32);
    machine.read(1, 5_000, 3);
    machine.read(1, 9_000, 1);
    assert_eq!(machine.trace(), ["random@5000 5000+3-0", "random@9000 9000+1-0"]);
    machine.read(1, 9_001, 1);
    assert_eq!(machine.trace().last(), Some(&"initial@9001 9001+4-0"));
}

#[test]
fn the_same_page_again_is_no_request() {
    let mut machine = stock(Linux2_6_17, 32);
    machine.read(1, 0, 1);
    machine.read(1, 0, 1);
    assert_eq!(machine.published(), ["0+4=4"]);
    machine.read(1, 0, 3);
    assert_eq!(machine.published()[1..], ["4+8=8"], "pages 1 and 2 count");
}

#[test]
fn two_readers_of_one_open_file_read_at_random() {
    let mut machine = stock(Linux2_6_17, 32);
    for page in 1..20 {
        machine.read(1, page, 1);
        machine.read(1, page + 1_000, 1);
    }
    assert_eq!(causes(&machine.trace()), [Cause::Random; 38]);
}

/// When page 100 is found missing, the windows at 92 and 124 have already been submitted.
#[test]
fn an_evicted_page_is_read_alone_and_takes_two_pages_off_the_next_window() {
    let mut machine = stock(Linux2_6_17, 32);
    machine.scan(1, 0, 100, 1);
    machine.cache.evict(100, 104);
    machine.scan(1, 100, 160, 1);
    assert_eq!(machine.published()[5..], ["92+32=32", "124+32=32", "156+30=30", "186+32=32"]);
    assert_eq!(machine.cache.read_pages, 218 + 4, "pages 100 to 103 were read again, one by one");
}

#[test]
fn a_full_queue_drops_what_the_reader_does_not_wait_for() {
    let mut machine = stock(Linux2_6_17, 32);
    machine.scan(1, 0, 4, 1);
    machine.cache.room_pages = 0;
    machine.scan(1, 4, 12, 1);
    assert_eq!(machine.published(), ["0+4=4", "4+8=8"]);
    machine.scan(1, 12, 28, 1);
    assert_eq!(machine.published()[2..], ["12+16=16"], "waited for at page 12");
    machine.cache.room_pages = u64::MAX;
    machine.read(1, 28, 1);
    assert_eq!(machine.published()[3..], ["28+32=32", "60+32=32"]);
}

#[test]
fn a_file_that_seems_cached_is_read_without_read_ahead_until_a_miss() {
    let mut machine = stock(Linux2_6_17, 32);
    machine.scan(1, 0, 1_000, 1);
    let before = machine.published().len();
    machine.scan(2, 0, 1_000, 1);
    let again = machine.published()[before..].to_vec();
    assert_eq!(again.len(), 3 + 8, "4 + 8 + 16 + 8 * 32 pages are more than 256");
    assert!(again.iter().all(|line| line.ends_with("=0")));
    machine.cache.evict(1_000, FILE_PAGES);
    machine.read(2, 1_000, 1);
    assert_eq!(machine.published().len(), before + 11, "read alone");
    machine.read(2, 1_001, 1);
    assert_eq!(machine.published().last(), Some(&"1001+4=4"), "on again");
}

/// `sendfile` of the rest of the file to a socket that accepts ten pages at a time.
#[test]
fn partly_consumed_requests_pass_for_random() {
    let mut machine = stock(Linux2_6_17, 32);
    for start in (0..200).step_by(10) {
        machine.read_in_part(1, start, 5_000 - start, 10);
    }
    assert_eq!(
        machine.published()[..7],
        ["0+32=32", "32+32=32", "10+32=0", "20+32=0", "30+32=0", "40+32=8", "50+32=10",]
    );
}

#[test]
fn partly_consumed_requests_of_a_large_window_switch_read_ahead_off() {
    let mut machine = stock(Linux2_6_17, 256);
    for start in (0..512).step_by(8) {
        machine.read_in_part(1, start, 50_000 - start, 8);
    }
    assert_eq!(machine.published(), ["0+256=256", "256+256=256", "8+256=0"]);
    machine.read_in_part(1, 512, 49_000, 8);
    machine.read_in_part(1, 520, 49_000, 8);
    assert_eq!(
        machine.published()[3..],
        ["513+256=256", "769+254=254", "520+256=0"],
        "page 512 was read alone; two windows; off again"
    );
    assert_eq!(machine.cache.read_pages, 512 + 1 + 256 + 254);
}

#[test]
fn announced_random_reading_is_left_alone() {
    let mut machine = stock(Linux2_6_17, 32);
    machine.hint = Hint::Random;
    machine.read(1, 0, 10);
    machine.fault(1, 500, Hint::Random);
    assert_eq!(machine.published(), [""; 0]);
    assert_eq!(machine.cache.read_pages, 11, "single pages, as they came");
}

#[test]
fn a_mapping_announced_sequential_is_read_like_a_file() {
    let mut machine = stock(Linux2_6_17, 32);
    for page in 0..40 {
        machine.fault(1, page, Hint::Sequential);
    }
    assert_eq!(machine.published(), ["0+4=4", "4+8=8", "12+16=16", "28+32=32", "60+32=32"]);
}

#[test]
fn other_faults_read_around_until_too_many_missed() {
    let mut machine = stock(Linux2_6_17, 32);
    machine.fault(1, 1_000, Hint::Normal);
    assert_eq!(machine.trace(), ["initial@1000 984+32-0"]);
    machine.cache.ageing.inactive_and_free_pages = 20;
    machine.fault(1, 2_000, Hint::Normal);
    assert_eq!(machine.trace()[1], "initial@2000 1995+10-0", "half of the reclaimable memory");
    for i in 0..300 {
        machine.fault(1, 3_000 + 100 * i, Hint::Normal);
    }
    assert_eq!(machine.trace().len(), 100);
}
