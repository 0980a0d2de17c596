//! A page is right for any trace, and small for a large one.

use std::fmt::Write;

use proptest::prelude::*;
use trace::recorded::{Header, Recorder, Run};
use trace::{EXAMPLE, HEADER, Reason, Record, Request, RequestOp, Trace, TraceOp, Window};

use super::report;
use crate::checks::check;

/// A page has to open on a phone.
const MOST_BYTES: usize = 2_000_000;

fn page(text: &str) -> String {
    let page = report("my <trace>", &Trace::parse(text.as_bytes()).expect("a trace"));
    check(&page);
    assert!(page.len() < MOST_BYTES, "{} bytes", page.len());
    page
}

#[test]
fn the_example_names_who_waited_why_and_what_may_help() {
    let page = page(EXAMPLE);
    let first = "<code>my &lt;trace&gt;</code> records what 4 processes read from 4 files within";
    assert!(page.contains(first), "{page}");
    assert!(page.contains("<strong>Reading backward: "), "{page}");
    assert!(page.contains("<code>tac</code> in <code>/srv/log</code>"));
    for (process, pattern) in [("tac", "backward"), ("column", "strided"), ("lookup", "random")] {
        let begins = format!("<tr><td>{process}</td>");
        let line = page.lines().find(|line| line.starts_with(&begins)).expect("a row");
        assert!(line.contains(&format!("<td class=\"words\">{pattern}</td>")), "{line}");
    }
    assert_eq!(page.matches("<svg").count(), 3 + 4, "three plots, and a picture of each file");
}

/// What the page says may help, of a trace of waits of 9 ms.
fn helps(op: &str, places: &[(u64, u64)]) -> String {
    let mut text = format!("{HEADER},took_us\n");
    for (number, (file, offset)) in places.iter().enumerate() {
        let at = number * 10_000;
        let _ = writeln!(text, "{at},p,/srv/{file},{op},{offset},4096,9000");
    }
    let page = page(&text);
    let items = page.lines().filter(|line| line.starts_with("<li><strong>"));
    items.map(str::to_owned).collect::<Vec<_>>().join("\n")
}

#[test]
fn random_faults_want_a_smaller_window_and_ordered_ones_bowwave() {
    let mut state = 7;
    let mut random = || patterns::order::next_random(&mut state) % (1 << 20) * 4096;
    let jumping: Vec<_> = (0..41).map(|_| (0, random())).collect();
    let going: Vec<_> = (0..211).map(|number| (0, number * 4096)).collect();
    let (jumping, going) = (helps("mmap", &jumping), helps("mmap", &going));
    assert!(jumping.contains("A smaller window may cost less: <code>bowwave advise</code>"));
    assert!(!jumping.contains("finds the order of faults"), "{jumping}");
    assert!(going.contains("<code>bowwave run</code> finds the order of faults, too."), "{going}");
    assert!(!(jumping + &going).contains("128 KiB"), "the window may be another one");
}

#[test]
fn beginnings_of_large_files_are_read_ahead_by_bowwave_run() {
    let ends = (0..11).map(|file| (file, 1 << 20));
    let starts = (0..11).map(|file| (file, 0));
    let helps = helps("read", &starts.chain(ends).collect::<Vec<_>>());
    assert!(helps.contains("<code>bowwave run</code> reads the beginnings of the next files"));
}

#[test]
fn a_trace_without_durations_has_no_word_of_waits() {
    let text = format!("{HEADER}\n0,p,/a,read,0,4096\n9000000,p,/a,read,4096,4096\n");
    let page = page(&text);
    assert!(page.contains("does not say how long reads took"));
    for absent in ["opportunities", "Waits over time", "s waited", "% of time", ">waited<"] {
        assert!(!page.contains(absent), "{absent}");
    }
}

#[test]
fn a_trace_that_only_writes_or_never_waits_says_so() {
    assert!(
        page(&format!("{HEADER}\n0,p,/a,write,0,4096\n")).contains("no program reads anything")
    );
    let cached = page(&format!("{HEADER},took_us\n0,p,/a,read,0,4096,3\n"));
    assert!(cached.contains("nobody waited") && cached.contains("How large reads were"));
}

/// A recording of reads of 64 KiB, one after the other, that waited so long each.
fn recording(took_us: u64) -> Trace {
    trace::read(&recorded(took_us, 0)[..]).expect("a trace")
}

/// The same as a file; so many further ones were lost.
fn recorded(took_us: u64, lost: u64) -> Vec<u8> {
    let header = Header { bowwave: "1".into(), kernel: "6".into(), date: "2026-11-23".into() };
    let mut bytes = Vec::new();
    let mut recorder = Recorder::begin(&mut bytes, &header).expect("room");
    recorder.process("cat");
    recorder.file("/a", 1 << 20);
    for number in 0..13 {
        let (at, took) = (number * 1_000_000, took_us * 1000);
        let (op, offset) = (TraceOp::Read, number << 16);
        let record = Record { at, took, process: 0, file: 0, op, offset, bytes: 1 << 16 };
        recorder.run(&Run { record, calls: 1, lasted: took }).expect("room");
    }
    recorder.lose(lost).expect("room");
    // The end is a block of its own then.
    recorder.flush().expect("room");
    recorder.finish().expect("room");
    bytes
}

