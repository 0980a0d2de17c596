//! `bowwave run`: the command starts at once and in any case, and its reads are managed as soon as they can be.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::backward::{self, MOST_MANAGED_READS};
use crate::own::Own;
use crate::stage::{BOWWAVE, skipped};
use crate::{Bench, bench, managed};

/// `bowwave run` without the capabilities it needs, even for root.
fn without_privilege() -> Option<Command> {
    let mut command = Command::new("setpriv");
    command.args(["--bounding-set", "-all", "--inh-caps", "-all", BOWWAVE, "run"]);
    usable("setpriv", &["--bounding-set", "-all"])
        .then_some(command)
        .or_else(|| skipped("no setpriv"))
}

/// `bowwave run` in a user namespace: it has every capability there, and the kernel refuses eBPF.
fn where_the_kernel_refuses() -> Option<Command> {
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", BOWWAVE, "run"]);
    let may = usable("unshare", &["--user", "--map-root-user"]);
    may.then_some(command).or_else(|| skipped("no user namespaces"))
}

fn usable(program: &str, options: &[&str]) -> bool {
    Command::new(program).args(options).arg("true").status().is_ok_and(|status| status.success())
}

fn output(mut command: Command, words: &[&str], state: &Path) -> Output {
    command.arg("--state").arg(state).args(words).output().expect("it ran")
}

