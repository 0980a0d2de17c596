//! The daemon as a service: its configuration, what it tells systemd, and SIGHUP. Managing reads needs root, FUSE and
//! eBPF.

mod managed;
mod own;
mod stage;

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::{MetadataExt, symlink};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use lab::LabGuard;
use own::Own;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use stage::{Alone, BOWWAVE, skipped};

/// Output of `bowwave daemon --check-config`, with its exit status.
fn checked(options: &[&str]) -> (String, Option<i32>) {
    let mut command = Command::new(BOWWAVE);
    let output = command.args(["daemon", "--check-config"]).args(options).output().expect("it ran");
    let said = [output.stdout, output.stderr].concat();
    (String::from_utf8(said).expect("text"), output.status.code())
}

#[test]
fn mistakes_in_the_configuration_are_told_in_one_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("config.toml");
    let path = file.to_str().expect("text");
    for (text, words) in [
        ("[drop-behind]\nmood = 'auto'", ["line 2", "unknown field `mood`"]),
        ("\ncharge = 'me'", ["line 2", "unknown variant `me`, expected `bowwave` or `reader`"]),
        ("path = ['/no/such/folder']", ["/no/such/folder", "No such file"]),
        ("path = ['/proc']", ["/proc", "no page cache"]),
        ("charge", ["line 1", ""]),
    ] {
        fs::write(&file, text).expect("written");
        let (said, code) = checked(&["--config", path]);
        assert!(words.iter().all(|word| said.contains(word)), "{said}");
        assert_eq!((said.lines().count(), code), (1, Some(1)), "{said}");
    }
    fs::write(&file, "charge = 'reader'").expect("written");
    assert_eq!(checked(&["--config", path]), (format!("nothing is wrong with {path}\n"), Some(0)));
    let (said, code) = checked(&["--config", "/no/such/file"]);
    assert!(said.contains("/no/such/file") && code == Some(1), "a file that is named must exist");
}

/// The exit status of the script below where it cannot mount; none of bowwave's.
const NO_MOUNT: i32 = 90;

/// Runs bowwave where `etc` is `/etc`; gives what it says, and its exit status. `None` where that cannot be.
fn where_etc_is(etc: &Path, words: &[&str]) -> Option<(String, Option<i32>)> {
    let mut command = Command::new("unshare");
    let script = format!("mount --bind \"$1\" /etc || exit {NO_MOUNT}; shift; exec \"$@\"");
    command.args(["--mount", "sh", "-c", &script, "sh"]).arg(etc).arg(BOWWAVE).args(words);
    let output = command.output().expect("util-linux is there");
    let said = String::from_utf8([output.stdout, output.stderr].concat()).expect("text");
    // Without the right to, it does not come to the script.
    if said.starts_with("unshare:") || output.status.code() == Some(NO_MOUNT) {
        return skipped(&format!("no mount namespaces here: {said}"));
    }
    Some((said, output.status.code()))
}

#[test]
fn the_default_configuration_is_in_etc() {
    let etc = tempfile::tempdir().expect("a folder");
    fs::create_dir(etc.path().join("bowwave")).expect("made");
    let write = |text| fs::write(etc.path().join("bowwave/config.toml"), text).expect("written");
    let tell = |words: &[&str]| where_etc_is(etc.path(), words);
    let check = ["daemon", "--check-config"];
    let Some((said, _)) = tell(&check) else { return };
    assert_eq!(said, "there is no /etc/bowwave/config.toml; defaults apply\n");
    write("charge = 'reader'");
    let right = "nothing is wrong with /etc/bowwave/config.toml\n".to_owned();
    assert_eq!(tell(&check), Some((right, Some(0))));
    let place = etc.path().join("bowwave/config.toml");
    fs::remove_file(&place).expect("removed");
    symlink("nowhere", &place).expect("made");
    let (said, code) = tell(&check).expect("it could be before");
    assert!(said.contains("cannot read the configuration /etc/bowwave/config.toml"), "{said}");
    assert_eq!(code, Some(1));
    fs::remove_file(&place).expect("removed");
    write("charge = 1");
    let (said, code) = tell(&check).expect("it could be before");
    assert!(said.contains("/etc/bowwave/config.toml, line 1"), "{said}");
    assert_eq!(code, Some(1));
    // A command gets help all the same, unless it is not to start without.
    let (said, code) = tell(&["run", "--", "sh", "-c", "exit 7"]).expect("it could be before");
    assert!(said.contains("/etc/bowwave/config.toml, line 1"), "{said}");
    assert_eq!(code, Some(7));
    let (said, code) = tell(&["run", "--strict", "--", "echo", "begun"]).expect("it could be");
    assert!(said.contains("/etc/bowwave/config.toml, line 1") && !said.contains("begun"), "{said}");
    assert_eq!(code, Some(125));
}