#[test]
fn what_the_recorder_warns_of_is_in_the_first_paragraph() {
    let whole = recorded(40, 997);
    let cut = &whole[..whole.len() - 1];
    let lost = "<strong>Note: 997 operations were lost when the trace was recorded.</strong>";
    for (bytes, note) in [(&whole[..], lost), (cut, "<strong>Note: the trace ends early: ")] {
        let page = report("slow", &trace::read(bytes).expect("a trace"));
        check(&page);
        let first = page.lines().find(|line| line.starts_with("<p>")).expect("a paragraph");
        assert!(first.contains(note), "{first}");
    }
    assert!(!report("slow", &recording(40)).contains("Note:"));
}

#[test]
fn a_recording_tells_waits_alone_and_that_nobody_waited() {
    let warm = report("warm", &recording(0));
    check(&warm);
    assert!(warm.contains("nobody waited") && !warm.contains("does not say"), "{warm}");
    let cold = report("cold", &recording(40));
    check(&cold);
    assert!(cold.contains("In 13 of these reads, programs waited for their data: <strong>520 µs"));
    assert!(cold.contains("<code>bowwave record</code> measured") && !cold.contains("GB/s"));
}

/// A recording of a program that reads 80 of 101 pages, of which the kernel has read all but the first 16 ahead.
fn with_windows() -> Trace {
    let header = Header { bowwave: "1".into(), kernel: "6".into(), date: "2026-11-23".into() };
    let mut bytes = Vec::new();
    let mut recorder = Recorder::begin(&mut bytes, &header).expect("room");
    recorder.process("cat");
    recorder.file("/a", 101 << 12);
    for number in 0..5 {
        let (at, took) = (number * 50_000_000, if number == 0 { 8_000_000 } else { 0 });
        let (op, offset) = (TraceOp::Read, number << 16);
        let record = Record { at, took, process: 0, file: 0, op, offset, bytes: 1 << 16 };
        recorder.run(&Run { record, calls: 1, lasted: took }).expect("room");
    }
    for (at, pages, asked) in [(0, 0..32, 0..16), (60, 32..64, 0..0), (170, 64..101, 0..0)] {
        let (at, process, reason) = (at * 1_000_000, Some(0), Reason::Read);
        recorder.window(&Window { at, process, file: 0, pages, asked, reason }).expect("room");
    }
    recorder.finish().expect("room");
    trace::read(&bytes[..]).expect("a trace")
}

#[test]
fn what_the_kernel_read_ahead_is_told_in_words_in_a_table_and_in_the_picture() {
    let page = report("cold", &with_windows());
    check(&page);
    let all = "the kernel brought 414 kB into memory, in 3 windows.";
    let hit = "80 % were there, or on their way, before they were asked for (<em>hit</em>).";
    let waste = "21 % were not read until the end (<em>waste</em>).";
    let one = "<li><code>cat</code> in <code>/a</code>: 3 windows, half of them up to 128 KiB, the largest 148 KiB.";
    for sentence in [all, hit, waste, one] {
        assert!(page.contains(sentence), "{sentence}: {page}");
    }
    let cells = ["cat in /a", "3", "128", "148", "0.41", "80", "21"];
    let cells: String = cells.iter().map(|cell| format!("<td>{cell}</td>")).collect();
    assert!(page.contains(&cells), "{page}");
    assert!(page.contains(">brought in by the kernel</text>"));
}

/// A recording of 101 ms, within which the device `sdb` serves 23 reads of 3 ms, two of 29 ms at the end, a write and a
/// flush, and another one serves a read.
fn with_requests() -> Trace {
    let header = Header { bowwave: "1".into(), kernel: "6".into(), date: "2026-11-23".into() };
    let mut bytes = Vec::new();
    let mut recorder = Recorder::begin(&mut bytes, &header).expect("room");
    recorder.process("cat");
    recorder.file("/a", 101 << 12);
    let (took, op) = (101_000_000, TraceOp::Read);
    let record = Record { at: 0, took, process: 0, file: 0, op, offset: 0, bytes: 101 << 12 };
    recorder.run(&Run { record, calls: 1, lasted: 0 }).expect("room");
    let [first, second] = ["<sda>", "sdb"].map(|name| recorder.device(name).expect("room"));
    let mut add = |device, op, at_ms: u64, took_ms: u64, kib: u32| {
        let (at, took, bytes) = (at_ms * 1_000_000, took_ms * 1_000_000, kib << 10);
        recorder.request(&Request { at, took, device, op, bytes }).expect("room");
    };
    (0..23).for_each(|n| add(second, RequestOp::Read, 3 * n, 3, 128));
    (0..2).for_each(|_| add(second, RequestOp::Read, 72, 29, 256));
    add(second, RequestOp::Write, 10, 2, 4);
    add(second, RequestOp::Other, 12, 1, 0);
    add(first, RequestOp::Read, 50, 7, 512);
    recorder.finish().expect("room");
    trace::read(&bytes[..]).expect("a trace")
}

