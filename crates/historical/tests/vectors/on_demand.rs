//! One window and a mark: 2.6.23, 2.6.31, 3.12.

use OnDemandRelease::{Linux2_6_23, Linux2_6_31, Linux3_12};
use historical::{NoReadAhead, OnDemand, OnDemandRelease};
use readahead::{Cause, Hint};

use crate::FILE_PAGES;
use crate::support::{Machine, causes};

const ALL: [OnDemandRelease; 3] = [Linux2_6_23, Linux2_6_31, Linux3_12];

fn on_demand(release: OnDemandRelease, window: u32) -> Machine {
    Machine::new(OnDemand::new(64, release), FILE_PAGES, window)
}

#[test]
fn a_sequence_from_the_start_ramps_up_to_the_window() {
    for release in ALL {
        let mut machine = on_demand(release, 32);
        machine.scan(1, 0, 80, 1);
        assert_eq!(
            machine.first(4),
            [
                "initial@0 0+4-3",
                "sequential@1 4+8-8",
                "sequential@4 12+16-16",
                "sequential@12 28+32-32",
            ],
            "{release:?}"
        );
        let mut machine = on_demand(release, 256);
        machine.scan(1, 0, 400, 1);
        assert_eq!(
            machine.first(6),
            [
                "initial@0 0+4-3",
                "sequential@1 4+16-16",
                "sequential@4 20+32-32",
                "sequential@20 52+64-64",
                "sequential@52 116+128-128",
                "sequential@116 244+256-256",
            ],
            "{release:?}"
        );
    }
}

/// 1, 1001, 2, 1002, ... through one open file.
fn interleaved(release: OnDemandRelease) -> Machine {
    let mut machine = on_demand(release, 32);
    for page in 1..80 {
        machine.read(1, page, 1);
        machine.read(1, page + 1_000, 1);
    }
    machine
}

#[test]
fn in_2_6_23_two_streams_through_one_open_file_never_get_a_window() {
    let machine = interleaved(Linux2_6_23);
    assert_eq!(causes(&machine.trace()), [Cause::Random; 158]);
}

#[test]
fn in_2_6_31_a_cached_page_before_is_enough() {
    let machine = interleaved(Linux2_6_31);
    assert_eq!(
        machine.trace_of(0..1_000)[..4],
        ["random@1 1+1-0", "context@2 2+12-8", "context@6 14+18-18", "context@14 32+32-32"]
    );
    assert_eq!(
        machine.trace_of(1_000..FILE_PAGES)[..4],
        [
            "random@1001 1001+1-0",
            "context@1002 1002+12-8",
            "context@1006 1014+18-18",
            "context@1014 1032+32-32",
        ]
    );
}

#[test]
fn in_3_12_it_takes_two_and_the_window_starts_small() {
    let machine = interleaved(Linux3_12);
    assert_eq!(
        machine.trace_of(0..1_000)[..7],
        [
            "random@1 1+1-0",
            "random@2 2+1-0",
            "context@3 3+3-1",
            "context@5 6+4-4",
            "context@6 10+10-10",
            "context@10 20+22-22",
            "context@20 42+32-32",
        ]
    );
}

/// The second reader's marks are not where the window expects them.
#[test]
fn in_2_6_24_a_mark_without_a_window_leads_to_the_next_hole() {
    let mut machine = on_demand(Linux2_6_23, 32);
    machine.scan(1, 0, 5, 1);
    machine.scan(1, 1_000, 1_003, 1);
    machine.scan(1, 5, 13, 1);
    assert_eq!(
        machine.trace_of(0..1_000)[3..],
        ["context@12 28+32-32"],
        "16 pages from the mark to the hole, twice that: {:?}",
        machine.trace()
    );
}

#[test]
fn a_random_read_leaves_the_window_alone() {
    for release in ALL {
        let mut machine = on_demand(release, 32);
        machine.scan(1, 0, 4, 1);
        machine.read(1, 5_000, 2);
        machine.scan(1, 4, 6, 1);
        assert_eq!(
            machine.trace()[2..],
            ["random@5000 5000+2-0", "sequential@4 12+16-16"],
            "{release:?}"
        );
    }
}

#[test]
fn an_evicted_window_starts_over() {
    for release in ALL {
        let mut machine = on_demand(release, 32);
        machine.scan(1, 0, 40, 1);
        machine.cache.evict(40, FILE_PAGES);
        machine.read(1, 40, 1);
        assert_eq!(machine.trace().last(), Some(&"initial@40 40+4-3"), "{release:?}");
    }
}

