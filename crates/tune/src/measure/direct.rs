//! Estimates the curve without setting the window: direct requests of the window's size, one at a
//! time.
//!
//! The kernel also requests one window at a time, so this comes close to the throughput that it
//! would reach.

use std::io;
use std::time::{Duration, Instant};

use linux::direct::DirectReader;

use super::sequential::Pace;
use super::stop::Stop;
use crate::sources::Source;

/// Least number of requests to time.
const LEAST_REQUESTS: u64 = 4;

/// Reads on from the end of the last call.
#[derive(Debug)]
pub(super) struct Requests {
    reader: DirectReader,
    /// Size of the source.
    bytes: u64,
    at: u64,
}

impl Requests {
    /// Opens the source and tries one read.
    ///
    /// # Errors
    /// If the source cannot be read directly.
    pub(super) fn open(source: &Source) -> io::Result<Self> {
        let reader = DirectReader::open(&source.path)?;
        let mut requests = Requests { reader, bytes: source.bytes, at: 0 };
        requests.next(4096)?;
        Ok(requests)
    }

    /// Reads the next `bytes`, from the start again at the end. Returns the seconds it took.
    fn next(&mut self, bytes: u64) -> io::Result<f64> {
        if self.at + bytes > self.bytes {
            self.at = 0;
        }
        let seconds = self.reader.timed_read(self.at, bytes as usize)?;
        self.at += bytes;
        Ok(seconds)
    }

    /// Sends requests of `window` bytes for a time of `slice`; `None` if the source is too small or
    /// the user wants to stop.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(super) fn pace(
        &mut self,
        window: u64,
        slice: Duration,
        stop: &Stop,
    ) -> io::Result<Option<Pace>> {
        if window * LEAST_REQUESTS > self.bytes {
            return Ok(None);
        }
        let began = Instant::now();
        let (mut requests, mut seconds) = (0, 0.0);
        while (requests < LEAST_REQUESTS || began.elapsed() < slice) && !stop.is_wanted() {
            seconds += self.next(window)?;
            requests += 1;
        }
        let pace = Pace { bytes: requests * window, seconds, zero_share: 0.0 };
        Ok((requests >= LEAST_REQUESTS).then_some(pace))
    }
}
