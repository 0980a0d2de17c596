//! A first measurement of a disk: a few direct reads, a fraction of a second.
//!
//! ```text
//!   latency      median of 7 reads of 4 KiB, scattered over the whole device, one at a time
//!   bandwidth    median of 3 x 1 MiB read on from one of them, the latency taken off if it jumps
//!   concurrency  32 such reads of 4 KiB at once: 32 * latency / time taken
//! ```
//!
//! Reading only, past the page cache. What it finds is remembered until reboot. If the reads waited for a busy
//! processor, they are repeated, and the figures with the least waiting count.

use std::io;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use linux::direct::{ALIGNMENT, DirectReader};
use linux::mounts::Disk;
use linux::waits::{self, Waits};
use readahead::DeviceCost;

const SMALL_BYTES: usize = 4096;
const LARGE_BYTES: usize = 1 << 20;
const LATENCY_READS: u64 = 7;
const AT_ONCE: usize = 32;

/// Measurements at most, if the processors are busy.
const MOST_TRIES: usize = 4;

/// No try begins later than this after the first one: the first reads of a slow device take seconds.
const MOST_TRYING: Duration = Duration::from_millis(500);

/// Waiting for a processor may take this share of a measurement: two measurements differ by that much anyway.
const HARMLESS_WAIT_SHARE: f64 = 0.05;

/// Devices smaller than this hold nothing worth a probe.
const SMALLEST_BYTES: u64 = 16 << 20;

/// Measures the disk; what cannot be told apart is taken from `guess`.
///
/// # Errors
/// If the device cannot be opened or read, or is too small to probe.
pub(crate) fn measure(disk: &Disk, guess: &DeviceCost) -> io::Result<DeviceCost> {
    let device = DirectReader::open(&disk.node())?;
    let bytes = disk.bytes().ok_or(io::ErrorKind::NotFound)?;
    if bytes < SMALLEST_BYTES {
        return Err(io::ErrorKind::Unsupported.into());
    }
    least_waiting(waits_so_far, || read(&device, disk.is_rotational(), bytes, guess))
}

/// Calls `measure` until it waited for no processor. Returns the figures with the least waiting.
fn least_waiting<T>(
    waits: impl Fn() -> Waits,
    mut measure: impl FnMut() -> io::Result<T>,
) -> io::Result<T> {
    let began = Instant::now();
    let mut best: Option<(f64, T)> = None;
    for _ in 0..MOST_TRIES {
        let (before, this_began) = (waits(), Instant::now());
        let found = measure()?;
        let seconds = this_began.elapsed().as_secs_f64();
        let waited_s = (waits() - before).beyond_waking_s();
        if best.as_ref().is_none_or(|(least_s, _)| waited_s < *least_s) {
            best = Some((waited_s, found));
        }
        if waited_s <= HARMLESS_WAIT_SHARE * seconds || began.elapsed() > MOST_TRYING {
            break;
        }
    }
    best.map(|(_, found)| found).ok_or_else(|| io::ErrorKind::InvalidInput.into())
}

/// What this thread waited for a processor, and the kernel's workers that carry requests.
fn waits_so_far() -> Waits {
    waits::own_thread() + waits::kernel_workers()
}

fn read(
    device: &DirectReader,
    is_rotational: bool,
    bytes: u64,
    guess: &DeviceCost,
) -> io::Result<DeviceCost> {
    let scatter = |n: u64| scattered(n, bytes);
    let latency_s = median((0..LATENCY_READS).map(|n| device.timed_read(scatter(n), SMALL_BYTES)))?;
    let start = scatter(LATENCY_READS);
    device.timed_read(start, LARGE_BYTES)?;
    let large_s =
        median((1..=3).map(|n| device.timed_read(start + n * LARGE_BYTES as u64, LARGE_BYTES)))?;
    let concurrency = if is_rotational { 1.0 } else { concurrency(device, latency_s, bytes)? };
    // On a disk the next megabyte follows without positioning; elsewhere each request waits anew.
    let waited_s = if is_rotational { 0.0 } else { latency_s };
    let transfer_s = large_s - waited_s;
    let bandwidth =
        if transfer_s > 0.0 { LARGE_BYTES as f64 / transfer_s } else { guess.bandwidth };
    Ok(DeviceCost { latency_s, bandwidth: bandwidth.clamp(1e5, 20e9), concurrency })
}

fn concurrency(device: &DirectReader, latency_s: f64, bytes: u64) -> io::Result<f64> {
    let barrier = Barrier::new(AT_ONCE);
    let slowest = thread::scope(|scope| {
        let readers: Vec<_> = (0..AT_ONCE as u64)
            .map(|n| {
                let barrier = &barrier;
                scope.spawn(move || {
                    barrier.wait();
                    device.timed_read(scattered(100 + n, bytes), SMALL_BYTES)
                })
            })
            .collect();
        let times = readers.into_iter().map(|reader| reader.join().unwrap_or(Ok(f64::INFINITY)));
        times.collect::<io::Result<Vec<f64>>>()
    })?;
    let slowest = slowest.into_iter().fold(latency_s, f64::max);
    Ok((AT_ONCE as f64 * latency_s / slowest).clamp(1.0, AT_ONCE as f64))
}

/// The n-th of a sequence of aligned offsets that is spread evenly over the device (golden ratio),
/// leaving room for the large reads behind it.
fn scattered(n: u64, bytes: u64) -> u64 {
    let fraction = (n as f64 * 0.618_033_988_75 + 0.1).fract();
    let last = bytes - 8 * LARGE_BYTES as u64;
    (fraction * last as f64) as u64 / ALIGNMENT as u64 * ALIGNMENT as u64
}

fn median(times: impl Iterator<Item = io::Result<f64>>) -> io::Result<f64> {
    let times = times.collect::<io::Result<Vec<f64>>>()?;
    linux::median(times).ok_or_else(|| io::ErrorKind::InvalidInput.into())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn a_measurement_that_waited_for_a_processor_is_repeated_and_the_least_waiting_counts() {
        let (tries, waited) = (Cell::new(0), Cell::new(Waits::default()));
        // Waits for seconds in each try, which takes microseconds, most in the first and third.
        let waits_of_try = [9, 2, 9, 9];
        let measure = || {
            let this = tries.replace(tries.get() + 1);
            waited.set(waited.get() + Waits::of(Duration::from_secs(waits_of_try[this]), 1));
            Ok(this)
        };
        assert_eq!(least_waiting(|| waited.get(), measure).ok(), Some(1));
        assert_eq!(tries.get(), MOST_TRIES);
    }

    #[test]
    fn an_undisturbed_measurement_is_made_once() {
        let tries = Cell::new(0);
        let measure = || Ok(tries.replace(tries.get() + 1));
        assert!(least_waiting(Waits::default, measure).is_ok());
        assert_eq!(tries.get(), 1);
    }

    #[test]
    fn scattered_reads_stay_inside_the_device_and_apart() {
        let bytes = 4 << 30;
        let mut offsets: Vec<u64> = (0..200).map(|n| scattered(n, bytes)).collect();
        assert!(offsets.iter().all(|o| o % 4096 == 0 && o + 4 * LARGE_BYTES as u64 <= bytes));
        offsets.sort_unstable();
        offsets.dedup();
        assert_eq!(offsets.len(), 200);
    }
}
