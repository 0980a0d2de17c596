//! For who may not set the window: requests of its size past the page cache, one at a time.
//!
//! The kernel asks for a window at a time as well, so this comes near to what it would get.

use std::io;
use std::time::{Duration, Instant};

use linux::direct::DirectReader;

use super::sequential::Pace;
use super::stop::Stop;
use crate::target::Source;

const LEAST_REQUESTS: u64 = 4;

/// Reads on from where the last call ended.
#[derive(Debug)]
pub(super) struct Requests {
    reader: DirectReader,
    bytes: u64,
    at: u64,
}

impl Requests {
    /// # Errors
    /// If the source cannot be read directly.
    pub(super) fn open(source: &Source) -> io::Result<Self> {
        let reader = DirectReader::open(&source.path)?;
        let mut requests = Requests { reader, bytes: source.bytes, at: 0 };
        requests.next(4096)?;
        Ok(requests)
    }

    fn next(&mut self, bytes: u64) -> io::Result<f64> {
        if self.at + bytes > self.bytes {
            self.at = 0;
        }
        let seconds = self.reader.timed_read(self.at, bytes as usize)?;
        self.at += bytes;
        Ok(seconds)
    }

    /// Requests of `window` bytes for a `slice` of time; `None` if the source has not as many, or the
    /// user wants to stop.
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
