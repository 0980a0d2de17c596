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

    /// Reads the next `bytes`, from the start again at the end. Returns the seconds it took, and whether all are zero.
    fn next(&mut self, bytes: u64) -> io::Result<(f64, bool)> {
        if self.at + bytes > self.bytes {
            self.at = 0;
        }
        let read = self.reader.timed_look(self.at, bytes as usize)?;
        self.at += bytes;
        Ok(read)
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
        let (mut requests, mut zeros, mut seconds) = (0u64, 0u64, 0.0);
        while (requests < LEAST_REQUESTS || began.elapsed() < slice) && !stop.is_wanted() {
            let (took, is_zero) = self.next(window)?;
            seconds += took;
            requests += 1;
            zeros += u64::from(is_zero);
        }
        let zero_share = zeros as f64 / requests.max(1) as f64;
        let pace = Pace { bytes: requests * window, seconds, zero_share };
        Ok((requests >= LEAST_REQUESTS).then_some(pace))
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write;

    use super::*;

    #[test]
    fn holes_of_a_file_are_seen_as_zeros() {
        let folder = tempfile::tempdir().expect("a folder");
        let source = Source { path: folder.path().join("file"), bytes: 1 << 20 };
        let mut file = File::create(&source.path).expect("ours");
        file.set_len(source.bytes).expect("it takes no room");
        let zero_share = || {
            let mut requests = match Requests::open(&source) {
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                    println!("skipped: the file system of {:?} has no direct I/O", source.path);
                    return None;
                }
                opened => opened.expect("it can be read"),
            };
            let pace = requests.pace(64 << 10, Duration::from_millis(1), &Stop::default());
            Some(pace.expect("it can be read").expect("it is large enough").zero_share)
        };
        let Some(of_hole) = zero_share() else { return };
        assert_eq!(of_hole, 1.0);
        file.write_all(&[1; 1 << 20]).expect("there is room");
        assert_eq!(zero_share(), Some(0.0));
    }
}
