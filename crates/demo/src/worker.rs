//! A reader: carries one pattern out and tells how long it took.
//!
//! It runs in a process of its own, as the kernel's read-ahead state, page tables and memory cgroup
//! belong to processes, and ends with it.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::mapping;
use crate::pattern::{Pattern, Read, Work, next_random};

/// What a reader reports.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// From the first read to the last, or from start to exit of a program.
    pub seconds: f64,
    /// A sum over all bytes read, to compare runs by.
    pub checksum: u64,
    /// Of the random reader beside streams: each latency, in milliseconds, sorted.
    pub latencies_ms: Vec<f64>,
    /// Of the streams: bytes read.
    pub stream_bytes: u64,
}

/// How long the random reader and the streams beside it read.
const BESIDE: Duration = Duration::from_secs(3);

/// Carries the pattern out on the files below `folder`.
///
/// # Errors
/// If a file cannot be read or a program fails.
pub fn perform(pattern: &Pattern, folder: &Path) -> io::Result<Outcome> {
    let first = folder.join(pattern.files[0].name);
    match pattern.work {
        Work::Reads(reads) | Work::Limited(reads, _) => read(&File::open(first)?, &reads()),
        Work::Mapped(reads) => touch(&File::open(first)?, &reads()),
        Work::Program(words) => program(words, folder),
        Work::Silent(words) => silent(words, folder),
        Work::Cats => cats(pattern, folder),
        Work::Beside => beside(pattern, folder),
    }
}

fn read(file: &File, reads: &[Read]) -> io::Result<Outcome> {
    let largest = reads.iter().map(|(_, bytes)| *bytes).max().unwrap_or(0);
    let mut buffer = vec![0; largest as usize];
    let mut checksum = 0;
    let started = Instant::now();
    for &(offset, bytes) in reads {
        let part = &mut buffer[..bytes as usize];
        file.read_exact_at(part, offset)?;
        checksum = sum(checksum, part);
    }
    Ok(Outcome { seconds: started.elapsed().as_secs_f64(), checksum, ..Outcome::default() })
}

fn touch(file: &File, reads: &[Read]) -> io::Result<Outcome> {
    let map = mapping::map(file)?;
    let mut checksum = 0u64;
    let started = Instant::now();
    for &(offset, _) in reads {
        checksum = checksum.rotate_left(5) ^ u64::from(map[offset as usize]);
    }
    Ok(Outcome { seconds: started.elapsed().as_secs_f64(), checksum, ..Outcome::default() })
}

fn program(words: &[&str], folder: &Path) -> io::Result<Outcome> {
    let started = Instant::now();
    let mut child = Command::new(words[0])
        .args(&words[1..])
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut checksum = 0;
    if let Some(mut output) = child.stdout.take() {
        let mut buffer = vec![0; 256 << 10];
        let mut stream = 0u64;
        loop {
            let count = output.read(&mut buffer)?;
            if count == 0 {
                break;
            }
            // Pipes cut anywhere, so the sum must not depend on where.
            for byte in &buffer[..count] {
                stream = stream.wrapping_add(u64::from(*byte));
            }
        }
        checksum = stream;
    }
    let status = child.wait()?;
    // grep ends with 1 when it finds nothing, as it should here.
    let found_nothing = words[0] == "grep" && status.code() == Some(1);
    if !status.success() && !found_nothing {
        return Err(io::Error::other(format!("{} ended with {status}", words[0])));
    }
    Ok(Outcome { seconds: started.elapsed().as_secs_f64(), checksum, ..Outcome::default() })
}

/// Where reading the output would take longer than producing it.
fn silent(words: &[&str], folder: &Path) -> io::Result<Outcome> {
    let started = Instant::now();
    let mut program = Command::new(words[0]);
    let status = program.args(&words[1..]).current_dir(folder).stdout(Stdio::null()).status()?;
    if !status.success() {
        return Err(io::Error::other(format!("{} ended with {status}", words[0])));
    }
    Ok(Outcome { seconds: started.elapsed().as_secs_f64(), ..Outcome::default() })
}

fn cats(pattern: &Pattern, folder: &Path) -> io::Result<Outcome> {
    let started = Instant::now();
    let children = pattern
        .files
        .iter()
        .map(|file| Command::new("cat").arg(folder.join(file.name)).stdout(Stdio::null()).spawn());
    for child in children.collect::<io::Result<Vec<_>>>()? {
        let status = child.wait_with_output()?.status;
        if !status.success() {
            return Err(io::Error::other(format!("cat ended with {status}")));
        }
    }
    Ok(Outcome { seconds: started.elapsed().as_secs_f64(), ..Outcome::default() })
}

fn beside(pattern: &Pattern, folder: &Path) -> io::Result<Outcome> {
    let (stop, streamed) = (AtomicBool::new(false), AtomicU64::new(0));
    let started = Instant::now();
    let latencies = thread::scope(|scope| {
        let streams: Vec<_> = pattern.files[1..]
            .iter()
            .map(|file| {
                let (stop, streamed) = (&stop, &streamed);
                let path = folder.join(file.name);
                scope.spawn(move || stream(&path, stop, streamed))
            })
            .collect();
        let latencies = random_reader(&folder.join(pattern.files[0].name), started);
        stop.store(true, Ordering::Relaxed);
        for stream in streams {
            stream.join().unwrap_or_else(|_| Err(io::Error::other("a stream panicked")))?;
        }
        latencies
    })?;
    Ok(Outcome {
        seconds: started.elapsed().as_secs_f64(),
        latencies_ms: latencies,
        stream_bytes: streamed.load(Ordering::Relaxed),
        ..Outcome::default()
    })
}

fn stream(path: &Path, stop: &AtomicBool, streamed: &AtomicU64) -> io::Result<()> {
    let mut file = File::open(path)?;
    let mut buffer = vec![0; 64 << 10];
    while !stop.load(Ordering::Relaxed) {
        match file.read(&mut buffer)? {
            0 => break,
            count => streamed.fetch_add(count as u64, Ordering::Relaxed),
        };
    }
    Ok(())
}

fn random_reader(path: &Path, started: Instant) -> io::Result<Vec<f64>> {
    let file = File::open(path)?;
    let pages = file.metadata()?.len() / 4096;
    let (mut state, mut page, mut latencies) = (4711, [0; 4096], Vec::new());
    while started.elapsed() < BESIDE {
        let offset = next_random(&mut state) % pages * 4096;
        let asked = Instant::now();
        file.read_exact_at(&mut page, offset)?;
        latencies.push(asked.elapsed().as_secs_f64() * 1e3);
    }
    latencies.sort_by(f64::total_cmp);
    Ok(latencies)
}

/// Folds whole words into the sum; a few hundred MB a millisecond must not slow the reader.
fn sum(sum: u64, bytes: &[u8]) -> u64 {
    let words = bytes.chunks_exact(8).step_by(8);
    words.fold(sum, |sum, word| {
        sum.rotate_left(7) ^ u64::from_le_bytes(word.try_into().expect("8 bytes"))
    })
}
