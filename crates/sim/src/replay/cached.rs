//! What was in memory when a trace was recorded, as far as the durations of its operations tell.
//!
//! A read that takes no longer than from memory found its pages there. Somebody had used them before the trace began,
//! or read-ahead had just brought them in. Read-ahead starts beside a page that somebody has waited for. So pages are
//! taken as cached before if their first read was fast and nobody had waited nearby.
//!
//! A recorded trace tells who has waited: how long an operation took is how long it waited. A text tells how long a
//! call took, if at all.

use std::ops::Range;

use readahead::{Nanos, PAGE_BYTES, Page};
use trace::{Record, Trace, TraceOp};

/// A read from memory takes less, in a system call that is traced, and for each page: `strace -T` tells 8 us for one
/// page and 91 us for 256 (Linux 6.18). The fastest flash drives take longer.
const CALL_NS: Nanos = 30_000;
const PAGE_NS: Nanos = 1_000;

/// What is known of a page: nothing. Zeroed memory takes no space on the host until it is written.
const UNKNOWN: u8 = 0;

/// A process has waited for it, or read-ahead may have brought it in.
const READ: u8 = 1;

/// It was cached before, or was written.
const CACHED: u8 = 2;

/// Pages of each file that were cached before, in the order of their first use. Nothing if the trace has no durations.
/// Read-ahead reaches `reach` pages from a page that somebody has waited for.
pub(super) fn before(trace: &Trace, reach: u64) -> Vec<(u32, Range<Page>)> {
    let mut known: Vec<Vec<u8>> = trace
        .files()
        .iter()
        .map(|file| vec![UNKNOWN; file.bytes.div_ceil(PAGE_BYTES) as usize])
        .collect();
    let mut cached = Vec::new();
    for record in trace.records().iter().filter(|record| trace.has_bytes(record)) {
        let pages = &mut known[record.file as usize];
        let end = record.end().div_ceil(PAGE_BYTES).min(pages.len() as u64);
        let range = record.offset / PAGE_BYTES..end;
        let is_cached = record.op == TraceOp::Write
            || is_from_memory(trace, record, range.end - range.start)
                && !is_read_near(pages, &range, reach);
        let now = if is_cached { CACHED } else { READ };
        for page in range {
            let known = &mut pages[page as usize];
            if *known != UNKNOWN {
                continue;
            }
            *known = now;
            if is_cached && record.op != TraceOp::Write {
                add(&mut cached, record.file, page);
            }
        }
    }
    cached
}

fn is_from_memory(trace: &Trace, record: &Record, pages: u64) -> bool {
    if is_recorded(trace) {
        return record.took == 0;
    }
    // A duration that is missing is zero.
    record.took > 0 && record.took <= CALL_NS + pages * PAGE_NS
}

/// Whether durations are those of waiting, and none is missing.
fn is_recorded(trace: &Trace) -> bool {
    trace.origin().is_some()
}

/// Seconds that the reads of a trace waited for a device; `None` if it does not tell how long they took.
pub fn traced_waiting(trace: &Trace) -> Option<f64> {
    let is_read = |record: &&Record| record.op != TraceOp::Write && trace.has_bytes(record);
    let reads = || trace.records().iter().filter(is_read);
    let pages = |record: &Record| record.end().div_ceil(PAGE_BYTES) - record.offset / PAGE_BYTES;
    let waited = reads().filter(|record| !is_from_memory(trace, record, pages(record)));
    // Many long ones together are more than an integer of nanoseconds holds.
    let ns: f64 = waited.map(|record| record.took as f64).sum();
    (is_recorded(trace) || reads().any(|record| record.took > 0)).then_some(ns * 1e-9)
}

fn is_read_near(pages: &[u8], range: &Range<Page>, reach: u64) -> bool {
    let end = range.end.saturating_add(reach).min(pages.len() as u64);
    pages[range.start.saturating_sub(reach) as usize..end as usize].contains(&READ)
}

fn add(cached: &mut Vec<(u32, Range<Page>)>, file: u32, page: Page) {
    match cached.last_mut() {
        Some((last, range)) if *last == file && range.end == page => range.end += 1,
        _ => cached.push((file, page..page + 1)),
    }
}

#[cfg(test)]
mod tests {
    use trace::recorded::{Header, Recorder, Run};

    use super::*;

    /// `(offset in pages, pages, microseconds)` of reads of one file of 1000 pages.
    fn trace(reads: &[(u64, u64, &str)]) -> Trace {
        let read = |(at, (start, pages, took)): (usize, &(u64, u64, &str))| {
            format!("{at},p,a,read,{},{},{took}\n", start * 4096, pages * 4096)
        };
        let reads: String = reads.iter().enumerate().map(read).collect();
        let text = format!(
            "file_bytes,file\n4096000,a\ntime_us,process,file,op,offset,bytes,took_us\n{reads}"
        );
        Trace::parse(text.as_bytes()).expect("valid")
    }

    /// The first page of each cached range, and the page after its last one.
    fn cached(reads: &[(u64, u64, &str)]) -> Vec<(Page, Page)> {
        let ranges = before(&trace(reads), 64).into_iter();
        ranges.map(|(_, range)| (range.start, range.end)).collect()
    }

