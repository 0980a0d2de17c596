//! Traces that the modelled kernels must reproduce, from published traces, models checked against
//! them, and the tracepoints of a running kernel.
//!
//! A line `state@14 16+49-39` reads: asked about page 14, 49 pages from page 16 on were read with
//! the mark 39 pages before their end.

mod support;

use readahead::{AdaptiveV16, Cause, Hint, Linux6, V16Parameters};
use support::{LIST_PAGES, Machine, causes};

const FILE_PAGES: u64 = 100_000;

fn linux(file_pages: u64, window: u32) -> Machine<Linux6> {
    Machine::new(Linux6::new(64), file_pages, window)
}

fn v16_with(parameters: V16Parameters) -> Machine<AdaptiveV16> {
    Machine::new(AdaptiveV16::new(64, parameters), FILE_PAGES, 256)
}

fn v16(hit_rate: u32) -> Machine<AdaptiveV16> {
    v16_with(V16Parameters {
        readahead_hit_rate: hit_rate,
        ..V16Parameters::default()
    })
}

mod linux_6 {
    use super::*;

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

    /// Tracepoints of a 6.18 kernel: the window that would start beyond the end is not read.
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

    /// Tracepoints of a 6.18 kernel: whole-page reads of every other page pass for a sequence, of
    /// every third do not.
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

    /// Tracepoints of a 6.18 kernel, up to where its search for the next hole goes astray.
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
            [
                "initial@0 0+100-50",
                "sequential@50 100+100-100",
                "sequential@100 200+100-100",
            ]
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
        assert_eq!(
            machine.trace(),
            ["random@0 0+1-0", "random@1 1+1-0", "random@2 2+1-0"]
        );
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

    /// Tracepoint of a 6.18 kernel: faults leave no trace of where they were.
    #[test]
    fn an_announced_scan_of_a_mapping_reads_whole_windows() {
        let mut machine = linux(FILE_PAGES, 2048);
        machine.fault(1, 100, Hint::Sequential);
        machine.fault(1, 2148, Hint::Sequential);
        assert_eq!(
            machine.trace(),
            ["random@100 100+2048-0", "random@2148 2148+2048-0"]
        );
        let mut machine = linux(FILE_PAGES, 2048);
        machine.fault(1, 0, Hint::Sequential);
        assert_eq!(machine.trace(), ["initial@0 0+2048-1024"]);
    }

    #[test]
    fn a_mapping_read_at_random_is_read_around_a_hundred_times() {
        let mut machine = linux(FILE_PAGES, 32);
        for i in 0..300 {
            machine.fault(1, 1000 + 331 * i, Hint::Normal);
        }
        assert_eq!(machine.trace().len(), 100);
        machine.fault(2, 500, Hint::Random);
        assert_eq!(machine.trace().len(), 100, "announced random: left alone");
    }
}

mod adaptive_v16 {
    use super::*;

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

    fn interleaved(hit_rate: u32) -> Machine<AdaptiveV16> {
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

    fn every_fourth_page(hit_rate: u32) -> Machine<AdaptiveV16> {
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

    /// A threshold of 18 pages: reclaim examines 2600 pages for each that the reader uses.
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
        assert_eq!(
            machine.trace().last(),
            Some(&"thrashed@150 150+37-4"),
            "50 pages survived"
        );
    }

    #[test]
    fn what_did_not_survive_limits_the_next_files_start() {
        let mut machine = v16_with(V16Parameters {
            initial_pages: 256,
            ..V16Parameters::default()
        });
        machine.read(1, 0, 1);
        machine.cache.evict(0, FILE_PAGES);
        machine.read(1, 1, 1);
        machine.cache.evict(0, FILE_PAGES);
        machine.read(2, 0, 1);
        assert_eq!(
            machine.trace(),
            ["initial@0 0+256-32", "initial@0 0+224-28"]
        );
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
        assert_eq!(
            machine.trace()[1..],
            ["context@16 16+32-16"],
            "the next absent page takes over"
        );
    }

    #[test]
    fn a_ratio_of_0_reads_requests_as_they_are() {
        let mut machine = v16_with(V16Parameters {
            readahead_ratio: 0,
            ..V16Parameters::default()
        });
        machine.scan(1, 0, 600, 300);
        assert_eq!(machine.trace(), ["random@0 0+300-0", "random@300 300+300-0"]);
    }

    #[test]
    fn the_file_of_a_loop_device_gets_no_marks() {
        let mut machine = v16_with(V16Parameters {
            loop_device: true,
            ..V16Parameters::default()
        });
        machine.scan(1, 0, 66, 1);
        assert_eq!(
            machine.trace(),
            ["initial@0 0+16-0", "sequential@16 16+49-0", "sequential@65 65+115-0"]
        );
    }

    #[test]
    fn while_the_disk_rests_a_mark_is_moved_on() {
        let mut machine = v16_with(V16Parameters {
            laptop: true,
            initial_pages: 64,
            ..V16Parameters::default()
        });
        machine.scan(1, 0, 57, 1);
        assert_eq!(machine.trace(), ["initial@0 0+64-8", "sequential@56 64+145-117"]);
        machine.scan(1, 57, 204, 1);
        assert_eq!(machine.trace().len(), 2, "moved from 92 on in steps of 16");
        machine.read(1, 204, 1);
        assert_eq!(machine.trace().last(), Some(&"sequential@204 209+256-197"));
    }

    #[test]
    fn a_servers_reordered_requests_are_judged_after_they_are_read() {
        let mut machine = v16_with(V16Parameters {
            nfsd: true,
            readahead_hit_rate: 1,
            ..V16Parameters::default()
        });
        for (call, start) in [8, 0, 16, 24].into_iter().enumerate() {
            machine.read(call as u64, start, 8);
        }
        assert_eq!(
            machine.trace(),
            [
                "random@8 8+8-0",
                "random@0 0+8-0",
                "random@16 16+8-0",
                "context@16 24+48-24",
            ]
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
}