fn said(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

#[test]
fn without_privilege_the_command_runs_and_its_status_is_passed_on() {
    let Some(run) = without_privilege() else { return };
    let state = tempfile::tempdir().expect("a folder");
    let output = output(run, &["--", "sh", "-c", "echo started; exit 7"], state.path());
    let (told, noted) = said(&output);
    assert_eq!((output.status.code(), &*told), (Some(7), "started\n"));
    assert_eq!(noted.lines().count(), 1, "{noted}");
    assert!(noted.contains("root") && noted.contains("the command runs without"), "{noted}");
}

#[test]
fn strictly_nothing_is_started_without_privilege() {
    let Some(run) = without_privilege() else { return };
    let state = tempfile::tempdir().expect("a folder");
    let output = output(run, &["--strict", "--", "echo", "started"], state.path());
    let (told, noted) = said(&output);
    assert_eq!((output.status.code(), &*told), (Some(125), ""));
    assert_eq!(noted.lines().count(), 1, "{noted}");
}

#[test]
fn where_the_kernel_refuses_the_command_runs_and_its_status_is_passed_on() {
    let Some(mut run) = where_the_kernel_refuses() else { return };
    let state = tempfile::tempdir().expect("a folder");
    run.arg("--state").arg(state.path()).args(["--", "sh", "-c", "read line; exit 7"]);
    let mut run = Own::start(run.stdin(Stdio::piped()).stderr(Stdio::piped()));
    let mut notes = BufReader::new(run.stderr.take().expect("piped"));
    let mut note = String::new();
    notes.read_line(&mut note).expect("it says why");
    assert!(note.contains("refused") && note.contains("the command runs without"), "{note}");
    drop(run.stdin.take());
    assert_eq!(run.wait().expect("it ends").code(), Some(7));
    note.clear();
    notes.read_line(&mut note).expect("it ended");
    assert_eq!(note, "", "one sentence is enough");
}

#[test]
fn where_the_kernel_refuses_dropping_behind_the_command_still_runs() {
    let Some(mut run) = where_the_kernel_refuses() else { return };
    let state = tempfile::tempdir().expect("a folder");
    run.arg("--state").arg(state.path());
    run.args(["--drop-behind", "--json", "--", "sh", "-c", "read line; exit 7"]);
    let mut run = Own::start(run.stdin(Stdio::piped()).stderr(Stdio::piped()));
    let mut noted = BufReader::new(run.stderr.take().expect("piped")).lines();
    let mut line = || noted.next().expect("a line").expect("text");
    let note = line();
    assert!(note.contains("refused"), "{note}");
    drop(run.stdin.take());
    let object: Value = serde_json::from_str(&line()).expect("an object");
    assert_eq!(run.wait().expect("it ends").code(), Some(7));
    assert_eq!((&object["loaded"], &object["reads"]), (&false.into(), &0.into()));
    assert!(note.contains(object["reason"].as_str().expect("a reason")), "{note} {object}");
}

#[test]
fn a_command_that_ends_before_the_kernel_refuses_is_reported_once() {
    let Some(run) = where_the_kernel_refuses() else { return };
    let state = tempfile::tempdir().expect("a folder");
    let output = output(run, &["--json", "--", "true"], state.path());
    let (_, noted) = said(&output);
    let lines: Vec<_> = noted.lines().collect();
    let object: Value = serde_json::from_str(lines[lines.len() - 1]).expect("an object");
    let reason = object["reason"].as_str().expect("a reason");
    // Whichever was first, the note and the summary tell the same.
    let expected = if reason.contains("ended before") { 1 } else { 2 };
    assert_eq!(lines.len(), expected, "{noted}");
}

#[test]
fn strictly_nothing_is_started_where_the_kernel_refuses() {
    let Some(run) = where_the_kernel_refuses() else { return };
    let state = tempfile::tempdir().expect("a folder");
    let output = output(run, &["--strict", "--", "echo", "started"], state.path());
    let (told, noted) = said(&output);
    assert_eq!((output.status.code(), &*told), (Some(125), ""));
    assert!(noted.contains("refused") && noted.lines().count() == 1, "{noted}");
}

#[test]
fn a_command_that_ends_before_its_reads_are_managed_is_reported_as_well() {
    if managed::possible().is_none() {
        return;
    }
    let state = tempfile::tempdir().expect("a folder");
    let report = |options: &[&str]| {
        let mut run = Command::new(BOWWAVE);
        run.arg("run").args(options);
        let output = output(run, &["--json", "--", "sh", "-c", "exit 3"], state.path());
        assert_eq!(output.status.code(), Some(3));
        let (_, noted) = said(&output);
        serde_json::from_str::<Value>(noted.trim()).expect("an object and nothing else")
    };
    let object = report(&[]);
    assert!(object["read_ahead_bytes"].is_u64() && object["loaded"].is_boolean(), "{object}");
    assert_eq!(object["loaded"] == true, object["reason"].is_null(), "{object}");
    assert_eq!(report(&["--strict"])["loaded"], true, "it is waited for");
    assert_eq!(report(&["--drop-behind"])["loaded"], true, "it is waited for");
}

#[test]
fn processes_that_are_older_than_the_programs_are_managed_also_if_their_parents_are_gone() {
    let Some(bench) = bench("net") else { return };
    let (lab, state) = (&bench.lab, &bench.state);
    // The reader waits for a word. Its parent has lost its own, and has a session of its own.
    let script = "exec 3<&0; mkfifo \"$2\"; \
                  (setsid sh -c '\"$0\" demo --worker backward-64k --folder \"$1\" <&3; echo >\"$2\"' \
                   \"$0\" \"$1\" \"$2\" &); \
                  read line <\"$2\"";
    let done = state.path().join("done");
    let fewest = backward::fewest(|| {
        lab.evict().expect("evicted");
        let mut run = Command::new(BOWWAVE);
        run.args(["run", "-v", "--state"]).arg(state.path());
        run.args(["--", "sh", "-c", script, BOWWAVE]).arg(lab.mount_point()).arg(&done);
        run.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut run = Own::start(&mut run);
        let mut notes = BufReader::new(run.stderr.take().expect("piped"));
        let mut note = String::new();
        notes.read_line(&mut note).expect("it tells when");
        assert!(note.contains("reads are managed from now on"), "{note}");
        let before = lab.status().expect("counters");
        run.stdin.take().expect("piped").write_all(b"go\n").expect("the reader listens");
        assert!(run.wait().expect("it ends").success());
        fs::remove_file(&done).expect("the script has made it");
        let read = lab.status().expect("counters").since(&before);
        assert!(read.bytes_read >= 20 << 20, "{} bytes", read.bytes_read);
        read.reads
    });
    assert!(fewest < MOST_MANAGED_READS, "{fewest} requests");
}

#[test]
fn a_program_that_another_than_the_first_thread_starts_in_its_place_is_managed() {
    let Some(bench) = bench("net") else { return };
    // As launchers in Go or Java do. The first thread is gone by then.
    let script = "import os, sys, threading\n\
                  threading.Thread(target=os.execv, args=(sys.argv[1], sys.argv[1:])).start()";
    let starter = ["python3", "-c", script, BOWWAVE];
    let fewest = backward::fewest(|| requests_under_run(&bench, &starter));
    assert!(fewest < MOST_MANAGED_READS, "{fewest} requests");
}

/// Requests of a backward reader, from a cold cache, that `run` starts by these words.
fn requests_under_run(bench: &Bench, starter: &[&str]) -> u64 {
    bench.lab.evict().expect("evicted");
    let mut run = Command::new(BOWWAVE);
    run.args(["run", "--strict", "--state"]).arg(bench.state.path()).arg("--").args(starter);
    run.args(["demo", "--worker", "backward-64k", "--folder"]).arg(bench.lab.mount_point());
    run.stdin(Stdio::piped()).stdout(Stdio::piped());
    bench.read(run).1.reads
}

#[test]
fn run_manages_its_own_process_tree_and_nothing_else() {
    let Some(bench) = bench("net") else { return };
    let inside = backward::fewest(|| requests_under_run(&bench, &[BOWWAVE]));
    assert!(inside < MOST_MANAGED_READS, "{inside} requests inside");
    bench.lab.evict().expect("evicted");

    // While `run` waits for its command, a reader outside its tree goes its own way.
    let mut idle = Command::new(BOWWAVE);
    // With this state folder the device is known: measuring it would be counted below.
    idle.args(["run", "--strict", "--state"]).arg(bench.state.path()).args(["--", "cat"]);
    idle.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut idle = Own::start(&mut idle);
    let mut echo = BufReader::new(idle.stdout.take().expect("piped"));
    idle.stdin.as_mut().expect("piped").write_all(b"up\n").expect("cat listens");
    let mut line = String::new();
    echo.read_line(&mut line).expect("cat answers, so run manages reads");
    let (_, outside) = bench.read(bench.reader("backward-64k"));
    drop(idle.stdin.take());
    idle.wait().expect("cat ends");
    assert!(outside.reads >= backward::READS, "{} requests outside", outside.reads);
    assert!(outside.bytes_read < 21 << 20, "{} bytes outside", outside.bytes_read);
}

#[test]
fn run_passes_status_and_signals_through() {
    let Some(bench) = bench("net") else { return };
    let run = |script: &str| {
        // A shell that starts the tests in the background has them begin with SIGINT ignored, and `run` leaves
        // what is ignored to be ignored.
        let mut command = Command::new("env");
        command.args(["--default-signal", BOWWAVE, "run", "--state"]).arg(bench.state.path());
        command.args(["--", "sh", "-c", script]);
        command
    };
    assert_eq!(run("exit 7").status().expect("it ran").code(), Some(7));
    assert_eq!(run("kill -KILL $$").status().expect("it ran").code(), Some(128 + 9));
    // No trap of the shell's: dash loses signals while it starts a program.
    let trap = "exec perl -e '$| = 1; $SIG{TERM} = $SIG{INT} = sub { exit 23 }; \
                print \"ready\\n\"; sleep 1 while 1'";
    for signal in [rustix::process::Signal::TERM, rustix::process::Signal::INT] {
        let mut child = Own::start(run(trap).stdout(Stdio::piped()));
        let mut line = String::new();
        let output = child.stdout.take().expect("piped");
        BufReader::new(output).read_line(&mut line).expect("ready");
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, signal).expect("signalled");
        assert_eq!(child.wait().expect("it ends").code(), Some(23), "{signal:?}");
    }
    for (program, expected) in [("/no/such/program", 127), ("/etc/passwd", 126)] {
        let failed = Command::new(BOWWAVE).args(["run", "--", program]).output().expect("it ran");
        assert_eq!(failed.status.code(), Some(expected), "{program}");
        assert!(String::from_utf8_lossy(&failed.stderr).contains(program));
    }
}

