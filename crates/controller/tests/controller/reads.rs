//! Which readers are read ahead, and which pages.

use controller::{
    Access, Advice, Charge, Command, Completed, Failure, Kind, Options, WindowSetting,
};
use readahead::behind::Span;
use readahead::{Cause, DeviceCost, Past};

use crate::support::{
    Bench, DEV, FILE_PAGES, MS, Machine, VOLUME, batch, charging, miss, reads, span,
};

#[test]
fn a_backward_reader_is_read_ahead_and_marked() {
    let mut bench = Bench::new(VOLUME, Options::default());
    assert_eq!(reads(&bench.access(miss(1, 50_000))), [], "one miss is no stream");
    let commands = bench.access(miss(1, 49_999));
    let [ahead] = reads(&commands)[..] else { panic!("{commands:?}") };
    assert_eq!(ahead.end, 49_999, "what lies before it");
    let why = commands.iter().find_map(|command| match command {
        Command::Read { why, .. } => Some(*why),
        _ => None,
    });
    assert_eq!(why, Some(Cause::Backward));
    let mark = commands.iter().find_map(|command| match command {
        Command::Mark(_, mark) => Some(*mark),
        _ => None,
    });
    assert!(mark.is_some_and(|mark| ahead.start <= mark.first && mark.last < ahead.end));
    let listening = commands.iter().find_map(|command| match command {
        Command::Listen(_, listening) => Some(*listening),
        _ => None,
    });
    assert!(listening.is_some_and(|it| it.managed && it.marked_chunks != 0));
}

#[test]
fn after_the_first_misses_a_backward_reader_hardly_waits() {
    let mut machine = Machine::new(VOLUME, Options::default());
    let open_file = machine.open(9, 1, 1);
    let waits: u64 = (0..2_000).map(|n| machine.read(open_file, 60_000 - 4 * n, 4)).sum();
    assert!(waits < 100, "{waits} of 8000 pages");
    assert!(machine.controller.metrics().stalls_saved > 1_000);
}

#[test]
fn a_strided_reader_is_read_ahead_piece_by_piece() {
    let mut machine = Machine::new(VOLUME, Options::default());
    let open_file = machine.open(9, 1, 1);
    let waits: u64 = (0..300).map(|n| machine.read(open_file, 1_000 + 300 * n, 4)).sum();
    assert!(waits < 200, "{waits} of 1200 pages");
    assert!(machine.cached(1, span(0, FILE_PAGES)) < 5_000, "the gaps are not read");
}

#[test]
fn a_mark_spans_no_more_than_the_kernel_half_looks_up() {
    let mut bench = Bench::new(VOLUME, Options::default());
    let mut longest = 0;
    for n in 0..20 {
        let piece = Access { request_pages: 200, ..miss(1, 1_000 + 1_000 * n) };
        for command in bench.access(piece) {
            if let Command::Mark(_, mark) = command {
                longest = longest.max(mark.last + 1 - mark.first);
            }
        }
    }
    assert_eq!(longest, controller::MARK_PAGES);
}

#[test]
fn a_touched_mark_has_the_next_window_read() {
    let mut bench = Bench::new(VOLUME, Options::default());
    bench.access(miss(1, 50_000));
    let commands = bench.access(miss(1, 49_999));
    let mark = commands.iter().find_map(|command| match command {
        Command::Mark(_, mark) => Some((mark.first, mark.last)),
        _ => None,
    });
    let mark = mark.expect("there is one");
    let touched = Access { kind: Kind::Mark, mark: Some(mark), ..miss(1, mark.1) };
    let next = reads(&bench.access(touched));
    assert_eq!(next.first().map(|s| s.end), reads(&commands).first().map(|s| s.start));
}

/// The reads of each batch, in the order of their requests, while `pages` of a file are read.
fn batches(cost: DeviceCost, pages: impl Iterator<Item = u64>) -> Vec<Vec<Span>> {
    let mut bench = Bench::new(cost, Options::default());
    let mut batches = Vec::new();
    for page in pages {
        bench.now += 5 * MS;
        let commands = bench.access(miss(1, page));
        let Some(ticket) = batch(&commands) else { continue };
        bench.completed(Completed::Read { ticket, failed: None });
        batches.push(reads(&commands));
    }
    batches
}

