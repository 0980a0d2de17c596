//! More loads of the same seven kinds, on other devices, of other sizes and with other seeds. No rule was chosen by them.

mod support;

use advice::Remedy;
use patterns::order::{forward, random};
use support::*;

fn is_larger_window(remedy: &Remedy) -> bool {
    matches!(remedy, Remedy::Window { kib } if *kib > 128)
}

fn has_larger_requests(remedy: &Remedy) -> bool {
    is_larger_window(remedy) || *remedy == Remedy::Bowwave
}

#[test]
fn forward_on_far_volumes() {
    for (mb, request, latency, bandwidth) in
        [(80, 16, 4.0, 0.5), (23, 128, 0.5, 1.0), (61, 8, 1.5, 2.0)]
    {
        let load = reader(false, mb * M, &forward(0, mb * M, request * K));
        let mut place = Place { seed: 11, ..Place::with("net") };
        place.device = place.device.with_latency(latency).with_bandwidth(bandwidth);
        check(&format!("{mb} MB, {latency}"), &load, &place, has_larger_requests);
    }
}

#[test]
fn mapped_at_random_on_other_devices() {
    let is_smaller = |remedy: &Remedy| matches!(remedy, Remedy::Window { kib } if *kib < 1024);
    for (device, reads, mb, today) in [
        ("st3250820a", 200, 1500, 4096),
        ("intel-x25m-80g", 700, 3000, 8192),
        ("raid5-pe1750", 250, 900, 4096),
    ] {
        let load = reader(true, mb * M, &random(reads, 4 * K, mb * M));
        let place = Place { readahead_kb: today, memory: 8 << 30, seed: 12, ..Place::with(device) };
        check(&format!("{device} {reads}"), &load, &place, is_smaller);
    }
}

#[test]
fn streams_on_other_disks() {
    for (device, count, mb, request) in
        [("disk-2007", 12, 12, 16), ("hdd", 16, 9, 128), ("ide-2003", 5, 25, 64)]
    {
        let load = streams(count, mb * M, request * K);
        let place = Place { seed: 13, ..Place::with(device) };
        check(&format!("{device} {count}"), &load, &place, has_larger_requests);
    }
}

#[test]
fn backups_beside_other_working_sets() {
    let drops = |remedy: &Remedy| matches!(remedy, Remedy::DropBehind { processes } if *processes == ["backup"]);
    for (device, memory, working_set, backup, seed) in
        [("st3250820a", 80, 50, 300, 14), ("hdd", 200, 140, 600, 15)]
    {
        let load = backup_beside_working_set(working_set * M, backup * M, seed);
        let place = Place { memory: memory * M, seed, ..Place::with(device) };
        check(&format!("{device} {memory} MB"), &load, &place, drops);
    }
}

#[test]
fn other_trees() {
    let is_bowwave = |remedy: &Remedy| *remedy == Remedy::Bowwave;
    for (device, directories, files, kib) in
        [("st3250820a", 30, 60, 8), ("net", 60, 20, 30), ("hdd", 20, 150, 4)]
    {
        let place = Place { seed: 16, ..Place::with(device) };
        check(&format!("{device} {files}"), &walk(directories, files, kib * K), &place, is_bowwave);
        let load = sorted_walk(directories, files, kib * K, 17);
        check(&format!("{device} {files} by name"), &load, &place, is_bowwave);
    }
}

#[test]
fn starts_on_other_devices() {
    let remembers = |remedy: &Remedy| *remedy == Remedy::Remember;
    for (device, count, latency, seed) in
        [("st3250820a", 200, 1.0, 19), ("net", 700, 0.3, 20), ("disk-2007", 450, 1.0, 21)]
    {
        let mut place = Place { seed, ..Place::with(device) };
        place.device = place.device.with_latency(latency);
        check(&format!("{device} {count}"), &imports(count, seed), &place, remembers);
    }
}

#[test]
fn fast_drives() {
    let mut place = Place { seed: 18, ..Place::with("ssd") };
    place.device = place.device.with_latency(0.5).with_bandwidth(4.0);
    let loads = [
        reader(false, 61 * M, &forward(0, 61 * M, 128 * K)),
        reader(false, 900 * M, &random(3000, 8 * K, 900 * M)),
    ];
    for load in &loads {
        let (advice, _) = advice_for(load, &place);
        assert_eq!(advice.first().remedy, Remedy::Leave, "{}", shown(&advice));
    }
}

#[test]
fn streams_on_a_fast_drive_gain_the_little_that_is_promised() {
    let mut place = Place { seed: 18, ..Place::with("ssd") };
    place.device = place.device.with_latency(0.5).with_bandwidth(4.0);
    check("fast streams", &streams(6, 17 * M, 128 * K), &place, is_larger_window);
}
