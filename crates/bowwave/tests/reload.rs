//! Reloads and ends of a daemon beside programs and servers that do not answer. Managing reads needs root, FUSE and
//! eBPF; else these are skipped.

mod managed;
mod own;
#[path = "bad/silent.rs"]
mod silent;
mod stage;
mod windows;

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use lab::LabGuard;
use own::Own;
use rustix::fs::{Advice, fadvise};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use silent::{Silence, Silent};
use stage::{Alone, BOWWAVE};

const FILE_BYTES: u64 = 24 << 20;

/// Whatever happens, happens within that time, also on a busy machine.
const GENEROUS: Duration = Duration::from_secs(60);

/// Users nobody else is. Each has a program that hangs.
const STRANGERS: [u32; 3] = [65531, 65532, 65533];

/// Reads a file as that user, and then hangs in `exec`, which closes a file of a server that does not answer.
const STRANGER: &str = "
import ctypes, os, sys
path, trap, user = sys.argv[1:]
file, trap = os.open(path, os.O_RDONLY), os.open(trap, os.O_RDONLY)
os.set_inheritable(file, True)
os.setuid(int(user))
while os.read(file, 65536):
    pass
print('read', flush=True)
sys.stdin.readline()
PR_SET_NAME = 15
ctypes.CDLL(None).prctl(PR_SET_NAME, b'bowwave-not', 0, 0, 0)
print('hangs', flush=True)
os.execv('/bin/true', ['true'])
";

fn silent(silence: Silence) -> Silent {
    Silent::mount(silence, 4096).expect("labs are mounted by FUSE, too")
}

/// A lab with files, and settings for a daemon.
struct Bench {
    lab: LabGuard,
    state: tempfile::TempDir,
    config: PathBuf,
    _alone: Alone,
}

impl Bench {
    fn new(purpose: &str) -> Option<Self> {
        managed::possible()?;
        let (alone, lab) = stage::lab(purpose, "net", 256 << 20, "ext4");
        lab.set_fast(true).expect("fast");
        let strangers = STRANGERS.iter().map(u32::to_string);
        for name in strangers.chain(["victim".to_owned()]) {
            fs::write(lab.mount_point().join(name), vec![7; FILE_BYTES as usize]).expect("written");
        }
        lab.evict().expect("evicted");
        lab.set_fast(false).expect("slow");
        let state = stage::state();
        let config = state.path().join("config.toml");
        let bench = Bench { lab, state, config, _alone: alone };
        bench.configure("");
        Some(bench)
    }

    /// The daemon manages the lab, with these settings besides.
    fn configure(&self, more: &str) {
        let text = format!("path = [{:?}]\n{more}\n", self.lab.mount_point());
        fs::write(&self.config, text).expect("written");
    }

    fn open(&self, name: &str) -> File {
        File::open(self.lab.mount_point().join(name)).expect("it was written")
    }

    fn noted(&self) -> Vec<u64> {
        windows::noted(self.state.path())
    }

    fn is_noted(&self, file: &File) -> bool {
        self.noted().contains(&file.metadata().expect("metadata").ino())
    }

    /// Reads the file forward, cold, until the kernel reads ahead for that in a window of bowwave's and `is_over`.
    fn read_until(&self, file: &File, is_over: impl Fn() -> bool) {
        let mut part = vec![0; 64 << 10];
        let until = Instant::now() + GENEROUS;
        loop {
            fadvise(file, 0, None, Advice::DontNeed).expect("advised");
            for offset in (0..FILE_BYTES).step_by(part.len()) {
                file.read_exact_at(&mut part, offset).expect("read");
                if self.is_noted(file) && is_over() {
                    return;
                }
            }
            assert!(Instant::now() < until, "no window is noted, or it is not over");
        }
    }

    fn requests(&self, file: &File) -> u64 {
        windows::requests(&self.lab, file)
    }

    fn is_as_before(&self, file: &File, requests: u64) {
        windows::is_as_before(&self.lab, file, requests, "after all");
    }

    /// Restores what a daemon has left.
    fn recover(&self) {
        assert_eq!(self.recovered(), (String::new(), Some(0)));
    }