/// A message of the daemon takes no longer, also on a busy machine.
const MOST_WAITING: Duration = Duration::from_secs(60);

/// What arrives at a socket. Somebody always receives, as a sender waits while the socket's queue is full.
fn received(socket: UnixDatagram) -> Receiver<String> {
    let (sender, messages) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(length) = socket.recv(&mut bytes) {
            if sender.send(String::from_utf8_lossy(&bytes[..length]).into_owned()).is_err() {
                break;
            }
        }
    });
    messages
}

/// A daemon of a service manager, which is this test.
struct Service {
    daemon: Own,
    output: BufReader<ChildStdout>,
    said: PathBuf,
    messages: Receiver<String>,
}

impl Service {
    /// Starts the daemon, without a terminal; it has told that it is ready. Its folder takes all files.
    fn start(folder: &Path, config: &Path, watchdog: Duration) -> Service {
        let socket = folder.join("notify");
        let manager = UnixDatagram::bind(&socket).expect("a socket");
        let said = folder.join("stderr");
        let mut command = Command::new("env");
        // The tests themselves may ignore SIGHUP.
        command.args(["--default-signal=HUP", "setsid", BOWWAVE, "daemon", "--json", "--state"]);
        command.arg(folder).arg("--config").arg(config);
        command.env("NOTIFY_SOCKET", socket);
        command.env("WATCHDOG_USEC", watchdog.as_micros().to_string());
        let journal = File::create(&said).expect("a file");
        let about = journal.metadata().expect("it is there");
        command.env("JOURNAL_STREAM", format!("{}:{}", about.dev(), about.ino()));
        command.stdout(Stdio::piped()).stderr(journal);
        let mut daemon = Own::start(&mut command);
        let output = BufReader::new(daemon.stdout.take().expect("piped"));
        let service = Service { daemon, output, said, messages: received(manager) };
        assert_eq!(service.told(), "READY=1\nWATCHDOG=1\n");
        service
    }

