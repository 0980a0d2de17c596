//! A trace is read as it was recorded, whatever happens to the file.

use proptest::collection::vec;
use proptest::prelude::*;
use readahead::Hint;

use super::item::{Brought, Completed, Item, Operation, What, Why};
use super::*;
use crate::{
    OpenError, Reason, Record, RecordedError, Request, RequestOp, Trace, TraceError, TraceOp,
    Window, open,
};

fn header() -> Header {
    Header { bowwave: "0.1.0".into(), kernel: "6.18.0".into(), date: "2026-11-23".into() }
}

fn recorder() -> Recorder<Vec<u8>> {
    Recorder::begin(Vec::new(), &header()).expect("memory takes everything")
}

/// Records and gives the file.
fn recorded(tell: impl FnOnce(&mut Recorder<&mut Vec<u8>>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut recorder = Recorder::begin(&mut bytes, &header()).expect("memory takes everything");
    tell(&mut recorder);
    recorder.finish().expect("memory takes everything");
    bytes
}

fn read(bytes: &[u8]) -> Result<Trace, TraceError> {
    crate::read(bytes)
}

fn read_of(at: u64, offset: u64, bytes: u64) -> Record {
    Record { at, took: 0, process: 0, file: 0, op: TraceOp::Read, offset, bytes }
}

fn once(record: Record) -> Run {
    Run { record, calls: 1, lasted: 0 }
}

/// A file with so many reads, each in a block of its own, and the ends of its blocks.
fn in_blocks(reads: u64) -> (Vec<u8>, Vec<usize>) {
    let mut bytes = Vec::new();
    let mut ends = Vec::new();
    let mut recorder = Recorder::begin(&mut bytes, &header()).expect("there is room");
    ends.push(recorder.totals().bytes as usize);
    recorder.process("p").expect("there is room");
    recorder.file("f", 1 << 30).expect("there is room");
    for number in 0..reads {
        recorder.run(&once(read_of(number, number << 12, 4096))).expect("there is room");
        recorder.flush().expect("there is room");
        ends.push(recorder.totals().bytes as usize);
    }
    ends.push(recorder.finish().expect("there is room").bytes as usize);
    (bytes, ends)
}

#[test]
fn what_was_recorded_is_read() {
    let bytes = recorded(|to| {
        let [tar, cat] = ["tar 7", "cat 8"].map(|name| to.process(name).expect("room"));
        let file = to.file("/srv/a, \"b\"", 1 << 20).expect("room");
        let advice = TraceOp::Advise(Hint::Random);
        let records = [
            Record { process: tar, file, ..read_of(5_000, 4096, 8192) },
            Record { process: cat, file, op: advice, ..read_of(1_000, 0, 0) },
            Record { process: cat, file, took: 77, ..read_of(2_000, 0, 100) },
        ];
        records.iter().for_each(|record| to.run(&once(*record)).expect("room"));
        to.lose(3).expect("room");
    });
    let trace = read(&bytes).expect("a trace");
    assert_eq!(
        trace.to_string(),
        "file_bytes,file\n1048576,\"/srv/a, \"\"b\"\"\"\n\
         time_us,process,file,op,offset,bytes,took_us\n\
         1,cat 8,\"/srv/a, \"\"b\"\"\",advise random,0,0,0\n\
         2,cat 8,\"/srv/a, \"\"b\"\"\",read,0,100,0.077\n\
         5,tar 7,\"/srv/a, \"\"b\"\"\",read,4096,8192,0\n"
    );
    let origin = trace.origin().expect("it was recorded");
    assert_eq!((origin.lost, origin.is_complete, origin.calls_per_record), (3, true, 1));
    assert_eq!(origin.notes(), ["3 operations were lost when the trace was recorded"]);
}

#[test]
fn a_run_becomes_its_calls_again() {
    let bytes = recorded(|to| {
        to.process("p").expect("room");
        to.file("f", 0).expect("room");
        let record = read_of(1000, 3 * 4096, 23 * 4096);
        to.run(&Run { record, calls: 23, lasted: 2300 }).expect("room");
    });
    let trace = read(&bytes).expect("a trace");
    let expected: Vec<Record> =
        (0..23).map(|n| read_of(1000 + n * 100, (3 + n) * 4096, 4096)).collect();
    assert_eq!(trace.records(), expected);
    assert_eq!(trace.files()[0].bytes, 26 * 4096, "the end of what was read");
}

#[test]
fn more_calls_than_a_trace_holds_are_grouped_and_that_is_told() {
    let calls = 3 * MAX_OPERATIONS as u32 / 64;
    let bytes = recorded(|to| {
        to.process("p").expect("room");
        to.file("f", 0).expect("room");
        for number in 0..64 {
            let bytes = u64::from(calls) * 4096;
            let record = read_of(0, number * bytes, bytes);
            to.run(&Run { record, calls, lasted: 1 << 40 }).expect("room");
        }
    });
    let trace = read(&bytes).expect("a trace");
    assert_eq!(trace.records().len() as u64, 3 * MAX_OPERATIONS / 4);
    assert!(trace.records().iter().all(|record| record.bytes == 4 * 4096));
    let notes = trace.origin().expect("it was recorded").notes();
    assert!(notes[0].starts_with("up to 4 consecutive calls"), "{notes:?}");
}

/// A trace with these items beside one read, as another recorder might have written it.
fn with_items(files: &[(&str, u64)], all: &[Item<&str>]) -> Result<Trace, TraceError> {
    let mut items = vec![Item::Process { name: "p" }];
    items.extend(files.iter().map(|&(name, bytes)| Item::File { name, bytes }));
    let items = items.iter().chain(all);
    let block: Vec<u8> =
        items.flat_map(|item| postcard::to_allocvec(item).expect("memory")).collect();
    let mut bytes = in_blocks(0).0;
    bytes.truncate(in_blocks(0).1[0]);
    blocks::write(&mut bytes, &block).expect("memory takes everything");
    read(&bytes)
}

fn item(run: &Run) -> Item<&'static str> {
    let Record { at, took, process, file, op, offset, bytes } = run.record;
    let since = at as i64;
    let all = Operation { since, took, process, file, op: op.into(), offset, bytes };
    Item::Run { all, calls: run.calls, lasted: run.lasted }
}

