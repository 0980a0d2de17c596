//! Compares the disk and the volume in virtual time with figures from a real-time prototype with
//! the same parameters (see docs/lab.md), and published machines with their published figures.

mod flash;
mod published;

use device::{Completion, Model, Request};

/// Reads `requests` with `depth` in flight. Returns the seconds until the last one completes.
fn timed(model: &mut dyn Model, requests: &[(u64, u64)], depth: usize) -> f64 {
    let (mut next, mut now, mut done) = (0, 0, Vec::<Completion>::new());
    let mut completed = 0;
    while completed < requests.len() {
        while next < requests.len() && next - completed < depth {
            let (offset, bytes) = requests[next];
            model.submit(now, Request { id: next as u64, offset, bytes });
            next += 1;
        }
        now = model.next_event().expect("a request is in flight");
        done.clear();
        model.advance(now, &mut done);
        completed += done.len();
    }
    now as f64 * 1e-9
}

fn hdd() -> Box<dyn Model> {
    device::load("hdd").expect("in the catalogue").build(4 << 30)
}

fn net() -> Box<dyn Model> {
    device::load("net").expect("in the catalogue").build(4 << 30)
}

fn sequential(count: u64, bytes: u64) -> Vec<(u64, u64)> {
    (0..count).map(|i| (i * bytes, bytes)).collect()
}

fn backward(count: u64, bytes: u64) -> Vec<(u64, u64)> {
    (1..=count).map(|i| ((100 << 20) - i * bytes, bytes)).collect()
}

fn random(count: u64, bytes: u64) -> Vec<(u64, u64)> {
    let mut state = 1u64;
    let mut next = move || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        state >> 33
    };
    (0..count).map(|_| (next() % ((4 << 30) / bytes) * bytes, bytes)).collect()
}

#[track_caller]
fn assert_within(measured: f64, expected: f64, share: f64) {
    assert!((measured / expected - 1.0).abs() <= share, "{measured} instead of {expected}");
}

#[test]
fn a_disk_streams_at_media_rate_whatever_the_request_size() {
    assert_within(timed(&mut *hdd(), &sequential(800, 128 << 10), 1), 1.05, 0.02);
    assert_within(timed(&mut *hdd(), &sequential(100, 1 << 20), 2), 1.05, 0.02);
}

#[test]
fn reading_a_disk_backwards_costs_nearly_a_turn_each_time() {
    assert_within(timed(&mut *hdd(), &backward(320, 64 << 10), 1), 2.455, 0.05);
    assert_within(timed(&mut *hdd(), &backward(1024, 4 << 10), 1), 8.49, 0.05);
}

#[test]
fn strides_inside_a_track_cost_only_the_time_to_pass() {
    let strides: Vec<_> = (0..400).map(|i| (i * (256 << 10), 64 << 10)).collect();
    assert_within(timed(&mut *hdd(), &strides, 1), 1.05, 0.05);
}

#[test]
fn a_disk_serves_126_scattered_reads_a_second_and_206_with_a_full_queue() {
    assert_within(2000.0 / timed(&mut *hdd(), &random(2000, 4096), 1), 126.0, 0.05);
    assert_within(2000.0 / timed(&mut *hdd(), &random(2000, 4096), 32), 206.0, 0.25);
}

#[test]
fn a_volume_serves_200_reads_a_second_alone_and_6400_side_by_side() {
    assert_within(timed(&mut *net(), &random(200, 4096), 1), 1.0, 0.01);
    assert_within(6400.0 / timed(&mut *net(), &random(6400, 4096), 64), 6400.0, 0.02);
}

#[test]
fn a_volume_streams_at_its_bandwidth_with_large_requests_in_flight() {
    assert_within(
        timed(&mut *net(), &sequential(500, 1 << 20), 16),
        500.0 * 1.048576 / 500.0,
        0.02,
    );
}

#[test]
fn a_stick_serves_one_command_at_a_time_and_cuts_large_requests() {
    let mut stick = device::load("sd").expect("in the catalogue").build(1 << 30);
    // 1 MiB is 9 commands of at most 120 KiB.
    let expected = 9.0 * 402e-6 + 1.048576 / 34.0;
    assert_within(timed(&mut *stick, &[(0, 1 << 20)], 1), expected, 0.001);
}
