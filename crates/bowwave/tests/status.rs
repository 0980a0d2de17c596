//! `bowwave status` beside a daemon and a run on a lab disk. Needs root, FUSE and eBPF, but for what is told
//! where none runs.

mod managed;
mod own;
mod stage;

use std::fs::File;
use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::FileExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{ChildStdout, Command, Output, Stdio};
use std::thread;

use lab::LabGuard;
use own::Own;
use serde_json::Value;
use stage::{Alone, BOWWAVE, skipped};

const FILE_BYTES: usize = 8 << 20;
const READ_BYTES: usize = 64 << 10;

struct Bench {
    lab: LabGuard,
    state: tempfile::TempDir,
    _alone: Alone,
}

/// A slow lab with a cold file, and a state folder that everybody may look into; `None` where labs or eBPF do not
/// work.
fn bench() -> Option<Bench> {
    managed::possible()?;
    let (alone, lab) = stage::lab("status", "net", 256 << 20, "ext4");
    lab.set_fast(true).expect("fast");
    fs::write(lab.mount_point().join("file"), vec![7; FILE_BYTES]).expect("the file");
    lab.evict().expect("evicted");
    lab.set_fast(false).expect("slow");
    let state = stage::state();
    fs::set_permissions(state.path(), Permissions::from_mode(0o755)).expect("set");
    Some(Bench { lab, state, _alone: alone })
}

impl Bench {
    fn daemon(&self) -> (Own, BufReader<ChildStdout>) {
        managed::begin(&mut managed::daemon(&self.lab, self.state.path(), &[]))
    }

    /// Reads the file backward, which the kernel does not read ahead by itself.
    fn read(&self) {
        let file = File::open(self.lab.mount_point().join("file")).expect("it is there");
        let mut bytes = [0; READ_BYTES];
        for at in (0..FILE_BYTES).step_by(READ_BYTES).rev() {
            file.read_exact_at(&mut bytes, at as u64).expect("it is read");
        }
    }

    /// The only process that answers.
    fn only(&self) -> Value {
        let output = status(self.state.path(), &["--json"]);
        assert!(output.status.success(), "{}", noted(&output));
        let mut told: Vec<Value> = serde_json::from_slice(&output.stdout).expect("an array");
        assert_eq!(told.len(), 1, "{told:?}");
        told.remove(0)
    }
}

fn status(state: &Path, options: &[&str]) -> Output {
    let mut command = Command::new(BOWWAVE);
    command.arg("status").arg("--state").arg(state).args(options).output().expect("it ran")
}

fn noted(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// `bowwave status` as another user and group; `None` where that cannot be.
fn status_as(user: &str, group: &str, state: &Path) -> Option<Output> {
    let as_that = |words: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", user, "--regid", group, "--clear-groups", BOWWAVE]).args(words);
        command.output().ok()
    };
    if !as_that(&["--version"]).is_some_and(|output| output.status.success()) {
        return skipped("no setpriv, or the program is in a folder that is root's alone");
    }
    as_that(&["status", "--state", state.to_str().expect("text")])
}

/// One sentence, and exit status 1.
fn is_refused(output: &Output, with: &str) {
    let said = noted(output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.starts_with("bowwave: ") && said.contains(with), "{said}");
    assert_eq!((said.lines().count(), output.stdout.len()), (1, 0), "{said}");
}

const NOBODY: &str = "65534";

#[test]
fn where_none_runs_that_is_told_in_one_sentence() {
    let folder = tempfile::tempdir().expect("a folder");
    let none = folder.path().join("none");
    for state in [folder.path(), &none] {
        for options in [&[][..], &["--json"], &["--metrics"]] {
            is_refused(&status(state, options), "no bowwave daemon or run");
        }
    }
    let file = folder.path().join("file");
    fs::write(&file, "").expect("written");
    is_refused(&status(&file, &[]), "cannot ask");
}

/// Sends a request, and returns the whole answer.
fn scraped(address: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("it listens");
    write!(stream, "{request} HTTP/1.1\r\nHost: {address}\r\n\r\n").expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("answered");
    answer
}