/// Operations that no trace as text could have.
fn beyond_limits() -> [Run; 7] {
    [
        once(read_of(0, crate::MAX_FILE_BYTES, 1)),
        once(read_of(0, u64::MAX, 2)),
        once(read_of(0, 0, crate::MAX_OP_BYTES + 1)),
        once(read_of(u64::MAX, 0, 1)),
        once(Record { took: u64::MAX, ..read_of(0, 0, 1) }),
        Run { record: read_of(0, 0, 1), calls: 2, lasted: u64::MAX },
        Run { record: read_of(crate::MAX_TIME, 0, 2), calls: 2, lasted: 1 },
    ]
}

#[test]
fn what_reaches_beyond_the_limits_is_lost_and_the_rest_is_a_trace() {
    for run in beyond_limits() {
        let bytes = recorded(|to| {
            to.process("p").expect("room");
            to.file("f", 2 << 40).expect("room");
            to.run(&run).expect("room");
            to.run(&once(read_of(5, 0, 4096))).expect("room");
        });
        let trace = read(&bytes).expect("a trace");
        assert_eq!(trace.records(), [read_of(5, 0, 4096)], "{run:?}");
        assert_eq!(trace.origin().map(|origin| origin.lost), Some(run.calls.into()));
    }
}

#[test]
fn what_an_older_recorder_wrote_beyond_the_limits_is_left_out_and_counted() {
    for run in beyond_limits() {
        // Times are differences.
        let next = Item::Once(Operation {
            since: 5i64.wrapping_sub(run.record.at as i64),
            took: 0,
            process: 0,
            file: 0,
            op: TraceOp::Read.into(),
            offset: 0,
            bytes: 4096,
        });
        let trace = with_items(&[("f", 2 << 40)], &[item(&run), next]).expect("a trace");
        assert_eq!(trace.records(), [read_of(5, 0, 4096)], "{run:?}");
        assert_eq!(trace.origin().map(|origin| origin.left_out), Some(run.calls.into()));
        let alone = with_items(&[("f", 2 << 40)], &[item(&run)]).expect_err("nothing is left");
        assert!(alone.to_string().contains("beyond what can be simulated"), "{alone}");
    }
}

