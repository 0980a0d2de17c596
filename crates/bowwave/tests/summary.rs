//! scripts/test: what its last lines say of what cargo printed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/test");

/// What libtest prints of four tests, two of which cannot run here, and one of these says so twice.
const TWO_SKIPPED: &str = "\
running 4 tests
test one ... ok
test two ... ok
test three ... ok
test four ... ok

successes:

---- two stdout ----
schedule with seed 1
skipped: no lab
skipped: no lab

---- three stdout ----
skipped: no lab

successes:
    one
    two

test result: ok. 4 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.10s
";

const ONE_FAILED: &str = "\
running 2 tests
test five ... ok
test six ... FAILED

successes:

successes:
    five

failures:

---- six stdout ----
left is not right

failures:
    six

test result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.10s
";

/// What a fake cargo answers.
struct Cargo<'a> {
    /// The status of building the tests.
    build: i32,
    /// What most tests print, and their status.
    tests: (&'a str, i32),
    /// What the simulated tables print, and their status.
    tables: (&'a str, i32),
    /// What the tests of the Python package print, and their status.
    python: (&'a str, i32),
    /// What the tests without eBPF print.
    without_ebpf: &'a str,
}

const CARGO: &str = r#"#!/bin/sh
here=$(dirname "$0")
case "$*" in
metadata*) echo '{"packages":[{"targets":[{"kind":["test"],"name":"published"},{"kind":["test"],"name":"live"}]}]}' ;;
*--no-run*) exit $(cat "$here/build") ;;
*--doc*) ;;
*"--test published"*) cat "$here/tables"; exit $(cat "$here/tables-status") ;;
*"--test live"*) cat "$here/tests"; exit $(cat "$here/tests-status") ;;
*) cat "$here/without-ebpf" ;;
esac
"#;

const PYTHON: &str = r#"#!/bin/sh
case "$1" in
run) cat python; exit $(cat python-status) ;;
esac
"#;

/// The script's status, and what it prints.
fn told(answers: &Cargo) -> (Option<i32>, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let write =
        |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("written");
    write("build", &answers.build.to_string());
    write("tests", answers.tests.0);
    write("tests-status", &answers.tests.1.to_string());
    write("tables", answers.tables.0);
    write("tables-status", &answers.tables.1.to_string());
    write("python", answers.python.0);
    write("python-status", &answers.python.1.to_string());
    write("without-ebpf", answers.without_ebpf);
    fs::create_dir(folder.path().join("scripts")).expect("a folder");
    for (name, program) in [("cargo", CARGO), ("scripts/test-python", PYTHON)] {
        write(name, program);
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(folder.path().join(name), mode).expect("set");
    }
    let path = std::env::var("PATH").expect("it is set");
    let path = format!("{}:{path}", folder.path().display());
    let output = Command::new(SCRIPT)
        .env_remove("BOWWAVE_REQUIRE_LIVE")
        .env("PATH", path)
        .current_dir(&folder)
        .output()
        .expect("python3 is there");
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn skipped_tests_are_counted_once_each_and_their_reasons_are_listed() {
    let runs = Cargo {
        build: 0,
        tests: (TWO_SKIPPED, 0),
        tables: (TWO_SKIPPED, 0),
        python: (TWO_SKIPPED, 0),
        without_ebpf: TWO_SKIPPED,
    };
    let (status, text) = told(&runs);
    assert!(text.ends_with("\n\nskipped 8: no lab\n8 passed, 0 failed, 8 skipped\n"), "{text}");
    assert_eq!(status, Some(0));
    assert!(!text.contains("schedule with seed"), "what passed tests print is left out");
}

#[test]
fn a_failure_is_shown_and_counted_and_ends_the_script_with_an_error() {
    let (failed, nothing) = ((ONE_FAILED, 101), ("", 0));
    let places =
        [(failed, nothing, nothing), (nothing, failed, nothing), (nothing, nothing, failed)];
    for (tests, tables, python) in places {
        let runs = Cargo { build: 0, tests, tables, python, without_ebpf: TWO_SKIPPED };
        let (status, text) = told(&runs);
        assert!(text.contains("left is not right"), "{text}");
        assert!(text.ends_with("\n3 passed, 1 failed, 3 skipped\n"), "{text}");
        assert_eq!(status, Some(1));
    }
}

#[test]
fn tests_that_end_before_their_result_are_a_failure() {
    let (killed, nothing) = (("running 2 tests\n", 101), ("", 0));
    let places =
        [(killed, nothing, nothing), (nothing, killed, nothing), (nothing, nothing, killed)];
    for (tests, tables, python) in places {
        let runs = Cargo { build: 0, tests, tables, python, without_ebpf: TWO_SKIPPED };
        let (status, text) = told(&runs);
        assert!(text.ends_with("\n2 passed, 1 failed, 2 skipped\n"), "{text}");
        assert_eq!(status, Some(1));
    }
}

#[test]
fn what_does_not_build_is_a_failure() {
    let nothing = ("", 0);
    let tests = (TWO_SKIPPED, 0);
    let runs = Cargo { build: 101, tests, tables: nothing, python: nothing, without_ebpf: "" };
    let (status, text) = told(&runs);
    assert!(text.ends_with("0 passed, 1 failed, 0 skipped\n"), "{text}");
    assert_eq!(status, Some(1));
}
