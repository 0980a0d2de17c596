//! What a user who mistypes, redirects or lacks a privilege is told, and the exit status that
//! scripts see. Needs no root; where a test does, it says why it is skipped.

mod own;

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output, Stdio};

use own::Own;

const BOWWAVE: &str = env!("CARGO_BIN_EXE_bowwave");

fn bowwave(words: &[&str]) -> Command {
    let mut command = Command::new(BOWWAVE);
    command.args(words).stdin(Stdio::null());
    command
}

fn run(words: &[&str]) -> Output {
    bowwave(words).output().expect("it runs")
}

/// Standard error and exit status.
fn told(output: &Output) -> (String, Option<i32>) {
    (String::from_utf8_lossy(&output.stderr).into_owned(), output.status.code())
}

fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        eprintln!("skipped: needs root");
    }
    is_root
}

#[test]
fn a_full_disk_is_told_in_one_sentence() {
    for words in [&["demo", "--list"][..], &["lab", "--list"], &["doctor"], &["--help"]] {
        let full = File::options().write(true).open("/dev/full").expect("Linux has it");
        let (said, code) = told(&bowwave(words).stdout(full).output().expect("it runs"));
        assert_eq!(code, Some(1), "{words:?}");
        assert!(said.starts_with("bowwave: cannot write to standard output"), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}

#[test]
fn a_closed_pipe_ends_it_quietly() {
    for words in [&["demo", "--list"][..], &["lab", "--list"], &["doctor", "--json"]] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let (said, code) = told(&bowwave(words).stdout(writer).output().expect("it runs"));
        assert_eq!((said.as_str(), code), ("", Some(141)), "{words:?}");
    }
}

#[test]
fn lists_are_json_on_demand() {
    for words in [["demo", "--list", "--json"], ["lab", "--list", "--json"]] {
        let list: serde_json::Value =
            serde_json::from_slice(&run(&words).stdout).expect("it is JSON");
        assert!(list.as_array().is_some_and(|rows| rows.len() > 3), "{words:?}");
    }
}

#[test]
fn the_descriptions_of_devices_stand_in_one_column() {
    let text = String::from_utf8(run(&["lab", "--list"]).stdout).expect("text");
    let start = |line: &str| {
        let (_, description) = line.split_once("  ")?;
        Some(line.len() - description.trim_start().len())
    };
    let mut starts: Vec<_> = text.lines().map(start).collect();
    starts.dedup();
    assert!(matches!(starts[..], [Some(_)]), "{text}");
}

#[test]
fn run_tells_its_own_failures_from_the_commands() {
    let (said, code) = told(&run(&["run", "--nope", "--", "true"]));
    assert!(said.contains("--nope"), "{said}");
    assert_eq!(code, Some(125));
    assert_eq!(run(&["run"]).status.code(), Some(125));
    assert_eq!(run(&["run", "--help"]).status.code(), Some(0));
}

#[test]
fn a_device_file_that_is_at_fault_is_named_first() {
    let folder = tempfile::tempdir().expect("a folder");
    let stick = folder.path().join("my stick.toml");
    let stick = stick.to_str().expect("text");
    let (said, code) = told(&run(&["lab", "up", "--device", stick]));
    assert!(said.contains("No such file"), "{said}");
    assert_eq!(code, Some(1));
    fs::write(stick, "description = 'x'\nspeed = 1").expect("written");
    let (said, _) = told(&run(&["lab", "up", "--device", stick]));
    assert!(said.contains("line 2") && said.contains("docs/devices.md"), "{said}");
}

#[test]
fn a_lab_is_either_named_or_all_are_meant() {
    let (said, code) = told(&run(&["lab", "down", "hdd", "--all"]));
    assert!(said.contains("--all"), "{said}");
    assert_eq!(code, Some(2));
}

#[test]
fn the_demo_names_what_it_does_not_know() {
    let told = |words: &[&str]| told(&run(&[&["demo"], words].concat())).0;
    assert!(told(&["--only", ""]).contains("demo --list"));
    assert!(told(&["--device", "local:/no/such/folder"]).contains("local:FOLDER"));
}

#[test]
fn the_demo_refuses_a_folder_without_a_disk_before_it_shows_anything() {
    if !is_root() {
        return;
    }
    let output = run(&["demo", "--device", "local:/dev/shm"]);
    let (said, code) = told(&output);
    assert!(said.contains("name another folder"), "{said}");
    assert_eq!((String::from_utf8_lossy(&output.stdout).as_ref(), code), ("", Some(1)));
}

#[test]
fn top_draws_on_terminals_only_and_at_most_once_a_second() {
    let (said, code) = told(&run(&["top"]));
    let expected = if rustix::process::geteuid().is_root() { "--batch" } else { "needs root" };
    assert!(said.contains(expected), "{said}");
    assert_eq!((said.lines().count(), code), (1, Some(1)), "{said}");
    for wrong in ["0.2", "-1", "0", "86401", "often"] {
        let (said, code) = told(&run(&["top", "--interval", wrong]));
        assert!(said.contains("at least 1 and at most a day"), "{said}");
        assert_eq!(code, Some(2), "{said}");
    }
}

#[test]
fn who_is_not_root_is_told_to_be() {
    if !is_root() {
        return;
    }
    const NOBODY: u32 = 65_534;
    // An ordinary user may not reach the folder that cargo builds to.
    let folder = tempfile::tempdir().expect("a folder");
    fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).expect("ours");
    let copy = folder.path().join("bowwave");
    // Not by this process: a file that it has open for writing cannot be executed.
    let copied = Command::new("cp").arg(BOWWAVE).arg(&copy).status();
    assert!(copied.expect("cp is there").success());
    for (words, expected) in [
        (&["run", "--", "sh", "-c", "exit 7"][..], 7),
        (&["run", "--strict", "--", "true"], 125),
        (&["daemon"], 1),
        (&["daemon", "--recover"], 1),
        (&["top"], 1),
        (&["top", "--batch"], 1),
        (&["record", "--for", "1s"], 1),
        (&["record", "--", "true"], 125),
        (&["demo"], 1),
        (&["lab", "up"], 1),
    ] {
        let output = Command::new(&copy).args(words).uid(NOBODY).gid(NOBODY).output();
        let (said, code) = told(&output.expect("it runs"));
        assert!(said.contains("needs root"), "{said}");
        assert_eq!(code, Some(expected), "{words:?}");
    }
}

