//! A device that does not answer, takes ten seconds a read, or vanishes holds up nobody but its own readers.
//!
//! What is asserted is counted, never timed; `examples/bad-devices.rs` has the times. Needs root, FUSE and eBPF.

mod bad;
mod managed;
mod own;
mod stage;

use std::fs;
use std::io::BufRead;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use bad::{Bad, FILE_BYTES, READ_BYTES, Sort};
use stage::BOWWAVE;

/// The totals come long before this, unless a device holds them up.
const GENEROUS: Duration = Duration::from_secs(30);

fn a_bad_device_holds_up_nobody_else(sort: Sort) {
    if managed::possible().is_none() {
        return;
    }
    let (_alone, healthy) = stage::lab("healthy", "net", 256 << 20, "ext4");
    bad::prepare(&healthy).expect("a cold file");
    let mut bad = Bad::up(sort, Path::new(BOWWAVE)).expect("a bad device");
    let state = stage::state();
    let before = [healthy.read_ahead_kb().expect("a window"), bad.window_kb().expect("a window")];

    let mut command = managed::daemon(&healthy, state.path(), &["--charge", "reader", "--path"]);
    let (mut daemon, mut output) = managed::begin(command.arg(bad.folder()));
    bad.begin().expect("it goes wrong");

    let never = AtomicBool::new(false);
    let requests = || {
        let served = healthy.status().expect("counters");
        bad::read_backward(&healthy.mount_point(), &never).expect("all of it is read");
        let file = std::fs::File::open(bad::file_in(&healthy.mount_point())).expect("it is there");
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).expect("advised");
        healthy.status().expect("counters").since(&served).reads
    };
    // On a busy machine, bowwave may come late once.
    let requests: Vec<u64> = (0..3).map(|_| requests()).collect();
    let is_read_ahead = requests.iter().any(|requests| *requests < FILE_BYTES / READ_BYTES / 2);
    assert!(is_read_ahead, "{requests:?} requests: it is read ahead");
    let mut status = Command::new(BOWWAVE);
    let status = status.arg("status").arg("--state").arg(state.path()).output().expect("it ran");
    assert!(status.status.success(), "{}", String::from_utf8_lossy(&status.stderr));

    let pid = Pid::from_child(&daemon);
    kill_process(pid, Signal::TERM).expect("it runs");
    let (tell, told) = mpsc::channel();
    let listener = thread::spawn(move || {
        let mut line = String::new();
        let _ = output.read_line(&mut line);
        let _ = tell.send(line);
    });
    let totals = told.recv_timeout(GENEROUS).expect("SIGTERM is obeyed");
    assert!(totals.contains("\"events\":"), "{totals}");
    listener.join().expect("it has told");
    let left = (healthy.read_ahead_kb().expect("a window"), bad.window_kb().expect("a window"));

    bad.release();
    assert!(daemon.wait().expect("it ends").success());
    assert_eq!(left, before.into(), "the devices' windows are as before");
    drop(daemon);
    assert_eq!(bad::journals(state.path()), Vec::<std::path::PathBuf>::new());
    assert!(!fs::exists(format!("/proc/{}", pid.as_raw_nonzero())).unwrap_or(true));
    let places = [bad.folder().to_owned(), healthy.mount_point()];
    drop(bad);
    drop(healthy);
    let mounts = fs::read_to_string("/proc/self/mounts").expect("the table");
    for place in places {
        assert!(!mounts.contains(&*place.to_string_lossy()), "{} is mounted", place.display());
    }
}

#[test]
fn a_server_that_never_answers_holds_up_nobody_else() {
    a_bad_device_holds_up_nobody_else(Sort::Silent);
}

#[test]
fn a_disk_that_takes_ten_seconds_a_read_holds_up_nobody_else() {
    a_bad_device_holds_up_nobody_else(Sort::Slow);
}

#[test]
fn a_disk_that_vanishes_holds_up_nobody_else() {
    a_bad_device_holds_up_nobody_else(Sort::Vanishing);
}