    /// What it says while it restores that, and its exit status.
    fn recovered(&self) -> (String, Option<i32>) {
        let mut recover = Command::new(BOWWAVE);
        recover.args(["daemon", "--recover", "--state"]).arg(self.state.path());
        let output = recover.output().expect("it ran");
        (String::from_utf8_lossy(&output.stderr).into_owned(), output.status.code())
    }
}

struct Daemon {
    process: Own,
    output: BufReader<ChildStdout>,
    said: PathBuf,
    state: PathBuf,
}

impl Daemon {
    fn start(bench: &Bench) -> Daemon {
        let said = bench.state.path().join("stderr");
        let mut command = Command::new("env");
        // Tests may ignore SIGHUP, and run in a terminal.
        command.args(["--default-signal=HUP", "setsid", BOWWAVE, "daemon", "--json"]);
        command.args(["--charge", "reader", "--config"]).arg(&bench.config);
        command.arg("--state").arg(bench.state.path()).stdout(Stdio::piped());
        command.stderr(File::create(&said).expect("a file"));
        let mut process = Own::start(&mut command);
        let output = BufReader::new(process.stdout.take().expect("piped"));
        let state = bench.state.path().to_owned();
        let mut daemon = Daemon { process, output, said, state };
        daemon.is_ready();
        daemon
    }

    /// Waits until it says that it manages reads.
    fn is_ready(&mut self) {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("a line");
        assert!(line.contains("\"ready\":true"), "{line}");
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).expect("it runs");
    }

    /// What it has said on standard error, once it has said these words.
    fn says(&self, words: &str) -> String {
        let until = Instant::now() + GENEROUS;
        loop {
            let said = fs::read_to_string(&self.said).expect("text");
            if said.contains(words) {
                return said;
            }
            assert!(Instant::now() < until, "it does not say {words:?}: {said}");
            thread::sleep(Duration::from_millis(10));
        }
    }

    fn status(&self) -> Value {
        let mut status = Command::new(BOWWAVE);
        let status = status.args(["status", "--json", "--state"]).arg(&self.state).output();
        let output = status.expect("it ran");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let told: Vec<Value> = serde_json::from_slice(&output.stdout).expect("an array");
        told.into_iter().next().expect("an answer")
    }

    /// Threads that set windows.
    fn window_threads(&self) -> usize {
        let threads = format!("/proc/{}/task", self.process.id());
        let names = fs::read_dir(threads).expect("it runs").flatten();
        let names = names.map(|entry| fs::read_to_string(entry.path().join("comm")));
        names.filter(|name| name.as_ref().is_ok_and(|it| it.starts_with("bowwave-window"))).count()
    }

    /// Ends it in order; gives its totals.
    fn end(mut self) -> Value {
        self.signal(Signal::TERM);
        let mut said = String::new();
        self.output.read_to_string(&mut said).expect("its last words");
        assert!(self.process.wait().expect("it ends").success(), "{said}");
        serde_json::from_str(said.lines().last().unwrap_or_default()).expect("its totals")
    }
}

/// A program of another user's, with a window of bowwave's; it keeps others from looking until the server ends.
struct Stranger {
    // Ends first: until then the process cannot.
    server: Silent,
    process: Own,
}

impl Stranger {
    fn hanging(bench: &Bench, user: u32) -> Stranger {
        let server = silent(Silence { after_reads: u64::MAX, when_bowwave_closes: true });
        let mut python = Command::new("python3");
        python.args(["-c", STRANGER]).arg(bench.lab.mount_point().join(user.to_string()));
        python.arg(server.folder().join("file")).arg(user.to_string());
        let process = Own::start(python.stdin(Stdio::piped()).stdout(Stdio::piped()));
        let mut stranger = Stranger { server, process };
        let Stranger { server, process } = &mut stranger;
        let mut words = BufReader::new(process.stdout.take().expect("piped"));
        let mut says = |word: &str| {
            let mut line = String::new();
            words.read_line(&mut line).expect("a line");
            assert_eq!(line.trim(), word);
        };
        says("read");
        let file = bench.open(&user.to_string());
        let until = Instant::now() + GENEROUS;
        while !bench.is_noted(&file) {
            assert!(Instant::now() < until, "no window is set");
            thread::yield_now();
        }
        process.stdin.take().expect("piped").write_all(b"\n").expect("it listens");
        says("hangs");
        while !server.is_waited_for() {
            assert!(Instant::now() < until, "it does not hang");
            thread::yield_now();
        }
        stranger
    }
}