    /// Ends the daemon; gives what it has said on its standard output and was not read yet.
    fn end(mut self) -> String {
        self.signal(Signal::TERM);
        assert_eq!(self.told(), "STOPPING=1\n");
        assert!(self.daemon.wait().expect("it ends").success());
        let mut said = String::new();
        self.output.read_to_string(&mut said).expect("text");
        said
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.daemon), signal).expect("it runs");
    }

    fn heard(&self) -> String {
        self.heard_by(Instant::now() + MOST_WAITING)
    }

    fn heard_by(&self, until: Instant) -> String {
        let left = until.saturating_duration_since(Instant::now());
        self.messages.recv_timeout(left).expect("the daemon tells something")
    }

    /// The next message that is more than a sign of life.
    fn told(&self) -> String {
        let until = Instant::now() + MOST_WAITING;
        std::iter::repeat_with(|| self.heard_by(until))
            .find(|message| message != "WATCHDOG=1\n")
            .expect("there is always another")
    }

    /// Sends SIGHUP, and waits until the daemon has read its configuration again.
    fn reload(&self) {
        self.signal(Signal::HUP);
        let told = self.told();
        assert!(told.starts_with("RELOADING=1\nMONOTONIC_USEC="), "{told}");
        assert!(told.ends_with("WATCHDOG=1\n"), "{told}");
        assert_eq!(self.told(), "READY=1\nWATCHDOG=1\n");
    }

    /// Where it says that it manages reads.
    fn announced(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("a line");
        serde_json::from_str::<Value>(&line).expect("it is JSON")["mounts"].take()
    }

    fn descriptors(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.daemon.id())).expect("it runs").count()
    }

    /// Whether it soon has no more than so many: threads of an engine that has gone end within seconds.
    fn soon_has(&self, descriptors: usize) -> bool {
        let until = Instant::now() + Duration::from_secs(30);
        while self.descriptors() > descriptors && Instant::now() < until {
            thread::sleep(Duration::from_millis(20));
        }
        self.descriptors() <= descriptors
    }
}

/// A lab and a folder for a daemon's configuration and state.
struct Bench {
    lab: LabGuard,
    folder: tempfile::TempDir,
    config: PathBuf,
    _alone: Alone,
}

impl Bench {
    /// `None` where labs or eBPF do not work.
    fn new(purpose: &str) -> Option<Self> {
        managed::possible()?;
        let (alone, lab) = stage::lab(purpose, "net", 64 << 20, "ext4");
        let folder = stage::state();
        let config = folder.path().join("config.toml");
        Some(Bench { lab, folder, config, _alone: alone })
    }

    /// Settings by which the lab is all that is managed.
    fn lab_only(&self) -> String {
        format!("path = [{:?}]", self.lab.mount_point())
    }

    fn configure(&self, text: &str) {
        fs::write(&self.config, text).expect("written");
    }

    /// A daemon that manages the lab only.
    fn start(&self, watchdog: Duration) -> Service {
        self.configure(&self.lab_only());
        Service::start(self.folder.path(), &self.config, watchdog)
    }
}

#[test]
fn systemd_learns_that_it_is_ready_alive_reloading_and_stopping() {
    let Some(bench) = Bench::new("service") else { return };
    let lab_only = bench.lab_only();
    let mounts = |service: &mut Service| service.announced().as_array().map(Vec::len);
    let mut service = bench.start(Duration::from_millis(200));
    assert_eq!(mounts(&mut service), Some(1));
    assert_eq!(service.heard(), "WATCHDOG=1\n");
    managed::wait_measured(&bench.lab, bench.folder.path());
    let descriptors = service.descriptors();

    // A wrong file, then the same settings: the engine goes on.
    for text in [format!("{lab_only}\ncharge = 'me'"), lab_only.clone()] {
        bench.configure(&text);
        service.reload();
    }
    let said = fs::read_to_string(&service.said).expect("text");
    assert!(said.contains("line 2") && said.contains("the settings stay as they are"), "{said}");
    assert!(said.contains("the settings are the same"), "{said}");
    assert!(said.lines().all(|line| line.starts_with("<4>")), "each has a priority: {said}");

    // Other settings: a new engine.
    for (text, managed) in [
        (format!("path = ['/', {:?}]", bench.lab.mount_point()), 2),
        (format!("{lab_only}\ndrop-behind.mode = 'never'"), 1),
        (lab_only.clone(), 1),
    ] {
        bench.configure(&text);
        service.reload();
        assert_eq!(mounts(&mut service), Some(managed), "{text}");
    }
    assert!(service.soon_has(descriptors), "something of earlier engines stays");
    assert_eq!(service.heard(), "WATCHDOG=1\n");
    let status =
        Command::new(BOWWAVE).args(["status", "--state"]).arg(bench.folder.path()).status();
    assert!(status.expect("it ran").success());
    let totals = service.end();
    assert!(totals.contains("read_ahead_bytes"), "{totals}");
}

