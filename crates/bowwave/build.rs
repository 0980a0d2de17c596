//! Finds out which commit is built, for `bowwave --version`.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-env-changed=BOWWAVE_COMMIT");
    // A tarball has no git; packagers may set this variable instead.
    let commit =
        env::var("BOWWAVE_COMMIT").ok().or_else(|| git(&["rev-parse", "--short=12", "HEAD"]));
    // Build again after a commit, which writes to the log of HEAD, or at least to HEAD.
    for file in ["logs/HEAD", "HEAD"] {
        if let Some(path) = git(&["rev-parse", "--git-path", file]) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    let version = env::var("CARGO_PKG_VERSION").expect("cargo sets it");
    let commit = commit.map(|commit| format!(" ({commit})")).unwrap_or_default();
    println!("cargo::rustc-env=BOWWAVE_VERSION={version}{commit}");
}

/// What git answers; `None` without git, or outside a repository.
fn git(words: &[&str]) -> Option<String> {
    let output = Command::new("git").args(words).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