#[test]
fn a_wrong_time_is_told_which_times_are_possible() {
    for (words, status) in [(["record", "--for", "0s"], 125), (["advise", "--for", "1d"], 2)] {
        let (said, code) = told(&run(&words));
        let expected =
            "for '--for <TIME>': write a time above 0 and up to a day, such as 90s, 5m or 1h";
        assert!(said.contains(expected), "{said}");
        assert_eq!(code, Some(status), "{said}");
    }
}

#[test]
fn a_daemon_refuses_paths_without_a_page_cache_and_a_state_folder_in_use() {
    if !is_root() {
        return;
    }
    let state = tempfile::tempdir().expect("a folder");
    let folder = state.path().to_str().expect("text");
    let (said, code) = told(&run(&["daemon", "--state", "/proc/self/status"]));
    assert!(said.contains("--state"), "{said}");
    assert_eq!(code, Some(1));
    let doctor = run(&["doctor"]);
    if !doctor.status.success() {
        eprintln!("skipped: bowwave cannot run here");
        return;
    }
    for path in ["/proc", "/sys", "/dev"] {
        let (said, code) = told(&run(&["daemon", "--state", folder, "--path", path]));
        assert!(said.contains(path) && said.contains("no page cache"), "{said}");
        assert_eq!(code, Some(1), "{path}");
    }
    let mut first = bowwave(&["daemon", "--state", folder, "--path", "/"]);
    let mut first = Own::start(first.stdout(Stdio::piped()));
    let mut output = first.stdout.take().expect("piped");
    let _ = output.read(&mut [0; 64]);
    let (said, code) = told(&run(&["daemon", "--state", folder, "--path", "/"]));
    // Not SIGHUP, which `nohup make test` has everything ignore.
    let pid = rustix::process::Pid::from_child(&first);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it runs");
    let ended = first.wait().expect("it ends");
    let mut summary = String::new();
    output.read_to_string(&mut summary).expect("text");
    assert!(said.contains(&format!("process {})", first.id())), "{said}");
    assert_eq!(code, Some(1));
    assert!(ended.success() && summary.contains("s earned"), "{summary}");
}