#[test]
fn operations_on_the_largest_files_are_left_out_if_all_are_too_large_and_that_is_told() {
    let bytes = recorded(|to| {
        to.process("p").expect("room");
        for (file, end) in [(0, 700 << 30), (1, 300 << 30), (2, 600u64 << 30)] {
            to.file(&format!("/{file}"), end).expect("room");
            to.run(&once(Record { file, ..read_of(file.into(), end - 8, 8) })).expect("room");
        }
    });
    let trace = read(&bytes).expect("a trace");
    let ends: Vec<u64> = trace.records().iter().map(Record::end).collect();
    assert_eq!(ends, [300 << 30, 600 << 30]);
    let notes = trace.origin().expect("it was recorded").notes();
    assert!(notes[0].starts_with("1 operations were left out: all files together"), "{notes:?}");
    assert_eq!(Trace::parse(trace.to_string().as_bytes()).expect("a trace").records().len(), 2);
}

#[test]
fn a_small_file_cannot_become_more_operations_than_a_trace_has() {
    let run = Run { record: read_of(0, 0, crate::MAX_OP_BYTES), calls: u32::MAX, lasted: 0 };
    let large = Run { record: read_of(0, 0, crate::MAX_FILE_BYTES), calls: 512, lasted: 0 };
    let items: Vec<_> = [run, large].iter().cycle().take(4000).map(item).collect();
    let trace = with_items(&[("f", 1)], &items).expect("a trace");
    assert!(trace.records().len() as u64 <= MAX_OPERATIONS);
    assert_eq!(trace.origin().map(|origin| origin.left_out), Some(2000 * 512));
}

#[test]
fn larger_files_than_the_simulators_end_with_what_was_read() {
    let bytes = recorded(|to| {
        to.process("p").expect("room");
        to.file("f", u64::MAX).expect("room");
        to.run(&once(read_of(0, 4096, 10))).expect("room");
    });
    assert_eq!(read(&bytes).expect("a trace").files()[0].bytes, 4106);
}

#[test]
fn equal_names_are_told_apart_and_control_characters_go() {
    let bytes = recorded(|to| {
        for (file, [process, name]) in (0..3).zip([["p", "f"], ["p", "f"], [" p\n", ""]]) {
            to.process(process).expect("room");
            to.file(name, 5).expect("room");
            to.run(&once(Record { file, process: file, ..read_of(0, 0, 5) })).expect("room");
        }
    });
    let trace = read(&bytes).expect("a trace");
    assert_eq!(trace.processes(), ["p", "p (2)", "p\u{fffd}"]);
    let names: Vec<&str> = trace.files().iter().map(|file| file.name.as_str()).collect();
    assert_eq!(names, ["f", "f (2)", "?"]);
    let strange =
        [Item::File { name: "/\x1b[31m\r\u{9b}2J", bytes: 9 }, item(&once(read_of(0, 0, 5)))];
    let trace = with_items(&[], &strange).expect("a trace");
    assert_eq!(trace.files()[0].name, "/\u{fffd}[31m\u{fffd}\u{fffd}2J");
}

#[test]
fn a_name_is_no_longer_than_a_path_and_can_be_read_as_text() {
    let long = "/ä".repeat(1 << 16);
    let items = [0, 1].map(|file| item(&once(Record { file, ..read_of(0, 0, 5) })));
    let trace = with_items(&[(&long, 9), (&long, 9)], &items).expect("a trace");
    assert!(trace.files().iter().all(|file| file.name.len() <= crate::MAX_NAME_BYTES));
    assert_eq!(Trace::parse(trace.to_string().as_bytes()).expect("a trace").files().len(), 2);
}

