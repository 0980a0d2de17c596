//! Devices that do not do what they should, and a reader on each.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use lab::{Lab, LabError, LabGuard, Options};

#[path = "silent.rs"]
mod silent;

use silent::{Silence, Silent};

/// A file of so many bytes is read backward in reads of so many, where the kernel reads nothing ahead by itself.
pub(crate) const FILE_BYTES: u64 = 64 << 20;
pub(crate) const READ_BYTES: u64 = 64 << 10;

/// The server answers as many reads as bowwave needs to recognise a stream, and then nothing any more.
const FALLS_SILENT: Silence = Silence { after_reads: 64, when_bowwave_closes: false };

/// A reader of a bad device is in trouble within this time.
const MOST_WAITING: Duration = Duration::from_secs(60);

const SLOW_DEVICE: &str = "description = 'ten seconds a read'\n\
    [channels]\nlatency_us = 1e7\nbandwidth_mb_s = 100.0\nconcurrency = 4\n";

/// What is wrong with a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    /// A FUSE server stops answering.
    Silent,
    /// A disk takes ten seconds a read.
    Slow,
    /// A disk is pulled out.
    Vanishing,
}

/// The options of a lab with ext4.
pub(crate) fn options(bowwave: &Path, name: &str, device: &str, fault: Option<&str>) -> Options {
    Options {
        name: format!("{name}-{}", std::process::id()),
        device: device.into(),
        size_bytes: 256 << 20,
        fs_type: "ext4".into(),
        scheduler: None,
        server: Some(bowwave.to_owned()),
        inject_late_us: 0.0,
        faults: fault.into_iter().map(|fault| fault.parse().expect("a fault")).collect(),
    }
}

/// Puts the file to be read on a lab, cold; the delays and faults begin when it returns.
pub(crate) fn prepare(lab: &Lab) -> Result<(), LabError> {
    lab.set_fast(true)?;
    let bytes: Vec<u8> = (0..FILE_BYTES / 8).flat_map(|n| n.to_le_bytes()).collect();
    let path = file_in(&lab.mount_point());
    fs::write(&path, bytes).map_err(|error| LabError::File { path, error })?;
    lab.evict()
}

pub(crate) fn file_in(folder: &Path) -> PathBuf {
    folder.join("file")
}

/// Reads the file below `folder` backward, until it has been read or `is_over`; gives the sum of what was read.
pub(crate) fn read_backward(folder: &Path, is_over: &AtomicBool) -> io::Result<u64> {
    let file = File::open(file_in(folder))?;
    let mut bytes = vec![0; READ_BYTES as usize];
    let mut sum = 0_u64;
    for at in (0..FILE_BYTES / READ_BYTES).rev() {
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        file.read_exact_at(&mut bytes, at * READ_BYTES)?;
        sum = bytes.iter().fold(sum, |sum, byte| sum.wrapping_mul(31) + u64::from(*byte));
    }
    Ok(sum)
}

enum Device {
    Silent(Silent),
    Lab(Box<LabGuard>),
}

/// A bad device with a file, and who reads that.
pub(crate) struct Bad {
    device: Device,
    folder: PathBuf,
    is_over: Arc<AtomicBool>,
    reader: Option<JoinHandle<()>>,
    _description: tempfile::TempDir,
}

impl Bad {
    /// Makes the device; nothing is wrong with it yet.
    pub(crate) fn up(sort: Sort, bowwave: &Path) -> Result<Bad, LabError> {
        let description = tempfile::tempdir().map_err(other)?;
        let device = match sort {
            Sort::Silent => Device::Silent(Silent::mount(FALLS_SILENT, FILE_BYTES).map_err(other)?),
            Sort::Slow => {
                let slow = description.path().join("slow.toml");
                fs::write(&slow, SLOW_DEVICE).map_err(other)?;
                let of = options(bowwave, "slow", &slow.to_string_lossy(), None);
                Device::Lab(Box::new(LabGuard::up(&of)?))
            }
            Sort::Vanishing => {
                // Vanishes while it is read, a moment after the daemon has begun.
                Device::Lab(Box::new(LabGuard::up(&options(
                    bowwave,
                    "gone",
                    "net",
                    Some("vanish@1"),
                ))?))
            }
        };
        let folder = match &device {
            Device::Silent(silent) => silent.folder().to_owned(),
            Device::Lab(lab) => lab.mount_point(),
        };
        if let Device::Lab(lab) = &device {
            prepare(lab)?;
            lab.set_fast(true)?;
        }
        let (is_over, reader) = (Arc::default(), None);
        Ok(Bad { device, folder, is_over, reader, _description: description })
    }

    /// Where it is mounted.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The kernel's own window there, in KiB.
    pub(crate) fn window_kb(&self) -> io::Result<u64> {
        window_kb(&self.folder)
    }

    /// Starts a reader there, and lets the device go bad. When this returns, a read has failed or waits.
    pub(crate) fn begin(&mut self) -> Result<(), LabError> {
        let (folder, is_over) = (self.folder.clone(), Arc::clone(&self.is_over));
        // Reads on from what cannot be read, as a program does that retries.
        let read = move || {
            while !is_over.load(Ordering::Relaxed) {
                let _ = read_backward(&folder, &is_over);
                thread::yield_now();
            }
        };
        if let Device::Lab(lab) = &self.device {
            lab.set_fast(false)?;
        }
        self.reader = Some(thread::spawn(read));
        let until = Instant::now() + MOST_WAITING;
        while !self.is_in_trouble()? {
            if Instant::now() > until {
                return Err(other(io::Error::other("nothing goes wrong on the bad device")));
            }
            thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    fn is_in_trouble(&self) -> Result<bool, LabError> {
        match &self.device {
            Device::Silent(silent) => Ok(silent.is_waited_for()),
            Device::Lab(lab) => {
                let status = lab.status()?;
                Ok(status.faults > 0 || status.reads > status.timed)
            }
        }
    }

    /// The device works again, or is gone for good; its reader ends.
    pub(crate) fn release(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        match &self.device {
            Device::Silent(silent) => silent.end(),
            Device::Lab(lab) => {
                let answer = lab.set_fast(true);
                // While a test fails, a second panic would leave its devices behind.
                assert!(answer.is_ok() || thread::panicking(), "its server does not answer");
            }
        }
        if let Some(reader) = self.reader.take() {
            let end = reader.join();
            assert!(end.is_ok() || thread::panicking(), "the reader panicked");
        }
    }
}

impl Drop for Bad {
    fn drop(&mut self) {
        if !thread::panicking() || self.reader.is_some() {
            self.release();
        }
    }
}

/// The kernel's own window of the file system at `folder`, in KiB.
pub(crate) fn window_kb(folder: &Path) -> io::Result<u64> {
    let dev = fs::metadata(folder)?.dev();
    let path = format!("/sys/class/bdi/{}:{}/read_ahead_kb", libc::major(dev), libc::minor(dev));
    fs::read_to_string(path)?.trim().parse().map_err(io::Error::other)
}

/// What is left in the state folder of windows that were set: journals of knobs, and ledgers of open files.
pub(crate) fn journals(state: &Path) -> Vec<PathBuf> {
    let names = |folder: PathBuf| fs::read_dir(folder).into_iter().flatten().flatten();
    let ledgers = names(state.to_owned())
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("given-windows"));
    names(state.join("knobs")).chain(ledgers).map(|entry| entry.path()).collect()
}

fn other(error: io::Error) -> LabError {
    LabError::File { path: "the bad device".into(), error }
}
