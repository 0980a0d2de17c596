//! Traces read as documented, errors that say where, and any bytes without a panic.

use proptest::prelude::*;

use super::*;

fn parse(text: &str) -> Result<Trace, TraceError> {
    Trace::parse(text.as_bytes())
}

/// A trace of these records.
fn with(records: &str) -> Result<Trace, TraceError> {
    parse(&format!("{HEADER}\n{records}"))
}

fn error(records: &str) -> String {
    with(records).unwrap_err().to_string()
}

#[test]
fn the_example_is_a_trace() {
    let trace = parse(EXAMPLE).expect("it is one");
    assert_eq!(trace.processes(), ["tac", "column", "lookup", "copy"]);
    let sizes: Vec<u64> = trace.files().iter().map(|file| file.bytes).collect();
    assert_eq!(sizes, [16 << 20, 16 << 20, 4 << 20, 8 << 20, 8 << 20]);
    assert!(trace.records().is_sorted_by_key(|record| record.at));
}

#[test]
fn a_file_ends_at_its_given_size_or_at_its_last_operation() {
    let trace = parse(&format!(
        "{SIZES_HEADER}\n100, given\n100, written\n{HEADER}\n\
         0,p,given,read,0,4096\n0,p,written,write,0,4096\n0,p,seen,read,4096,5\n"
    ));
    let sizes: Vec<u64> = trace.expect("valid").files().iter().map(|file| file.bytes).collect();
    assert_eq!(sizes, [100, 4096, 4101]);
}

#[test]
fn advice_needs_no_place_and_tells_nothing_of_a_files_size() {
    let trace = with(
        "0,p,a,advise random\n1,p,a,advise sequential,0,9999,3\n2,p,a, advise normal ,,\n3,p,a,read,0,1\n",
    );
    let trace = trace.expect("valid");
    let ops: Vec<&str> = trace.records().iter().map(|record| record.op.name()).collect();
    assert_eq!(ops, ["advise random", "advise sequential", "advise normal", "read"]);
    assert_eq!((trace.files()[0].bytes, trace.pages_needed()), (1, 1));
    assert!(error("0,p,a,advise\n").contains("there is no operation \"advise\""));
    assert!(error("0,p,a,advise random,x,0\n").contains("offset is \"x\""));
}

#[test]
fn names_hold_commas_and_quotes_if_quoted() {
    let trace = with("1.5 , p, \"a, \"\"b\"\"\" ,read,0,1\r\n").expect("valid");
    assert_eq!(trace.files()[0].name, "a, \"b\"");
    assert_eq!(trace.records()[0].at, 1500);
}

#[test]
fn terminals_obey_no_name() {
    let trace = with("0,p\x1b[31m,/\x1b]0;hi\x07,read,0,1\n").expect("valid");
    assert!(!trace.to_string().replace('\n', "").contains(char::is_control));
}

#[test]
fn pages_needed_are_counted_once() {
    let trace = with(
        "0,p,a,read,0,8192\n1,p,a,read,4096,8192\n2,p,a,mmap,0,1\n3,p,b,read,0,1\n4,p,b,write,0,9999\n",
    );
    assert_eq!(trace.expect("valid").pages_needed(), 4);
}

#[test]
fn errors_name_the_line_and_what_to_do() {
    assert_eq!(
        error("0,p,a,read,0,1\n0,p,a,fly,0,1\n"),
        "line 3: there is no operation \"fly\"; those there are: read, mmap, write, close, advise normal, advise sequential, advise random"
    );
    assert_eq!(
        error("0,p,a,read,0,4k\n"),
        "line 2: bytes is \"4k\"; write a whole number without a unit"
    );
    assert!(error("0,p,a,read,0\n").starts_with("line 2: 5 fields where 6"));
    assert!(error("9000000000000000,p,a,read,0,1\n").contains("4611686018427387 microseconds are"));
    assert!(error("0,p,a,read,99999999999999999999,1\n").contains("beyond byte"));
    assert!(error("-1,p,a,read,0,1\n").contains("time_us is \"-1\""));
    assert!(error("0,p,,read,0,1\n").contains("file is empty"));
    let long = format!("0,p,{},read,0,1\n", "/a".repeat(2049));
    assert!(error(&long).contains("file has more than 4096 bytes"));
    assert!(error("0,p,\"a,read,0,1\n").contains("double quote"));
    assert!(error("0,p,a,read,99999999999999,1\n").contains("beyond byte"));
    assert!(parse("0,p,a,read,0,1").unwrap_err().to_string().contains("has to come before"));
    assert!(parse("").unwrap_err().to_string().contains("--example"));
    assert!(Trace::parse(b"\xff\xfe").unwrap_err().to_string().starts_with("line 1: this is not"));
    let large = format!("{SIZES_HEADER}\n{MAX_FILE_BYTES},a\n1,b\n{HEADER}\n0,p,a,read,0,1\n");
    assert!(parse(&large).unwrap_err().to_string().contains("leave out files, \"a\" first"));
}

