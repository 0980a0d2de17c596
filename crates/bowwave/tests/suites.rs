//! Test suites that know nothing of bowwave, on cold files of a lab disk: their results, test by test, and what
//! programs print, are the same with bowwave and without.
//!
//! With BOWWAVE_TORTURE=1 more of them, git's and rsync's own among them. Skipped where labs or eBPF do not work,
//! unless BOWWAVE_REQUIRE_LIVE=1 makes that a failure.

mod managed;
mod own;
mod stage;
mod trial;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use lab::LabGuard;
use managed::Daemon;
use rustix::fs::{Advice, fadvise, syncfs};
use stage::{Alone, skipped};

struct Bench {
    lab: LabGuard,
    state: tempfile::TempDir,
    /// Whether a suite's own files are evicted over and over. They are small and new, so that it would read most of
    /// them from memory.
    evicts: bool,
    _alone: Alone,
}

impl Bench {
    /// A lab with Python's library, its tests among it; `None` where labs, eBPF or these tests are not there.
    fn with_pythons_library() -> Option<Self> {
        managed::possible()?;
        let place = "import sysconfig, test.test_io; print(sysconfig.get_path('stdlib'))";
        let python = Command::new("python3").args(["-c", place]).output();
        let Some(python) = python.ok().filter(|it| it.status.success()) else {
            return skipped("no tests of Python's; `scripts/setup tests` installs them");
        };
        let library = String::from_utf8(python.stdout).expect("a path");
        let without = ["site-packages", "dist-packages", "__pycache__", "config-*"];
        Some(Bench::with_copy(Path::new(library.trim()), &without, false))
    }

    /// A lab with a program's source, its tests among it; `None` where labs, eBPF or this source are not there, and
    /// in the short form.
    fn with_source(program: &str) -> Option<Self> {
        if !trial::is_long() {
            println!("{program}'s own tests take minutes: `make torture` runs them");
            return None;
        }
        managed::possible()?;
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("cargo's folder");
        let source = target.join("sources").join(program);
        if !source.exists() {
            return skipped(&format!("no source of {program}; `scripts/fetch-suites` gets it"));
        }
        Some(Bench::with_copy(&source, &["*.o"], true))
    }

    /// A lab with a copy of that folder, but not of files and folders of these names.
    fn with_copy(folder: &Path, without: &[&str], evicts: bool) -> Self {
        let (alone, lab) = stage::lab("suites", "net", 1 << 30, "ext4");
        let bench = Bench { lab, state: stage::state(), evicts, _alone: alone };
        bench.lab.set_fast(true).expect("fast");
        fs::create_dir(bench.copy()).expect("room on the lab");
        let copy = "from=$1 to=$2; shift 2; tar -C \"$from\" \"$@\" -cf- . | tar -C \"$to\" -xf-";
        let mut tar = Command::new("sh");
        tar.args(["-euc", copy, "sh"]).arg(folder).arg(bench.copy());
        tar.args(without.iter().map(|name| format!("--exclude={name}")));
        assert!(tar.status().expect("it runs").success());
        bench
    }

    fn copy(&self) -> PathBuf {
        self.lab.mount_point().join("copy")
    }

    /// What a script prints that runs in an empty folder of the lab, where all else is cold.
    fn said(&self, program: &str, words: &[&str]) -> String {
        let folder = self.lab.mount_point().join("folder");
        fs::create_dir(&folder).expect("room on the lab");
        let mut command = Command::new(program);
        command.args(words).current_dir(&folder).env("TMPDIR", &folder);
        command.env("PYTHONPATH", self.copy()).env("PYTHONDONTWRITEBYTECODE", "1");
        let mut output = || command.output().expect("it is installed");
        let output = if self.evicts { while_evicting(&folder, output) } else { output() };
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

/// Does this, while all files in that folder are written to the disk and evicted over and over.
fn while_evicting<T>(folder: &Path, work: impl FnOnce() -> T) -> T {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let _over = trial::Over(&is_over);
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let _ = File::open(folder).map(syncfs);
                evict(folder);
                thread::sleep(Duration::from_millis(100));
            }
        });
        work()
    })
}

