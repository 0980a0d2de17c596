//! How deep bowwave reads ahead for a stream, while somebody else reads random places of the same volume, and how long
//! that one waits; on a bare disk and on the volume of many layers.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use controller::Device;
use linux::direct::DirectReader;
use rustix::process::{Pid, Signal, kill_process};
use status::Report;

use super::COLUMN;
use super::stack::{BARE, RANDOM_FILE, STACK, STREAM_FILE};
use super::stream::Stream;
use crate::Result;
use crate::machine::forget_everything;

/// Of the random reader.
const READ_BYTES: usize = 4096;
const FILE_BYTES: u64 = 100 << 20;
/// Some to get used to each other, and some to measure.
const FIRST_READS: u64 = 60;
const READS: u64 = 60;
/// What the stream reads alone: all of its file.
const ALONE_STEPS: usize = 100;
/// The depth returns within a second and some steps of 50 ms.
const MOST_STEPS_AFTER: usize = 2000;
const ASK_AGAIN: Duration = Duration::from_millis(20);

/// What one device has shown.
struct Shown {
    waits: Waits,
    with_ms: f64,
    /// How many bytes may be in flight for the stream, and the most that were.
    alone: Depth,
    beside: Depth,
    after: Depth,
}

/// How long the random reader waits with the stock kernel.
#[derive(Clone, Copy)]
struct Waits {
    alone_ms: f64,
    beside_ms: f64,
}

#[derive(Clone, Copy, Default)]
struct Depth {
    allowed: u64,
    most_in_flight: u64,
}

impl Depth {
    fn see(&mut self, device: &Device) {
        self.allowed = device.depth_bytes;
        self.most_in_flight = self.most_in_flight.max(device.in_flight_bytes);
    }
}

pub(super) fn report() -> Result<()> {
    let stock = [stock_waits(BARE)?, stock_waits(STACK)?];
    let daemon = Daemon::start()?;
    for (folder, feature, waits) in
        [(BARE, "depth, bare disk", stock[0]), (STACK, "depth, LVM on LUKS on md", stock[1])]
    {
        let device = measured(folder)?;
        println!("DEVICE\t{folder}\t{device:?}");
        let shown = watch(folder, waits)?;
        let works = shown.beside.allowed * 4 <= shown.alone.allowed
            && shown.after.allowed == shown.alone.allowed;
        crate::report(COLUMN, feature, works, &shown.text());
    }
    daemon.stop()
}

impl Shown {
    fn text(&self) -> String {
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        let depth = |depth: &Depth| {
            format!("{:.1} MiB ({:.1} in flight)", mib(depth.allowed), mib(depth.most_in_flight))
        };
        format!(
            "depth for the stream {}, beside a random reader {}, after it {}; the random reader waits {:.0} ms alone, \
             {:.0} ms beside the stream on the stock kernel, {:.0} ms with bowwave",
            depth(&self.alone),
            depth(&self.beside),
            depth(&self.after),
            self.waits.alone_ms,
            self.waits.beside_ms,
            self.with_ms
        )
    }
}

fn stock_waits(folder: &str) -> Result<Waits> {
    forget_everything()?;
    let mut random = Random::open(folder)?;
    let alone_ms = random.mean_ms(READS, || Ok(()))?;
    let mut stream = started(folder)?;
    stream.step()?;
    Ok(Waits { alone_ms, beside_ms: random.mean_ms(READS, || Ok(()))? })
}

fn watch(folder: &str, waits: Waits) -> Result<Shown> {
    forget_everything()?;
    let [mut alone, mut beside, mut after] = [Depth::default(); 3];
    let mut stream = started(folder)?;
    for _ in 0..ALONE_STEPS {
        stream.step()?;
        alone.see(&device(folder)?);
    }
    let mut random = Random::open(folder)?;
    random.mean_ms(FIRST_READS, || device(folder).map(drop))?;
    let with_ms = random.mean_ms(READS, || {
        beside.see(&device(folder)?);
        Ok(())
    })?;
    for _ in 0..MOST_STEPS_AFTER {
        stream.step()?;
        after.see(&device(folder)?);
        if after.allowed >= alone.allowed {
            break;
        }
    }
    Ok(Shown { waits, with_ms, alone, beside, after })
}

fn started(folder: &str) -> Result<Stream> {
    Stream::start(&format!("{folder}/{STREAM_FILE}"))
}

/// A reader like a database: it reads past the page cache, one place after the other.
struct Random {
    reader: DirectReader,
    reads: u64,
}

impl Random {
    fn open(folder: &str) -> Result<Random> {
        let path = format!("{folder}/{RANDOM_FILE}");
        Ok(Random { reader: DirectReader::open(Path::new(&path))?, reads: 0 })
    }

    /// Reads some places, and does `each` after each; returns the mean time of a read.
    fn mean_ms(&mut self, reads: u64, mut each: impl FnMut() -> Result<()>) -> Result<f64> {
        let mut seconds = 0.0;
        for _ in 0..reads {
            self.reads += 1;
            // Far from each other: the golden ratio.
            let place = (self.reads as f64 * 0.618_033_988_75).fract();
            let pages = FILE_BYTES / READ_BYTES as u64;
            let offset = (place * pages as f64) as u64 * READ_BYTES as u64;
            seconds += self.reader.timed_read(offset, READ_BYTES)?;
            each()?;
        }
        Ok(seconds * 1e3 / reads as f64)
    }
}

struct Daemon(Child);

impl Daemon {
    fn start() -> Result<Daemon> {
        let mut command = Command::new("/bin/bowwave");
        Ok(Daemon(command.arg("daemon").env("PATH", "/bin").stdin(Stdio::null()).spawn()?))
    }

    fn stop(mut self) -> Result<()> {
        let pid = Pid::from_child(&self.0);
        kill_process(pid, Signal::TERM)?;
        let status = self.0.wait()?;
        if status.success() { Ok(()) } else { Err(format!("the daemon: {status}").into()) }
    }
}

/// The device of a folder as soon as the daemon has measured it.
fn measured(folder: &str) -> Result<Device> {
    loop {
        match device(folder) {
            Ok(device) if device.origin == "measured" => return Ok(device),
            // It does not listen yet, or does not know the device yet. The guest ends after a time.
            _ => thread::sleep(ASK_AGAIN),
        }
    }
}

/// What the daemon tells of the device of a folder.
fn device(folder: &str) -> Result<Device> {
    let answers = status::ask(Path::new(linux::state::FOLDER))?;
    let answer = answers.into_iter().next().ok_or("no daemon answers")??;
    let devices = Report::parse(&answer)?.status.devices;
    let is_its = |device: &Device| device.mount_points.iter().any(|place| place == folder);
    devices.into_iter().find(is_its).ok_or_else(|| format!("no device of {folder}").into())
}
