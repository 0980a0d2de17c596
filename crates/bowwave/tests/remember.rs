//! `bowwave run --remember`, and a daemon that remembers, on the running kernel: a lab volume, and a program that reads
//! many small files in an order that follows from nothing.
//!
//! What is asserted is counted, never timed. Needs root, FUSE, eBPF and python3.

mod managed;
mod own;
mod stage;

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use managed::{Bench, Daemon};
use own::Own;
use rustix::process::Signal;
use serde_json::Value;
use stage::{BOWWAVE, wait_until};

const FILES: u64 = 600;
const READ: u64 = 300;
const FOLDERS: u64 = 20;
const FILE_BYTES: u64 = 12 << 10;

/// A user who owns nothing.
const NOBODY: u32 = 65534;

/// What comes sooner or later comes within that time, also on a busy machine.
const MOST_WAITING: Duration = Duration::from_secs(60);

/// Reads files by the numbers given on standard input, says how many 512-byte blocks it had to wait for, and goes on at
/// the next line.
const PROGRAM: &str = "\
import os, resource, sys
blocks = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_inblock
before = blocks()
for number in sys.argv[1].split():
    file = os.open(f'{int(number) % 20}/file{number}', os.O_RDONLY)
    os.read(file, 1 << 20)
    os.close(file)
print(blocks() - before, flush=True)
sys.stdin.readline()";

/// What a start was like.
struct Start {
    /// Bytes of requests of the program's own.
    own_bytes: u64,
    /// Bytes that the device has read.
    read_bytes: u64,
    /// What bowwave says it did.
    done: Value,
    noted: String,
}

impl Bench {
    /// `None` where labs or eBPF do not work.
    fn new() -> Option<Self> {
        let bench = Bench::of("remember", 512 << 20)?;
        bench.lab.set_fast(true).expect("fast");
        for folder in 0..FOLDERS {
            fs::create_dir(bench.lab.mount_point().join(folder.to_string())).expect("a folder");
        }
        for number in 0..FILES {
            fs::write(bench.file(number), vec![number as u8; FILE_BYTES as usize]).expect("a file");
        }
        Some(bench)
    }

    fn file(&self, number: u64) -> PathBuf {
        self.lab.mount_point().join(format!("{}/file{number}", number % FOLDERS))
    }

    fn lists(&self) -> PathBuf {
        self.state.path().join("lists")
    }

    fn list(&self) -> PathBuf {
        self.lists().join("program")
    }

    /// The program on these files, remembered.
    fn run(&self, numbers: &[u64]) -> Command {
        let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
        let mut run = Command::new(BOWWAVE);
        run.args(["run", "--strict", "--json", "--remember", "program", "--state"]);
        run.arg(self.state.path()).arg("--lists").arg(self.lists());
        run.arg("--record").arg(self.state.path().join("recording"));
        run.args(["--", "python3", "-c", PROGRAM]).arg(numbers.join(" "));
        run.current_dir(self.lab.mount_point()).stdin(Stdio::null());
        run
    }

    fn cool(&self) {
        self.lab.evict().expect("evicted");
        self.lab.set_fast(false).expect("slow");
    }

    /// A cold start.
    fn start(&self, numbers: &[u64]) -> Start {
        self.cool();
        let before = self.lab.status().expect("counters");
        let output = self.run(numbers).output().expect("it ran");
        let read = self.lab.status().expect("counters").since(&before);
        let (said, noted) = text(&output);
        assert!(output.status.success(), "{noted}");
        let blocks: u64 = said.trim().parse().expect("a number");
        let (notes, object) = noted.trim_end().rsplit_once('\n').unwrap_or(("", noted.trim_end()));
        Start {
            own_bytes: blocks * 512,
            read_bytes: read.bytes_read,
            done: serde_json::from_str(object).expect("an object"),
            noted: notes.into(),
        }
    }

    /// A daemon that remembers the starts of python3.
    fn daemon(&self) -> Daemon {
        let config = self.state.path().join("config.toml");
        fs::write(&config, "[remember]\ncommand = [\"python3\"]\n").expect("written");
        let mut command = managed::daemon(&self.lab, self.state.path(), &[]);
        Daemon::begin(command.arg("--config").arg(config).arg("--lists").arg(self.lists()))
    }