#[test]
fn a_trace_cut_at_any_byte_is_read_to_its_last_whole_block() {
    let (bytes, ends) = in_blocks(5);
    for length in 0..bytes.len() {
        let whole = ends.iter().filter(|end| **end <= length).count();
        match read(&bytes[..length]) {
            Ok(trace) => {
                assert_eq!(trace.records().len(), whole - 1, "cut at {length}");
                let origin = trace.origin().expect("it was recorded");
                assert!(!origin.is_complete && origin.notes()[0].contains("ends early"));
            }
            Err(TraceError::Recorded(RecordedError::NothingRead)) => assert_eq!(whole, 1),
            Err(TraceError::Recorded(RecordedError::CutHeader)) => assert_eq!(whole, 0),
            // Four bytes tell that it is ours, eight of what kind.
            Err(TraceError::Recorded(RecordedError::OtherKind)) => assert!(length < 8),
            Err(_) => assert!(length < 4, "cut at {length}"),
        }
    }
}

#[test]
fn a_changed_bit_is_refused_in_one_sentence() {
    let (bytes, ends) = in_blocks(3);
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        // Another bit of the format would make it an older one.
        changed[at] ^= 1 << ((at + 2) % 8);
        let error = read(&changed).expect_err("it is damaged").to_string();
        let expected = match at {
            0..4 => "this is not UTF-8 text".into(),
            4..8 => "not a trace of reads".into(),
            8..12 => "not 3 as this bowwave".into(),
            _ => {
                let block = ends.iter().rfind(|end| **end <= at).copied().unwrap_or(12);
                format!("it is damaged at byte {block};")
            }
        };
        assert!(error.contains(&expected), "{at}: {error}");
    }
}

#[test]
fn data_after_the_end_is_damage() {
    let (bytes, ends) = in_blocks(1);
    let more = [&bytes[..], &bytes[ends[0]..ends[1]]].concat();
    let error = read(&more).expect_err("it is damaged").to_string();
    assert!(error.contains(&format!("damaged at byte {}", ends[2])), "{error}");
}

#[test]
fn numbers_that_no_recorder_writes_are_damage() {
    let refused = |run: Run| {
        let bytes = recorded(|to| {
            to.process("p").expect("room");
            to.file("f", 0).expect("room");
            to.run(&once(read_of(0, 0, 1))).expect("room");
            to.run(&run).expect("room");
        });
        let error = read(&bytes).expect_err("it is damaged").to_string();
        assert!(error.contains("it is damaged"), "{error}");
    };
    refused(once(Record { process: 1, ..read_of(0, 0, 1) }));
    refused(once(Record { file: 1, ..read_of(0, 0, 1) }));
    refused(Run { record: read_of(0, 0, 1), calls: 0, lasted: 0 });
}

/// Pages that a read brought in, some of which it had asked for.
fn window(at: u64, pages: std::ops::Range<u64>, asked: std::ops::Range<u64>) -> Window {
    Window { at, process: Some(0), file: 0, pages, asked, reason: Reason::Read }
}

/// A trace of a read of one page, and of these windows.
fn with_windows(windows: &[Window]) -> Trace {
    let bytes = recorded(|to| {
        to.process("p").expect("room");
        to.file("f", 1 << 40).expect("room");
        to.run(&once(read_of(5, 0, 4096))).expect("room");
        windows.iter().for_each(|window| to.window(window).expect("room"));
    });
    read(&bytes).expect("a trace")
}

