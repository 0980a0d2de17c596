//! `bowwave report` as users call it, and its page in a browser.

mod browser;
// It needs no lab, only `skipped`.
#[allow(dead_code)]
mod stage;

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use browser::{Browser, Scheme, measured};
use trace::recorded::{Header, Recorder, Run};
use trace::{Reason, Record, Request, RequestOp, TraceOp, Window};

/// Folder of the page's pictures; cargo keeps it.
const KEPT: &str = env!("CARGO_TARGET_TMPDIR");

fn report(folder: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bowwave"));
    command.arg("report").args(words).current_dir(folder).stdin(Stdio::null());
    command
}

fn ran(mut command: Command) -> Output {
    command.output().expect("it was built")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A folder with the example as `slow.csv`.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::write(folder.path().join("slow.csv"), trace::EXAMPLE).expect("written");
    folder
}

#[test]
fn a_page_lies_beside_its_trace_or_where_one_wants_it() {
    let folder = folder();
    let output = ran(report(folder.path(), &["slow.csv"]));
    assert!(output.status.success() && output.stdout.is_empty(), "{}", said(&output));
    assert_eq!(said(&output), "bowwave: slow.csv.html: open it in a browser\n");
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).expect("a page");
    let page = read("slow.csv.html");
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("<code>slow.csv</code> records"));
    let output = ran(report(folder.path(), &["slow.csv", "-o", "other.html"]));
    assert!(output.status.success() && read("other.html") == page, "{}", said(&output));
    let output = ran(report(folder.path(), &["slow.csv", "--output", "-"]));
    assert!(output.status.success() && output.stderr.is_empty());
    assert_eq!(String::from_utf8(output.stdout).expect("text"), page);
    // An old page is replaced.
    let cut: String = trace::EXAMPLE.lines().take(40).map(|line| line.to_owned() + "\n").collect();
    fs::write(folder.path().join("slow.csv"), cut).expect("written");
    assert!(ran(report(folder.path(), &["slow.csv"])).status.success());
    assert_ne!(read("slow.csv.html"), page);
}

#[test]
fn a_name_cannot_command_the_terminal() {
    let folder = folder();
    fs::rename(folder.path().join("slow.csv"), folder.path().join("\u{1b}[31m.csv"))
        .expect("moved");
    let output = ran(report(folder.path(), &["\u{1b}[31m.csv"]));
    assert_eq!(said(&output), "bowwave: \\u{1b}[31m.csv.html: open it in a browser\n");
}

#[test]
fn a_trace_may_come_by_standard_input() {
    let folder = folder();
    let stdin = || File::open(folder.path().join("slow.csv")).expect("there");
    let mut command = report(folder.path(), &["-", "-o", "-"]);
    command.stdin(stdin());
    let output = ran(command);
    assert!(String::from_utf8_lossy(&output.stdout).contains("<code>The trace</code> records"));
    let mut command = report(folder.path(), &["-"]);
    command.stdin(stdin());
    assert!(said(&ran(command)).contains("name one after -o"));
}

#[test]
fn what_is_wrong_is_one_sentence_and_nothing_is_lost() {
    let folder = folder();
    let refused = |words: &[&str], expected: &str| {
        let output = ran(report(folder.path(), words));
        let error = said(&output);
        assert_eq!((output.status.code(), error.lines().count()), (Some(1), 1), "{error}");
        assert!(output.stdout.is_empty() && error.contains(expected), "{error}");
    };
    refused(&["none.csv"], "cannot read the trace none.csv");
    refused(&["none/none.csv"], "cannot read the trace none/none.csv");
    refused(&["."], "cannot read the trace");
    refused(&["slow.csv", "-o", "slow.csv"], "is the trace itself");
    refused(&["slow.csv", "-o", "."], "is a folder");
    refused(&["slow.csv", "-o", "none/page.html"], "make it first");
    refused(&["slow.csv", "-o", "/dev/full"], "cannot write the page /dev/full: No space");
    assert_eq!(fs::read_to_string(folder.path().join("slow.csv")).expect("there"), trace::EXAMPLE);
    fs::write(folder.path().join("bad.csv"), "0,p,a,read,0,1\n").expect("written");
    refused(&["bad.csv"], "bad.csv: line 1: the line `time_us");
    fs::write(folder.path().join("bad.csv"), "").expect("written");
    refused(&["bad.csv"], "the trace has no records");
    assert!(!folder.path().join("bad.csv.html").exists());
}

