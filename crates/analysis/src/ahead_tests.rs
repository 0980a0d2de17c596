//! Windows that are known to the page: hits, waste and what was asked for add up.

use std::ops::Range;

use proptest::prelude::*;
use readahead::{Nanos, PAGE_BYTES};
use trace::recorded::{Header, Recorder, Run};
use trace::{Reason, Record, Trace, TraceOp, Window};

use crate::Analysis;

const MS: Nanos = 1_000_000;

/// What two processes do with two files of 4 GiB, and what the kernel brings in for them.
#[derive(Debug, Default)]
struct Story {
    records: Vec<Record>,
    windows: Vec<Window>,
}

impl Story {
    fn read(mut self, at_ms: u64, process: u32, pages: Range<u64>) -> Self {
        let (at, offset) = (at_ms * MS, pages.start * PAGE_BYTES);
        let bytes = (pages.end - pages.start) * PAGE_BYTES;
        let op = TraceOp::Read;
        self.records.push(Record { at, took: 0, process, file: 0, op, offset, bytes });
        self
    }

    /// The last operation takes that long.
    fn taking(mut self, ms: u64) -> Self {
        self.records.iter_mut().next_back().expect("a record").took = ms * MS;
        self
    }

    /// The last operation writes.
    fn writing(mut self) -> Self {
        self.records.iter_mut().next_back().expect("a record").op = TraceOp::Write;
        self
    }

    fn fault(self, at_ms: u64, process: u32, page: u64) -> Self {
        let mut story = self.read(at_ms, process, page..page + 1);
        story.records.iter_mut().next_back().expect("a record").op = TraceOp::Mmap;
        story
    }

    fn window(mut self, at_ms: u64, process: u32, pages: Range<u64>, asked: Range<u64>) -> Self {
        let (at, process, reason) = (at_ms * MS, Some(process), Reason::Read);
        self.windows.push(Window { at, process, file: 0, pages, asked, reason });
        self
    }

    fn trace(&self) -> Trace {
        let header = Header { bowwave: "1".into(), kernel: "6".into(), date: "2026-11-23".into() };
        let mut bytes = Vec::new();
        let mut recorder = Recorder::begin(&mut bytes, &header).expect("room");
        for (process, file) in [("a", "/f"), ("b", "/g")] {
            recorder.process(process).expect("room");
            recorder.file(file, 4 << 30).expect("room");
        }
        for record in &self.records {
            recorder.run(&Run { record: *record, calls: 1, lasted: 0 }).expect("room");
        }
        self.windows.iter().for_each(|window| recorder.window(window).expect("room"));
        recorder.finish().expect("room");
        trace::read(&bytes[..]).expect("a trace")
    }

    fn analysed(&self) -> Analysis {
        Analysis::of(&self.trace())
    }

    /// Hit, waste, and what was asked for, of each stream.
    fn figures(&self) -> Vec<(u64, u64, u64)> {
        let streams = self.analysed().streams.into_iter().map(|stream| stream.ahead);
        streams.map(|ahead| (ahead.hits, ahead.wasted, ahead.asked)).collect()
    }
}

#[test]
fn a_sequential_reader_hits_what_it_has_not_asked_for_and_the_rest_is_waste() {
    let mut story = Story::default()
        .window(0, 0, 0..32, 0..16)
        .window(21, 0, 32..64, 32..32)
        .window(61, 0, 64..128, 64..64);
    for call in 0..6 {
        story = story.read(20 * call, 0, call * 16..(call + 1) * 16);
    }
    assert_eq!(story.figures(), [(80, 32, 16)]);
    let analysis = story.analysed();
    let ahead = &analysis.streams[0].ahead;
    assert_eq!((ahead.windows, ahead.median, ahead.largest), (3, 32, 64));
    assert_eq!((ahead.hit(), ahead.waste()), (Some((80, 96)), Some((32, 128))));
    assert_eq!(analysis.ahead.map(|all| (all.brought, all.windows)), Some((128, 3)));
}

#[test]
fn merged_calls_that_seem_too_early_hit_all_the_same() {
    let story = Story::default().read(0, 0, 0..1).window(7, 0, 1..24, 1..1).read(5, 0, 1..24);
    assert_eq!(story.figures(), [(0, 0, 23)], "its own call may have asked for it");
    let story = Story::default().read(0, 0, 0..1).window(7, 1, 1..24, 1..1).read(5, 0, 1..24);
    assert_eq!(story.figures(), [(23, 0, 0)], "another one has not");
}

#[test]
fn a_long_call_has_asked_for_all_of_its_windows() {
    let story = Story::default()
        .read(1, 0, 0..101)
        .taking(95)
        .window(0, 0, 0..32, 0..32)
        .window(50, 0, 32..64, 40..64)
        .window(90, 0, 64..128, 64..101);
    assert_eq!(story.figures(), [(0, 27, 101)]);
}

#[test]
fn a_call_that_has_ended_has_asked_for_nothing_that_comes_later() {
    let story =
        Story::default().read(1, 0, 0..100).window(500, 0, 0..100, 0..0).read(600, 0, 0..100);
    assert_eq!(story.figures(), [(100, 0, 0)]);
}

