//! Seven situations whose remedy is known, and others of their kind. Each load runs on a machine that differs from what
//! is known of it, today's setting first. The advice is made from the trace of that run. Then the load runs with the
//! remedy.

mod support;

use advice::Remedy;
use patterns::order::{forward, random};
use support::*;

#[test]
fn a_small_window_on_a_network_volume_is_to_be_enlarged() {
    let is_larger = |remedy: &Remedy| matches!(remedy, Remedy::Window { kib } if *kib > 128);
    for (mb, request, times) in [(100, 64, 1.0), (37, 4, 1.0), (64, 128, 0.2), (50, 32, 2.0)] {
        let load = reader(false, mb * M, &forward(0, mb * M, request * K));
        let mut place = Place::with("net");
        place.device = place.device.with_latency(times);
        check(&format!("{mb} MB, {request} KiB, {times}"), &load, &place, is_larger);
    }
}

#[test]
fn a_large_window_where_mapped_files_are_read_at_random_is_to_be_reduced() {
    let is_smaller = |remedy: &Remedy| matches!(remedy, Remedy::Window { kib } if *kib < 1024);
    for (device, reads, mb) in
        [("hdd", 300, 700), ("hdd", 500, 2048), ("ssd", 1000, 4096), ("sd", 100, 1000)]
    {
        let load = reader(true, mb * M, &random(reads, 4 * K, mb * M));
        let place = Place { readahead_kb: 4096, memory: 8 << 30, ..Place::with(device) };
        check(&format!("{device} {reads}"), &load, &place, is_smaller);
    }
}

#[test]
fn ten_streams_on_a_disk_need_larger_requests() {
    // Bowwave's are larger, too.
    let is_larger = |remedy: &Remedy| match remedy {
        Remedy::Window { kib } => *kib > 128,
        other => *other == Remedy::Bowwave,
    };
    for (device, count, mb, request) in
        [("hdd", 10, 20, 128), ("hdd", 7, 33, 64), ("st3250820a", 10, 20, 32)]
    {
        let load = streams(count, mb * M, request * K);
        check(&format!("{device} {count}"), &load, &Place::with(device), is_larger);
    }
}

#[test]
fn a_backup_beside_a_working_set_is_to_drop_its_pages() {
    let drops = |remedy: &Remedy| matches!(remedy, Remedy::DropBehind { processes } if *processes == ["backup"]);
    for (memory, working_set, backup, seed) in
        [(64, 40, 240, 1), (128, 80, 500, 2), (96, 60, 320, 3)]
    {
        let load = backup_beside_working_set(working_set * M, backup * M, seed);
        let place = Place { memory: memory * M, seed, ..Place::with("hdd") };
        check(&format!("{memory} MB"), &load, &place, drops);
    }
}

#[test]
fn the_files_of_a_tree_are_to_be_read_ahead() {
    let is_bowwave = |remedy: &Remedy| *remedy == Remedy::Bowwave;
    for (device, directories, files, kib) in
        [("hdd", 50, 50, 12), ("net", 50, 50, 12), ("net", 8, 300, 5), ("hdd", 100, 17, 20)]
    {
        let load = walk(directories, files, kib * K);
        check(&format!("{device} {directories}"), &load, &Place::with(device), is_bowwave);
    }
    let load = sorted_walk(40, 40, 10 * K, 5);
    check("hdd by name", &load, &Place::with("hdd"), is_bowwave);
}

#[test]
fn the_start_of_a_program_is_to_be_remembered() {
    let remembers = |remedy: &Remedy| *remedy == Remedy::Remember;
    for (device, count, seed) in [("net", 300, 1), ("hdd", 300, 2), ("net", 120, 3)] {
        let place = Place { seed, ..Place::with(device) };
        check(&format!("{device} {count}"), &imports(count, seed), &place, remembers);
    }
}

#[test]
fn one_large_file_is_no_start() {
    let load = reader(false, 60 * M, &forward(0, 60 * M, 64 * K));
    let (advice, _) = advice_for(&load, &Place::with("net"));
    let is_tried = advice.predictions.iter().any(|it| it.remedy == Remedy::Remember);
    assert!(!is_tried, "{}", shown(&advice));
}

#[test]
fn on_a_fast_drive_nothing_helps() {
    for mut place in [Place::with("ssd"), Place { seed: 7, ..Place::with("ssd") }] {
        let loads = [
            reader(false, 100 * M, &forward(0, 100 * M, 64 * K)),
            reader(false, 2048 * M, &random(400, 4 * K, 2048 * M)),
            reader(false, 700 * M, &random(2000, 16 * K, 700 * M)),
            streams(4, 30 * M, 64 * K),
        ];
        for (number, load) in loads.iter().enumerate() {
            let (advice, _) = advice_for(load, &place);
            assert_eq!(advice.first().remedy, Remedy::Leave, "{number}: {}", shown(&advice));
            assert_eq!(advice.first().saved, advice::Range::default());
        }
        place.device = place.device.with_latency(0.25);
    }
}