/// Serves the metrics of these processes on a free port.
fn serving(state: &Path) -> (Own, String) {
    let mut command = Command::new(BOWWAVE);
    command.args(["status", "--metrics", "--listen", "127.0.0.1:0", "--state"]).arg(state);
    let mut server = Own::start(command.stdout(Stdio::piped()));
    let mut line = String::new();
    let output = server.stdout.take().expect("piped");
    BufReader::new(output).read_line(&mut line).expect("it says where");
    let address =
        line.trim().strip_prefix("serving http://").and_then(|at| at.strip_suffix("/metrics"));
    let address = address.unwrap_or_else(|| panic!("{line}")).to_owned();
    (server, address)
}

#[test]
fn metrics_are_served_to_this_machine_only() {
    let folder = tempfile::tempdir().expect("a folder");
    let (_server, address) = serving(folder.path());
    let answer = scraped(&address, "GET /metrics");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    let kind = "Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8";
    assert!(
        head.starts_with("HTTP/1.1 200 OK\r\n") && head.lines().any(|line| line == kind),
        "{head}"
    );
    assert_eq!(body, "# EOF\n", "none runs");
    assert!(scraped(&address, "GET /").starts_with("HTTP/1.1 404 "));
    assert!(scraped(&address, "POST /metrics").starts_with("HTTP/1.1 405 "));
    for (options, why) in [
        (&["--metrics", "--listen", "0.0.0.0:0"][..], "other machines can reach it"),
        (&["--metrics", "--listen", "localhost:1"], "not an IP address with a port"),
        (&["--listen", "127.0.0.1:0"], "--metrics"),
    ] {
        let output = status(folder.path(), options);
        let said = noted(&output);
        assert!(!output.status.success() && said.contains(why), "{said}");
    }
    let taken = status(folder.path(), &["--metrics", "--listen", &address]);
    is_refused(&taken, "name a free port");
}

#[test]
fn a_scrape_fails_if_a_daemon_gives_no_answer() {
    let folder = tempfile::tempdir().expect("a folder");
    let daemon = UnixListener::bind(folder.path().join("daemon.sock")).expect("bound");
    thread::spawn(move || daemon.incoming().for_each(drop));
    let (_server, address) = serving(folder.path());
    let answer = scraped(&address, "GET /metrics");
    assert!(answer.starts_with("HTTP/1.1 503 Service Unavailable\r\n"), "{answer}");
}

#[test]
fn a_daemon_shows_its_device_and_what_was_read_ahead() {
    let Some(bench) = bench() else { return };
    let (daemon, _output) = bench.daemon();
    bench.read();
    let told = bench.only();
    assert_eq!((&told["role"], &told["pid"]), (&"daemon".into(), &daemon.id().into()));
    assert_eq!(told["schema"], 1);
    let [device] = &told["devices"].as_array().expect("devices")[..] else { panic!("{told}") };
    let place = bench.lab.mount_point().display().to_string();
    assert!(device["name"].as_str().is_some_and(|name| name.starts_with("loop")), "{told}");
    assert_eq!(device["mount_points"][0], *place);
    assert!(device["bandwidth_mb_s"].as_f64().is_some_and(|speed| speed > 0.0), "{told}");
    let read = &told["metrics"]["read_ahead_bytes"];
    assert!(read.as_u64().is_some_and(|bytes| bytes > 0), "{told}");
    assert_eq!(told["busiest_files"][0]["mount_point"], *place);
    assert_eq!(&told["busiest_files"][0]["read_ahead_bytes"], read, "nothing else was read");
    let output = status(bench.state.path(), &[]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.starts_with("daemon (process "), "{text}");
    assert!(text.contains(&place) && text.lines().all(|line| line.len() <= 80), "{text}");
    let output = status(bench.state.path(), &["--metrics"]);
    let text = String::from_utf8_lossy(&output.stdout);
    let sample = format!(
        "bowwave_read_ahead_bytes_total{{role=\"daemon\",pid=\"{}\"}} {read}\n",
        daemon.id()
    );
    assert!(output.status.success() && text.contains(&sample), "{text}");
    assert!(text.contains(&format!("device={}", device["name"])) && text.ends_with("# EOF\n"));
    let (_server, address) = serving(bench.state.path());
    let answer = scraped(&address, "GET /metrics");
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.contains(&sample), "{answer}");
}

