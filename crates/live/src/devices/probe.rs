//! A first measurement of a disk by a few direct reads, in a fraction of a second.
//!
//! ```text
//!   latency      median of 7 reads of 4 KiB, scattered over the whole device, one at a time
//!   bandwidth    median of 3 successive reads of 1 MiB, less the latency on devices without a head
//!   concurrency  32 scattered reads of 4 KiB at once: 32 * latency / time taken
//! ```
//!
//! It only reads, past the page cache. If the reads waited for a busy processor, it repeats them and takes the figures
//! with the least waiting.
//!
//! A disk with a head that serves other programs is not measured: each read would wait for theirs, they would wait for
//! it, and the figures would be many times too slow. The measurement waits until nobody has used the disk for a while.
//! Until then its cost is guessed, and learned from its reads.

use std::io;
use std::ops::Range;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use controller::FASTEST_DISK_S;
use linux::direct::{ALIGNMENT, DirectReader};
use linux::mounts::{Disk, Load};
use linux::waits::{self, Waits};
use readahead::DeviceCost;

/// The reads described above.
const SMALL_BYTES: usize = 4096;
const LARGE_BYTES: usize = 1 << 20;
const LATENCY_READS: u64 = 7;
const AT_ONCE: usize = 32;

/// Measure this many times at most.
const MOST_TRIES: usize = 4;

/// Begin no further try after this time: on a slow device, one takes seconds.
const LAST_TRY_BEFORE: Duration = Duration::from_millis(500);

/// Ignore this share of waiting for a processor: undisturbed measurements differ by as much.
const HARMLESS_WAIT_SHARE: f64 = 0.05;

/// A disk that has served nobody for this long is idle: several times a disk's longest seek, so that a program that reads
/// one place after the other keeps it busy.
const IDLE: Duration = Duration::from_millis(100);

/// After tries in vain, it must be idle for longer, but no longer than this: then tries take a twentieth of the time.
const LONGEST_IDLE: Duration = Duration::from_secs(3);

/// A smaller device is not worth measuring.
const SMALLEST_BYTES: u64 = 16 << 20;

/// Why a disk was not measured.
enum Unmeasured {
    /// A head had to move for others during half of the reads.
    Shared,
    Failed(io::Error),
}

impl From<io::Error> for Unmeasured {
    fn from(error: io::Error) -> Self {
        Unmeasured::Failed(error)
    }
}

/// Measures the disk; one with a head as soon as it is idle. Takes the bandwidth from `guess` if latency hides it. Ends
/// as soon as `pause` fails, which waits for a time.
///
/// # Errors
/// If the device cannot be opened or read, or is too small, or nobody can tell whether its head is idle, or if `pause`
/// fails.
pub(crate) fn measure(
    disk: &Disk,
    guess: &DeviceCost,
    pause: impl Fn(Duration) -> io::Result<()>,
) -> io::Result<DeviceCost> {
    let bytes = disk.bytes().ok_or(io::ErrorKind::NotFound)?;
    if bytes < SMALLEST_BYTES {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let mut idle = IDLE;
    loop {
        // Do not keep the device open meanwhile: somebody may want to remove it.
        if disk.is_rotational() {
            wait_until_idle(|| pause(idle), || disk.load())?;
        }
        let device = DirectReader::open(&disk.node())?;
        match least_waiting(waits_so_far, || read(&device, disk, bytes, guess)) {
            Ok(cost) => return Ok(cost),
            Err(Unmeasured::Failed(error)) => return Err(error),
            // Try less often, so that the tries take little of a disk that is never idle for long. Two processes that
            // try at once must not meet again.
            Err(Unmeasured::Shared) => {
                let own = Duration::from_millis(u64::from(std::process::id() % 64));
                idle = (2 * idle + own).min(LONGEST_IDLE);
            }
        }
    }
}

/// Returns when the disk has served nobody during a pause.
fn wait_until_idle(
    pause: impl Fn() -> io::Result<()>,
    load: impl Fn() -> Option<Load>,
) -> io::Result<()> {
    let unknown = io::ErrorKind::Unsupported;
    let mut before = load().ok_or(unknown)?;
    loop {
        pause()?;
        let now = load().ok_or(unknown)?;
        if now == before && now.in_flight == 0 {
            return Ok(());
        }
        before = now;
    }
}

/// Calls `measure` until it did not wait for a processor, and returns the figures with the least waiting.
fn least_waiting<T>(
    waits: impl Fn() -> Waits,
    mut measure: impl FnMut() -> Result<T, Unmeasured>,
) -> Result<T, Unmeasured> {
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
        if waited_s <= HARMLESS_WAIT_SHARE * seconds || began.elapsed() > LAST_TRY_BEFORE {
            break;
        }
    }
    best.map(|(_, found)| found)
        .ok_or_else(|| Unmeasured::Failed(io::ErrorKind::InvalidInput.into()))
}

