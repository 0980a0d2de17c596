//! Recorded traces that are kept with the code. The Python package's tests read the one in today's format, too. If it
//! cannot be read any more, raise the format of traces (`recorded::KIND`), and keep it under another name. Then, or if
//! a trace is written otherwise, make it anew:
//!
//! ```text
//! RENEW_GOLDEN=1 cargo test -p bowwave-trace --test golden
//! ```

use std::path::{Path, PathBuf};

use readahead::Hint;
use trace::recorded::{Header, Recorder, Run};
use trace::{Reason, Record, Request, RequestOp, TraceOp, Window, open};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

/// In today's format.
const TODAY: &str = "recorded.trace";

/// What a recorder writes of three operations, two windows and two requests, with others of each kind lost.
fn written() -> Vec<u8> {
    let header =
        Header { bowwave: "0.1.0".into(), kernel: "6.18.0".into(), date: "2026-11-23".into() };
    let mut bytes = Vec::new();
    let mut recorder = Recorder::begin(&mut bytes, &header).expect("memory takes everything");
    let tar = recorder.process("tar 7").expect("there is room");
    let cat = recorder.process("cat 8").expect("there is room");
    let helper = recorder.process("helper 9").expect("there is room");
    let file = recorder.file("/srv/a", 1 << 20).expect("there is room");
    let read = |at, process, offset, bytes, took| Record {
        at,
        took,
        process,
        file,
        op: TraceOp::Read,
        offset,
        bytes,
    };
    let advice = Record { op: TraceOp::Advise(Hint::Random), ..read(1_000, cat, 0, 0, 0) };
    for record in [read(5_000, tar, 4096, 8192, 0), advice, read(2_000, cat, 0, 100, 77)] {
        recorder.run(&Run { record, calls: 1, lasted: 0 }).expect("there is room");
    }
    recorder.window(&window()).expect("there is room");
    recorder.window(&Window { process: Some(helper), ..helpers() }).expect("there is room");
    for (device, request) in DEVICES.into_iter().zip(requests()) {
        assert_eq!(recorder.device(device), Some(request.device));
        recorder.request(&request).expect("there is room");
    }
    recorder.lose(3).expect("there is room");
    recorder.lose_pages(40).expect("there is room");
    recorder.lose_requests(2).expect("there is room");
    recorder.finish().expect("memory takes everything");
    bytes
}

fn window() -> Window {
    let (pages, asked, reason) = (1..33, 1..3, Reason::Read);
    Window { at: 4_000, process: Some(1), file: 0, pages, asked, reason }
}

/// A window as it is read of a process that only reads ahead for others: such a process is none of the trace's.
fn helpers() -> Window {
    Window {
        at: 4_500,
        process: None,
        file: 0,
        pages: 64..72,
        asked: 64..64,
        reason: Reason::Request,
    }
}

const DEVICES: [&str; 2] = ["sda", "vdb"];

/// One of each device.
fn requests() -> [Request; 2] {
    [
        Request { at: 4_100, took: 900, device: 0, op: RequestOp::Read, bytes: 131_072 },
        Request { at: 4_200, took: 700, device: 1, op: RequestOp::Write, bytes: 4096 },
    ]
}

const TEXT: &str = "file_bytes,file\n1048576,/srv/a\n\
    time_us,process,file,op,offset,bytes,took_us\n\
    1,cat 8,/srv/a,advise random,0,0,0\n\
    2,cat 8,/srv/a,read,0,100,0.077\n\
    5,tar 7,/srv/a,read,4096,8192,0\n";

#[test]
fn the_golden_trace_is_written_and_read_as_ever() {
    if std::env::var_os("RENEW_GOLDEN").is_some() {
        std::fs::write(golden(TODAY), written()).expect("a folder of ours");
    }
    assert_eq!(std::fs::read(golden(TODAY)).expect("it is there"), written());
    let trace = open(&golden(TODAY)).expect("raise the format, see above");
    assert_eq!((trace.to_string().as_str(), trace.windows()), (TEXT, &[told(), helpers()][..]));
    assert_eq!(
        (trace.devices(), trace.requests()),
        (&DEVICES.map(str::to_owned)[..], &requests()[..])
    );
    let origin = trace.origin().expect("it was recorded");
    assert_eq!((origin.lost, origin.lost_pages, origin.lost_requests), (3, 40, 2));
}

/// The window as it is read: who does something first is the first process.
fn told() -> Window {
    Window { process: Some(0), ..window() }
}

#[test]
fn a_trace_of_an_older_format_still_opens() {
    // The same operations. Format 1 had no windows, format 2 no requests.
    for (name, windows) in [("recorded-1.trace", vec![]), ("recorded-2.trace", vec![told()])] {
        let trace = open(&golden(name)).expect("it is one");
        assert_eq!((trace.to_string().as_str(), trace.windows()), (TEXT, &windows[..]));
        assert!(trace.devices().is_empty() && trace.requests().is_empty());
        assert_eq!(trace.origin().map(|origin| (origin.lost, origin.is_complete)), Some((3, true)));
    }
}