    /// A cold start by a user, beside a daemon that ends once there is a list. A child of the program reads one more file,
    /// and has ended before the daemon comes to run again, as on a busy machine.
    fn start_beside(&self, uid: u32, numbers: &[u64], of_child: u64) -> Start {
        self.cool();
        let list = self.lists().join(format!("python3.{uid}"));
        let (daemon, before) = (self.daemon(), self.lab.status().expect("counters"));
        let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
        // Python may be in a folder that is root's alone, so it becomes that user once it runs.
        let become_it = format!(
            "import os, resource, subprocess; os.setresgid(*[{uid}] * 3); os.setresuid(*[{uid}] * 3)"
        );
        let mut program = Command::new("python3");
        let child = format!(
            "subprocess.run(['cat', '{}'], stdout=subprocess.DEVNULL)",
            format_args!("{}/file{of_child}", of_child % FOLDERS)
        );
        program.args(["-c", &format!("{become_it}\n{PROGRAM}\n{child}")]).arg(numbers.join(" "));
        program.current_dir(self.lab.mount_point()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut program = Own::start(&mut program);
        let mut said = String::new();
        let mut output = BufReader::new(program.stdout.take().expect("piped"));
        output.read_line(&mut said).expect("what it waited for");
        daemon.signal(Signal::STOP);
        drop(program.stdin.take());
        assert!(program.wait().expect("it ends").success(), "{said}");
        daemon.signal(Signal::CONT);
        let read = self.lab.status().expect("counters").since(&before);
        let blocks: u64 = said.trim().parse().expect("a number");
        wait_until("there is a list", MOST_WAITING, || list.exists());
        Start {
            own_bytes: blocks * 512,
            read_bytes: read.bytes_read,
            done: daemon.end(),
            noted: String::new(),
        }
    }

    fn bowwave(&self, words: &[&str]) -> Output {
        let mut command = Command::new(BOWWAVE);
        command.args(words).arg("--lists").arg(self.lists()).output().expect("it runs")
    }
}

fn text(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

/// So many of all files, in no order; another one for each key.
fn irregular(key: u64) -> Vec<u64> {
    let mut numbers: Vec<u64> = (0..FILES).collect();
    numbers.sort_by_key(|number| (number * FILES + key).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    numbers.truncate(READ as usize);
    numbers
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("it is there").permissions().mode() & 0o777
}

#[test]
fn a_second_start_waits_for_less_than_half_of_what_the_first_one_does() {
    let Some(bench) = Bench::new() else { return };
    let numbers = irregular(1);
    let first = bench.start(&numbers);
    assert_eq!(first.done["remembered_ranges"], 0, "{}", first.done);
    assert_eq!((mode(&bench.list()), mode(&bench.lists())), (0o600, 0o700));

    let second = bench.start(&numbers);
    let bytes = (first.own_bytes, second.own_bytes);
    assert!(second.own_bytes <= first.own_bytes / 2, "{bytes:?} {}", second.done);
    let used = second.done["remembered_used"].as_u64().expect("a number");
    assert!(used >= READ * 8 / 10, "{}", second.done);
    assert!(second.read_bytes <= READ * FILE_BYTES + (4 << 20), "{} bytes", second.read_bytes);

    let replay = Command::new(BOWWAVE)
        .args(["replay", "--verify"])
        .arg(bench.state.path().join("recording"))
        .output();
    let replay = replay.expect("it ran");
    assert!(replay.status.success(), "{:?}", text(&replay));

    let (listed, _) = text(&bench.bowwave(&["remembered", "--json"]));
    let listed: Value = serde_json::from_str(&listed).expect("JSON");
    assert_eq!(listed[0]["name"], "program");
    assert!(listed[0]["files"].as_u64().expect("a number") >= READ, "{listed}");
    let (shown, _) = text(&bench.bowwave(&["remembered", "program"]));
    assert!(shown.contains(&format!("/file{}\n", numbers[200])), "{shown}");
    assert!(bench.bowwave(&["remembered", "program", "--forget"]).status.success());
    assert!(!bench.list().exists());
    let (_, noted) = text(&bench.bowwave(&["remembered", "program", "--forget"]));
    assert!(noted.contains("nothing is remembered as program"), "{noted}");
}

#[test]
fn a_daemon_remembers_the_starts_of_its_commands_for_each_user() {
    let Some(bench) = Bench::new() else { return };
    let numbers = irregular(1);
    let of_child = (0..FILES).find(|number| !numbers.contains(number)).expect("half of them");
    let first = bench.start_beside(0, &numbers, of_child);
    assert_eq!(first.done["remembered_ranges"], 0, "{}", first.done);
    let (shown, _) = text(&bench.bowwave(&["remembered", "python3.0"]));
    let path = format!("/file{of_child}\n");
    assert!(shown.contains(&path), "its child has read it: {shown}");
    let second = bench.start_beside(0, &numbers, of_child);
    let bytes = (first.own_bytes, second.own_bytes);
    assert!(second.own_bytes <= first.own_bytes / 2, "{bytes:?} {}", second.done);
    let used = second.done["remembered_used"].as_u64().expect("a number");
    assert!(used >= READ * 8 / 10, "{}", second.done);
    assert!(second.read_bytes <= READ * FILE_BYTES + (4 << 20), "{} bytes", second.read_bytes);

    let stranger = bench.start_beside(NOBODY, &numbers, of_child);
    assert_eq!(stranger.done["remembered_ranges"], 0, "it has root's list: {}", stranger.done);
    let (listed, _) = text(&bench.bowwave(&["remembered", "--json"]));
    let listed: Value = serde_json::from_str(&listed).expect("JSON");
    let names: Vec<_> = listed.as_array().expect("lists").iter().map(|it| &it["name"]).collect();
    assert_eq!(names, ["python3.0", "python3.65534"]);
}

#[test]
fn a_stale_list_costs_little_and_files_that_were_replaced_are_not_read() {
    let Some(bench) = Bench::new() else { return };
    bench.start(&irregular(1));
    // Half of them are written anew, some are gone, some are something else.
    let changed: Vec<u64> = irregular(1).into_iter().step_by(2).collect();
    for (turn, number) in changed.iter().enumerate() {
        let path = bench.file(*number);
        match turn % 3 {
            0 => fs::write(&path, vec![1; FILE_BYTES as usize / 2]).expect("written"),
            1 => fs::remove_file(&path).expect("removed"),
            _ => {
                fs::remove_file(&path).expect("removed");
                fs::create_dir(&path).expect("made");
            }
        }
    }
    // The program reads others by now.
    let others: Vec<u64> = (0..FILES).filter(|number| !irregular(1).contains(number)).collect();
    let stale = bench.start(&others);
    let number = |name: &str| stale.done[name].as_u64().expect("a number");
    let (ranges, used) = (number("remembered_ranges"), number("remembered_used"));
    assert!(ranges <= 16 + 8 * used, "{ranges} ranges asked for: {}", stale.done);
    // Without a credit, all that still is what it was would be read: half of the list.
    let (bytes, whole) = (number("remembered_bytes"), READ / 2 * FILE_BYTES);
    assert!(bytes <= whole / 4, "{bytes} bytes in vain: {}", stale.done);
    assert_eq!(stale.done["failed_reads"], 0, "{}", stale.done);
    assert_eq!(stale.noted, "");
    let fresh = bench.start(&others);
    assert!(fresh.own_bytes <= stale.own_bytes / 2, "it has learned: {}", fresh.done);
}

#[test]
fn a_run_that_is_killed_leaves_the_list_as_it_was() {
    let Some(bench) = Bench::new() else { return };
    bench.start(&irregular(1));
    let before = fs::read(bench.list()).expect("it was written");
    bench.cool();
    let mut run = bench.run(&irregular(2));
    let mut run = Own::start(run.stdin(Stdio::piped()).stdout(Stdio::piped()));
    let mut said = BufReader::new(run.stdout.take().expect("piped"));
    said.read_line(&mut String::new()).expect("it has read all");
    run.kill().expect("it waits");
    run.wait().expect("it ends");
    assert_eq!(fs::read(bench.list()).expect("it is there"), before);
    let names: Vec<OsString> = fs::read_dir(bench.lists())
        .expect("there")
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    assert_eq!(names, ["program"]);
}

#[test]
fn a_damaged_list_is_told_of_once_and_replaced() {
    let Some(bench) = Bench::new() else { return };
    bench.start(&irregular(1));
    fs::write(bench.list(), "{").expect("written");
    let next = bench.start(&irregular(1));
    assert!(next.noted.contains("cannot read the list "), "{}", next.noted);
    assert_eq!(next.noted.lines().count(), 1, "{}", next.noted);
    assert_eq!(next.done["remembered_ranges"], 0, "{}", next.done);
    assert!(bench.bowwave(&["remembered", "program"]).status.success(), "it is whole again");
}

#[test]
fn lists_in_a_folder_that_others_can_change_are_refused() {
    let Some(bench) = Bench::new() else { return };
    bench.start(&irregular(1));
    let before = fs::read(bench.list()).expect("it was written");
    fs::set_permissions(bench.lists(), PermissionsExt::from_mode(0o777)).expect("ours");
    let strict = bench.run(&irregular(2)).output().expect("it ran");
    assert_eq!(strict.status.code(), Some(125), "{:?}", text(&strict));
    assert!(text(&strict).1.contains("is not a folder that only root can change"));
    let mut run = Command::new(BOWWAVE);
    run.args(["run", "--remember", "program", "--lists"]).arg(bench.lists());
    run.arg("--state").arg(bench.state.path()).args(["--", "sh", "-c", "sleep 3; exit 7"]);
    let run = run.output().expect("it ran");
    assert_eq!(run.status.code(), Some(7), "{:?}", text(&run));
    let (_, noted) = text(&run);
    assert!(noted.trim_end().ends_with("nothing is remembered"), "{noted}");
    assert_eq!(noted.matches("nothing is remembered").count(), 1, "{noted}");
    assert_eq!(fs::read(bench.list()).expect("it is there"), before);
    assert!(!bench.bowwave(&["remembered"]).status.success());
}

#[test]
fn a_name_that_is_none_is_refused_before_anything_starts() {
    for name in ["", "../x", ".hidden", "a/b"] {
        let run = Command::new(BOWWAVE).args(["run", "--remember", name, "--", "true"]).output();
        let run = run.expect("it ran");
        assert_eq!(run.status.code(), Some(125), "{name:?}");
        assert!(text(&run).1.contains("letters, digits"), "{name:?}");
    }
}