#[test]
fn a_trace_makes_only_so_many_directories_and_operations() {
    let deep = "/a".repeat(MAX_NAME_BYTES / 2 - 8);
    let read = |n: usize| format!("0,p,/{n}{deep},read,0,1\n");
    let of = |files: usize| format!("{HEADER}\n{}", (0..files).map(read).collect::<String>());
    let most = MAX_COMPONENTS / (deep.len() / 2 + 1);
    assert!(crate::read(of(most).as_bytes()).is_ok());
    let error = crate::read(of(most + 1).as_bytes()).unwrap_err().to_string();
    assert!(error.contains("components together; leave out files"), "{error}");
    let closes = "0,p,a,close\n".repeat(recorded::MAX_OPERATIONS as usize);
    let error = parse(&format!("{HEADER}\n0,p,a,read,0,1\n{closes}")).unwrap_err().to_string();
    assert!(error.contains("more than 8388608 operations; cut the trace"), "{error}");
}

#[test]
fn what_can_read_nothing_is_no_trace() {
    assert!(error("0,p,a,close\n1,p,a,read,9,0\n").starts_with("line 2: neither here nor below"));
    for (size, at) in [(0, 0), (4096, 4096)] {
        let sized = |more: &str| {
            parse(&format!(
                "{SIZES_HEADER}\n{size},a\n{HEADER}\n0,p,a,close\n1,p,a,read,{at},8\n{more}"
            ))
        };
        let error = sized("").expect_err("nothing is read").to_string();
        assert!(
            error.starts_with("line 5: this lies beyond the end of \"a\", which has"),
            "{error}"
        );
        let trace = sized("2,p,b,read,0,8\n").expect("that can be read");
        let has_bytes: Vec<bool> = trace.records().iter().map(|r| trace.has_bytes(r)).collect();
        assert_eq!(has_bytes, [false, false, true]);
    }
}

/// A line that is nearly or wholly right.
fn line() -> impl Strategy<Value = String> {
    let name = prop_oneof!["[a-c]", "\"[a-c\",]{0,6}\"", "[ -~]{0,5}"];
    let number = prop_oneof!["[0-9]{1,7}", "[0-9]{1,4}[.][0-9]{1,4}", "[0-9]{12,22}"];
    let op = ["read", "mmap", "write", "close", "advise random", "advise", "x"];
    let op = prop::sample::select(op.to_vec());
    let record = (number.clone(), name.clone(), name.clone(), op, 0..90_000u64, 0..90_000u64)
        .prop_map(|(t, p, f, op, at, n)| format!("{t},{p},{f},{op},{at},{n}"));
    prop_oneof![
        8 => record,
        1 => (number, name).prop_map(|(bytes, file)| format!("{bytes},{file}")),
        1 => Just(HEADER.to_owned()),
        1 => Just(SIZES_HEADER.to_owned()),
        1 => "#.{0,8}",
    ]
}

/// Lines of which each is right.
fn valid() -> impl Strategy<Value = String> {
    let name = prop_oneof!["[a-c]{1,2}", "\"a[b, ]{0,3}(\"\"){0,2}c\"", "#{1,2}", "ä|ß"];
    let op = prop::sample::select(TraceOp::ALL.map(TraceOp::name).to_vec());
    let took = prop_oneof!["", ",[0-9]{1,5}", ",[0-9]{1,3}[.][0-9]{3}"];
    let record = (0..9_999_999u64, name.clone(), name, op, any::<u32>(), 0..90_000u32, took)
        .prop_map(|(t, p, f, op, at, n, took)| {
            format!("{}.{:03},{p},{f},{op},{at},{n}{took}\n", t / 1000, t % 1000)
        });
    prop::collection::vec(record, 1..40).prop_map(|lines| {
        // Something has to be read.
        format!("{HEADER}\n0,p,a,read,0,1\n{}", lines.concat())
    })
}

proptest! {
    #[test]
    fn any_bytes_are_a_trace_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = Trace::parse(&bytes);
    }

    #[test]
    fn any_lines_are_a_trace_or_an_error_and_what_is_one_is_read_back(
        lines in prop::collection::vec(line(), 0..12),
    ) {
        if let Ok(trace) = parse(&format!("{HEADER}\n{}", lines.join("\n"))) {
            prop_assert_eq!(parse(&trace.to_string()), Ok(trace));
        }
    }

    #[test]
    fn what_is_written_is_read_back(text in valid()) {
        let trace = parse(&text).expect("every line is right");
        prop_assert_eq!(trace.records().len(), text.lines().count() - 1);
        prop_assert_eq!(parse(&trace.to_string()), Ok(trace));
    }
}