#[test]
fn parts_of_a_window_are_one_and_windows_are_in_the_order_of_time() {
    let parts = [
        window(9, 40..43, 41..43),
        // Not the same time, or not where the last one ends.
        window(7, 0..3, 0..0),
        window(7, 3..5, 4..5),
        window(7, 5..9, 5..7),
        window(8, 9..10, 9..9),
        window(8, 11..12, 11..11),
    ];
    let trace = with_windows(&parts);
    let expected =
        [window(7, 0..9, 4..7), parts[4].clone(), parts[5].clone(), window(9, 40..43, 41..43)];
    assert_eq!(trace.windows(), expected);
    assert!(trace.notes().is_empty());
    assert_eq!(Trace::parse(trace.to_string().as_bytes()).expect("a trace").windows(), []);
}

#[test]
fn who_only_brings_pages_in_is_no_process_of_the_trace() {
    let bytes = recorded(|to| {
        to.process("ahead").expect("room");
        to.process("reader").expect("room");
        to.file("f", 1 << 20).expect("room");
        to.window(&window(3, 0..23, 0..0)).expect("room");
        to.window(&Window { process: Some(1), ..window(4, 23..30, 23..24) }).expect("room");
        to.run(&once(Record { process: 1, ..read_of(5, 0, 4096) })).expect("room");
    });
    let trace = read(&bytes).expect("a trace");
    assert_eq!(trace.processes(), ["reader"]);
    let whose: Vec<_> = trace.windows().iter().map(|window| window.process).collect();
    assert_eq!(whose, [None, Some(0)]);
}

#[test]
fn windows_beyond_the_limits_are_lost_and_that_is_told() {
    let most = crate::MAX_FILE_BYTES / 4096;
    let beyond = [
        window(1, most..most + 23, most..most),
        window(crate::MAX_TIME + 1, 0..23, 0..0),
        window(1, 0..23, 7..24),
        Window { process: None, ..window(1, 0..23, 0..0) },
    ];
    let trace = with_windows(&beyond);
    assert!(trace.windows().is_empty());
    assert_eq!(trace.notes(), ["92 pages that the kernel brought in are missing in the trace"]);
    // Nor does anything else that a recorder could not write become a window.
    let strange = |process, file, first, pages| {
        let (since, why, skipped, asked) = (0, Why::Fault, 0, 1);
        let brought = Brought { since, process, file, why, first, pages, skipped, asked };
        with_items(&[("f", 9)], &[item(&once(read_of(0, 0, 5))), Item::Window(brought)])
    };
    for (first, pages) in [(0, 0), (u64::MAX, 5), (5, u64::MAX), (most, 1)] {
        assert!(strange(0, 0, first, pages).expect("a trace").windows().is_empty());
    }
    for (process, file) in [(1, 0), (0, 1)] {
        let error = strange(process, file, 0, 1).expect_err("it is damaged").to_string();
        assert!(error.contains("it is damaged"), "{error}");
    }
}

/// A read of a device.
fn request(at: u64, took: u64, device: u32, bytes: u32) -> Request {
    Request { at, took, device, op: RequestOp::Read, bytes }
}

/// A trace of a read of one page, and of these requests of two devices of one name.
fn with_requests(requests: &[Request]) -> Trace {
    let bytes = recorded(|to| {
        to.process("p").expect("room");
        to.file("f", 1 << 20).expect("room");
        to.run(&once(read_of(5, 0, 4096))).expect("room");
        for number in 0..2 {
            assert_eq!(to.device("loop0"), Some(number));
        }
        requests.iter().for_each(|request| to.request(request).expect("room"));
    });
    read(&bytes).expect("a trace")
}

#[test]
fn requests_are_in_the_order_of_time_and_devices_have_names_of_their_own() {
    let write = Request { op: RequestOp::Write, ..request(3, 40, 1, 512) };
    let flush = Request { op: RequestOp::Other, ..request(1, 0, 0, 0) };
    // Requests end in another order than they begin.
    let trace = with_requests(&[request(7, 2, 0, 131_072), write, flush]);
    assert_eq!(trace.devices(), ["loop0", "loop0 (2)"]);
    assert_eq!(trace.requests(), [flush, write, request(7, 2, 0, 131_072)]);
    assert!(trace.notes().is_empty());
    let text = Trace::parse(trace.to_string().as_bytes()).expect("a trace");
    assert!(text.devices().is_empty() && text.requests().is_empty());
}