#[test]
fn how_busy_devices_were_is_told_in_words_in_a_table_and_in_pictures() {
    let page = report("busy", &with_requests());
    check(&page);
    // 23 times 3 ms and 29 ms of 101 ms; 7 ms.
    let sentences = [
        " Of 2 devices, <code>sdb</code> was the busiest, for 97 % of the time.",
        "<li><code>sdb</code> was busy 97 % of the time: 25 reads, half of them up to 128 KiB, the largest 256 KiB, \
         which took 5.08 ms on average, 95 % of them up to 29 ms; one write of 4 KiB, which took 2 ms; \
         1 request that neither read nor wrote.</li>",
        "<li><code>&lt;sda&gt;</code> was busy 7 % of the time: one read of 512 KiB, which took 7 ms.</li>",
    ];
    for sentence in sentences {
        assert!(page.contains(sentence), "{sentence}: {page}");
    }
    let cells = ["25", "3.54", "128", "256", "5.08", "29"];
    let cells: String = cells.iter().map(|cell| format!("<td>{cell}</td>")).collect();
    let row = format!("<tr><td>sdb</td><td>97</td><td class=\"words\">reads</td>{cells}</tr>");
    assert!(page.contains(&row), "{page}");
    for picture in ["how busy it was", "how long requests took", "how large requests were"] {
        for device in ["sdb", "&lt;sda&gt;"] {
            assert!(page.contains(&format!(">{device}: {picture}</text>")), "{device} {picture}");
        }
    }
    for line in ["reads, mean", "writes, 95 % up to", "with at least one request"] {
        assert!(page.contains(&format!(">{line}</text>")), "{line}");
    }
}

#[test]
fn a_trace_that_does_not_tell_what_the_kernel_did_has_no_word_of_it() {
    let page = report("old", &recording(40));
    for absent in [
        "busy",
        "Devices",
        "window</em>",
        "<em>hit",
        "hit, %",
        "<em>waste",
        "brought in",
        "What the kernel read ahead",
    ] {
        assert!(!page.contains(absent), "{absent}");
    }
}

#[test]
fn a_million_operations_give_a_small_page() {
    let mut text = format!("{HEADER},took_us\n");
    let mut state = 1;
    for number in 0..1_000_000u64 {
        let random = patterns::order::next_random(&mut state);
        let (process, file) = (random % 211, random / 211 % 5003);
        let (offset, took) = (random % (1 << 15) * 4096, random % 10_007);
        let _ = writeln!(
            text,
            "{number},process-{process},/srv/folder/{file},read,{offset},4096,{took}"
        );
    }
    let page = page(&text);
    assert!(page.contains("in 1,000,000 reads"));
}

/// Lines of a trace, with all kinds of names, places and times.
fn lines() -> impl Strategy<Value = String> {
    // Without the words that a page must not have.
    let name = prop_oneof!["[a-c]{1,3}", "[ -Z]{1,8}", "<ä\u{1}&\"/{0,200}", "[a-g/]{300}"];
    let ops = ["read", "mmap", "write", "close", "advise random", "advise normal"];
    let op = prop::sample::select(ops.to_vec());
    let place = prop_oneof![0..1u64 << 36, 0..1u64 << 16];
    let time = prop_oneof![0..1u64 << 20, 0..1u64 << 50];
    let took = prop_oneof![Just(0u64), 0..1u64 << 20, 0..1u64 << 50];
    let record = (time, name.clone(), name, op, place, 0..1u64 << 31, took);
    prop::collection::vec(record, 0..40).prop_map(|records| {
        let quoted = |name: String| format!("\"{}\"", name.replace('"', "\"\""));
        let line = |(at, process, file, op, place, bytes, took)| {
            let (process, file) = (quoted(process), quoted(file));
            format!("{at},{process},{file},{op},{place},{bytes},{took}\n")
        };
        records.into_iter().map(line).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_trace_gives_a_page(lines in lines()) {
        let text = format!("{HEADER},took_us\n{lines}");
        if let Ok(trace) = Trace::parse(text.as_bytes()) {
            let page = report("any", &trace);
            check(&page);
            prop_assert!(page.len() < MOST_BYTES);
            prop_assert!(!page.contains("NaN") && !page.contains(">inf"));
        }
    }
}
