//! Tests of the whole anticipatory elevator.

use super::*;
use crate::request::Sector;
use crate::testing::{MS, read, serve, take, write};

fn anticipatory() -> Anticipatory {
    Anticipatory::new(8, AnticipatoryParameters::february_2003())
}

/// Process 1 has read from sector 100 on; process 2 wants sector 900 000.
fn with_a_reader() -> Anticipatory {
    let mut elevator = anticipatory();
    for nth in 0..4 {
        elevator.add(nth * MS, read(nth, 1, 100 + 8 * nth, 8));
        serve(&mut elevator, nth * MS);
    }
    elevator.add(3 * MS, read(99, 2, 900_000, 8));
    elevator
}

#[test]
fn it_waits_for_the_process_that_has_just_read_and_gives_up_in_time() {
    let mut elevator = with_a_reader();
    assert_eq!(elevator.dispatch(3 * MS), Dispatch::WaitUntil(43 * MS));
    assert_eq!(elevator.dispatch(42 * MS), Dispatch::WaitUntil(43 * MS));
    assert_eq!(take(&mut elevator, 43 * MS).process.0, 2);
}

#[test]
fn the_request_waited_for_goes_first() {
    let mut elevator = with_a_reader();
    elevator.dispatch(3 * MS);
    elevator.add(4 * MS, read(5, 1, 132, 8));
    assert_eq!(serve(&mut elevator, 4 * MS), 132);
    assert_eq!(elevator.dispatch(4 * MS), Dispatch::WaitUntil(44 * MS), "and again");
}

#[test]
fn the_slice_ends_at_the_first_look_that_finds_a_request_expired() {
    let mut elevator = with_a_reader();
    let other = (4..).find(|&nth| {
        elevator.dispatch((nth - 1) * MS);
        elevator.add(nth * MS, read(nth, 1, 100 + 8 * nth, 8));
        let command = take(&mut elevator, nth * MS);
        elevator.completed(nth * MS, &command);
        command.process.0 == 2
    });
    assert_eq!(other, Some(100), "after 50 ms it was 47 ms old, and the next look is after 100");
}

#[test]
fn without_command_queueing_or_with_the_wait_is_for_completion_first() {
    let mut elevator = with_a_reader();
    elevator.add(4 * MS, read(5, 1, 132, 8));
    let command = take(&mut elevator, 4 * MS);
    assert_eq!(elevator.dispatch(4 * MS), Dispatch::WaitUntil(UNTIL_COMPLETION));
    elevator.completed(9 * MS, &command);
    assert_eq!(elevator.dispatch(9 * MS), Dispatch::WaitUntil(49 * MS));
}

#[test]
fn it_does_not_wait_for_a_process_with_queued_requests() {
    let mut elevator = with_a_reader();
    elevator.add(3 * MS, read(5, 1, 5_000_000, 8));
    assert_eq!(take(&mut elevator, 3 * MS).process.0, 2, "nearer");
}

#[test]
fn it_does_not_wait_for_a_process_that_has_exited() {
    let mut elevator = with_a_reader();
    elevator.exited(3 * MS, ProcessId(1));
    assert_eq!(take(&mut elevator, 3 * MS).process.0, 2);
    assert!(!elevator.processes.contains_key(&ProcessId(1)), "and forgotten");
}

#[test]
fn a_request_near_the_head_is_not_kept_waiting() {
    for (start, is_near) in [(132 + 64, true), (132 + 65, false), (100, true), (99, false)] {
        let mut elevator = with_a_reader();
        assert_eq!(elevator.dispatch(3 * MS), Dispatch::WaitUntil(43 * MS));
        elevator.add(3 * MS, read(7, 3, start, 1));
        let served = matches!(elevator.dispatch(3 * MS), Dispatch::Command(_));
        assert_eq!(served, is_near, "{start}");
    }
}

#[test]
fn near_widens_with_time() {
    for (milliseconds, reach) in [(1, 64), (2, 128), (5, 1024)] {
        let at = (3 + milliseconds) * MS;
        for (start, is_near) in [(132 + reach, true), (133 + reach, false)] {
            let mut elevator = with_a_reader();
            elevator.dispatch(3 * MS);
            elevator.add(at, read(7, 3, start, 1));
            let served = matches!(elevator.dispatch(at), Dispatch::Command(_));
            assert_eq!(served, is_near, "{start} after {milliseconds} ms");
        }
    }
}