#[test]
fn where_accesses_overlap_a_backward_reader_gets_first_what_it_needs_first() {
    let in_parts = batches(VOLUME, (1_000..50_000).rev());
    assert!(in_parts.iter().any(|batch| batch.len() > 2), "{in_parts:?}");
    for batch in in_parts {
        assert!(batch.iter().is_sorted_by(|near, far| near.start == far.end), "{batch:?}");
        let but_the_last = batch.split_last().map_or(&[][..], |(_, others)| others);
        let doubles = |near: &Span, far: &Span| 2 * near.pages() == far.pages();
        assert!(but_the_last.is_sorted_by(doubles), "{batch:?}");
    }
    let pieces = batches(VOLUME, (0..500).rev().map(|n| 10_000 + 100 * n));
    assert!(pieces.iter().any(|batch| batch.len() > 2), "{pieces:?}");
    for batch in pieces {
        assert!(batch.iter().is_sorted_by(|near, far| near.start > far.start), "{batch:?}");
    }
}

#[test]
fn a_disk_passes_over_what_a_backward_reader_needs_in_one_sweep() {
    let whole = batches(DeviceCost::DISK, (1_000..50_000).rev());
    assert!(!whole.is_empty() && whole.iter().all(|batch| batch.len() == 1), "{whole:?}");
    let pieces = batches(DeviceCost::DISK, (0..500).rev().map(|n| 10_000 + 50 * n));
    assert!(pieces.iter().any(|batch| batch.len() > 2), "{pieces:?}");
    for batch in pieces {
        assert!(batch.iter().is_sorted_by(|low, high| low.end <= high.start), "{batch:?}");
    }
}

#[test]
fn a_plain_reader_of_a_fast_device_is_left_to_the_kernel() {
    let mut bench = Bench::new(DeviceCost::FLASH, Options::default());
    for page in 0..64 {
        assert_eq!(reads(&bench.access(miss(1, page))), []);
    }
}

#[test]
fn random_advice_is_followed() {
    let mut bench = Bench::new(VOLUME, Options::default());
    let advice = Advice { random: true, ..Advice::default() };
    for page in (100..164).rev() {
        assert_eq!(reads(&bench.access(Access { advice, ..miss(1, page) })), []);
    }
    assert_eq!(bench.controller.metrics().not_read.advised, 64);
}

#[test]
fn reads_of_one_plan_are_one_batch() {
    let mut machine = Machine::new(VOLUME, Options::default());
    let open_file = machine.open(9, 1, 1);
    for n in 0..100 {
        machine.read(open_file, 1_000 + 300 * n, 4);
    }
    let tickets = machine.asked(|command| match command {
        Command::Read { ticket, .. } => Some(*ticket),
        _ => None,
    });
    let batches = machine.controller.metrics().reads;
    assert!((tickets.len() as u64) > batches, "a stride is read in pieces");
    assert!(tickets.is_sorted());
}

#[test]
fn a_read_that_could_not_be_carried_out_is_counted_once() {
    let mut bench = Bench::new(VOLUME, Options::default());
    bench.access(miss(1, 50_000));
    let commands = bench.access(miss(1, 49_999));
    let Some(Command::Read { ticket, .. }) = commands.first() else { panic!("{commands:?}") };
    let failed = Completed::Read { ticket: *ticket, failed: Some(Failure::NotOpened) };
    bench.completed(failed.clone());
    bench.completed(failed);
    assert_eq!(bench.controller.metrics().failed_reads, 1);
    assert_eq!(bench.controller.status(bench.now).devices[0].in_flight_bytes, 0);
}

#[test]
fn pages_read_ahead_that_are_evicted_halve_what_may_be_read_ahead() {
    let window = |past| {
        let mut bench = Bench::new(VOLUME, Options::default());
        for n in 0..20 {
            bench.access(Access { past, ..miss(2, 10_000 * n) });
        }
        let pages = |command: &Command| match command {
            Command::Read { span, .. } => span.pages(),
            _ => 0,
        };
        let mut longest = 0;
        for page in (49_000..50_000).rev() {
            longest = longest.max(bench.access(miss(1, page)).iter().map(pages).sum());
        }
        longest
    };
    assert!(window(Past::EvictedUnused) < window(Past::Unknown) / 4);
    assert_eq!(window(Past::Evicted), window(Past::Unknown), "it may have been used");
}