#[test]
fn whose_program_hangs_at_the_end_keeps_nobody_elses_window() {
    let Some(bench) = Bench::new("hung-end") else { return };
    let victim = bench.open("victim");
    let requests = bench.requests(&victim);
    let daemon = Daemon::start(&bench);
    let strangers = STRANGERS.map(|user| Stranger::hanging(&bench, user));
    bench.read_until(&victim, || true);
    daemon.end();
    assert!(!bench.is_noted(&victim), "it was given back first");
    bench.is_as_before(&victim, requests);
    let (said, code) = bench.recovered();
    assert!(said.contains("open files keep the window") && code == Some(1), "{code:?}: {said}");
    drop(strangers);
    bench.recover();
    assert_eq!(bench.noted(), [] as [u64; 0]);
}

#[test]
fn a_window_set_after_a_reload_is_given_back_after_a_kill_whatever_the_old_engine_is_at() {
    let Some(bench) = Bench::new("hung-reload") else { return };
    let victim = bench.open("victim");
    let requests = bench.requests(&victim);
    let mut daemon = Daemon::start(&bench);
    let stranger = Stranger::hanging(&bench, STRANGERS[0]);
    bench.configure("drop-behind.mode = 'never'");
    daemon.signal(Signal::HUP);
    daemon.is_ready();
    // What a thread of the old engine strikes off when it is over is its own.
    bench.read_until(&victim, || daemon.window_threads() <= 1);
    daemon.process.kill().expect("it runs");
    daemon.process.wait().expect("it ends");
    drop(stranger);
    bench.recover();
    bench.is_as_before(&victim, requests);
    assert_eq!(bench.noted(), [] as [u64; 0]);
}

#[test]
fn totals_go_on_after_a_reload() {
    let Some(bench) = Bench::new("totals") else { return };
    let victim = bench.open("victim");
    let mut daemon = Daemon::start(&bench);
    bench.read_until(&victim, || true);
    let before = daemon.status();
    let events = |metrics: &Value| metrics["events"].as_u64().expect("a number");
    assert!(events(&before["metrics"]) > 0, "{before}");
    bench.configure("drop-behind.mode = 'never'");
    daemon.signal(Signal::HUP);
    daemon.is_ready();
    let after = daemon.status();
    assert!(events(&after["metrics"]) >= events(&before["metrics"]), "{after}");
    let seconds = |status: &Value| status["uptime_s"].as_f64().expect("a number");
    assert!(seconds(&after) > seconds(&before), "{after}");
    let totals = daemon.end();
    assert!(events(&totals) >= events(&before["metrics"]), "{totals}");
}

#[test]
fn a_configured_path_that_hangs_changes_no_settings_and_reads_are_managed_meanwhile() {
    let Some(bench) = Bench::new("hung-path") else { return };
    let victim = bench.open("victim");
    let daemon = Daemon::start(&bench);
    let server = silent(Silence { after_reads: 0, when_bowwave_closes: false });
    let hung = server.folder().join("file");
    fs::write(&bench.config, format!("path = [{hung:?}]")).expect("written");
    daemon.signal(Signal::HUP);
    let until = Instant::now() + GENEROUS;
    while !server.is_waited_for() {
        assert!(Instant::now() < until, "nobody looks for the path");
        thread::yield_now();
    }
    let events = || daemon.status()["metrics"]["events"].as_u64().expect("a number");
    let before = events();
    bench.read_until(&victim, || events() > before);
    let said = daemon.says("the settings stay as they are");
    assert!(is_one_line_about(&said, &hung), "{said}");
    assert!(server.is_waited_for(), "it has not answered until here");
    // Whoever waits for the server ends with it.
    drop(server);
    daemon.end();
}

fn is_one_line_about(said: &str, path: &Path) -> bool {
    let lines: Vec<&str> = said.lines().collect();
    let named = lines.iter().filter(|line| line.contains(&*path.to_string_lossy())).count();
    named == 1 && said.contains("its file system has not answered for 5 s")
}