#[test]
fn nobody_is_refused_and_roots_group_is_not() {
    let Some(bench) = bench() else { return };
    let _daemon = bench.daemon();
    let state = bench.state.path();
    let Some(refused) = status_as(NOBODY, NOBODY, state) else { return };
    is_refused(&refused, "may not ask");
    let of_group = status_as(NOBODY, "0", state).expect("as before");
    assert!(of_group.status.success(), "{}", noted(&of_group));
    // A mode that somebody has changed lets him connect, and no more.
    let socket = state.join("daemon.sock");
    fs::set_permissions(&socket, Permissions::from_mode(0o666)).expect("set");
    is_refused(&status_as(NOBODY, NOBODY, state).expect("as before"), "may not ask");
    // The folder itself may be closed as well.
    fs::set_permissions(state, Permissions::from_mode(0o700)).expect("set");
    is_refused(&status_as(NOBODY, NOBODY, state).expect("as before"), "may not ask");
}

#[test]
fn a_killed_daemon_is_not_shown_and_its_successor_is() {
    let Some(bench) = bench() else { return };
    let (mut daemon, _) = bench.daemon();
    daemon.kill().expect("killed");
    daemon.wait().expect("it ends");
    let socket = bench.state.path().join("daemon.sock");
    assert!(socket.exists(), "it had no time to remove it");
    is_refused(&status(bench.state.path(), &[]), "no bowwave daemon or run");
    let (mut daemon, _output) = bench.daemon();
    assert_eq!(bench.only()["pid"], daemon.id());
    let pid = rustix::process::Pid::from_child(&daemon);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("signalled");
    assert!(daemon.wait().expect("it ends").success());
    assert!(!socket.exists());
}

#[test]
fn clients_that_say_and_read_nothing_do_not_hold_a_daemon_up() {
    let Some(bench) = bench() else { return };
    let _daemon = bench.daemon();
    let socket = bench.state.path().join("daemon.sock");
    let connect = |_| std::os::unix::net::UnixStream::connect(&socket).expect("it listens");
    let idle: Vec<_> = (0..64).map(connect).collect();
    bench.read();
    let told = bench.only();
    drop(idle);
    assert!(told["metrics"]["read_ahead_bytes"].as_u64() > Some(0), "{told}");
}

#[test]
fn a_run_is_shown_beside_the_daemon_until_its_command_ends() {
    let Some(bench) = bench() else { return };
    let _daemon = bench.daemon();
    let mut run = Command::new(BOWWAVE);
    run.args(["run", "--strict", "--state"]).arg(bench.state.path()).args(["--", "cat"]);
    let mut run = Own::start(run.stdin(Stdio::piped()).stdout(Stdio::piped()));
    run.stdin.as_mut().expect("piped").write_all(b"up\n").expect("cat listens");
    let mut line = String::new();
    let output = run.stdout.take().expect("piped");
    BufReader::new(output).read_line(&mut line).expect("cat answers, so run manages reads");
    let output = status(bench.state.path(), &["--json"]);
    let told: Value = serde_json::from_slice(&output.stdout).expect("an array");
    let roles: Vec<_> = told.as_array().expect("it").iter().map(|one| &one["role"]).collect();
    assert_eq!(roles, ["daemon", "run"]);
    assert_eq!((&told[1]["pid"], &told[1]["command"]), (&run.id().into(), &"cat".into()));
    drop(run.stdin.take());
    assert!(run.wait().expect("it ends").success());
    assert_eq!(bench.only()["role"], "daemon");
}

#[test]
fn a_verbose_run_tells_why_nothing_was_read_ahead() {
    let Some(bench) = bench() else { return };
    let script = "for page in 1500 20 900 1999 350; do \
                  dd if=\"$0\" of=/dev/null bs=4k count=1 skip=$page status=none; done";
    let mut run = Command::new(BOWWAVE);
    run.args(["run", "-v", "--strict", "--state"]).arg(bench.state.path());
    run.args(["--", "sh", "-c", script]).arg(bench.lab.mount_point().join("file"));
    let output = run.output().expect("it ran");
    let said = noted(&output);
    assert!(output.status.success(), "{said}");
    let line = said.lines().find(|line| line.starts_with("bowwave: not read ahead: "));
    assert!(line.is_some_and(|line| line.contains("nothing to gain")), "{said}");
}
