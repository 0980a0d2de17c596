//! What `adaptive` leaves to the kernel, and what it does not.

mod support;

use readahead::{DeviceCost, GroupId, Hint, Past, VolumeId};
use support::Machine;
use support::policies;

/// A memory card: 3.3 pages pass in the time of a device access.
const CARD: DeviceCost = DeviceCost { latency_s: 0.000_402, bandwidth: 34e6, concurrency: 1.0 };

/// A network volume: 610 pages pass in the time of a device access, and 32 device accesses overlap.
const VOLUME: DeviceCost = DeviceCost { latency_s: 0.005, bandwidth: 500e6, concurrency: 32.0 };

/// What a page of a disk takes, in nanoseconds.
const TRANSFER_NS: u64 = 34_133;

/// The same if each window of 32 pages also costs an access of 7 ms.
const WAITING_NS: u64 = TRANSFER_NS + 7_000_000 / 32;

/// The pages that the policy requests while `[0, end)` is read four pages at a time, at `page_ns` per page, with kernel
/// windows of 128 KiB.
fn asked(end: u64, page_ns: u64) -> u64 {
    let mut machine = Machine::boxed(policies::adaptive(), 100_000, 32);
    machine.cache.cost = CARD;
    machine.page_ns = page_ns;
    machine.scan(1, 0, end, 4);
    machine.policy.tally().asked_pages
}

#[test]
fn a_run_is_left_to_the_kernel_until_it_deserves_a_larger_window_than_the_kernels() {
    // A page takes 120,000 ns, and each window of 32 also costs an access of 402,000 ns.
    let page_ns = 133_000;
    assert_eq!(asked(64, page_ns), 0);
    assert!(asked(20_000, page_ns) > 15_000);
}

/// The pages that the policy requests while 20 runs of 256 pages are read, after 20 others that teach it, at `page_ns`
/// per page.
fn asked_of_runs(page_ns: u64) -> u64 {
    let mut machine = Machine::boxed(policies::adaptive(), 1_000_000, 32);
    machine.cache.cost = DeviceCost::DISK;
    machine.page_ns = page_ns;
    let mut asked = |runs: std::ops::Range<u64>| {
        let before = machine.policy.tally().asked_pages;
        // Their distances differ.
        for start in runs.map(|run| 7 + 5_000 * run + 83 * run * run) {
            machine.scan(1, start, start + 256, 16);
        }
        machine.policy.tally().asked_pages - before
    };
    asked(0..20);
    asked(20..40)
}

#[test]
fn runs_that_wait_for_no_access_are_left_to_the_kernel() {
    assert_eq!(asked_of_runs(TRANSFER_NS), 0);
    assert!(asked_of_runs(WAITING_NS) > 0);
}

/// A far volume that looks like a disk: each request waits for it, however many pages it has.
#[test]
fn waits_for_long_requests_are_seen() {
    let mut machine = Machine::boxed(policies::adaptive(), 1_000_000, 32);
    machine.page_ns = WAITING_NS;
    // A header of two pages, and the long record that it announces.
    let mut asked = |from: u64| {
        let before = machine.policy.tally().asked_pages;
        for start in (from..from + 102_500).step_by(2_050) {
            machine.read(1, start, 2);
            machine.read(1, start + 2, 2_048);
        }
        machine.policy.tally().asked_pages - before
    };
    asked(0);
    let asked = asked(102_500);
    assert!(asked > 50_000, "{asked}");
}