/// A window of look-ahead only is marked where its reader is.
#[test]
fn a_request_larger_than_a_window_gets_another_at_once() {
    let mut machine = on_demand(Linux2_6_23, 32);
    machine.read(1, 500, 100);
    assert_eq!(
        machine.first(3),
        ["initial@500 500+32-32", "sequential@500 532+32-32", "sequential@532 564+32-32"]
    );
    let mut machine = on_demand(Linux2_6_31, 32);
    machine.read(1, 500, 100);
    assert_eq!(
        machine.first(3),
        ["initial@500 500+32-16", "sequential@516 532+32-32", "sequential@532 564+32-32"]
    );
}

#[test]
fn a_history_from_the_files_start_counts_double() {
    let last = |release| {
        let mut machine = on_demand(release, 256);
        machine.read(1, 1, 5);
        machine.read(1, 0, 1);
        machine.cache.evict(6, FILE_PAGES);
        machine.read(2, 6, 1);
        machine.trace().pop().map(str::to_owned)
    };
    assert_eq!(last(Linux2_6_23).as_deref(), Some("random@6 6+1-0"));
    assert_eq!(last(Linux2_6_31).as_deref(), Some("context@6 6+96-64"), "13 pages, rounded: 16");
    assert_eq!(last(Linux3_12).as_deref(), Some("context@6 6+13-1"));
}

/// At the window's end its successor is due all the same. Its mark would be on that page.
#[test]
fn a_full_queue_loses_the_mark() {
    let second = [
        (Linux2_6_23, "sequential@4 4+8-8"),
        (Linux2_6_31, "sequential@4 4+24-16"),
        (Linux3_12, "sequential@4 4+24-16"),
    ];
    for (release, second) in second {
        let mut machine = on_demand(release, 32);
        machine.read(1, 0, 1);
        machine.cache.room_pages = 0;
        machine.scan(1, 1, 5, 1);
        assert_eq!(machine.trace(), ["initial@0 0+4-3", second]);
    }
}

#[test]
fn a_fault_reads_around_and_is_the_open_files_window_since_2_6_31() {
    let scan = |release| {
        let mut machine = on_demand(release, 32);
        for page in 1_000..1_020 {
            machine.fault(1, page, Hint::Normal);
        }
        machine.trace().into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(scan(Linux2_6_23), ["initial@1000 984+32-0", "initial@1016 1000+32-0"]);
    assert_eq!(scan(Linux2_6_31), ["initial@1000 984+32-0", "initial@1016 1000+32-0"]);
    assert_eq!(
        scan(Linux3_12),
        ["initial@1000 984+32-8", "sequential@1008 1016+32-32"]
            .into_iter()
            .chain(["sequential@1016 1048+32-32"])
            .collect::<Vec<_>>()
    );
}

#[test]
fn an_announced_scan_of_a_mapping_is_a_sequence() {
    let first = |release| {
        let mut machine = on_demand(release, 32);
        machine.fault(1, 0, Hint::Sequential);
        machine.trace().pop().map(str::to_owned)
    };
    assert_eq!(first(Linux2_6_23).as_deref(), Some("initial@0 0+4-3"));
    assert_eq!(first(Linux2_6_31).as_deref(), Some("initial@0 0+32-16"));
    assert_eq!(first(Linux3_12).as_deref(), Some("initial@0 0+32-16"));
}

#[test]
fn a_mapping_read_at_random_is_read_around_a_hundred_times() {
    for release in ALL {
        let mut machine = on_demand(release, 32);
        for i in 0..300 {
            machine.fault(1, 1_000 + 331 * i, Hint::Normal);
        }
        assert_eq!(machine.trace().len(), 100, "{release:?}");
        machine.fault(2, 500, Hint::Random);
        assert_eq!(machine.trace().len(), 100, "announced random: left alone");
    }
}

#[test]
fn without_read_ahead_requests_are_read_as_they_are() {
    let mut machine = Machine::new(NoReadAhead, FILE_PAGES, 32);
    machine.scan(1, 0, 12, 5);
    machine.fault(1, 100, Hint::Sequential);
    assert_eq!(machine.published(), ["0+5=5", "5+5=5", "10+2=2", "100+1=1"]);
}