#[test]
fn a_configuration_is_a_small_regular_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("coreutils").success());
    for (path, reason) in [(pipe.to_str().expect("text"), "regular"), ("/dev/zero", "regular")] {
        let mut daemon = bowwave(&["daemon", "--config", path]);
        let mut daemon = Own::start(daemon.stderr(Stdio::piped()));
        assert_eq!(daemon.wait().expect("it ends").code(), Some(1));
        let mut said = String::new();
        daemon.stderr.take().expect("piped").read_to_string(&mut said).expect("text");
        assert!(said.contains(path) && said.contains(reason), "{said}");
    }
}

/// A file system of one page that is full, gone when dropped.
struct FullDisk(tempfile::TempDir);

impl FullDisk {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=4k", "none"])
            .arg(folder.path())
            .status();
        assert!(mounted.expect("mount is there").success());
        let disk = FullDisk(folder);
        fs::write(disk.0.path().join("full"), [1; 4096]).expect("there is room for one page");
        disk
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().expect("text").to_owned()
    }

    /// Files and folders below it, apart from what fills it.
    fn litter(&self) -> Vec<std::path::PathBuf> {
        let mut folders = vec![self.0.path().to_owned()];
        let mut found = Vec::new();
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).expect("it is there").flatten() {
                match entry.file_type() {
                    _ if entry.file_name() == "full" => {}
                    Ok(kind) if kind.is_dir() => {
                        folders.push(entry.path());
                        found.push(entry.path());
                    }
                    _ => found.push(entry.path()),
                }
            }
        }
        found
    }
}

impl Drop for FullDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

#[test]
fn nothing_is_left_of_what_could_not_be_written_whole() {
    if !is_root() {
        return;
    }
    let disk = FullDisk::new();
    let (state, page, trace) = (disk.path("new/state"), disk.path("page.html"), disk.path("full"));
    let record = disk.path("recording");
    for words in [
        &["run", "--state", &state, "--", "cat", "/etc/hostname"][..],
        &["run", "--record", &record, "--", "true"],
        &["daemon", "--state", &state],
        &["reproduce", "ramp-2005", "--html", &page],
        &["replay", &trace, "--html", &page],
    ] {
        let (said, _) = told(&run(words));
        assert_eq!(disk.litter(), [""; 0].map(std::path::PathBuf::from), "{words:?}: {said}");
    }
}

#[test]
fn a_recording_that_has_no_room_is_left_out_and_strictly_refused() {
    if !is_root() || !run(&["doctor"]).status.success() {
        return;
    }
    let disk = FullDisk::new();
    let record = disk.path("recording");
    let helped = ["run", "-v", "--drop-behind", "--record", &record, "--", "true"];
    let (said, code) = told(&run(&helped));
    assert!(said.contains("cannot make the recording") && said.contains("nothing is recorded"));
    assert!(said.contains("reads are managed from now on"), "{said}");
    assert_eq!(code, Some(0), "{said}");
    let (said, code) = told(&run(&["run", "--strict", "--record", &record, "--", "true"]));
    assert!(said.contains("No space left") && said.lines().count() == 1, "{said}");
    assert_eq!(code, Some(125), "{said}");
    assert_eq!(disk.litter(), [""; 0].map(std::path::PathBuf::from));
}