    #[test]
    fn what_nobody_waited_for_was_cached_before() {
        assert_eq!(cached(&[(0, 16, "12"), (16, 16, "12"), (500, 1, "3")]), [(0, 32), (500, 501)]);
    }

    #[test]
    fn what_read_ahead_may_have_brought_in_was_not() {
        let stream: Vec<(u64, u64, &str)> =
            (0..60).map(|i| (i * 16, 16, if i == 0 { "9000" } else { "12" })).collect();
        assert_eq!(cached(&stream), []);
        assert_eq!(cached(&[(200, 1, "9000"), (170, 1, "2"), (100, 1, "2")]), [(100, 101)]);
    }

    #[test]
    fn a_page_that_was_waited_for_once_is_not_cached_by_its_second_read() {
        assert_eq!(cached(&[(0, 1, "9000"), (0, 1, "2")]), []);
    }

    #[test]
    fn without_durations_nothing_is_known() {
        assert_eq!(cached(&[(0, 16, ""), (500, 1, "")]), []);
    }

    #[test]
    fn what_the_program_has_written_was_not_there_before() {
        let text = "time_us,process,file,op,offset,bytes,took_us\n0,p,a,write,0,8192,9\n1,p,a,read,0,12288,9\n";
        let trace = Trace::parse(text.as_bytes()).expect("valid");
        assert_eq!(before(&trace, 64), [(0, 2..3)]);
    }

    #[test]
    fn a_large_read_from_memory_takes_longer_than_a_small_one() {
        assert_eq!(cached(&[(0, 256, "91"), (900, 1, "91")]), [(0, 256)]);
    }

    #[test]
    fn a_replay_may_begin_with_what_was_cached() {
        use super::super::{Setup, replay};
        let trace = trace(&[(0, 16, "12"), (16, 16, "12"), (500, 1, "7000")]);
        let read = |traced_readahead_kb| {
            let setup = Setup { traced_readahead_kb, ..Setup::default() };
            let replay = replay(&trace, "none", &setup).expect("all exists");
            (replay.pages_needed, replay.pages_cached, replay.pages_read)
        };
        assert_eq!((read(None), read(Some(128))), ((33, 0, 33), (33, 32, 1)));
    }

    #[test]
    fn what_was_cached_does_not_depend_on_the_window_of_the_replay() {
        use super::super::{Setup, replay};
        let trace = trace(&[(0, 1, "9000"), (200, 1, "2")]);
        let cached = |readahead_kb, traced_readahead_kb| {
            let setup = Setup { readahead_kb, traced_readahead_kb, ..Setup::default() };
            replay(&trace, "linux-6", &setup).expect("all exists").pages_cached
        };
        assert_eq!([128, 1024, 4096].map(|kib| cached(Some(kib), Some(128))), [1; 3]);
        assert_eq!([128, 1024, 4096].map(|kib| cached(Some(kib), Some(4096))), [0; 3]);
    }

    /// A recorded trace with `(page, nanoseconds of waiting)` of reads of one page of one file of 1000 pages.
    fn recorded(reads: &[(u64, u64)]) -> Trace {
        let [bowwave, kernel, date] = Default::default();
        let mut bytes = Vec::new();
        let header = Header { bowwave, kernel, date };
        let mut recorder = Recorder::begin(&mut bytes, &header).expect("room");
        recorder.process("p").expect("room");
        recorder.file("a", 4_096_000).expect("room");
        for (at, (page, took)) in (0..).zip(reads) {
            let (op, offset) = (TraceOp::Read, page * PAGE_BYTES);
            let record =
                Record { at, took: *took, process: 0, file: 0, op, offset, bytes: PAGE_BYTES };
            recorder.run(&Run { record, calls: 1, lasted: 1 }).expect("room");
        }
        recorder.finish().expect("room");
        trace::read(&mut bytes.as_slice()).expect("valid")
    }

    #[test]
    fn recorded_reads_that_did_not_wait_were_from_memory() {
        let warm = recorded(&[(0, 0), (1, 0), (500, 0)]);
        assert_eq!(before(&warm, 64), [(0, 0..2), (0, 500..501)]);
        assert_eq!(traced_waiting(&warm), Some(0.0));
        let mixed = recorded(&[(0, 9_000_000), (1, 0), (500, 0), (900, 5_000)]);
        assert_eq!(before(&mixed, 64), [(0, 500..501)], "a short wait is one");
        assert_eq!(traced_waiting(&mixed), Some(0.009_005));
    }

    #[test]
    fn waiting_of_many_processes_together_may_be_longer_than_any_time() {
        let most = format!("{}", (1_u64 << 62) / 1000);
        let waited = traced_waiting(&trace(&[
            (0, 1, &most),
            (5, 1, &most),
            (9, 1, &most),
            (9, 1, &most),
            (9, 1, &most),
        ]));
        assert!(waited.is_some_and(|seconds| seconds > 2e10), "{waited:?}");
    }

    #[test]
    fn only_reads_that_are_not_from_memory_have_waited() {
        let waited = |reads| traced_waiting(&trace(reads));
        assert_eq!(waited(&[(0, 16, "12"), (16, 16, "9000"), (500, 1, "1000")]), Some(0.01));
        assert_eq!((waited(&[(0, 16, "12")]), waited(&[(0, 16, "")])), (Some(0.0), None));
    }
}
