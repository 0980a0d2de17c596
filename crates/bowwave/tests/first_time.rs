//! What make does on a machine where nothing is installed yet.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

const MAKEFILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../Makefile");

fn write_script(folder: &Path, name: &str, lines: &str) {
    let path = folder.join(name);
    fs::write(&path, format!("#!/bin/sh\n{lines}\n")).expect("written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("executable");
}

#[test]
fn the_first_make_test_includes_what_setup_has_just_installed() {
    let folder = tempfile::tempdir().expect("a folder");
    let scripts = folder.path().join("scripts");
    fs::create_dir(&scripts).expect("made");
    fs::copy(MAKEFILE, folder.path().join("Makefile")).expect("copied");
    write_script(&scripts, "setup", "touch installed");
    write_script(&scripts, "features", "test -e installed || echo --no-default-features");
    write_script(&scripts, "test", "echo \"tested with [$*]\"");

    let output =
        Command::new("make").arg("test").current_dir(&folder).output().expect("make is there");

    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.lines().any(|line| line == "tested with []"), "{said}");
}