/// Errors are of files that are gone by now.
fn evict(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => evict(&path),
            Ok(kind) if kind.is_file() => {
                let _ = File::open(path).map(|file| fadvise(file, 0, None, Advice::DontNeed));
            }
            _ => (),
        }
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
    let Some(bench) = Bench::with_pythons_library() else { return };
    let library = bench.copy().display().to_string();
    let mut words = vec!["-c", UNITTEST, &library, "test.test_mmap", "test.test_shutil"];
    if trial::is_long() {
        words.extend(["test.test_io", "test.test_os", "test.test_sqlite3"]);
    }
    let said = bench.alike("python3", &words);
    let with = |kind: &str| said.lines().filter(|line| line.starts_with(kind)).count();
    let count = said.lines().find(|line| line.ends_with(" tests")).unwrap_or("none");
    let failed = with("failures") + with("errors");
    println!("{count}, {failed} failed, {} skipped", with("skipped"));
}

/// Scripts of git's, by their numbers, that read and write many files.
const GIT_SCRIPTS: &str = "1006 1050 1450 2021 4001 5300 5302 5303 5304 5601 6500 7700";

/// Runs scripts of git's own tests with the installed git.
const GIT: &str = r#"
export GIT_TEST_INSTALLED=$(dirname "$(command -v git)")
export TEST_OUTPUT_DIRECTORY=$PWD
cd ../copy/t
for number in $1; do
    echo "git's own" t$number-*.sh
    ./t$number-*.sh --root="$TEST_OUTPUT_DIRECTORY" || echo "exit status $?"
done
"#;

#[test]
fn gits_own_tests_give_the_same_results() {
    let Some(bench) = Bench::with_source("git") else { return };
    let said = bench.alike("sh", &["-euc", GIT, "sh", GIT_SCRIPTS]);
    for script in said.split("git's own ").skip(1) {
        let lines = |start: &'static str| script.lines().filter(move |it| it.starts_with(start));
        let skipped = lines("ok ").filter(|it| it.contains(" # skip ")).count();
        let passed = lines("ok ").count() - skipped;
        let failed: Vec<_> = lines("not ok ").filter(|it| !it.contains("# TODO known")).collect();
        let name = script.lines().next().unwrap_or_default();
        println!("{name}: {passed} passed, {} failed, {skipped} skipped", failed.len());
        failed.iter().for_each(|test| println!("  {test}"));
        assert!(passed > 0, "it did not run: {script}");
    }
}

/// Runs rsync's own tests with the rsync beside them.
const RSYNC: &str = r#"
scratchbase=$PWD make -s -C ../copy installcheck bindir="$(realpath ../copy)" |
    grep -E '^(PASS|FAIL|XFAIL|SKIP|overall) '
"#;

#[test]
fn rsyncs_own_tests_give_the_same_results() {
    let Some(bench) = Bench::with_source("rsync") else { return };
    let said = bench.alike("sh", &["-euc", RSYNC]);
    let with = |kind: &str| said.lines().filter(|line| line.starts_with(kind)).count();
    println!("{} passed, {} failed, {} skipped", with("PASS"), with("FAIL"), with("SKIP"));
    said.lines().filter(|line| !line.starts_with("PASS")).for_each(|line| println!("  {line}"));
    assert!(with("PASS") > 0 && with("overall") == 1, "they did not run: {said}");
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
tree=../copy/$1
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
    let Some(bench) = Bench::with_pythons_library() else { return };
    // All, or a tenth of it.
    let part = if trial::is_long() { "." } else { "encodings" };
    let said = bench.alike("sh", &["-euc", TREE, "sh", part]);
    assert!(said.starts_with("alike\n") && said.ends_with("cloned\n"), "{said}");
}
