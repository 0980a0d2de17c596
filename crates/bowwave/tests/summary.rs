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

/// The script's status, and what it prints, where cargo's two runs print this and end with that status.
fn told(prints: [&str; 2], status: i32) -> (Option<i32>, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let cargo = folder.path().join("cargo");
    let (first, second) = (folder.path().join("first"), folder.path().join("second"));
    fs::write(&first, prints[0]).expect("written");
    fs::write(&second, prints[1]).expect("written");
    let text = format!(
        "#!/bin/sh\ncase \"$*\" in *--workspace*) cat {}; exit {status};; *) cat {};; esac\n",
        first.display(),
        second.display()
    );
    fs::write(&cargo, text).expect("written");
    fs::set_permissions(&cargo, fs::Permissions::from_mode(0o755)).expect("set");
    let path = std::env::var("PATH").expect("it is set");
    let path = format!("{}:{path}", folder.path().display());
    let output = Command::new(SCRIPT)
        .env_remove("BOWWAVE_REQUIRE_LIVE")
        .env("PATH", path)
        .output()
        .expect("python3 is there");
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn skipped_tests_are_counted_once_each_and_their_reasons_are_listed() {
    let (status, text) = told([TWO_SKIPPED, TWO_SKIPPED], 0);
    assert!(text.ends_with("\n\nskipped 4: no lab\n4 passed, 0 failed, 4 skipped\n"), "{text}");
    assert_eq!(status, Some(0));
    assert!(!text.contains("schedule with seed"), "what passed tests print is left out");
}

#[test]
fn a_failure_is_shown_and_counted_and_ends_the_script_with_an_error() {
    let (status, text) = told([ONE_FAILED, TWO_SKIPPED], 101);
    assert!(text.contains("left is not right"), "{text}");
    assert!(text.ends_with("\n3 passed, 1 failed, 3 skipped\n"), "{text}");
    assert_eq!(status, Some(1));
}

#[test]
fn what_does_not_build_is_a_failure() {
    let (status, text) = told(["error: could not compile\n", TWO_SKIPPED], 101);
    assert!(text.ends_with("\n2 passed, 1 failed, 2 skipped\n"), "{text}");
    assert_eq!(status, Some(1));
}
