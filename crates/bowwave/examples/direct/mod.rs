//! What watching costs a device's requests: time for each direct read of a loop device without a scheduler, whose file
//! is in memory. Each round measures with and without the watcher, in a random order; ratios are taken within rounds.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use linux::median;
use rustix::fs::OFlags;
use sim::scripts::random::Random;

use crate::cached::{Fallible, PAGE_BYTES};

/// Memory for the loop device.
const MEMORY: &str = "/dev/shm";

/// The device's pages, of which one is read at a time.
const PAGES: u64 = 16_384;

/// How long each measurement takes. Rounds are short, so that both measurements of one see the same noise.
const MEASURED: Duration = Duration::from_secs(1);

/// A thread of the kernel does the read, and other programs may have the processor when it or the reader is to wake up.
/// One read in so many is taken to be undisturbed.
const UNDISTURBED: usize = 10;

/// Any number will do.
const SEED: u64 = 20_261_125;

/// Prints the medians of the rounds, in ns: without, with, ratio. `begin` begins to watch until its result is dropped.
pub(crate) fn show<T>(rounds: usize, mut begin: impl FnMut() -> Fallible<T>) -> Fallible<()> {
    let device = LoopDevice::new()?;
    let direct = i32::try_from(OFlags::DIRECT.bits())?;
    let file = File::options().read(true).custom_flags(direct).open(&device.node)?;
    // Direct reads need memory that begins with a page.
    let mut page = memmap2::MmapMut::map_anon(PAGE_BYTES)?;
    let mut random = Random::new(SEED);
    let mut pairs = Vec::new();
    for _ in 0..rounds {
        let [mut without, mut with] = [0.0; 2];
        let mut turns = [false, true];
        random.shuffle(&mut turns);
        for is_watched in turns {
            let watcher = if is_watched { Some(begin()?) } else { None };
            let ns = read_ns(&file, &mut page, &mut random)?;
            drop(watcher);
            *(if is_watched { &mut with } else { &mut without }) = ns;
        }
        pairs.push((without, with));
    }
    let over = |figure: fn(&(f64, f64)) -> f64| median(pairs.iter().map(figure)).unwrap_or(0.0);
    let (without, with) = (over(|pair| pair.0), over(|pair| pair.1));
    let ratio = over(|pair| pair.1 / pair.0);
    println!("{:<28}{without:>12.0}{with:>12.0}{ratio:>8.3}", "direct read of 4 KiB");
    Ok(())
}

/// Time of a direct read of a random page: nine of ten take longer.
fn read_ns(file: &File, page: &mut [u8], random: &mut Random) -> Fallible<f64> {
    let (begun, mut took) = (Instant::now(), Vec::new());
    while begun.elapsed() < MEASURED {
        let read_at = Instant::now();
        file.read_exact_at(page, random.below(PAGES) * PAGE_BYTES as u64)?;
        took.push(read_at.elapsed());
    }
    took.sort_unstable();
    Ok(took[took.len() / UNDISTURBED].as_nanos() as f64)
}

/// A loop device of our own, until this is dropped.
struct LoopDevice {
    node: PathBuf,
}

impl LoopDevice {
    fn new() -> Fallible<LoopDevice> {
        let file = tempfile::NamedTempFile::new_in(MEMORY)?;
        // A page that was never written takes no memory, and its read no copy.
        fs::write(&file, vec![1; PAGES as usize * PAGE_BYTES])?;
        let output =
            Command::new("losetup").args(["--find", "--show"]).arg(file.path()).output()?;
        let node = PathBuf::from(String::from_utf8(output.stdout)?.trim());
        let name = node.file_name().filter(|_| output.status.success());
        let name = name.ok_or_else(|| String::from_utf8_lossy(&output.stderr).into_owned())?;
        let scheduler = Path::new("/sys/block").join(name).join("queue/scheduler");
        let device = LoopDevice { node };
        fs::write(scheduler, "none")?;
        // The device keeps the file.
        Ok(device)
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        // What is left of it, `losetup` shows.
        let _ = Command::new("losetup").arg("--detach").arg(&self.node).status();
    }
}
