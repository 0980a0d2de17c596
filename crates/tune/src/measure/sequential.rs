//! Throughput of a sequential reader with a given window.
//!
//! ```text
//!   |-- ramp: 3 windows --|---- timed, in whole windows ----|-- what the kernel read beyond --|
//! ```
//!
//! Reads as `dd bs=4k` does, through a descriptor opened after the window was set. During the ramp,
//! the kernel's window grows to its full size. From then on, each window starts when the one before
//! has arrived, so the clock is read at the same point of each.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::time::{Duration, Instant};

use super::stop::Stop;
use crate::ground::Extent;

/// Reads are small, so that the window, not the read, decides the size of requests.
const READ_BYTES: usize = 4096;

/// In these, the kernel's window grows to its full size.
pub(super) const RAMP_WINDOWS: u64 = 3;

/// Least number of windows to time.
pub(super) const LEAST_WINDOWS: u64 = 4;

/// What the kernel reads ahead of the reader: the current window and the next.
pub(super) const BEYOND_WINDOWS: u64 = 2;

/// A reader's throughput.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pace {
    /// Bytes that were timed; `seconds` is their time.
    pub(super) bytes: u64,
    pub(super) seconds: f64,
    /// Share of pages that begin with zeros only.
    pub(super) zero_share: f64,
}

impl Pace {
    pub(super) fn mb_s(&self) -> f64 {
        self.bytes as f64 * 1e-6 / self.seconds
    }
}

/// Bytes needed to measure this window with `wanted` bytes timed.
pub(super) fn extent_bytes(window: u64, wanted: u64) -> u64 {
    (RAMP_WINDOWS + BEYOND_WINDOWS) * window + wanted.max(LEAST_WINDOWS * window)
}

/// Reads from the start of the range until `slice` has passed; `None` if the range is too short or
/// the user wants to stop.
///
/// # Errors
/// If it cannot be read.
pub(super) fn pace(
    extent: &Extent,
    window: u64,
    slice: Duration,
    stop: &Stop,
) -> io::Result<Option<Pace>> {
    let mut file = File::open(&extent.path)?;
    file.seek(SeekFrom::Start(extent.start))?;
    let end = extent.bytes.saturating_sub(BEYOND_WINDOWS * window);
    let mut buffer = [0; READ_BYTES];
    let (mut at, mut zero_pages) = (0u64, 0u64);
    let mut began = None;
    let mut timed = None;
    while at < end && !stop.is_wanted() {
        file.read_exact(&mut buffer)?;
        at += READ_BYTES as u64;
        zero_pages += u64::from(u64::from_ne_bytes(buffer[..8].try_into().unwrap_or([1; 8])) == 0);
        if at % window != 0 || at < RAMP_WINDOWS * window {
            continue;
        }
        let now = Instant::now();
        let began = *began.get_or_insert(now);
        let windows = at / window - RAMP_WINDOWS;
        if windows > 0 {
            timed = Some((windows * window, now - began));
        }
        if windows >= LEAST_WINDOWS && now - began >= slice {
            break;
        }
    }
    let Some((bytes, time)) = timed.filter(|(bytes, _)| *bytes >= LEAST_WINDOWS * window) else {
        return Ok(None);
    };
    let zero_share = zero_pages as f64 / (at / READ_BYTES as u64) as f64;
    Ok(Some(Pace { bytes, seconds: time.as_secs_f64(), zero_share }))
}
