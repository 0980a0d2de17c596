//! Single random reads past the page cache: what one request costs, and how many overlap.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use linux::direct::{ALIGNMENT, DirectReader};

use super::stop::Stop;
use crate::sources::Source;

/// A read of one page, which costs little more than its latency.
const SMALL_BYTES: usize = 4096;

/// One random read of 4 KiB.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RandomRead {
    /// Bytes between the end of the previous read and the start of this one.
    pub distance: u64,
    /// Duration in seconds.
    pub seconds: f64,
}

/// The sources, opened for direct reads, and a pseudo-random sequence of places in them.
#[derive(Debug)]
pub(super) struct Scatter {
    /// Each source with its size in bytes.
    readers: Vec<(DirectReader, u64)>,
    /// State of the sequence, shared by all threads that read.
    drawn: AtomicU64,
}

impl Scatter {
    /// Opens the sources. Another `seed` gives other places.
    ///
    /// # Errors
    /// If no source can be read directly.
    pub(super) fn open(sources: &[Source], seed: u64) -> io::Result<Self> {
        let least = 4 * ALIGNMENT as u64;
        let large = sources.iter().filter(|source| source.bytes >= least);
        let readers: io::Result<Vec<_>> =
            large.map(|source| Ok((DirectReader::open(&source.path)?, source.bytes))).collect();
        let readers = readers?;
        if readers.is_empty() {
            return Err(io::ErrorKind::NotFound.into());
        }
        let scatter = Scatter { readers, drawn: AtomicU64::new(seed) };
        // The first read shows whether direct reads work.
        scatter.readers[0].0.timed_read(0, SMALL_BYTES)?;
        Ok(scatter)
    }

    /// Largest size of one read, in whole pages.
    pub(super) fn largest_bytes(&self) -> usize {
        let largest = self.readers.iter().map(|(_, size)| *size).max().unwrap_or(0) as usize;
        largest / ALIGNMENT * ALIGNMENT
    }

    /// The next number of the sequence, in [0, 1) (splitmix64).
    fn draw(&self) -> f64 {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut z = self.drawn.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Draws a source with room for `bytes` and an aligned offset in it.
    fn place(&self, bytes: usize) -> (&DirectReader, u64) {
        let fits = |(_, size): &&(DirectReader, u64)| *size >= bytes as u64;
        let total: u64 = self.readers.iter().filter(fits).map(|(_, size)| size).sum();
        let mut at = (self.draw() * total as f64) as u64;
        for (reader, size) in self.readers.iter().filter(fits) {
            if at < *size {
                let last = size - bytes as u64;
                return (reader, at.min(last) / ALIGNMENT as u64 * ALIGNMENT as u64);
            }
            at -= size;
        }
        (&self.readers[0].0, 0)
    }

    /// Reads at random places in the first source, one after the other, for `time` and at most
    /// `most` times. Near and far jumps are equally likely.
    pub(super) fn random_reads(
        &self,
        time: Duration,
        most: usize,
        stop: &Stop,
    ) -> io::Result<Vec<RandomRead>> {
        let Some((reader, size)) = self.readers.first() else {
            return Ok(Vec::new());
        };
        let until = Instant::now() + time;
        let last = size - SMALL_BYTES as u64;
        let mut reads = Vec::new();
        let mut at = 0u64;
        while reads.len() < most && Instant::now() < until && !stop.is_wanted() {
            let next = (self.draw() * last as f64) as u64 / ALIGNMENT as u64 * ALIGNMENT as u64;
            let seconds = reader.timed_read(next, SMALL_BYTES)?;
            reads.push(RandomRead { distance: next.abs_diff(at), seconds });
            at = next + SMALL_BYTES as u64;
        }
        Ok(reads)
    }

    /// Median seconds of reads that follow each other without a gap.
    pub(super) fn adjacent(&self, time: Duration, stop: &Stop) -> io::Result<f64> {
        let reads = (self.largest_bytes() / SMALL_BYTES).min(64);
        let (reader, start) = self.place(reads * SMALL_BYTES);
        let until = Instant::now() + time;
        let mut times = Vec::new();
        for n in 0..reads as u64 {
            times.push(reader.timed_read(start + n * SMALL_BYTES as u64, SMALL_BYTES)?);
            if (Instant::now() > until && n >= 8) || stop.is_wanted() {
                break;
            }
        }
        Ok(linux::median(times).unwrap_or(0.0))
    }

    /// Reads of `bytes` per second that `at_once` threads complete together. The caller is one of
    /// them, so that its waiting for a processor is known.
    pub(super) fn rate(
        &self,
        at_once: usize,
        bytes: usize,
        time: Duration,
        stop: &Stop,
    ) -> io::Result<f64> {
        let began = Instant::now();
        let until = began + time;
        let reader = || -> io::Result<u32> {
            let mut done = 0;
            while (done == 0 || Instant::now() < until) && !stop.is_wanted() {
                let (reader, offset) = self.place(bytes);
                reader.timed_read(offset, bytes)?;
                done += 1;
            }
            Ok(done)
        };
        let done: io::Result<Vec<u32>> = thread::scope(|scope| {
            let threads: Vec<_> = (1..at_once).map(|_| scope.spawn(reader)).collect();
            let own = reader();
            let joined = threads.into_iter().map(|thread| thread.join().unwrap_or(Ok(0)));
            std::iter::once(own).chain(joined).collect()
        });
        Ok(f64::from(done?.iter().sum::<u32>()) / began.elapsed().as_secs_f64())
    }
}