#[test]
fn requests_beyond_the_limits_are_lost_and_that_is_told() {
    let beyond = [request(crate::MAX_TIME + 1, 0, 0, 9), request(0, crate::MAX_TIME + 1, 0, 9)];
    let bytes = recorded(|to| {
        to.process("p").expect("room");
        to.file("f", 9).expect("room");
        to.device("loop0").expect("room");
        to.run(&once(read_of(5, 0, 9))).expect("room");
        beyond.iter().for_each(|request| to.request(request).expect("room"));
        to.lose_requests(21).expect("room");
    });
    let trace = read(&bytes).expect("a trace");
    assert!(trace.requests().is_empty());
    assert_eq!(trace.notes(), ["23 requests of devices are missing in the trace"]);
    // Another recorder may write what ours does not.
    let strange = |device, took| {
        let completed = Completed { since: 0, took, device, what: What::Read, bytes: 9 };
        let all = [
            item(&once(read_of(0, 0, 5))),
            Item::Device { name: "\x1b[31m" },
            Item::Request(completed),
        ];
        with_items(&[("f", 9)], &all)
    };
    let trace = strange(0, u64::MAX).expect("a trace");
    assert_eq!(trace.devices(), ["\u{fffd}[31m"]);
    assert_eq!(trace.origin().map(|origin| origin.lost_requests), Some(1));
    let error = strange(1, 0).expect_err("it is damaged").to_string();
    assert!(error.contains("it is damaged"), "{error}");
}

#[test]
fn names_beyond_the_limit_are_not_numbered() {
    let mut to = recorder();
    for number in 0..crate::MAX_NAMES as u32 {
        assert_eq!((to.file("f", 0), to.device("d")), (Some(number), Some(number)));
    }
    assert_eq!((to.file("f", 0), to.device("d")), (None, None));
}

#[test]
fn a_file_is_opened_whatever_its_form_and_errors_name_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).expect("ours");
        path
    };
    let (bytes, _) = in_blocks(2);
    assert_eq!(open(&path("recorded", &bytes)).expect("a trace").records().len(), 2);
    let text = open(&path("text", crate::EXAMPLE.as_bytes())).expect("a trace");
    assert!(text.origin().is_none());
    let missing = open(&folder.path().join("none")).expect_err("missing");
    assert!(matches!(missing, OpenError::Io { .. }) && missing.to_string().contains("none"));
    let cut = open(&path("cut", &bytes[..20])).expect_err("cut").to_string();
    assert!(cut.contains("cut: it ends within its header"), "{cut}");
    assert!(open(folder.path()).expect_err("a folder").to_string().starts_with("cannot read"));
    let cause = std::io::ErrorKind::PermissionDenied.into();
    let refused = OpenError::Io { name: "roots".into(), cause }.to_string();
    assert!(refused.starts_with("cannot read the trace roots") && refused.contains("use sudo"));
}

/// A trace as text, and the same recorded.
fn any_trace() -> impl Strategy<Value = Trace> {
    let place = (0..1u64 << 40, 0..1u64 << 20);
    let record = (0..9u8, 0..9u8, 0..7usize, 0..u64::MAX >> 2, 0..1u64 << 40, place);
    vec(record, 0..60).prop_map(|records| {
        let mut text = format!("{}\n0,p,f,read,0,1\n", crate::HEADER);
        for (process, file, op, at, _, (offset, bytes)) in records {
            let op = TraceOp::ALL[op].name();
            let (at, offset) = (at / 1000, offset >> 4);
            text += &format!("{at},p{process},f{file},{op},{offset},{bytes}\n");
        }
        Trace::parse(text.as_bytes()).expect("every line is right")
    })
}

