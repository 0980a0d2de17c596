//! Many slow readers, like those of a video server.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use patterns::PAGE_BYTES;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};

/// Number of reading threads. While one waits for the disk, its other streams wait, too.
const THREADS: usize = 64;

/// How often a thread checks which of its streams are due.
const TICK: Duration = Duration::from_millis(2);

/// Progress is compared when streams should have read this share.
const COMPARED_AT: f64 = 0.9;

/// What to read, and how slowly.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Streams {
    /// One file for each, all of one size.
    pub paths: Vec<PathBuf>,
    /// Bytes per second that each reads, a page at a time.
    pub bytes_per_second: f64,
    /// Seconds between the starts of two streams.
    pub start_every_s: f64,
}

struct Stream {
    file: File,
    /// Seconds after the start of all.
    starts_at: f64,
    /// Size of the file, and how many of these bytes have been read.
    bytes: u64,
    done: u64,
    /// Bytes behind schedule at the comparison.
    lag: Option<u64>,
}

impl Streams {
    /// Reads all of them to their ends. Compares each with its schedule when it should have read [`COMPARED_AT`] of its
    /// file. Returns the progress of the slowest as a share of the fastest stream's.
    pub(super) fn read(&self) -> io::Result<f64> {
        let files = getrlimit(Resource::Nofile);
        setrlimit(Resource::Nofile, Rlimit { current: files.maximum, ..files })?;
        let started = Instant::now();
        let progress = Mutex::new(Vec::new());
        thread::scope(|scope| {
            let start = |first: usize| {
                let progress = &progress;
                scope.spawn(move || {
                    let streams = self.read_some(first, started)?;
                    progress
                        .lock()
                        .map_err(|_| io::Error::other("a stream panicked"))?
                        .extend(streams.iter().map(Stream::progress));
                    Ok(())
                })
            };
            let threads: Vec<_> = (0..THREADS.min(self.paths.len())).map(start).collect();
            let join = |thread: thread::ScopedJoinHandle<'_, io::Result<()>>| {
                thread.join().unwrap_or_else(|_| Err(io::Error::other("a stream panicked")))
            };
            threads.into_iter().try_for_each(join)
        })?;
        let progress = progress.into_inner().map_err(|_| io::Error::other("a stream panicked"))?;
        Ok(least_to_most(&progress))
    }

    /// Reads every [`THREADS`]th stream from `first` on, each to its end.
    fn read_some(&self, first: usize, started: Instant) -> io::Result<Vec<Stream>> {
        let mut streams = Vec::new();
        for (index, path) in self.paths.iter().enumerate().skip(first).step_by(THREADS) {
            let file = File::open(path)?;
            let bytes = file.metadata()?.len();
            let starts_at = index as f64 * self.start_every_s;
            streams.push(Stream { file, starts_at, bytes, done: 0, lag: None });
        }
        while streams.iter().any(|stream| stream.done < stream.bytes) {
            for stream in &mut streams {
                let elapsed_s = started.elapsed().as_secs_f64() - stream.starts_at;
                stream.go_on((elapsed_s.max(0.0) * self.bytes_per_second) as u64)?;
            }
            thread::sleep(TICK);
        }
        Ok(streams)
    }
}

impl Stream {
    /// Reads the next page if it is among the `due` bytes that should have been read by now.
    fn go_on(&mut self, due: u64) -> io::Result<()> {
        let compared_at = (COMPARED_AT * self.bytes as f64) as u64;
        if due >= compared_at && self.lag.is_none() {
            self.lag = Some(compared_at.saturating_sub(self.done));
        }
        if self.done < due.min(self.bytes) {
            let mut page = [0; PAGE_BYTES as usize];
            let part = PAGE_BYTES.min(self.bytes - self.done) as usize;
            self.file.read_exact_at(&mut page[..part], self.done)?;
            self.done += part as u64;
        }
        Ok(())
    }

    /// The share of its schedule that it had completed at the comparison.
    fn progress(&self) -> f64 {
        let lag = self.lag.unwrap_or(0) as f64;
        1.0 - lag / (COMPARED_AT * self.bytes as f64)
    }
}

/// The least progress as a share of the most; 0 without any progress.
fn least_to_most(progress: &[f64]) -> f64 {
    let least = progress.iter().copied().fold(f64::INFINITY, f64::min);
    let most = progress.iter().copied().fold(0.0, f64::max);
    if most > 0.0 { least / most } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(bytes: u64) -> Stream {
        let file = tempfile::tempfile().expect("a file");
        file.set_len(bytes).expect("room for holes");
        Stream { file, starts_at: 0.0, bytes, done: 0, lag: None }
    }

    #[test]
    fn a_stream_reads_a_page_when_it_is_due() {
        let mut stream = stream(10 * PAGE_BYTES);
        stream.go_on(0).expect("nothing is due");
        assert_eq!(stream.done, 0);
        stream.go_on(1).expect("a page is due");
        stream.go_on(PAGE_BYTES).expect("nothing more is due");
        assert_eq!(stream.done, PAGE_BYTES);
    }

    #[test]
    fn one_that_was_held_up_has_made_less_progress() {
        let (mut prompt, mut late) = (stream(10 * PAGE_BYTES), stream(10 * PAGE_BYTES));
        for page in 0..10 {
            prompt.go_on((page + 1) * PAGE_BYTES).expect("it reads");
        }
        late.go_on(9 * PAGE_BYTES).expect("it reads one");
        assert!(prompt.progress() > 0.85 && late.progress() < 0.01, "{}", prompt.progress());
        assert_eq!(least_to_most(&[0.5, 1.0, 0.8]), 0.5);
        assert_eq!(least_to_most(&[0.0, 0.0]), 0.0, "a machine that stood still");
    }

    #[test]
    fn all_streams_come_to_their_ends() {
        let folder = tempfile::tempdir().expect("a folder");
        let paths: Vec<PathBuf> = (0..70).map(|n| folder.path().join(n.to_string())).collect();
        for path in &paths {
            std::fs::write(path, vec![1; 20_000]).expect("written");
        }
        let streams = Streams { paths, bytes_per_second: 1e6, start_every_s: 0.0 };
        let ours = streams.read_some(0, Instant::now()).expect("they can be read");
        let done: Vec<u64> = ours.iter().map(|stream| stream.done).collect();
        assert_eq!(done, [20_000; 2], "the first thread's of {THREADS}");
        // Do not compare their progress: a busy machine may delay any of them.
        let progress = streams.read().expect("they can be read");
        assert!((0.0..=1.0).contains(&progress), "{progress}");
    }
}