#[test]
fn reloads_more_often_than_the_pulse_are_signs_of_life() {
    let Some(bench) = Bench::new("reloads") else { return };
    // No pulse comes while this test runs.
    let service = bench.start(Duration::from_secs(3600));
    for _ in 0..3 {
        assert_eq!(service.heard(), "WATCHDOG=1\n", "when it begins to serve");
        service.reload();
    }
    service.end();
}

/// The notes about disks in a state folder, with when they were written.
fn notes(state: &Path) -> Vec<(PathBuf, Vec<u8>, SystemTime)> {
    let entries = fs::read_dir(state.join("disks")).into_iter().flatten().flatten();
    let note = |path: PathBuf| {
        let written = fs::metadata(&path).and_then(|about| about.modified()).expect("it is there");
        let bytes = fs::read(&path).expect("it is there");
        (path, bytes, written)
    };
    entries.map(|entry| note(entry.path())).collect()
}

#[test]
fn the_next_version_does_not_measure_a_disk_again() {
    let Some(bench) = Bench::new("upgrade") else { return };
    let noted = || {
        let state = bench.folder.path();
        let (mut daemon, _output) = managed::begin(&mut managed::daemon(&bench.lab, state, &[]));
        managed::wait_measured(&bench.lab, state);
        kill_process(Pid::from_child(&daemon), Signal::TERM).expect("it runs");
        assert!(daemon.wait().expect("it ends").success());
        notes(state)
    };
    let first = noted();
    assert_eq!(first.len(), 1, "the lab's disk is measured");
    assert_eq!(noted(), first);
}

#[test]
fn a_daemon_that_cannot_watch_for_mounts_does_not_start() {
    if managed::possible().is_none() {
        return;
    }
    let folder = stage::state();
    let config = folder.path().join("config.toml");
    fs::write(&config, "").expect("written");
    let mut command = Command::new(BOWWAVE);
    command.args(["daemon", "--json", "--state"]).arg(folder.path()).arg("--config").arg(config);
    // As much as no address space has, so that no thread can be started.
    command.env("RUST_MIN_STACK", (1_u64 << 62).to_string());
    let mut daemon = Own::start(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    let mut ready = String::new();
    let output = daemon.stdout.take().expect("piped");
    BufReader::new(output).read_line(&mut ready).expect("a line, or none");
    assert_eq!(ready, "");
    let mut said = String::new();
    daemon.stderr.take().expect("piped").read_to_string(&mut said).expect("text");
    assert!(said.contains("no thread to watch for file systems"), "{said}");
    assert_eq!((daemon.wait().expect("it ends").code(), said.lines().count()), (Some(1), 1));
}

#[test]
fn recovery_is_refused_beside_a_daemon_and_says_what_stays_changed() {
    if !rustix::process::geteuid().is_root() {
        return skipped("needs root").unwrap_or_default();
    }
    let folder = stage::state();
    let recover = || {
        let mut command = Command::new(BOWWAVE);
        command.args(["daemon", "--recover", "--state"]).arg(folder.path());
        command.output().expect("it ran")
    };
    assert!(recover().status.success());
    let ledger = folder.path().join("given-windows-1.jsonl");
    fs::create_dir(&ledger).expect("what cannot be read as a list of open files");
    let failed = recover();
    let said = String::from_utf8_lossy(&failed.stderr);
    assert!(said.contains(&*ledger.to_string_lossy()) && said.contains("cannot be read"), "{said}");
    assert_eq!((failed.status.code(), said.lines().count()), (Some(1), 1), "{said}");
    fs::remove_dir(&ledger).expect("ours");
    assert!(recover().status.success());
    let _lock = linux::state::DaemonLock::take(folder.path()).expect("it is free");
    let beside = recover();
    assert_eq!(beside.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&beside.stderr).contains("already uses"));
}
