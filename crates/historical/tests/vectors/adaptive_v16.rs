//! The proposal of 2006.

use historical::{AdaptiveV16, V16Parameters};
use readahead::{Cause, Hint};

use crate::FILE_PAGES;
use crate::support::cache::LIST_PAGES;
use crate::support::{Machine, causes};

fn v16_with(parameters: V16Parameters) -> Machine {
    Machine::new(AdaptiveV16::new(64, parameters), FILE_PAGES, 256)
}

fn v16(hit_rate: u32) -> Machine {
    v16_with(V16Parameters { readahead_hit_rate: hit_rate, ..V16Parameters::default() })
}

#[test]
fn a_file_read_from_its_start_ramps_up_to_full_pipelining() {
    let mut machine = v16(0);
    machine.scan(1, 0, 500, 1);
    assert_eq!(
        machine.first(5),
        [
            "initial@0 0+16-2",
            "sequential@14 16+49-39",
            "sequential@26 65+115-115",
            "sequential@65 180+247-247",
            "sequential@180 427+256-256",
        ]
    );
}

const FROM_THE_MIDDLE: [&str; 6] = [
    "random@1000 1000+1-0",
    "context@1001 1001+10-1",
    "sequential@1010 1011+37-29",
    "sequential@1019 1048+91-91",
    "sequential@1048 1139+199-199",
    "sequential@1139 1338+256-256",
];

#[test]
fn a_sequence_in_the_middle_starts_with_its_second_page() {
    let mut machine = v16(0);
    machine.scan(1, 1000, 1200, 1);
    assert_eq!(machine.trace(), FROM_THE_MIDDLE);
}

#[test]
fn two_open_files_do_not_disturb_each_other() {
    let mut machine = v16(0);
    for page in 0..200 {
        machine.read(1, 1000 + page, 1);
        machine.read(2, 51_000 + page, 1);
    }
    assert_eq!(machine.trace_of(0..50_000), FROM_THE_MIDDLE);
    let second = machine.trace_of(50_000..FILE_PAGES);
    assert_eq!(second.len(), FROM_THE_MIDDLE.len());
    assert_eq!(second[5], "sequential@51139 51338+256-256");
}

fn interleaved(hit_rate: u32) -> Machine {
    let mut machine = v16(hit_rate);
    for page in 100..112 {
        machine.read(1, page, 1);
        machine.read(1, page + 2000, 1);
    }
    machine
}

#[test]
fn one_open_file_with_two_streams_is_random_at_hit_rate_0() {
    assert_eq!(causes(&interleaved(0).trace()), [Cause::Random; 24]);
}

#[test]
fn one_open_file_with_two_streams_starts_slowly_at_hit_rate_1() {
    let machine = interleaved(1);
    assert_eq!(
        machine.trace_of(0..1000),
        [
            "random@100 100+1-0",
            "context@101 101+2-0",
            "context@103 103+2-0",
            "context@105 105+2-0",
            "context@107 107+3-0",
            "context@110 110+5-0",
        ]
    );
}

#[test]
fn a_file_reopened_for_every_page_is_read_by_its_history() {
    let mut machine = v16(1);
    for page in 0..300 {
        machine.read(page, page, 1);
    }
    assert_eq!(
        machine.first(6),
        [
            "initial@0 0+16-2",
            "context@14 16+26-14",
            "context@28 42+42-28",
            "context@56 84+84-56",
            "context@112 168+168-112",
            "context@224 336+256-224",
        ]
    );
}

#[test]
fn backward_chunks_double() {
    let parameters = V16Parameters::default();
    let mut machine = Machine::new(AdaptiveV16::new(64, parameters), 25_600, 256);
    for i in 1..=40 {
        machine.read(1, 25_600 - 16 * i, 16);
    }
    assert_eq!(
        machine.first(5),
        [
            "random@25584 25584+16-0",
            "backward@25568 25567+33-0",
            "backward@25552 25485+82-0",
            "backward@25472 25305+180-0",
            "backward@25296 25049+256-0",
        ]
    );
}

