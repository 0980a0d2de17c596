//! Test suites that know nothing of bowwave, on cold files of a lab disk: their results, test by test, and what
//! programs print, are the same with bowwave and without.
//!
//! With BOWWAVE_TORTURE=1 more of them. Skipped where labs or eBPF do not work, unless BOWWAVE_REQUIRE_LIVE=1 makes
//! that a failure.

mod managed;
mod own;
mod stage;
mod trial;

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use lab::LabGuard;
use managed::Daemon;
use stage::{Alone, skipped};

struct Bench {
    lab: LabGuard,
    state: tempfile::TempDir,
    _alone: Alone,
}

impl Bench {
    /// A lab with Python's library, its tests among it; `None` where labs, eBPF or these tests are not there.
    fn new() -> Option<Self> {
        managed::possible()?;
        let place = "import sysconfig, test.test_io; print(sysconfig.get_path('stdlib'))";
        let python = Command::new("python3").args(["-c", place]).output();
        let Some(python) = python.ok().filter(|it| it.status.success()) else {
            return skipped("no tests of Python's; `scripts/setup tests` installs them");
        };
        let library = String::from_utf8(python.stdout).expect("a path");
        let (alone, lab) = stage::lab("suites", "net", 1 << 30, "ext4");
        let bench = Bench { lab, state: stage::state(), _alone: alone };
        bench.lab.set_fast(true).expect("fast");
        fs::create_dir(bench.library()).expect("room on the lab");
        let copy = "tar -C \"$1\" --exclude=site-packages --exclude=dist-packages --exclude=__pycache__ \
                    --exclude=config-* -cf- . | tar -C \"$2\" -xf-";
        let mut tar = Command::new("sh");
        tar.args(["-euc", copy, "sh", library.trim()]).arg(bench.library());
        assert!(tar.status().expect("it runs").success());
        Some(bench)
    }

    fn library(&self) -> PathBuf {
        self.lab.mount_point().join("library")
    }

    /// What a script prints that runs in an empty folder of the lab, where all else is cold.
    fn said(&self, program: &str, words: &[&str]) -> String {
        let folder = self.lab.mount_point().join("folder");
        fs::create_dir(&folder).expect("room on the lab");
        let mut command = Command::new(program);
        command.args(words).current_dir(&folder).env("TMPDIR", &folder);
        command.env("PYTHONPATH", self.library()).env("PYTHONDONTWRITEBYTECODE", "1");
        let output = command.output().expect("it is installed");
        let noted = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{words:?}: {}\n{noted}", output.status);
        fs::remove_dir_all(&folder).expect("it was made");
        String::from_utf8(output.stdout).expect("text")
    }

    /// Without bowwave and with it the same is printed; gives that.
    fn alike(&self, program: &str, words: &[&str]) -> String {
        self.lab.evict().expect("nobody has a file open");
        let stock = self.said(program, words);
        let daemon = self.daemon();
        self.lab.evict().expect("nobody has a file open");
        let with = self.said(program, words);
        let summary = daemon.end();
        let figure = |name: &str| summary[name].as_u64().expect("a figure");
        let ahead = figure("read_ahead_bytes") + figure("walk_bytes");
        let dropped = figure("dropped_bytes");
        println!("{ahead} bytes read ahead, {dropped} dropped");
        assert_eq!(with, stock, "{summary}");
        assert!(ahead > 0 && dropped > 0, "bowwave did nothing: {summary}");
        with
    }

    fn daemon(&self) -> Daemon {
        let options = ["--drop-behind", "always"];
        Daemon::begin(&mut managed::daemon(&self.lab, self.state.path(), &options))
    }
}

/// Runs test modules; prints how many tests there were and which of them did not pass.
const UNITTEST: &str = "
import sys, unittest
import test
assert test.__file__.startswith(sys.argv[1]), 'not the tests on the lab'
result = unittest.TestResult()
unittest.defaultTestLoader.loadTestsFromNames(sys.argv[2:]).run(result)
print(result.testsRun, 'tests')
for kind in 'failures', 'errors', 'skipped', 'expectedFailures':
    for name in sorted(entry[0].id() for entry in getattr(result, kind)):
        print(kind, name)
for name in sorted(entry.id() for entry in result.unexpectedSuccesses):
    print('unexpected success', name)
";

#[test]
fn pythons_own_tests_of_files_give_the_same_results() {
    let Some(bench) = Bench::new() else { return };
    let library = bench.library().display().to_string();
    let mut words = vec!["-c", UNITTEST, &library, "test.test_mmap", "test.test_shutil"];
    if trial::is_long() {
        words.extend(["test.test_io", "test.test_os", "test.test_sqlite3"]);
    }
    let said = bench.alike("python3", &words);
    let with = |kind: &str| said.lines().filter(|line| line.starts_with(kind)).count();
    let (failed, count) =
        (with("failures") + with("errors"), said.lines().find(|line| line.ends_with(" tests")));
    println!("{}, {failed} failed, {} skipped", count.unwrap_or("none"), with("skipped"));
}

/// Copies, packs, compares and keeps a tree, cold between the steps as far as the programs' own files go.
const TREE: &str = r#"
cold() { python3 -c "
import os, subprocess, sys
for path in subprocess.check_output(['find', *sys.argv[1:], '-type', 'f', '-print0']).split(b'\0')[:-1]:
    f = os.open(path, os.O_RDONLY)
    os.fdatasync(f)
    os.posix_fadvise(f, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(f)
" "$@"; }
tree=../library/$1
export HOME=$PWD GIT_CONFIG_NOSYSTEM=1
export GIT_AUTHOR_DATE=2000-01-01T00:00:00Z GIT_COMMITTER_DATE=2000-01-01T00:00:00Z
cp -a "$tree" copy
cold copy
diff -r "$tree" copy && echo alike
(cd "$tree" && find . -type f -print0 | sort -z | xargs -0 sha256sum) > sums
cold copy
(cd copy && sha256sum --quiet -c ../sums) && sha256sum < sums
tar --sort=name --mtime=@0 -cf packed.tar copy
cold packed.tar
tar -df packed.tar && sha256sum < packed.tar
cold copy
find copy -type f -exec wc -c {} + | sort | sha256sum
cd copy
git -c init.defaultBranch=main init -q
git -c core.fsync=none add -A
git -c user.name=a -c user.email=a@b commit -q -m all
git rev-parse HEAD
git gc -q && git fsck --full --strict 2>&1
cd ..
cold copy
git clone -q --no-hardlinks copy clone
git -C clone status --porcelain
diff -r --exclude=.git copy clone && echo cloned
"#;

#[test]
fn programs_that_copy_pack_compare_and_keep_a_tree_print_the_same() {
    if Command::new("git").arg("--version").output().is_err() {
        return skipped("no git; `scripts/setup tests` installs it").unwrap_or_default();
    }
    let Some(bench) = Bench::new() else { return };
    // All, or a tenth of it.
    let part = if trial::is_long() { "." } else { "encodings" };
    let said = bench.alike("sh", &["-euc", TREE, "sh", part]);
    assert!(said.starts_with("alike\n") && said.ends_with("cloned\n"), "{said}");
}
