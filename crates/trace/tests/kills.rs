//! Whenever a recorder is killed, its trace is read up to what it had written.

use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use trace::recorded::{Header, Recorder, Run};
use trace::{Record, TraceOp, open};

const KILLS: u64 = 50;

/// The variable with the path that the child writes. The child is this test again, with the variable set.
const FILE: &str = "BOWWAVE_TEST_TRACE";

fn read_of(number: u64) -> Record {
    Record {
        at: number * 1000,
        took: number % 7,
        process: 0,
        file: 0,
        op: TraceOp::Read,
        offset: number * 4096,
        bytes: 4096,
    }
}

fn record_until_killed(path: &Path) {
    let [bowwave, kernel, date] = Default::default();
    let file = File::create(path).expect("a folder of ours");
    let mut recorder = Recorder::begin(file, &Header { bowwave, kernel, date }).expect("room");
    recorder.process("p").expect("room");
    recorder.file("f", 0).expect("room");
    for number in 0.. {
        recorder.run(&Run { record: read_of(number), calls: 1, lasted: 0 }).expect("room");
        if number % 1009 == 0 {
            recorder.flush().expect("room");
        }
    }
}

struct Victim(Child, PathBuf);

impl Victim {
    fn start(path: &Path) -> Self {
        let mut command = Command::new(env::current_exe().expect("it runs"));
        command.args(["--exact", "a_killed_recorders_trace_is_read_to_its_last_whole_block"]);
        command.env(FILE, path).stdout(Stdio::null()).stderr(Stdio::null());
        Victim(command.spawn().expect("it runs"), path.into())
    }

    fn wait_for(&self, bytes: u64) {
        let begun = Instant::now();
        while fs::metadata(&self.1).map_or(0, |about| about.len()) < bytes {
            assert!(begun.elapsed() < Duration::from_secs(120), "it does not write");
            std::thread::yield_now();
        }
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        self.0.kill().expect("it is not reaped");
        self.0.wait().expect("it is ours");
    }
}

#[test]
fn a_killed_recorders_trace_is_read_to_its_last_whole_block() {
    if let Some(path) = env::var_os(FILE) {
        record_until_killed(Path::new(&path));
    }
    let folder = tempfile::tempdir().expect("a folder");
    for kill in 0..KILLS {
        let path = folder.path().join(kill.to_string());
        let victim = Victim::start(&path);
        // Each time a little later, in steps that fit no block.
        victim.wait_for(20_000 + kill * 7919);
        drop(victim);
        let trace = open(&path).unwrap_or_else(|error| panic!("{error}"));
        let count = trace.records().len() as u64;
        assert!(count > 0);
        assert!(trace.records().iter().copied().eq((0..count).map(read_of)), "kill {kill}");
        assert!(trace.origin().is_some_and(|origin| !origin.is_complete));
        fs::remove_file(&path).expect("ours");
    }
}