#[test]
fn a_browser_shows_the_page_in_both_schemes_and_on_a_phone() {
    let Some(browser) = Browser::found() else { return };
    let folder = folder();
    let output = ran(report(folder.path(), &["slow.csv", "-o", "-"]));
    shows(&browser, &String::from_utf8(output.stdout).expect("text"), "report");
}

#[test]
fn a_browser_shows_what_the_kernel_read_ahead_and_how_busy_the_device_was() {
    let folder = folder();
    fs::write(folder.path().join("ahead.trace"), recorded()).expect("written");
    let output = ran(report(folder.path(), &["ahead.trace", "-o", "-"]));
    let page = String::from_utf8(output.stdout).expect("text");
    let ahead = ["101 windows", "67 % were there, or on their way", "25 % were not read"];
    let busy = ["The device <code>sda</code> was busy 7 % of the time", "101 reads, half of them"];
    for sentence in ahead.into_iter().chain(busy) {
        assert!(page.contains(sentence), "{sentence}: {page}");
    }
    let Some(browser) = Browser::found() else { return };
    shows(&browser, &page, "report-ahead");
}

/// A recorded trace of 101 windows of 32 pages. Of each, a read that waits has asked for 8 pages, a read that does not
/// wait gets 16 more, and nobody reads the last 8. The device takes as long as the one that waits.
fn recorded() -> Vec<u8> {
    let [bowwave, kernel, date] = Default::default();
    let mut bytes = Vec::new();
    let mut recorder =
        Recorder::begin(&mut bytes, &Header { bowwave, kernel, date }).expect("room");
    recorder.process("cat 7").expect("room");
    recorder.file("/srv/large", 101 << 17).expect("room");
    let device = recorder.device("sda").expect("room");
    for number in 0..101 {
        let (at, first) = (number * 100_000_000, number * 32);
        let (pages, asked, reason) = (first..first + 32, first..first + 8, Reason::Read);
        let window = Window { at, process: Some(0), file: 0, pages, asked, reason };
        recorder.window(&window).expect("room");
        let (took, op, bytes) = (7_000_000, RequestOp::Read, 1 << 17);
        recorder.request(&Request { at, took, device, op, bytes }).expect("room");
        for (after, took, page, pages) in [(1_000, 7_000_000, 0, 8), (50_000_000, 0, 8, 16)] {
            let (at, offset, bytes) = (at + after, (first + page) << 12, pages << 12);
            let op = TraceOp::Read;
            let record = Record { at, took, process: 0, file: 0, op, offset, bytes };
            recorder.run(&Run { record, calls: 1, lasted: took }).expect("room");
        }
    }
    recorder.finish().expect("room");
    bytes
}

/// Whether the browser shows this page as it should. Keeps pictures of that name.
fn shows(browser: &Browser, page: &str, name: &str) {
    for (scheme, text) in [(Scheme::Light, "rgb(0, 0, 0)"), (Scheme::Dark, "rgb(255, 255, 255)")] {
        let picture = Path::new(KEPT).join(format!("{name}-{scheme:?}.png"));
        let measured = measured(&browser.console(page, scheme, &picture));
        assert_eq!(measured["is_dark"], matches!(scheme, Scheme::Dark));
        assert_eq!(measured["text"], text, "{scheme:?}");
        let right = measured["right"].as_f64().expect("a number");
        assert!((300.0..=420.0).contains(&right), "it is wider than a phone: {measured}");
        assert!(fs::read(&picture).expect("a picture").starts_with(b"\x89PNG"));
    }
}