/// The kernel reads it piece by piece, and the program waits for each.
#[test]
fn where_accesses_overlap_a_very_long_request_is_read_ahead() {
    let asked = |cost, pages| {
        let mut machine = Machine::boxed(policies::adaptive(), 25_600, 32);
        machine.cache.cost = cost;
        machine.read(1, 0, pages);
        machine.trace().iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let all = asked(VOLUME, 25_600);
    assert_eq!(all[..2], ["initial@0 610+5591-2796", "initial@3405 6201+6006-3790"], "a long run");
    assert!(asked(VOLUME, 3_000)[0].starts_with("initial@0 610+"));
    assert!(asked(VOLUME, 600)[0].starts_with("initial@0 600+"), "one piece");
    assert!(asked(DeviceCost::DISK, 25_600).is_empty(), "a disk reads all pieces at once");
}

#[test]
fn a_file_that_is_read_again_with_one_request_is_read_ahead_again() {
    let mut machine = Machine::boxed(policies::adaptive(), 25_600, 32);
    machine.cache.cost = VOLUME;
    for times in 1..=2 {
        machine.read(1, 0, 25_600);
        let begun = |line: &&&str| line.starts_with("initial@0 ");
        assert_eq!(machine.trace().iter().filter(begun).count(), times);
        machine.cache.evict(0, 25_600);
    }
}

#[test]
fn the_kernel_reads_as_much_of_a_long_request_at_once_as_its_window_holds() {
    let mut machine = Machine::boxed(policies::adaptive(), 25_600, 2_048);
    machine.cache.cost = VOLUME;
    machine.read(1, 0, 3_000);
    assert!(machine.trace()[0].starts_with("initial@0 2048+"), "{:?}", machine.trace());
}

/// As long as nothing may be read ahead, the kernel reads all of a request.
#[test]
fn a_stream_of_very_long_requests_goes_on_where_the_kernel_has_read() {
    let mut machine = Machine::boxed(policies::adaptive(), 25_600, 32);
    machine.cache.cost = VOLUME;
    machine.cache.room_pages = 0;
    machine.scan(1, 5_000, 11_000, 3_000);
    assert!(machine.trace().is_empty());
    assert_eq!(machine.policy.tally().passed_pages, 6_000);
    machine.cache.room_pages = u64::MAX;
    machine.read(1, 11_000, 3_000);
    assert!(machine.trace()[0].starts_with("context@11000 11610+"), "{:?}", machine.trace());
}

/// As where a program reads the header of a section, and then the rest of it.
#[test]
fn the_length_of_a_request_does_not_tell_that_another_one_follows() {
    let asked = |requests: &[u64]| {
        let mut machine = Machine::boxed(policies::adaptive(), 100_000, 32);
        machine.cache.cost = VOLUME;
        let mut at = 50_000;
        for pages in requests {
            machine.read(1, at, *pages);
            at += pages;
        }
        machine.policy.tally().asked_pages
    };
    let after_one = asked(&[1, 400]);
    assert!((1..250).contains(&after_one), "{after_one}");
    assert!(asked(&[1, 700]) < 90 + 300, "the rest of a longer one, and no more beyond it");
    assert!(asked(&[200, 200]) > 2 * after_one, "the second has told so");
}

/// It would come between the pieces in which the kernel reads the request.
#[test]
fn on_a_disk_nothing_beyond_a_long_request_is_read_ahead_before_its_reader_comes_near_its_end() {
    for (sees_ahead, at) in [(0, 4_008), (511, 3_977)] {
        let mut machine = Machine::boxed(policies::adaptive(), 100_000, 32);
        machine.sees_ahead = sees_ahead;
        machine.page_ns = WAITING_NS;
        machine.read(1, 0, 16);
        machine.read(1, 16, 4_000);
        let beyond = format!("initial@{at} 4016+");
        assert!(machine.trace()[1].starts_with(&beyond), "{:?}", machine.trace());
    }
}

#[test]
fn on_a_disk_the_next_window_is_read_when_a_read_that_has_touched_its_mark_is_over() {
    for pages in [64, 256] {
        let mut machine = Machine::boxed(policies::adaptive(), 100_000, 32);
        machine.sees_when_over = true;
        machine.page_ns = WAITING_NS;
        machine.scan(1, 0, 20_000, pages);
        assert!(machine.policy.tally().asked_pages > 18_000, "{:?}", machine.trace());
    }
}

/// A mark near the end of the request would be set too late: the program copies what is in memory within microseconds.
#[test]
fn on_a_disk_the_next_window_is_read_as_soon_as_it_is_due_if_the_request_is_ahead() {
    let mut machine = Machine::boxed(policies::adaptive(), 100_000, 32);
    machine.sees_ahead = 63;
    machine.page_ns = WAITING_NS;
    (0..20_000).step_by(64).for_each(|start| machine.read(1, start, 64));
    let places = machine.trace().into_iter().filter_map(|line| line.split(['@', ' ']).nth(1));
    let seen: Vec<u64> = places.map(|place| place.parse().expect("a page")).collect();
    assert!(seen.len() > 10, "{seen:?}");
    assert!(seen[2..].iter().all(|page| page % 64 == 0), "where a request begins: {seen:?}");
}

#[test]
fn on_a_disk_windows_are_as_large_as_what_readers_wait_for_them() {
    // Each reader waits for this share of an access between two windows of 32 pages. Gives the pages that were asked
    // for, and in how many windows.
    let asked = |waited: f64, other: bool| {
        let mut machine = Machine::boxed(policies::adaptive(), 100_000, 32);
        let pages_between = if other { 64 } else { 32 };
        machine.page_ns = (32 * TRANSFER_NS + (waited * 7e6) as u64) / pages_between;
        for start in (0..20_000).step_by(32) {
            machine.read(1, start, 32);
            if other {
                machine.read(2, 50_000 + start, 32);
            }
        }
        (machine.policy.tally().asked_pages, machine.trace().len())
    };
    assert!((1..200).contains(&asked(0.0, false).0), "the first window, and no other");
    let (pages, few) = asked(0.9, false);
    assert!(pages > 10_000, "somebody comes between who is not seen");
    let (pages, many) = asked(0.03, false);
    assert!(pages > 10_000 && 2 * many > 3 * few, "{many} windows, {few}");
    assert!(asked(0.4, true).0 > 10_000, "the head moves between the two");
}

/// Nor does it have to pass a whole window of the kernel before it is seen to wait.
#[test]
fn on_a_disk_a_run_inside_a_file_is_left_to_the_kernel_until_its_reader_waits() {
    let windows = |waits: bool| {
        let mut machine = Machine::boxed(policies::adaptive(), 100_000, 32);
        for page in 50_000..50_020 {
            if waits {
                machine.wait_a_tenth();
            }
            machine.read(1, page, 1);
        }
        machine.trace().len()
    };
    assert_eq!(windows(false), 0);
    assert!(windows(true) > 0);
}

/// As where a program has read the header of a file, and then reads a section behind it.
#[test]
fn a_mark_inside_a_request_belongs_to_the_stream_of_the_request() {
    let mut machine = Machine::boxed(policies::adaptive(), 100_000, 32);
    machine.sees_ahead = 511;
    machine.read(1, 0, 16);
    machine.read(1, 119, 1);
    machine.read(1, 120, 520);
    assert_eq!(machine.trace().len(), 1, "not the stream of the header: {:?}", machine.trace());
}

/// As in an archive of which only the headers are read.
#[test]
fn where_accesses_overlap_four_misses_in_a_row_in_irregular_steps_are_a_stream() {
    let asked_after = |cost, places: &[u64]| {
        let mut machine = Machine::boxed(policies::adaptive(), 1_000_000, 32);
        machine.cache.cost = cost;
        places.iter().for_each(|at| machine.read(1, *at, 2));
        let streams = machine.trace().into_iter().filter(|line| line.starts_with("sparse"));
        streams.map(ToString::to_string).collect::<Vec<_>>()
    };
    let forward = [500_000, 500_031, 500_049, 500_113];
    assert!(asked_after(VOLUME, &forward)[0].starts_with("sparse@500113 500115+"));
    let backward = [500_113, 500_049, 500_031, 500_000];
    assert!(asked_after(VOLUME, &backward)[0].starts_with("sparse@500000 499"));
    assert!(asked_after(VOLUME, &forward[..3]).is_empty(), "that may be chance");
    let wide = [500_000, 500_031, 500_649, 500_713];
    assert!(asked_after(VOLUME, &wide).is_empty(), "too wide a gap");
    let among = [500_070, 500_000, 500_031, 500_049, 500_113];
    assert!(asked_after(VOLUME, &among).is_empty(), "they are read at random");
    let narrow = [500_000, 500_031, 500_049, 500_096];
    assert!(!asked_after(VOLUME, &narrow).is_empty());
    assert!(asked_after(DeviceCost::DISK, &narrow).is_empty(), "a disk passes the gaps anyway");
    let mut machine = Machine::boxed(policies::adaptive(), 1_000_000, 32);
    machine.cache.cost = VOLUME;
    [500_000, 500_450, 500_960, 501_400].iter().for_each(|at| machine.read(1, *at, 400));
    assert!(machine.trace().iter().all(|line| !line.starts_with("sparse")), "no small reads");
    let mut machine = Machine::boxed(policies::adaptive(), 1_000_000, 32);
    machine.cache.cost = VOLUME;
    [(500_000, 512), (500_540, 2), (500_570, 2), (500_620, 2)]
        .iter()
        .for_each(|(at, pages)| machine.read(1, *at, *pages));
    assert!(machine.trace().iter().all(|line| !line.starts_with("sparse")), "one is large");
}

#[test]
fn who_reads_in_vain_costs_another_group_nothing() {
    let asked_after_losses = |group| {
        let mut machine = Machine::boxed(policies::adaptive(), 10_000_000, 32);
        machine.page_ns = 1;
        // Misses in many places, close enough together that the rest is read; nobody uses it.
        for place in 0..400_u64 {
            for page in [0, 37, 11, 52, 23] {
                machine.read(1, (place * place * 37 + page) % 8_900_000, 1);
            }
        }
        let account = machine.policy.account(VolumeId(1)).expect("something was read");
        assert!(account.balance().credit_s < 0.75, "{account:?}");
        machine.cache.group = GroupId(group);
        machine.page_ns = WAITING_NS;
        let before = machine.policy.tally().asked_pages;
        machine.scan(2, 9_000_001, 9_002_000, 16);
        machine.policy.tally().asked_pages - before
    };
    assert_eq!(asked_after_losses(0), 0, "the losses are its own");
    assert!(asked_after_losses(5) > 1_000);
}

#[test]
fn who_reads_on_very_many_volumes_makes_bowwave_forget_nothing_of_another_group() {
    let mut machine = Machine::boxed(policies::adaptive(), 100_000, 32);
    machine.cache.cost = VOLUME;
    machine.scan(1, 0, 50_000, 16);
    let known = |machine: &Machine| {
        let account = machine.policy.account(VolumeId(1)).expect("something was read");
        let history = machine.policy.history(VolumeId(1)).expect("something was read");
        (account.balance().earned_s, *history)
    };
    let before = known(&machine);
    assert!(before.0 > 0.0, "{before:?}");
    machine.cache.group = GroupId(5);
    for volume in 2..2_000 {
        machine.volume = VolumeId(volume as u32);
        machine.read(volume, 60_000 + 20 * volume, 1);
    }
    assert_eq!(known(&machine), before);
}

#[test]
fn what_was_saved_for_readers_counts_after_others_took_the_place_of_their_account() {
    let mut machine = Machine::boxed(policies::adaptive(), 100_000, 32);
    machine.cache.cost = VOLUME;
    let mut earned_s = 0.0;
    for group in 0..1_000 {
        machine.cache.evict(0, 100_000);
        machine.cache.group = GroupId(group);
        machine.scan(1, 0, 2_000, 16);
        let open = machine.policy.account(VolumeId(1)).expect("something was read");
        let all = open.beside(machine.policy.settled()).balance();
        assert!(all.earned_s >= earned_s, "{group}: {all:?} after {earned_s}");
        earned_s = all.earned_s;
    }
    assert!(machine.policy.settled().balance().earned_s > earned_s / 2.0);
}

#[test]
fn a_file_that_is_cut_while_a_region_of_it_is_filled_is_judged_afresh() {
    let mut machine = Machine::boxed(policies::adaptive(), 4_096, 32);
    (0..200).for_each(|number| machine.read(1, number * 2_654_435 % 4_096, 1));
    machine.file_pages = 100;
    machine.cache.evict(0, 4_096);
    (0..100).for_each(|number| machine.read(1, number * 2_654_435 % 100, 1));
}

#[test]
fn misses_some_pages_apart_save_less_than_neighbours_do() {
    let asked = |second| {
        let mut machine = mapped();
        machine.read(1, 50_000, 1);
        machine.read(1, second, 1);
        machine.policy.tally().asked_pages
    };
    assert!(asked(49_999) > 0);
    assert_eq!(asked(49_996), 0, "one page in four is used");
}

#[test]
fn gaps_are_not_read_where_they_take_longer_than_the_accesses_that_this_saves() {
    let asked = |gap: u64| {
        let mut machine = Machine::boxed(policies::adaptive(), 100_000, 32);
        machine.cache.cost = CARD;
        (0..100).for_each(|number| machine.read(1, 50_000 + number * (4 + gap), 4));
        machine.policy.tally().asked_pages
    };
    assert!(asked(1) > 0);
    assert_eq!(asked(4), 0);
}

/// An access to a near place takes less than the device's mean.
#[test]
fn what_a_miss_costs_is_what_its_reader_has_waited() {
    let asked = |nearness, place: fn(u64) -> u64| {
        let mut machine = Machine::boxed(policies::adaptive(), 100_000, 32);
        machine.nearness = nearness;
        (0..60).for_each(|number| machine.read(1, place(number), 1));
        let trace = machine.trace();
        let is_one = |line: &&&str| line.starts_with("dense@") || line.starts_with("stride@");
        trace.iter().filter(is_one).count()
    };
    let at_random = |number| 20_000 + number * number * 331 % 8_192;
    let in_steps = |number| 90_000 - 100 * number;
    for place in [at_random, in_steps] {
        assert!(asked(1.0, place) > 0);
        assert_eq!(asked(0.1, place), 0, "it is not worth its transfer");
    }
}

#[test]
fn pages_that_are_absent_when_their_reader_comes_have_saved_nothing() {
    for past in [Past::Unknown, Past::Evicted] {
        let mut machine = Machine::boxed(policies::adaptive(), 100_000, 32);
        machine.cache.cost = VOLUME;
        let mut page = 90_000;
        let mut read_on = |machine: &mut Machine| {
            page -= 1;
            machine.read(1, page, 1);
        };
        (0..40).for_each(|_| read_on(&mut machine));
        // At a mark, the policy sees how far the reader has come.
        let requests = machine.trace().len();
        while machine.trace().len() == requests {
            read_on(&mut machine);
        }
        machine.wait_a_tenth();
        machine.cache.evict(0, 100_000);
        machine.cache.past = past;
        let before = machine.policy.tally();
        read_on(&mut machine);
        let after = machine.policy.tally();
        assert_eq!(after.stalls_saved, before.stalls_saved);
        assert_eq!(after.used_pages, before.used_pages);
        assert!(after.wasted_pages > before.wasted_pages);
    }
}

#[test]
fn nothing_is_requested_that_the_account_does_not_pay_for() {
    let requests = |latency_s, place: fn(u64) -> u64| {
        let mut machine = Machine::boxed(policies::adaptive(), 100_000, 32);
        machine.cache.cost = DeviceCost { latency_s, ..DeviceCost::DISK };
        (0..60).for_each(|number| machine.read(1, place(number), 1));
        machine.trace().len()
    };
    let backward = |number| 90_000 - number;
    let in_steps = |number| 90_000 - 100 * number;
    let at_random = |number| 20_000 + number * number * 331 % 8_192;
    for place in [backward, in_steps, at_random] {
        assert!(requests(0.05, place) > 0);
        assert_eq!(requests(0.6, place), 0, "an access costs more than half of the credit");
    }
}

#[test]
fn who_touches_the_pieces_of_a_strided_stream_elsewhere_does_not_drive_it_on() {
    let used_pages = |offset: u64| {
        let mut machine = Machine::boxed(policies::adaptive(), 100_000, 32);
        (0..64).for_each(|piece| machine.read(1, 90_000 - 64 * piece, 16));
        let before = machine.policy.tally().used_pages;
        (64..80).for_each(|piece| machine.read(2, 90_000 - 64 * piece + offset, 12));
        let is_of_pieces = |line: &&str| line.starts_with("stride@");
        assert!(machine.trace().iter().all(is_of_pieces), "{:?}", machine.trace());
        machine.policy.tally().used_pages - before
    };
    assert!(used_pages(0) > 100);
    assert!(used_pages(3) < 32);
}

#[test]
fn a_page_behind_the_origin_of_a_backward_stream_is_none_of_its_pieces() {
    let mut machine = Machine::boxed(policies::adaptive(), 100_000, 32);
    (0..16).for_each(|piece| machine.read(1, 50_000 - 64 * piece, 16));
    let before = machine.policy.tally().used_pages;
    (1..20).for_each(|number| machine.read(2, 50_000 + 317 * number, 4));
    assert_eq!(machine.policy.tally().used_pages, before);
}

#[test]
fn faults_through_a_mapping_of_narrow_windows_are_read_ahead() {
    let asked = |step: i64| {
        let mut machine = Machine::boxed(policies::adaptive(), 100_000, 1);
        for number in 0..64 {
            let page = 50_000_u64.wrapping_add_signed(step * number);
            machine.fault(1, page, Hint::Normal);
        }
        machine.policy.tally().asked_pages
    };
    assert!(asked(1) > 0 && asked(-1) > 0);
}

#[test]
fn the_marks_of_a_strided_stream_begin_no_other_between_its_pieces() {
    let mut machine = Machine::boxed(policies::adaptive(), 100_000, 32);
    machine.cache.cost = VOLUME;
    (0..64).for_each(|piece| machine.read(1, 50_000 - 64 * piece, 16));
    let trace = machine.trace();
    assert!(trace.len() > 8 && trace.iter().all(|line| line.starts_with("stride@")), "{trace:?}");
}

/// The pages at which the policy's requests end while `[start, start + 4000)` is read, with or without another reader
/// of the file.
fn ends(start: u64, with_another: bool) -> Vec<u64> {
    let mut machine = Machine::boxed(policies::adaptive(), 100_000, 32);
    machine.cache.cost = VOLUME;
    for turn in 0..250 {
        machine.read(1, start + 16 * turn, 16);
        if with_another {
            machine.read(1, 70_000 + 16 * turn, 16);
        }
    }
    let range = |line: &str| {
        let (_, asked) = line.split_once(' ')?;
        let (first, pages) = asked.split_once('+')?;
        let (pages, _) = pages.split_once('-')?;
        Some(first.parse::<u64>().ok()? + pages.parse::<u64>().ok()?)
    };
    machine.trace_of(start..start + 4_000).into_iter().filter_map(range).collect()
}

#[test]
fn windows_end_at_round_pages_where_a_file_is_read_in_parts() {
    let are_round = |ends: &[u64]| ends.len() > 2 && ends.iter().all(|end| end % 64 == 0);
    let (alone, beside) = (ends(30_001, false), ends(30_001, true));
    assert!(!are_round(&alone), "{alone:?}");
    assert!(are_round(&beside[1..]), "{beside:?}");
}

/// A page for each number: far apart, at irregular distances.
fn anywhere(number: u64) -> u64 {
    1_000 + (31 * number * number * number + 7 * number) % 997 * 1_000
}

/// Pages requested at the first miss of a run, after `runs` runs of 64 pages that were read four pages at a time.
fn asked_at_first_miss(runs: u64, is_forward: bool) -> u64 {
    let mut machine = Machine::boxed(policies::adaptive(), 1_000_000, 32);
    machine.cache.cost = VOLUME;
    for run in 0..runs {
        for request in 0..16 {
            let part = if is_forward { request } else { 15 - request };
            machine.read(1, anywhere(run) + 4 * part, 4);
        }
        machine.wait_a_second();
    }
    let before = machine.policy.tally().asked_pages;
    machine.read(1, anywhere(runs) + if is_forward { 0 } else { 60 }, 4);
    machine.policy.tally().asked_pages - before
}

#[test]
fn a_miss_is_taken_for_the_start_of_a_run_where_most_misses_were() {
    for is_forward in [true, false] {
        assert_eq!(asked_at_first_miss(0, is_forward), 0, "nothing is known");
        assert!(asked_at_first_miss(12, is_forward) > 0);
    }
}

#[test]
fn a_miss_is_not_taken_for_the_start_of_a_run_where_most_were_not() {
    let mut machine = Machine::boxed(policies::adaptive(), 1_000_000, 32);
    machine.cache.cost = VOLUME;
    (0..20).for_each(|number| machine.read(1, anywhere(number), 4));
    assert_eq!(machine.policy.tally().asked_pages, 0);
}

#[test]
fn runs_of_faults_make_no_miss_of_a_read_the_start_of_one() {
    let mut machine = Machine::boxed(policies::adaptive(), 1_000_000, 32);
    machine.cache.cost = VOLUME;
    for run in 0..40 {
        (0..64).for_each(|page| machine.fault(2, anywhere(run) + page, Hint::Normal));
    }
    let before = machine.policy.tally().asked_pages;
    machine.read(1, anywhere(40), 4);
    assert_eq!(machine.policy.tally().asked_pages, before);
}

/// Where each file is read by one reader, nobody else comes who would show it.
#[test]
fn a_run_whose_reader_has_stopped_counts_for_its_volume() {
    let mut machine = Machine::boxed(policies::adaptive(), 1_000_000, 32);
    machine.cache.cost = VOLUME;
    machine.scan(1, 7_000, 7_256, 4);
    let history = |machine: &Machine| *machine.policy.history(machine.volume).expect("it is read");
    let before = history(&machine);
    machine.policy.forget_idle(100_000, u64::MAX);
    assert_eq!(history(&machine), before, "it may go on");
    machine.policy.forget_idle(60_000_000_000, u64::MAX);
    assert_ne!(history(&machine), before);
}

#[test]
fn slices_of_a_region_are_bought_by_reads_that_begin_before_its_marks_as_by_others() {
    let dense_pages = |sees_when_over| {
        let mut machine = Machine::boxed(policies::adaptive(), 16_384, 32);
        machine.cache.cost = DeviceCost::DISK;
        machine.sees_when_over = sees_when_over;
        (0..300).for_each(|number| machine.read(1, number * number * 331 % 16_284, 100));
        machine.policy.tally().dense_pages
    };
    let exact = dense_pages(false);
    assert!(exact > 1_000, "{exact}");
    assert_eq!(dense_pages(true), exact);
}

#[test]
fn a_region_is_not_filled_by_single_pages() {
    let dense_pages = |room_pages| {
        let mut machine = Machine::boxed(policies::adaptive(), 4_096, 32);
        machine.cache.room_pages = room_pages;
        (0..200).for_each(|number| machine.read(1, number * 2_654_435 % 4_096, 1));
        machine.policy.tally().dense_pages
    };
    assert_eq!(dense_pages(2), 0);
    assert!(dense_pages(100) > 0);
}

#[test]
fn on_a_disk_a_mapping_is_filled_once_its_faults_have_cost_as_much() {
    let dense_pages = |faults: u64| {
        let mut machine = Machine::boxed(policies::adaptive(), 25_600, 32);
        (0..faults)
            .for_each(|number| machine.fault(1, number * number * 331 % 25_600, Hint::Normal));
        machine.policy.tally().dense_pages
    };
    // An access takes 7 ms; the file, one second.
    assert_eq!(dense_pages(100), 0);
    assert!(dense_pages(250) > 10_000);
}

/// A machine whose file is on a memory card; the kernel's window has 32 pages.
fn mapped() -> Machine {
    let mut machine = Machine::boxed(policies::adaptive(), 100_000, 32);
    machine.cache.cost = CARD;
    machine
}

#[test]
fn a_window_around_faults_is_narrowed_when_two_were_unproductive() {
    let mut machine = mapped();
    machine.fault(1, 50_000, Hint::Normal);
    assert!(machine.trace().is_empty());
    machine.fault(1, 10_000, Hint::Normal);
    assert_eq!(machine.trace(), ["kernel-window@10000 1"]);
}

#[test]
fn a_narrow_window_is_wide_again_when_faults_come_near_one_another() {
    let mut machine = mapped();
    machine.fault(1, 50_000, Hint::Normal);
    machine.fault(1, 10_000, Hint::Normal);
    machine.kernel_window = 1;
    for page in [70_000, 70_012, 70_006, 70_018, 69_994] {
        assert_eq!(machine.trace_of(70_000..70_100).len(), 0, "not before {page}");
        machine.fault(1, page, Hint::Normal);
    }
    assert_eq!(machine.trace_of(69_994..69_995), ["kernel-window@69994 32"]);
    machine.kernel_window = 32;
    for page in [1_000, 2_000, 3_000, 4_000] {
        machine.fault(1, page, Hint::Normal);
    }
    let again = machine.trace_of(0..9_000);
    assert_eq!(again, ["kernel-window@4000 1"], "twice as patient after an error");
}

#[test]
fn a_read_through_the_mapped_descriptor_has_its_window_back() {
    let mut machine = mapped();
    machine.fault(1, 50_000, Hint::Normal);
    machine.fault(1, 10_000, Hint::Normal);
    machine.kernel_window = 1;
    machine.read(1, 80_000, 4);
    assert_eq!(machine.trace_of(80_000..80_001), ["kernel-window@80000 32"]);
}

#[test]
fn a_narrow_window_is_wide_again_though_another_open_file_streams_through_a_wide_one() {
    let mut machine = mapped();
    machine.fault(1, 50_000, Hint::Normal);
    machine.fault(1, 10_000, Hint::Normal);
    (80_000..81_000).for_each(|page| machine.fault(2, page, Hint::Normal));
    let of_the_other = machine.trace_of(80_000..81_000);
    assert!(!of_the_other.iter().any(|line| line.starts_with("kernel-window")));
    machine.kernel_window = 1;
    for page in [70_000, 70_012, 70_006, 70_018, 69_994] {
        machine.fault(1, page, Hint::Normal);
    }
    assert_eq!(machine.trace_of(69_994..70_100), ["kernel-window@69994 32"]);
}

#[test]
fn a_window_that_could_not_be_narrowed_is_judged_as_the_wide_one_it_is() {
    let mut machine = mapped();
    for page in [50_000, 10_000, 90_000, 30_000] {
        machine.fault(1, page, Hint::Normal);
    }
    machine.read(1, 77_777, 4);
    assert_eq!(machine.trace(), ["kernel-window@10000 1", "kernel-window@30000 1"]);
}

#[test]
fn where_visits_are_dear_the_kernel_goes_on_reading_around() {
    let mut machine = mapped();
    machine.cache.cost = VOLUME;
    for number in 0..200 {
        machine.fault(1, number * 7919 % 100_000, Hint::Normal);
    }
    assert!(!machine.trace().iter().any(|line| line.starts_with("kernel-window")));
}

/// The streams of earlier times took the accesses to their places, so the new one seemed to have ended there, and later
/// windows were cut.
#[test]
fn a_file_that_is_read_backward_again_is_read_ahead_as_before() {
    let mut machine = Machine::boxed(policies::adaptive(), 16_384, 32);
    machine.cache.cost = VOLUME;
    machine.page_ns = 2_000;
    let asked = |open_file: u64| {
        let before = machine.policy.tally().asked_pages;
        (0..1_024).rev().for_each(|request| machine.read(open_file, 16 * request, 16));
        machine.cache.evict(0, 16_384);
        machine.wait_a_second();
        machine.policy.tally().asked_pages - before
    };
    let asked: Vec<u64> = (1..10).map(asked).collect();
    assert!(asked.iter().all(|asked| *asked > 16_000), "{asked:?}");
}
