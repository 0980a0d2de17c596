//! A list of reads, by `pread` or through a mapping.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::thread::{self, ScopedJoinHandle};
use std::time::Instant;

use linux::waits;

use super::{Outcome, sum};
use crate::mapping;
use patterns::Read;

/// Reads the file in this order, with one thread.
pub(super) fn read(path: &Path, reads: &[Read]) -> io::Result<Outcome> {
    let file = File::open(path)?;
    let started = Instant::now();
    let checksum = read_from(&file, reads)?;
    Ok(Outcome { seconds: started.elapsed().as_secs_f64(), checksum, ..Outcome::default() })
}

/// Reads an open file. Returns the checksum.
pub(super) fn read_from(file: &File, reads: &[Read]) -> io::Result<u64> {
    let largest = reads.iter().map(|(_, bytes)| *bytes).max().unwrap_or(0);
    let mut buffer = vec![0; largest as usize];
    reads.iter().try_fold(0, |checksum, &(offset, bytes)| {
        let part = &mut buffer[..bytes as usize];
        file.read_exact_at(part, offset)?;
        Ok(sum::fold(checksum, part))
    })
}

/// Reads each list with a separate thread.
pub(super) fn read_at_once(path: &Path, lists: &[Vec<Read>]) -> io::Result<Outcome> {
    let started = Instant::now();
    let parts = thread::scope(|scope| {
        let mut threads = Vec::new();
        for reads in lists {
            threads.push(scope.spawn(move || read_and_wait(path, reads)));
        }
        let end =
            |thread: ScopedJoinHandle<'_, _>| thread.join().unwrap_or_else(|_| Err(panicked()));
        threads.into_iter().map(end).collect::<io::Result<Vec<Outcome>>>()
    })?;
    let seconds = started.elapsed().as_secs_f64();
    let checksum = parts.iter().fold(0u64, |sum, part| sum.wrapping_add(part.checksum));
    let waited_s = parts.iter().map(|part| part.waited_s).fold(0.0, f64::max);
    Ok(Outcome { seconds, checksum, waited_s, beside: None })
}

/// The same as [`read`]; also measures how long this thread waited for a processor.
fn read_and_wait(path: &Path, reads: &[Read]) -> io::Result<Outcome> {
    let outcome = read(path, reads)?;
    Ok(Outcome { waited_s: waits::own_thread().seconds(), ..outcome })
}

fn panicked() -> io::Error {
    io::Error::other("a reading thread panicked")
}

/// Reads one byte of each page through a mapping.
pub(super) fn touch(path: &Path, pages: &[Read]) -> io::Result<Outcome> {
    let map = mapping::map(&File::open(path)?)?;
    let mut checksum = 0u64;
    let started = Instant::now();
    for &(offset, _) in pages {
        checksum = checksum.rotate_left(5) ^ u64::from(map[offset as usize]);
    }
    Ok(Outcome { seconds: started.elapsed().as_secs_f64(), checksum, ..Outcome::default() })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn file() -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
        let bytes: Vec<u8> = (0..40_000u32).map(|i| (i * 7 % 251) as u8).collect();
        file.write_all(&bytes).expect("room for 40 kB");
        file
    }

    #[test]
    fn reading_in_another_order_gives_another_sum_and_the_same_order_the_same() {
        let file = file();
        let sum_of = |reads: &[Read]| read(file.path(), reads).map(|outcome| outcome.checksum).ok();
        let there = sum_of(&[(0, 20_000), (20_000, 20_000)]);
        assert!(there.is_some());
        assert_eq!(there, sum_of(&[(0, 20_000), (20_000, 20_000)]));
        assert_ne!(there, sum_of(&[(20_000, 20_000), (0, 20_000)]));
    }

    #[test]
    fn threads_read_what_each_of_them_would_alone() {
        let file = file();
        let lists = [vec![(0, 20_000)], vec![(20_000, 20_000), (0, 64)]];
        let alone = |reads: &Vec<Read>| read(file.path(), reads).expect("it can be read").checksum;
        let sum = lists.iter().map(alone).fold(0u64, u64::wrapping_add);
        let together = read_at_once(file.path(), &lists).expect("it can be read");
        assert_eq!(together.checksum, sum);
        assert!(read_at_once(file.path(), &[vec![(39_000, 4096)]]).is_err());
    }

    #[test]
    fn a_mapping_shows_what_the_file_holds() {
        let outcome =
            touch(file().path(), &[(4096, 4096), (8192, 4096)]).expect("it can be mapped");
        let byte = |at: u64| at * 7 % 251;
        assert_eq!(outcome.checksum, byte(4096).rotate_left(5) ^ byte(8192));
    }

    #[test]
    fn a_file_that_is_too_short_is_an_error() {
        assert!(read(file().path(), &[(39_000, 4096)]).is_err());
    }
}