proptest! {
    #[test]
    fn every_trace_is_read_as_it_was_recorded(trace in any_trace(), flush in any::<bool>()) {
        let bytes = recorded(|to| {
            for process in trace.processes() {
                to.process(process).expect("room");
            }
            for file in trace.files() {
                to.file(&file.name, file.bytes).expect("room");
            }
            for record in trace.records() {
                to.run(&once(*record)).expect("room");
                if flush {
                    to.flush().expect("room");
                }
            }
        });
        let read = read(&bytes).expect("a trace");
        prop_assert_eq!(read.records(), trace.records());
        prop_assert_eq!(read.to_string(), trace.to_string());
    }

    #[test]
    fn every_window_is_read_as_it_was_recorded(
        windows in vec((0..1u64 << 62, 0..1u64 << 27, 1..1u64 << 20, any::<[u8; 2]>(), 0..3usize), 0..40)
    ) {
        let mut windows: Vec<Window> = windows.into_iter().map(|(at, first, pages, parts, reason)| {
            let [from, to] = parts.map(|part| first + pages * u64::from(part) / 256);
            let asked = if from < to { from..to } else { first..first };
            let reason = [Reason::Read, Reason::Fault, Reason::Request][reason];
            Window { reason, ..window(at, first..first + pages, asked) }
        }).collect();
        let trace = with_windows(&windows);
        windows.sort_by_key(|window| window.at);
        prop_assert_eq!(trace.windows(), windows);
        prop_assert_eq!(trace.origin().map(|origin| origin.lost_pages), Some(0));
    }

    #[test]
    fn every_request_is_read_as_it_was_recorded(
        requests in vec((0..1u64 << 62, 0..1u64 << 62, 0..2u32, 0..3usize, any::<u32>()), 0..40)
    ) {
        let mut requests: Vec<Request> = requests.into_iter().map(|(at, took, device, op, bytes)| {
            let op = [RequestOp::Read, RequestOp::Write, RequestOp::Other][op];
            Request { op, ..request(at, took, device, bytes) }
        }).collect();
        let trace = with_requests(&requests);
        requests.sort_by_key(|request| request.at);
        prop_assert_eq!(trace.requests(), requests);
        prop_assert_eq!(trace.origin().map(|origin| origin.lost_requests), Some(0));
    }

    #[test]
    fn a_run_loses_no_byte_and_its_calls_follow_one_another(
        calls in 1..500u32, bytes in prop_oneof![0..600u64, 0..1u64 << 24], offset in 0..1u64 << 39, lasted in 0..1u64 << 40,
    ) {
        let file = recorded(|to| {
            to.process("p").expect("room");
            to.file("f", 1 << 40).expect("room");
            let record = read_of(7, offset, bytes + 1);
            to.run(&Run { record, calls, lasted }).expect("room");
        });
        let trace = read(&file).expect("a trace");
        let records = trace.records();
        prop_assert_eq!(records.len(), calls as usize);
        prop_assert_eq!(records[0].offset, offset);
        // With more calls than bytes, each has a byte, and some have the same.
        let overlap = u64::from(u64::from(calls) > bytes);
        let follows = |pair: &[Record]| pair[1].offset <= pair[0].end() && pair[0].end() <= pair[1].offset + overlap;
        prop_assert!(records.windows(2).all(follows));
        prop_assert!(records.iter().all(|record| record.bytes > 0));
        prop_assert_eq!(records.last().map(Record::end), Some(offset + bytes + 1));
        prop_assert!(records.iter().all(|record| (7..=7 + lasted).contains(&record.at)));
    }

    #[test]
    fn any_bytes_are_a_trace_or_an_error(bytes in vec(any::<u8>(), 0..300), is_framed in any::<bool>()) {
        let (whole, ends) = in_blocks(1);
        let mut file = whole[..ends[0]].to_vec();
        if is_framed {
            blocks::write(&mut file, &bytes).expect("room");
        } else {
            file.extend(&bytes);
        }
        let _ = read(&file);
    }
}