#[test]
fn backward_page_by_page_doubles_too() {
    let parameters = V16Parameters::default();
    let mut machine = Machine::new(AdaptiveV16::new(64, parameters), 25_600, 256);
    for page in (24_000..25_600).rev() {
        machine.read(1, page, 1);
    }
    assert_eq!(
        machine.first(8),
        [
            "random@25599 25599+1-0",
            "backward@25598 25597+3-0",
            "backward@25596 25590+10-0",
            "backward@25589 25569+21-0",
            "backward@25568 25526+43-0",
            "backward@25525 25439+87-0",
            "backward@25438 25264+175-0",
            "backward@25263 25008+256-0",
        ]
    );
}

fn every_fourth_page(hit_rate: u32) -> Machine {
    let mut machine = v16(hit_rate);
    for i in 0..40 {
        machine.read(1, 1000 + 4 * i, 1);
    }
    machine
}

#[test]
fn a_sparse_reader_is_random_below_hit_rate_2() {
    let machine = every_fourth_page(1);
    assert_eq!(causes(&machine.trace()), [Cause::Random; 40]);
}

#[test]
fn a_sparse_readers_gaps_are_filled_at_hit_rate_8() {
    let machine = every_fourth_page(8);
    assert_eq!(
        machine.first(6),
        [
            "random@1000 1000+1-0",
            "sparse@1004 1001+14-1",
            "random@1016 1016+1-0",
            "sparse@1020 1017+14-1",
            "random@1032 1032+1-0",
            "sparse@1036 1033+14-1",
        ]
    );
}

/// A threshold of 18 pages: reclaim examines 2600 pages for each page that the reader uses.
#[test]
fn under_pressure_chunks_settle_at_the_thrash_threshold() {
    let mut machine = v16(0);
    machine.scanned_per_page = 2_600;
    machine.scan(1, 0, 90, 1);
    assert_eq!(
        machine.trace(),
        [
            "initial@0 0+16-2",
            "sequential@14 16+16-2",
            "sequential@30 32+16-2",
            "sequential@46 48+16-2",
            "sequential@62 64+16-2",
            "sequential@78 80+16-2",
        ]
    );
}

#[test]
fn a_chunk_in_danger_is_rescued_instead_of_read_on() {
    let mut machine = v16(0);
    machine.scan(1, 0, 14, 1);
    machine.cache.ageing.scanned_pages = LIST_PAGES;
    machine.read(1, 14, 1);
    assert_eq!(machine.trace(), ["initial@0 0+16-2", "rescue@14 14+2"]);
}

#[test]
fn a_lost_chunk_measures_what_survives() {
    let mut machine = v16(0);
    machine.scan(1, 0, 100, 1);
    machine.cache.evict(100, FILE_PAGES);
    machine.read(1, 100, 1);
    let trace = machine.trace();
    assert_eq!(
        trace[trace.len() - 2..],
        ["sequential@65 180+247-247", "thrashed@100 100+80-10"],
        "the old chunk, up to page 180, is lost as well"
    );
    machine.scan(1, 101, 150, 1);
    machine.cache.evict(150, FILE_PAGES);
    machine.read(1, 150, 1);
    assert_eq!(machine.trace().last(), Some(&"thrashed@150 150+37-4"), "50 pages survived");
}

#[test]
fn what_did_not_survive_limits_the_next_files_start() {
    let mut machine = v16_with(V16Parameters { initial_pages: 256, ..V16Parameters::default() });
    machine.read(1, 0, 1);
    machine.cache.evict(0, FILE_PAGES);
    machine.read(1, 1, 1);
    machine.cache.evict(0, FILE_PAGES);
    machine.read(2, 0, 1);
    assert_eq!(machine.trace(), ["initial@0 0+256-32", "initial@0 0+224-28"]);
}