#[test]
fn what_is_ignored_when_run_begins_is_ignored_by_the_command() {
    let Some(bench) = bench("net") else { return };
    let ignored = |option: &str| {
        let mut env = Command::new("env");
        env.args(["--default-signal", option, BOWWAVE, "run", "--state"]).arg(bench.state.path());
        env.args(["--", "grep", "SigIgn", "/proc/self/status"]);
        let said = String::from_utf8(env.output().expect("it ran").stdout).expect("it is text");
        let mask = said.trim().strip_prefix("SigIgn:").expect("a line").trim();
        let mask = u64::from_str_radix(mask, 16).expect("a mask");
        // Those that libc keeps for itself `env` cannot set.
        [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT].map(|signal| mask & (1 << (signal - 1)) != 0)
    };
    assert_eq!(ignored("--ignore-signal=HUP"), [true, false, false]);
    assert_eq!(ignored("--ignore-signal=INT,QUIT"), [false, true, true]);
    assert_eq!(ignored("--default-signal=HUP"), [false; 3]);
}

#[test]
fn run_goes_on_without_a_state_folder_and_says_what_that_means() {
    let Some(_bench) = bench("net") else { return };
    let run = Command::new(BOWWAVE).args(["run", "--state", "/etc/passwd", "--", "true"]).output();
    let run = run.expect("it ran");
    assert!(run.status.success());
    assert!(String::from_utf8_lossy(&run.stderr).contains("measure disks again"));
}
