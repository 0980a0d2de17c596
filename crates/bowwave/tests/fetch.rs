//! `bowwave fetch`, beside a program that has a descriptor lead now to a file, now to one of a FUSE server that does
//! not answer who closes it. Needs root and FUSE; else it is skipped.

mod own;
#[path = "bad/silent.rs"]
mod silent;

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use own::Own;
use readahead::{DeviceNumber, FileKey, FileRef};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair,
};
use serde_json::{Value, json};
use silent::{Silence, Silent};

const BOWWAVE: &str = env!("CARGO_BIN_EXE_bowwave");

/// Exchanges one of its descriptors.
const FLIP: &str = "
import os, sys, time
trap, bait = (os.open(path, os.O_RDONLY) for path in sys.argv[1:])
os.dup2(trap, 200)
os.dup2(bait, 300)
os.close(bait)
print('ready', flush=True)
while True:
    for other in 300, 200:
        os.dup2(other, 100)
        until = time.perf_counter() + 3e-5
        while time.perf_counter() < until:
            pass
";

/// A process that fetches descriptors.
struct Fetching {
    process: Own,
    socket: OwnedFd,
}

impl Fetching {
    fn start() -> Self {
        let (socket, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                .expect("two sockets");
        let mut fetch = Command::new(BOWWAVE);
        fetch.arg("fetch").arg(std::process::id().to_string()).stdin(theirs);
        let fetching = Fetching { process: Own::start(&mut fetch), socket };
        assert_eq!(fetching.answer(), json!("Ready"));
        fetching
    }

    /// What is said to that; a descriptor that comes along is closed.
    fn ask(&self, of: FileRef) -> Value {
        let wanted = json!({ "Sole": of }).to_string();
        send(&self.socket, wanted.as_bytes(), SendFlags::empty()).expect("it listens");
        self.answer()
    }

    fn answer(&self) -> Value {
        let mut bytes = [0; 4096];
        let (length, _) = recv(&self.socket, &mut bytes, RecvFlags::empty()).expect("an answer");
        serde_json::from_slice(&bytes[..length]).expect("JSON")
    }

    fn is_running(&mut self) -> bool {
        self.process.try_wait().expect("it is ours").is_none()
    }
}

fn read_by(path: &Path, tgid: u32) -> FileRef {
    let about = fs::metadata(path).expect("it is there");
    let file = FileKey { dev: DeviceNumber::from_stat(about.dev()), ino: about.ino() };
    FileRef { file, generation: 0, tgid }
}

#[test]
fn another_file_is_told_before_it_is_closed_and_only_who_closes_it_hangs() {
    let bait = tempfile::NamedTempFile::new().expect("a file");
    let mut fetching = Fetching::start();
    let silence = Silence { after_reads: u64::MAX, when_bowwave_closes: true };
    // Ends before the process is waited for, also if this fails.
    let server = match Silent::mount(silence, 4096) {
        Ok(server) => server,
        Err(error) => {
            assert!(std::env::var_os("BOWWAVE_REQUIRE_LIVE").is_none(), "no FUSE: {error}");
            return eprintln!("skipped: no FUSE server can be mounted: {error}");
        }
    };
    let mut stranger = Command::new("python3");
    stranger.args(["-c", FLIP]).arg(server.folder().join("file")).arg(bait.path());
    let mut stranger = Own::start(stranger.stdout(Stdio::piped()));
    let mut said = String::new();
    let words = stranger.stdout.take().expect("piped");
    BufReader::new(words).read_line(&mut said).expect("a line");
    assert_eq!(said, "ready\n");

    let of = read_by(bait.path(), stranger.id());
    let until = Instant::now() + Duration::from_secs(120);
    while fetching.ask(of) != json!("Another") {
        assert!(Instant::now() < until, "the file is never exchanged in that moment");
    }
    while !server.is_waited_for() {
        assert!(Instant::now() < until && fetching.is_running(), "it does not close the file");
        std::thread::yield_now();
    }
    fetching.process.kill().expect("it is there");
    // What ends at SIGKILL ends within milliseconds.
    std::thread::sleep(Duration::from_secs(2));
    assert!(fetching.is_running(), "closing could be interrupted, and needs no process of its own");

    let answer = Fetching::start().ask(read_by(bait.path(), std::process::id()));
    assert!(answer["Descriptor"]["number"].is_i64(), "{answer}");
    drop(server);
    fetching.process.wait().expect("it ends with the server");
}