/// How long this thread, and the kernel's workers that carry requests, have waited for a processor.
fn waits_so_far() -> Waits {
    waits::own_thread() + waits::kernel_workers()
}

fn read(
    device: &DirectReader,
    disk: &Disk,
    bytes: u64,
    guess: &DeviceCost,
) -> Result<DeviceCost, Unmeasured> {
    let (scatter, is_rotational) = (|n: u64| scattered(n, bytes), disk.is_rotational());
    let served = || disk.load().map_or(0, |load| load.bytes);
    let median_of = |reads: Range<u64>, offset: &dyn Fn(u64) -> u64, size: usize| {
        let (mut times, mut shared) = (Vec::new(), 0);
        for n in reads {
            let before = served();
            times.push(device.timed_read(offset(n), size)?);
            shared += usize::from(served() > before + size as u64);
        }
        if is_rotational && 2 * shared > times.len() {
            return Err(Unmeasured::Shared);
        }
        Ok(median(times)?)
    };
    let latency_s = median_of(0..LATENCY_READS, &scatter, SMALL_BYTES)?;
    // The kernel takes many virtual disks for rotating ones.
    let has_head = is_rotational && latency_s >= FASTEST_DISK_S;
    let start = scatter(LATENCY_READS);
    device.timed_read(start, LARGE_BYTES)?;
    let large_s = median_of(1..4, &|n| start + n * LARGE_BYTES as u64, LARGE_BYTES)?;
    let concurrency = if has_head { 1.0 } else { concurrency(device, latency_s, bytes)? };
    // The head is in place for the next MiB. Other devices have the latency of each request.
    let waited_s = if has_head { 0.0 } else { latency_s };
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

/// The n-th of a sequence of aligned offsets in bytes, spread evenly over the device by the golden ratio. Leaves room
/// for the large reads after the last one.
fn scattered(n: u64, bytes: u64) -> u64 {
    let fraction = (n as f64 * 0.618_033_988_75 + 0.1).fract();
    let last = bytes - 8 * LARGE_BYTES as u64;
    (fraction * last as f64) as u64 / ALIGNMENT as u64 * ALIGNMENT as u64
}

fn median(times: Vec<f64>) -> io::Result<f64> {
    linux::median(times).ok_or_else(|| io::ErrorKind::InvalidInput.into())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn a_measurement_that_waited_for_a_processor_is_repeated_and_the_least_waiting_counts() {
        let (tries, waited) = (Cell::new(0), Cell::new(Waits::default()));
        // Seconds of waiting, far more than each try takes.
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
    fn a_disk_is_idle_once_it_has_served_nobody_for_a_while() {
        let looks = Cell::new(0);
        // At the fourth look, a request is still in flight. The fifth finds nothing new.
        let found = [(10, 0), (11, 0), (15, 1), (15, 1), (15, 0), (15, 0), (16, 0)];
        let load = || {
            let (bytes, in_flight) = found[looks.replace(looks.get() + 1)];
            Some(Load { bytes, in_flight, ..Load::default() })
        };
        assert!(wait_until_idle(|| Ok(()), load).is_ok());
        assert_eq!(looks.get(), 6);
        let nobody_waits = || Err(io::ErrorKind::Interrupted.into());
        assert!(wait_until_idle(nobody_waits, || Some(Load::default())).is_err());
        assert!(wait_until_idle(|| Ok(()), || None).is_err(), "the kernel does not count");
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
