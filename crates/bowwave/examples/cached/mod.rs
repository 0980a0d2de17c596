//! What watching costs programs that read cached data: processor time for each access. Each round measures without and
//! with the watcher; ratios are taken within rounds.

use std::error::Error;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use linux::median;
use rustix::time::{ClockId, clock_gettime};

pub(crate) type Fallible<T> = Result<T, Box<dyn Error>>;

pub(crate) const PAGES: usize = 256;
pub(crate) const PAGE_BYTES: usize = 4096;

/// How long each measurement takes: some of the periods of `top`, which decides each second how long it looks.
const MEASURED: Duration = Duration::from_secs(2);

/// Accesses between two looks at the clock, which costs as much as some of them.
const AT_ONCE: u32 = 1000;

/// A file of [`PAGES`] pages that is cached.
pub(crate) fn file() -> Fallible<File> {
    let mut file = tempfile::tempfile_in("/var/tmp")?;
    file.write_all(&vec![1; PAGES * PAGE_BYTES])?;
    println!("{}, {}", linux::provenance::kernel(), linux::provenance::date());
    Ok(file)
}

pub(crate) fn read_page(file: &File, page: usize) -> Fallible<()> {
    Ok(file.read_exact_at(&mut [0; PAGE_BYTES], (page * PAGE_BYTES) as u64)?)
}

#[allow(unsafe_code)]
pub(crate) fn read_mapped(file: &File) -> Fallible<()> {
    // SAFETY: nobody else has the file.
    let mapping = unsafe { memmap2::Mmap::map(file)? };
    let sum: usize = (0..PAGES).map(|page| usize::from(mapping[page * PAGE_BYTES])).sum();
    if sum == PAGES { Ok(()) } else { Err("other bytes than written".into()) }
}

/// Prints the medians of the rounds, in ns: without, with, ratio. `begin` begins to watch until its result is dropped.
pub(crate) fn show<T>(
    what: &str,
    rounds: usize,
    mut begin: impl FnMut() -> Fallible<T>,
    mut once: impl FnMut() -> Fallible<()>,
) -> Fallible<()> {
    let mut pairs = Vec::new();
    for _ in 0..rounds {
        let without = cost_ns(&mut once)?;
        let watcher = begin()?;
        let with = cost_ns(&mut once)?;
        drop(watcher);
        pairs.push((without, with));
    }
    let over = |figure: fn(&(f64, f64)) -> f64| median(pairs.iter().map(figure)).unwrap_or(0.0);
    let (without, with) = (over(|pair| pair.0), over(|pair| pair.1));
    println!("{what:<28}{without:>12.0}{with:>12.0}{:>8.3}", over(|pair| pair.1 / pair.0));
    Ok(())
}

/// Processor time of this thread for doing it once.
fn cost_ns(once: &mut impl FnMut() -> Fallible<()>) -> Fallible<f64> {
    let (begun, used, mut count) = (Instant::now(), processor_time(), 0u32);
    while begun.elapsed() < MEASURED {
        (0..AT_ONCE).try_for_each(|_| once())?;
        count += AT_ONCE;
    }
    Ok((processor_time() - used).as_nanos() as f64 / f64::from(count))
}

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
