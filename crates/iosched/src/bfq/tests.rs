//! Tests of the whole BFQ elevator.

use super::*;
use crate::testing::{MS, read, serve, take, write};

fn bfq() -> Bfq {
    Bfq::new(8, BfqParameters::default())
}

/// The order in which streams with all requests queued are served, at `each` per request.
fn order(bfq: &mut Bfq, requests: usize, each: Nanos) -> Vec<u32> {
    let mut now = 0;
    let mut order = Vec::new();
    for _ in 0..requests {
        let command = take(bfq, now);
        now += each;
        bfq.completed(now, &command);
        order.push(command.process.0);
    }
    order
}

fn lengths_of_runs(order: &[u32]) -> Vec<usize> {
    order.chunk_by(|a, b| a == b).map(<[u32]>::len).collect()
}

fn two_streams(requests: u64) -> Bfq {
    let mut bfq = bfq();
    for nth in 0..requests {
        for process in [1, 2] {
            let start = 10_000_000 * Sector::from(process) + 10 * nth;
            bfq.add(0, read(nth, process, start, 8));
        }
    }
    bfq
}

#[test]
fn a_service_ends_with_the_budget() {
    let order = order(&mut two_streams(5000), 8192, 1000);
    assert_eq!(lengths_of_runs(&order), [2048; 4], "16 Ki sectors by 8");
}

#[test]
fn a_service_ends_with_the_timeout() {
    let order = order(&mut two_streams(500), 500, MS);
    assert_eq!(lengths_of_runs(&order), [125; 4]);
}

#[test]
fn the_device_idles_for_the_process_in_service() {
    let mut bfq = two_streams(1);
    assert_eq!(serve(&mut bfq, 0), 10_000_000);
    assert_eq!(bfq.dispatch(0), Dispatch::WaitUntil(8 * MS));
    bfq.add(3 * MS, read(7, 1, 10_000_008, 8));
    assert_eq!(serve(&mut bfq, 3 * MS), 10_000_008);
    assert_eq!(bfq.dispatch(3 * MS), Dispatch::WaitUntil(11 * MS));
    assert_eq!(serve(&mut bfq, 11 * MS), 20_000_000);
}

#[test]
fn the_device_does_not_idle_for_a_process_that_has_exited() {
    let mut bfq = two_streams(1);
    serve(&mut bfq, 0);
    bfq.exited(0, ProcessId(1));
    assert_eq!(serve(&mut bfq, 0), 20_000_000);
}

#[test]
fn the_device_does_not_idle_for_a_seeky_process() {
    let mut bfq = bfq();
    for nth in 0..40 {
        bfq.add(0, read(nth, 1, 100_000 * nth, 8));
        serve(&mut bfq, 0);
    }
    bfq.add(0, read(99, 2, 50_000_000, 8));
    assert_eq!(serve(&mut bfq, 0), 50_000_000);
}

#[test]
fn the_device_does_not_idle_for_a_process_with_long_think_times() {
    let mut bfq = bfq();
    for nth in 0..10 {
        bfq.add(15 * nth * MS, read(nth, 1, 8 * nth, 8));
        serve(&mut bfq, 15 * nth * MS);
    }
    bfq.add(135 * MS, read(99, 2, 50_000_000, 8));
    assert_eq!(serve(&mut bfq, 135 * MS), 50_000_000);
}

#[test]
fn a_seeky_process_pays_for_its_time() {
    let mut bfq = bfq();
    for nth in 0..400 {
        bfq.add(0, read(nth, 1, 90_000 * ((nth * 7) % 400), 8));
        bfq.add(0, read(nth, 2, 50_000_000 + 10 * nth, 8));
    }
    let order = order(&mut bfq, 600, MS);
    let seeky = order.iter().filter(|&&process| process == 1).count();
    assert!((250..=350).contains(&seeky), "about half of the time: {seeky}");
}

#[test]
fn a_late_process_gets_no_service_for_the_past() {
    let mut bfq = bfq();
    for nth in 0..500 {
        bfq.add(0, read(nth, 1, 10 * nth, 8));
    }
    order(&mut bfq, 250, MS);
    for nth in 0..500 {
        bfq.add(250 * MS, read(nth, 2, 10_000_000 + 10 * nth, 8));
    }
    let mut runs = Vec::new();
    for nth in 250..750 {
        let command = take(&mut bfq, nth * MS);
        bfq.completed((nth + 1) * MS, &command);
        runs.push(command.process.0);
    }
    assert!(lengths_of_runs(&runs).iter().all(|&length| length <= 125), "turns from now on");
}

#[test]
fn asynchronous_writes_share_a_queue_for_which_nothing_idles() {
    let mut bfq = bfq();
    bfq.add(0, write(0, 1, 100, 8));
    bfq.add(0, write(1, 2, 200, 8));
    assert_eq!((serve(&mut bfq, 0), serve(&mut bfq, 0)), (100, 200));
    bfq.add(0, read(2, 3, 900, 8));
    assert_eq!(serve(&mut bfq, 0), 900);
}

#[test]
fn the_oldest_of_a_queue_goes_first_once_it_has_expired() {
    let mut bfq = bfq();
    bfq.add(0, read(0, 1, 90_000, 8));
    bfq.add(100 * MS, read(1, 1, 0, 8));
    bfq.add(100 * MS, read(2, 1, 10, 8));
    assert_eq!(serve(&mut bfq, 123 * MS), 0);
    assert_eq!(serve(&mut bfq, 124 * MS), 90_000);
}