#[test]
fn a_chunk_that_would_leave_a_tiny_rest_takes_it_too() {
    let policy = AdaptiveV16::new(64, V16Parameters::default());
    let mut machine = Machine::new(policy, 23, 256);
    machine.scan(1, 0, 23, 1);
    assert_eq!(machine.trace(), ["initial@0 0+23-9"]);
}

#[test]
fn a_congested_device_loses_the_mark() {
    let mut machine = v16(0);
    machine.read(1, 0, 1);
    machine.cache.room_pages = 0;
    machine.scan(1, 1, 16, 1);
    assert_eq!(machine.trace(), ["initial@0 0+16-2"]);
    machine.cache.room_pages = u64::MAX;
    machine.read(1, 16, 1);
    assert_eq!(machine.trace()[1..], ["context@16 16+32-16"], "the next absent page takes over");
}

#[test]
fn a_ratio_of_0_reads_requests_as_they_are() {
    let mut machine = v16_with(V16Parameters { readahead_ratio: 0, ..V16Parameters::default() });
    machine.scan(1, 0, 600, 300);
    assert_eq!(machine.trace(), ["random@0 0+300-0", "random@300 300+300-0"]);
}

#[test]
fn the_file_of_a_loop_device_gets_no_marks() {
    let mut machine = v16_with(V16Parameters { loop_device: true, ..V16Parameters::default() });
    machine.scan(1, 0, 66, 1);
    assert_eq!(
        machine.trace(),
        ["initial@0 0+16-0", "sequential@16 16+49-0", "sequential@65 65+115-0"]
    );
}

#[test]
fn while_the_disk_rests_a_mark_is_moved_on() {
    let mut machine =
        v16_with(V16Parameters { laptop: true, initial_pages: 64, ..V16Parameters::default() });
    machine.scan(1, 0, 57, 1);
    assert_eq!(machine.trace(), ["initial@0 0+64-8", "sequential@56 64+145-117"]);
    machine.scan(1, 57, 204, 1);
    assert_eq!(machine.trace().len(), 2, "moved from 92 on in steps of 16");
    machine.read(1, 204, 1);
    assert_eq!(machine.trace().last(), Some(&"sequential@204 209+256-197"));
}

/// Found by the property tests: the mark was moved past the end.
#[test]
fn while_the_disk_rests_a_mark_stays_inside_a_file_that_shrank() {
    let mut machine =
        v16_with(V16Parameters { laptop: true, initial_pages: 64, ..V16Parameters::default() });
    machine.scan(1, 0, 56, 1);
    machine.file_pages = 57;
    machine.read(1, 56, 1);
    assert!(!machine.cache.is_marked(72));
}

#[test]
fn a_servers_reordered_requests_are_judged_after_they_are_read() {
    let mut machine =
        v16_with(V16Parameters { nfsd: true, readahead_hit_rate: 1, ..V16Parameters::default() });
    for (call, start) in [8, 0, 16, 24].into_iter().enumerate() {
        machine.read(call as u64, start, 8);
    }
    assert_eq!(
        machine.trace(),
        ["random@8 8+8-0", "random@0 0+8-0", "random@16 16+8-0", "context@16 24+48-24",]
    );
}

#[test]
fn faults_of_an_announced_scan_count_as_reads_of_a_page() {
    let mut machine = v16(0);
    for page in 0..30 {
        machine.fault(1, page, Hint::Sequential);
    }
    assert_eq!(machine.first(2), ["initial@0 0+16-2", "sequential@14 16+49-39"]);
}

#[test]
fn other_faults_read_around_until_too_many_missed() {
    let mut machine = v16(0);
    machine.fault(1, 1000, Hint::Normal);
    assert_eq!(machine.trace(), ["initial@1000 872+256-0"]);
    machine.fault(1, 50_001, Hint::Random);
    assert_eq!(machine.trace().len(), 1);
    for i in 1..200 {
        machine.fault(2, 400 * i, Hint::Normal);
    }
    assert_eq!(machine.trace().len(), 1 + 100);
}