#[test]
fn it_does_not_wait_for_a_process_with_long_think_times() {
    let parameters = AnticipatoryParameters::linux_2_6_12();
    let mut elevator = Anticipatory::new(8, parameters);
    for nth in 0..6 {
        let now = nth * 15 * MS;
        elevator.add(now, read(nth, 1, 100 + 8 * nth, 8));
        serve(&mut elevator, now);
    }
    elevator.add(75 * MS, read(99, 2, 900_000, 8));
    assert_eq!(take(&mut elevator, 75 * MS).process.0, 2);
}

#[test]
fn it_does_not_wait_for_a_process_that_seeks_farther_than_the_candidate() {
    let mut elevator = anticipatory();
    for nth in 0..4 {
        elevator.add(nth * MS, read(nth, 1, 500_000 * nth, 8));
        serve(&mut elevator, nth * MS);
    }
    elevator.add(3 * MS, read(99, 2, 1_600_000, 8));
    assert_eq!(take(&mut elevator, 3 * MS).process.0, 2);
}

#[test]
fn it_waits_for_a_new_process_unless_new_ones_rarely_read_again() {
    let mut elevator = anticipatory();
    let mut waited = Vec::new();
    for process in 0..9 {
        // Every process reads once, with a distant request queued beside it.
        let now = u64::from(process) * 1000 * MS;
        let start = 10_000_000 * Sector::from(process % 2);
        elevator.add(now, read(0, 10 + process, start, 8));
        serve(&mut elevator, now);
        elevator.add(now, read(0, 50 + process, 5_000_000, 8));
        match elevator.dispatch(now) {
            Dispatch::Command(command) => {
                elevator.completed(now, &command);
                waited.push(false);
            }
            _ => waited.push(true),
        }
        elevator.add(now + 1, write(0, 99, 1, 1));
        let mut later = now + 100 * MS;
        while elevator.queued() > 0 {
            if let Dispatch::Command(command) = elevator.dispatch(later) {
                elevator.completed(later, &command);
            }
            later += 50 * MS;
        }
    }
    assert_eq!((waited[0], waited[8]), (true, false), "{waited:?}");
}

#[test]
fn writes_wait_for_the_end_of_the_read_batch_and_reads_for_its_quota() {
    let mut elevator = anticipatory();
    for nth in 0..40 {
        elevator.add(0, write(1000 + nth, 9, 1_000_000 + 10 * nth, 8));
    }
    for nth in 0..700 {
        elevator.add(0, read(nth, 1, 10 * nth, 8));
    }
    let mut order = String::new();
    for nth in 0..700 {
        let command = take(&mut elevator, nth * MS);
        order.push(if command.process.0 == 9 { 'w' } else { 'r' });
        elevator.completed((nth + 1) * MS, &command);
    }
    let reads = order.find('w').unwrap();
    assert_eq!(reads, 501, "500 ms of reads");
    let writes = order[reads..].find('r').unwrap();
    assert_eq!(writes, 12, "the first quota of writes");
}

#[test]
fn switching_drains_the_device() {
    let mut elevator = anticipatory();
    elevator.add(0, write(0, 9, 1000, 8));
    let write = take(&mut elevator, 0);
    elevator.add(0, read(1, 1, 100, 8));
    assert_eq!(elevator.dispatch(MS), Dispatch::WaitUntil(UNTIL_COMPLETION));
    elevator.completed(2 * MS, &write);
    assert_eq!(take(&mut elevator, 2 * MS).process.0, 1);
}

#[test]
fn without_anticipation_it_sweeps() {
    let parameters =
        AnticipatoryParameters { antic_expire: 0, ..AnticipatoryParameters::february_2003() };
    let mut elevator = Anticipatory::new(8, parameters);
    for (id, start) in [(0, 100), (1, 300), (2, 900_000)] {
        elevator.add(0, read(id, u32::try_from(id).unwrap(), start, 8));
    }
    let order: Vec<Sector> = (0..3).map(|_| serve(&mut elevator, 0)).collect();
    assert_eq!(order, [100, 300, 900_000]);
}