#[test]
fn a_forward_reader_that_is_charged_itself_is_lent_a_window() {
    let mut machine = Machine::new(VOLUME, charging(Charge::Reader));
    let open_file = machine.open(9, 1, 1);
    for n in 0..2_000 {
        machine.read(open_file, 4 * n, 4);
    }
    let larger = machine.asked(|command| match command {
        Command::SetWindow { setting: WindowSetting::Larger(pages), .. } => Some(*pages),
        _ => None,
    });
    assert!(!larger.is_empty());
    assert!(machine.opened(open_file).window > 32);
    assert_eq!(machine.asked(|c| matches!(c, Command::Read { .. }).then_some(())), []);
    assert!(machine.controller.metrics().not_read.larger_window > 0);
}

#[test]
fn a_backward_reader_is_read_ahead_for_whoever_is_charged() {
    let mut machine = Machine::new(VOLUME, charging(Charge::Reader));
    let open_file = machine.open(9, 1, 1);
    let waits: u64 = (0..500).map(|n| machine.read(open_file, 60_000 - 4 * n, 4)).sum();
    assert!(waits < 100, "{waits}");
}

#[test]
fn a_reader_that_advised_something_is_lent_nothing() {
    let mut machine = Machine::new(VOLUME, charging(Charge::Reader));
    let open_file = machine.open(9, 1, 1);
    machine.opened(open_file).advice.noreuse = true;
    for n in 0..2_000 {
        machine.read(open_file, 4 * n, 4);
    }
    assert_eq!(machine.asked(|c| matches!(c, Command::SetWindow { .. }).then_some(())), []);
    assert!(machine.controller.metrics().reads > 0, "it is read for");
}

#[test]
fn two_file_systems_on_one_disk_are_told_apart() {
    let mut bench = Bench::new(VOLUME, Options::default());
    let mut other = miss(1, 49_999);
    other.of.file.dev.minor = DEV.minor + 1;
    bench.access(miss(1, 50_000));
    assert_eq!(reads(&bench.access(other)), [], "another file with the same inode number");
}

#[test]
fn the_busiest_files_are_shown_with_what_was_read_ahead_of_each() {
    let mut machine = Machine::new(VOLUME, Options::default());
    for (ino, accesses) in [(1, 40), (2, 400), (3, 1)] {
        let open_file = machine.open(9 + ino, ino, 1);
        for n in 0..accesses {
            machine.read(open_file, 60_000 - 4 * n, 4);
        }
    }
    let status = machine.controller.status(machine.now);
    let told: Vec<_> = status.busiest_files.iter().map(|file| file.inode).collect();
    assert_eq!(told, [2, 1], "nothing of the third one was read ahead");
    let bytes: u64 = status.busiest_files.iter().map(|file| file.read_ahead_bytes).sum();
    assert_eq!(bytes, status.metrics.read_ahead_bytes);
    assert_eq!(status.busiest_files[0].volume, DEV.to_string());
}

#[test]
fn a_stream_whose_pages_were_evicted_is_read_ahead_less_far() {
    let longest = |past| {
        let mut bench = Bench::new(VOLUME, Options::default());
        let (mut longest, mut page) = (0, 90_000);
        while page > 60_000 {
            page -= 1;
            bench.now += 100 * MS;
            for command in bench.access(Access { past, ..miss(1, page) }) {
                let Command::Read { ticket, span, .. } = command else { continue };
                longest = longest.max(span.pages());
                bench.completed(Completed::Read { ticket, failed: None });
                // The reader goes backward. It comes to the first eighth of the span, which has left the cache.
                page = span.start + span.pages() / 8;
            }
        }
        longest
    };
    let (lost, kept) = (longest(Past::Evicted), longest(Past::Unknown));
    assert!(lost < kept / 4, "{lost} of {kept}");
}
