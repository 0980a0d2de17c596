//! A random reader beside sequential ones, or beside a program that walks through a tree: latency and throughput at the
//! same time.
//!
//! All read for a fixed time, or until the first stream is at the end of its file or the walker has ended. A second pass
//! would read from memory.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use linux::waits;
use patterns::PAGE_BYTES;
use patterns::beside::{LENGTH, STREAM_READ_BYTES, places};

use super::{Beside, Outcome, program};

/// What the readers share.
#[derive(Default)]
struct Shared {
    is_over: AtomicBool,
    stream_bytes: AtomicU64,
    /// How long the stream that waited longest for a processor has waited.
    waited_ns: AtomicU64,
}

/// Reads pages of one file at random, and the others from start to end, each with a separate thread.
pub(super) fn read(random: &Path, streams: &[PathBuf]) -> io::Result<Outcome> {
    let shared = Shared::default();
    let started = Instant::now();
    let mut latencies = thread::scope(|scope| {
        let shared = &shared;
        let start = |path: &PathBuf| {
            let path = path.clone();
            scope.spawn(move || read_on(&path, shared))
        };
        let streams: Vec<_> = streams.iter().map(start).collect();
        let latencies = read_anywhere(random, started, shared);
        shared.is_over.store(true, Ordering::Relaxed);
        for stream in streams {
            stream.join().unwrap_or_else(|_| Err(io::Error::other("a stream panicked")))?;
        }
        latencies
    })?;
    let seconds = started.elapsed().as_secs_f64();
    let waited_s = shared.waited_ns.load(Ordering::Relaxed) as f64 * 1e-9;
    let stream_bytes = shared.stream_bytes.load(Ordering::Relaxed);
    let beside = Some(summary(&mut latencies, stream_bytes));
    Ok(Outcome { seconds, waited_s, beside, ..Outcome::default() })
}

/// Reads pages of the first file at random, while a program walks through the others.
pub(super) fn read_beside_walk(
    files: &[PathBuf],
    words: &[&str],
    folder: &Path,
) -> io::Result<Outcome> {
    let (random, tree) = files.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut walker = program::start_walker(words, folder, tree)?;
    let (pid, started) = (walker.id(), Instant::now());
    let mut has_ended = || walker.try_wait().map(|status| status.is_some());
    let latencies = read_until(random, started, &mut has_ended);
    let seconds = started.elapsed().as_secs_f64();
    // It is not reaped yet if it goes on; else it has read all.
    let is_whole = has_ended()?;
    let read = fs::read_to_string(format!("/proc/{pid}/io"));
    let _ = walker.kill();
    let status = walker.wait()?;
    let all = tree.iter().map(|path| Ok(path.metadata()?.len())).sum::<io::Result<u64>>()?;
    let stream_bytes = match is_whole {
        // grep exits with 1 if it finds nothing, as it should here.
        true if status.code().is_none_or(|code| code > 1) => {
            return Err(io::Error::other(format!("{} failed: {status}", words[0])));
        }
        true => all,
        false => rchar(&read?).ok_or_else(|| io::Error::other("/proc tells no bytes"))?.min(all),
    };
    let beside = Some(summary(&mut latencies?, stream_bytes));
    Ok(Outcome { seconds, beside, ..Outcome::default() })
}

/// The bytes that a process has read, from its `/proc/PID/io`.
fn rchar(io: &str) -> Option<u64> {
    io.lines().find_map(|line| line.strip_prefix("rchar: "))?.parse().ok()
}

fn summary(latencies: &mut [f64], stream_bytes: u64) -> Beside {
    latencies.sort_by(f64::total_cmp);
    Beside { stream_bytes, median_ms: quantile(latencies, 0.5), p99_ms: quantile(latencies, 0.99) }
}

/// Reads a stream until all is over, and ends that itself at the end of its file.
fn read_on(path: &Path, shared: &Shared) -> io::Result<()> {
    let mut file = File::open(path)?;
    let mut buffer = vec![0; STREAM_READ_BYTES as usize];
    while !shared.is_over.load(Ordering::Relaxed) {
        match file.read(&mut buffer)? {
            0 => shared.is_over.store(true, Ordering::Relaxed),
            count => {
                shared.stream_bytes.fetch_add(count as u64, Ordering::Relaxed);
            }
        }
    }
    shared.waited_ns.fetch_max((waits::own_thread().seconds() * 1e9) as u64, Ordering::Relaxed);
    Ok(())
}

/// Reads pages at random. Returns the latency of each read in milliseconds.
fn read_anywhere(path: &Path, started: Instant, shared: &Shared) -> io::Result<Vec<f64>> {
    read_until(path, started, &mut || Ok(shared.is_over.load(Ordering::Relaxed)))
}

/// The same, until somebody says that it is over.
fn read_until(
    path: &Path,
    started: Instant,
    is_over: &mut dyn FnMut() -> io::Result<bool>,
) -> io::Result<Vec<f64>> {
    let file = File::open(path)?;
    let (mut page, mut latencies) = ([0; PAGE_BYTES as usize], Vec::new());
    for offset in places(file.metadata()?.len()) {
        if started.elapsed() >= LENGTH || is_over()? {
            break;
        }
        let asked = Instant::now();
        file.read_exact_at(&mut page, offset)?;
        latencies.push(asked.elapsed().as_secs_f64() * 1e3);
    }
    if latencies.is_empty() {
        return Err(io::Error::other("the others were done before the first random read"));
    }
    Ok(latencies)
}

/// The value below which this share of the sorted values is. There must be at least one value.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    sorted[(share * (sorted.len() - 1) as f64).round() as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_of_the_sorted_values() {
        let values: Vec<f64> = (0..=100).map(f64::from).collect();
        assert_eq!(quantile(&values, 0.5), 50.0);
        assert_eq!(quantile(&values, 0.99), 99.0);
        assert_eq!(quantile(&[3.0], 0.99), 3.0);
    }

    #[test]
    fn what_a_process_has_read_is_found() {
        assert_eq!(rchar("rchar: 4711\nwchar: 2\n"), Some(4711));
        assert_eq!(rchar("wchar: 2\n"), None);
    }

    #[test]
    fn a_stream_at_its_end_ends_the_run() {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        std::fs::write(file.path(), vec![1; 1_000_000]).expect("room for a megabyte");
        let shared = Shared::default();
        read_on(file.path(), &shared).expect("it can be read");
        assert_eq!(shared.stream_bytes.load(Ordering::Relaxed), 1_000_000);
        assert!(shared.is_over.load(Ordering::Relaxed));
        assert!(read_anywhere(file.path(), Instant::now(), &shared).is_err(), "no read was timed");
    }
}