#[test]
fn what_is_written_over_before_it_is_read_is_waste() {
    let story = Story::default()
        .window(0, 0, 0..40, 0..1)
        .read(1, 0, 0..1)
        .read(50, 0, 10..20)
        .writing()
        .read(60, 0, 10..30);
    assert_eq!(story.figures(), [(10, 29, 1)]);
}

#[test]
fn a_write_of_nothing_behind_the_files_end_takes_nothing() {
    let end = (4 << 30) / PAGE_BYTES;
    let story = Story::default()
        .read(0, 0, 0..1)
        .window(1, 0, end - 6..end + 24, end..end)
        .read(50, 0, end + 14..end + 14)
        .writing();
    assert_eq!(story.analysed().ahead.map(|all| (all.brought, all.wasted)), Some((30, 30)));
}

#[test]
fn who_reads_first_has_the_hit_and_who_brought_in_has_the_waste() {
    let story = Story::default()
        .window(0, 0, 0..40, 0..3)
        .read(1, 0, 0..3)
        .read(50, 1, 0..20)
        .read(60, 0, 10..30)
        .read(70, 1, 0..40);
    // 3 were asked for; b was first at 17 of the others and at the last 10, a at 10.
    assert_eq!(story.figures(), [(10, 0, 3), (27, 0, 0)]);
    let story = Story::default().window(0, 0, 0..40, 0..3).read(1, 0, 0..3).read(50, 1, 30..31);
    assert_eq!(story.figures(), [(0, 36, 3), (1, 0, 0)]);
}

#[test]
fn what_is_brought_in_twice_was_wasted_once() {
    let story = Story::default()
        .window(0, 0, 0..40, 0..3)
        .read(1, 0, 0..3)
        .window(100, 0, 20..40, 20..20)
        .read(200, 0, 3..40);
    assert_eq!(story.figures(), [(37, 20, 3)]);
}

#[test]
fn what_was_in_memory_before_is_no_hit() {
    let story = Story::default().read(1, 0, 0..500).window(20, 0, 500..508, 500..500);
    let ahead = story.analysed().streams[0].ahead;
    assert_eq!((ahead.hit(), ahead.waste()), (None, Some((8, 8))));
    assert_eq!(Story::default().read(1, 0, 0..500).analysed().ahead, None, "nothing is known");
}

#[test]
fn the_waste_of_a_mapped_file_is_not_known() {
    let mut story = Story::default().window(0, 0, 0..32, 7..8).fault(1, 0, 7).fault(30, 0, 16);
    story.windows[0].reason = Reason::Fault;
    let ahead = story.analysed().streams[0].ahead;
    assert_eq!((ahead.hit(), ahead.waste(), ahead.brought), (Some((1, 2)), None, 32));
}

#[test]
fn windows_of_who_reads_nothing_count_in_the_sum_only() {
    let story = Story::default().window(0, 1, 0..23, 0..0).read(50, 0, 0..7);
    let analysis = story.analysed();
    assert_eq!(analysis.streams[0].ahead.hits, 7);
    assert_eq!(analysis.streams[0].ahead.brought, 0);
    let all = analysis.ahead.expect("it is known");
    assert_eq!((all.brought, all.hits, all.wasted, all.windows), (23, 7, 16, 1));
}

fn any_story() -> impl Strategy<Value = Story> {
    let pages = (0..99u64, 1..40u64).prop_map(|(first, count)| first..first + count);
    let event = (0..200u64, 0..2u32, pages, any::<[u8; 2]>(), 0..3u8);
    prop::collection::vec(event, 0..40).prop_map(|events| {
        let first = Story::default().read(0, 0, 0..1);
        events.into_iter().fold(first, |story, (at, process, pages, parts, kind)| {
            let count = pages.end - pages.start;
            let [from, to] = parts.map(|part| pages.start + count * u64::from(part) / 256);
            match kind {
                0 => story.read(at, process, pages),
                1 => story.fault(at, process, pages.start),
                _ => story.window(at, process, pages, from..to.max(from)),
            }
        })
    })
}

proptest! {
    #[test]
    fn every_page_that_is_brought_in_was_asked_for_or_hit_or_wasted(story in any_story()) {
        let trace = story.trace();
        let analysis = Analysis::of(&trace);
        let Some(all) = analysis.ahead else { return Ok(()) };
        let brought: u64 = trace.windows().iter().map(|window| window.pages.end - window.pages.start).sum();
        prop_assert_eq!((all.brought, all.windows), (brought, trace.windows().len() as u64));
        let is_mapped = trace.records().iter().any(|record| record.op == TraceOp::Mmap);
        prop_assert_eq!(all.followed, if is_mapped { 0 } else { brought });
        if !is_mapped {
            prop_assert_eq!(all.asked + all.hits + all.wasted, brought);
        }
        prop_assert!(all.asked + all.hits <= brought);
        let of_streams: u64 = analysis.streams.iter().map(|stream| stream.ahead.hits).sum();
        prop_assert_eq!(all.hits, of_streams);
    }
}
