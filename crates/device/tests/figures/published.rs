//! The disks of published benchmarks. Each figure is derived from elapsed times, which the device
//! files name.

use super::*;

const MIB: u64 = 1 << 20;
const KIB: u64 = 1 << 10;

fn device(name: &str) -> Box<dyn Model> {
    device::load(name).expect("in the catalogue").build(64 << 30)
}

/// Milliseconds per request, with `depth` in flight.
fn ms(name: &str, requests: &[(u64, u64)], depth: usize) -> f64 {
    timed(&mut *device(name), requests, depth) * 1e3 / requests.len() as f64
}

/// Several streams at a distance of `apart`, one request of each in turn.
fn in_turn(streams: u64, apart: u64, count: u64, bytes: u64) -> Vec<(u64, u64)> {
    (0..count).map(|i| (i % streams * apart + i / streams * bytes, bytes)).collect()
}

fn random_in(span: u64, count: u64, bytes: u64) -> Vec<(u64, u64)> {
    random(count, bytes).into_iter().map(|(offset, bytes)| (offset % span, bytes)).collect()
}

fn transfer_ms(bytes: u64, mb_s: f64) -> f64 {
    bytes as f64 / mb_s * 1e-3
}

#[test]
fn ide_2003_positions_in_7_ms_between_ten_streams() {
    let access =
        |bytes| ms("ide-2003", &in_turn(10, 100 * MIB, 6000, bytes), 1) - transfer_ms(bytes, 41.5);
    // 495 s for 64 000 windows of 16 KiB; 133.5 s for 8 000 of 128 KiB, two requests each.
    assert_within(access(16 * KIB), 7.3, 0.05);
    assert_within(access(64 * KIB), 6.8, 0.05);
}

#[test]
fn ide_2003_streams_at_41_mb_s_in_windows_of_16_kib_too() {
    for bytes in [16 * KIB, 128 * KIB, MIB] {
        let expected = transfer_ms(bytes, 41.5);
        assert_within(ms("ide-2003", &sequential(2000, bytes), 1), expected, 0.02);
    }
}

#[test]
fn ide_2003_sends_what_it_holds_at_bus_speed() {
    let mut disk = device("ide-2003");
    let first = timed(&mut *disk, &[(0, 64 * KIB)], 1);
    // Looking ahead by 128 KiB takes 3.2 ms.
    let later = (first * 1e9) as u64 + 10_000_000;
    disk.submit(later, Request { id: 1, offset: 64 * KIB, bytes: 64 * KIB });
    let at = disk.next_event().expect("a request is in flight");
    assert_within((at - later) as f64 * 1e-6, 0.1 + transfer_ms(64 * KIB, 90.0), 0.001);
}

#[test]
fn st3250820a_misses_in_5_7_ms_within_100_mib() {
    assert_within(ms("st3250820a", &random_in(100 * MIB, 8000, 4 * KIB), 1), 5.7, 0.03);
}

#[test]
fn st3250820a_reads_backwards_without_losing_a_revolution_each_time() {
    for end in [100 * MIB, 777 * MIB, 1500 * MIB] {
        let backward = |bytes| -> Vec<_> {
            (1..=95 * MIB / bytes).map(|i| (end - i * bytes, bytes)).collect()
        };
        // The program takes 56 us for each read.
        assert_within(ms("st3250820a", &backward(4 * KIB), 1), 0.464 - 0.056, 0.08);
        assert_within(ms("st3250820a", &backward(64 * KIB), 1), 1.25 - 0.056, 0.08);
    }
}

#[test]
fn st3250820a_finds_what_passed_before_a_chunk_when_it_reads_the_one_before() {
    // Each chunk as two requests, the first half first. A chunk alone takes 13.4 ms of media time
    // and 6.5 ms until its first byte arrives at the head.
    let halves = |end: u64, i: u64| [0, 512 * KIB].map(|half| (end - i * MIB + half, 512 * KIB));
    for end in [100 * MIB, 777 * MIB, 1500 * MIB] {
        let chunks: Vec<_> = (1..=95).flat_map(|i| halves(end, i)).collect();
        assert_within(2.0 * ms("st3250820a", &chunks, 1), 16.8, 0.02);
    }
}

#[test]
fn st3250820a_streams_at_78_mb_s_outside_and_40_inside() {
    let stream =
        |start: u64| -> Vec<_> { (0..2000).map(|i| (start + i * 128 * KIB, 128 * KIB)).collect() };
    let mut disk = device::load("st3250820a").expect("in the catalogue").build(250_000_000_000);
    let outer = timed(&mut *disk, &stream(0), 1) * 1e3 / 2000.0;
    assert_within(outer, transfer_ms(128 * KIB, 78.1), 0.02);
    let mut disk = device::load("st3250820a").expect("in the catalogue").build(250_000_000_000);
    let inner = timed(&mut *disk, &stream(249_700_000_000), 1) * 1e3 / 2000.0;
    assert_within(inner, transfer_ms(128 * KIB, 40.0), 0.02);
}

#[test]
fn st3250820a_changes_between_two_streams_in_3_3_ms_or_finds_what_passed_meanwhile() {
    let change = |apart| {
        let window = ms("st3250820a", &in_turn(2, apart, 1000, 128 * KIB), 1);
        window - transfer_ms(128 * KIB, 78.1)
    };
    // Seeking there and back takes one revolution if the angle between the files allows it.
    // Otherwise it takes two. During those, so much of the following data passes the head that
    // every other window is in the buffer.
    assert_within(change(300 * MIB), 3.3, 0.03);
    assert_within(change(330 * MIB), 2.04, 0.03);
}

#[test]
fn raid5_pe1750_streams_a_mib_in_21_ms_pipelined() {
    assert_within(8.0 * ms("raid5-pe1750", &sequential(6400, 128 * KIB), 16), 21.43, 0.05);
}

#[test]
fn raid5_pe1750_takes_5_ms_longer_for_a_lone_window() {
    // Published: 29.28 ms between the windows, of which 2.4 ms on the CPU.
    const CPU_NS: u64 = 2_400_000;
    let (mut array, mut now, mut done) = (device("raid5-pe1750"), 0, Vec::new());
    for id in 0..800 {
        for part in 8 * id..8 * (id + 1) {
            array.submit(now, Request { id: part, offset: part * 128 * KIB, bytes: 128 * KIB });
        }
        while (done.len() as u64) < 8 * (id + 1) {
            now = array.next_event().expect("a window is in flight");
            array.advance(now, &mut done);
        }
        now += CPU_NS;
    }
    assert_within(now as f64 * 1e-6 / 800.0, 29.28, 0.05);
}

#[test]
fn raid5_pe1750_serves_a_small_file_in_1_6_ms_when_several_wait() {
    assert_within(ms("raid5-pe1750", &random(4000, 16 * KIB), 8), 1.6, 0.1);
}

#[test]
fn pc_2005_loses_0_8_ms_a_window_and_5_5_ms_a_change() {
    assert_within(ms("pc-2005", &sequential(2000, 128 * KIB), 1), 4.52, 0.02);
    assert_within(ms("pc-2005", &sequential(200, 2 * MIB), 1), 60.8, 0.02);
    let change = ms("pc-2005", &in_turn(2, 300 * MIB, 4000, 128 * KIB), 1);
    assert_within(change - transfer_ms(128 * KIB, 34.9), 5.5, 0.03);
}
