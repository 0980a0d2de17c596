//! A recorded trace that is kept with the code, and that the Python package's tests read, too. If it cannot be read any
//! more, raise the format of traces (`recorded::KIND`); then, or if a trace is written otherwise, make it anew:
//!
//! ```text
//! RENEW_GOLDEN=1 cargo test -p bowwave-trace --test golden
//! ```

use std::path::{Path, PathBuf};

use readahead::Hint;
use trace::recorded::{Header, Recorder, Run};
use trace::{Reason, Record, TraceOp, Window, open};

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/recorded.trace")
}

/// The same operations in format 1, which had no windows.
fn first_format() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/recorded-1.trace")
}

/// What a recorder writes of three operations and a window, with three other operations lost.
fn written() -> Vec<u8> {
    let header =
        Header { bowwave: "0.1.0".into(), kernel: "6.18.0".into(), date: "2026-11-23".into() };
    let mut bytes = Vec::new();
    let mut recorder = Recorder::begin(&mut bytes, &header).expect("memory takes everything");
    let tar = recorder.process("tar 7").expect("there is room");
    let cat = recorder.process("cat 8").expect("there is room");
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
    recorder.lose(3).expect("there is room");
    recorder.finish().expect("memory takes everything");
    bytes
}

fn window() -> Window {
    let (pages, asked, reason) = (1..33, 1..3, Reason::Read);
    Window { at: 4_000, process: Some(1), file: 0, pages, asked, reason }
}

const TEXT: &str = "file_bytes,file\n1048576,/srv/a\n\
    time_us,process,file,op,offset,bytes,took_us\n\
    1,cat 8,/srv/a,advise random,0,0,0\n\
    2,cat 8,/srv/a,read,0,100,0.077\n\
    5,tar 7,/srv/a,read,4096,8192,0\n";

#[test]
fn the_golden_trace_is_written_and_read_as_ever() {
    if std::env::var_os("RENEW_GOLDEN").is_some() {
        std::fs::write(golden(), written()).expect("a folder of ours");
    }
    assert_eq!(std::fs::read(golden()).expect("it is there"), written());
    let trace = open(&golden()).expect("raise the format, see above");
    // Who does something first is the first process.
    let told = Window { process: Some(0), ..window() };
    assert_eq!((trace.to_string().as_str(), trace.windows()), (TEXT, &[told][..]));
}

#[test]
fn a_trace_of_the_first_format_still_opens() {
    let trace = open(&first_format()).expect("it is one");
    assert_eq!((trace.to_string().as_str(), trace.windows()), (TEXT, &[][..]));
    assert_eq!(trace.origin().map(|origin| (origin.lost, origin.is_complete)), Some((3, true)));
}
