//! `bowwave record` is killed, again and again, at random moments: every trace opens, and has what was read up to its
//! last whole block.
//!
//! BOWWAVE_KILLS says how often (3, or 50 with BOWWAVE_TORTURE=1), BOWWAVE_SEED when. Skipped where labs or eBPF do not
//! work, unless BOWWAVE_REQUIRE_LIVE=1 makes that a failure.

mod managed;
mod own;
mod stage;
mod trial;
mod ways;

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use managed::Bench;
use own::Own;
use stage::BOWWAVE;

use trace::{OpenError, RecordedError, TraceError, TraceOp};
use trial::{Over, Random};
use ways::{PAGE, file};

/// The reader's stride, so that no two reads are one run.
const STRIDE_BYTES: u64 = 7 * PAGE;

/// After so many reads it begins again.
const ROUND: u64 = 101;

/// A recorder is killed no later after its start. It writes a block each half second.
const LONGEST_LIFE_US: u64 = 2_000_000;

/// So many more are tried if none had written anything.
const MOST_MORE: u64 = 20;

/// Reads pages at a stride, from memory, until it is over.
fn read(path: &Path, is_over: &AtomicBool) {
    let file = File::open(path).expect("opened");
    let mut page = [0; PAGE as usize];
    for number in (0..ROUND).cycle() {
        if is_over.load(Ordering::Relaxed) {
            return;
        }
        file.read_exact_at(&mut page, number * STRIDE_BYTES).expect("read");
        // Thousands a second are enough.
        thread::sleep(Duration::from_micros(100));
    }
}

/// A recorder that is killed at a random moment. Whether it had time to write a block.
fn kill(output: &Path, random: &mut Random) -> bool {
    let mut command = Command::new(BOWWAVE);
    command.args(["record", "--output"]).arg(output).stderr(Stdio::piped());
    let mut recorder = Own::start(&mut command);
    let records = random.below(4) > 0;
    if records {
        let said = recorder.stderr.as_mut().expect("piped");
        BufReader::new(said).read_line(&mut String::new()).expect("a line");
    }
    let life_us = random.below(LONGEST_LIFE_US);
    thread::sleep(Duration::from_micros(life_us));
    recorder.kill().expect("it is ours");
    let status = recorder.wait().expect("it ends");
    assert_eq!(status.signal(), Some(libc::SIGKILL), "{status}");
    records && life_us > 1_500_000
}

/// The reads of that file in a killed recorder's trace; each must follow the one before. `None` if no block was
/// written.
fn reads_in(output: &Path, path: &Path) -> Option<usize> {
    let trace = match trace::open(output) {
        Ok(trace) => trace,
        Err(OpenError::Io { cause, .. }) if cause.kind() == std::io::ErrorKind::NotFound => {
            return None;
        }
        Err(OpenError::Trace {
            problem:
                TraceError::Empty
                | TraceError::Recorded(RecordedError::CutHeader | RecordedError::NothingRead),
            ..
        }) => return None,
        Err(error) => panic!("{error}"),
    };
    assert_eq!(trace.origin().map(|origin| origin.is_complete), Some(false));
    let is_ours = |file: u32| Path::new(&trace.files()[file as usize].name) == path;
    let reads = trace.records().iter().filter(|it| it.op == TraceOp::Read && is_ours(it.file));
    let places: Vec<u64> = reads.map(|read| read.offset / STRIDE_BYTES).collect();
    for pair in places.windows(2) {
        assert_eq!(pair[1], (pair[0] + 1) % ROUND, "nothing is left out, or told twice");
    }
    Some(places.len())
}

#[test]
fn every_trace_of_a_killed_recorder_has_all_reads_up_to_its_last_block() {
    let (seed, wanted) = (trial::seed(), trial::number("BOWWAVE_KILLS", 3, 50));
    let Some(bench) = Bench::of("recorder-kills", 128 << 20) else { return };
    let path = file(&bench, "read");
    let mut random = Random(seed);
    let is_over = AtomicBool::new(false);
    let (mut kills, mut opened, mut reads) = (0, 0, 0);
    thread::scope(|scope| {
        let _over = Over(&is_over);
        scope.spawn(|| read(&path, &is_over));
        while kills < wanted || (reads == 0 && kills < wanted + MOST_MORE) {
            let output = bench.state.path().join(format!("trace{kills}"));
            let has_block = kill(&output, &mut random);
            let read = reads_in(&output, &path);
            assert!(!has_block || read > Some(0), "nothing was written in 1.5 seconds");
            opened += u64::from(read.is_some());
            reads += read.unwrap_or(0);
            kills += 1;
        }
    });
    println!("{kills} kills: {opened} traces with {reads} reads, the others without a block");
    assert!(reads > 0, "no kill has come after a block");
}
