//! A process that does one job after another. Its standard input names the jobs.
//!
//! ```text
//!   a line {"scan":{"path":"..."}}  --> worker -->  a line {"seconds":1.1,"checksum":...}
//! ```
//!
//! A file that it opens for `Job::Read` stays open between jobs, so that a reader can pause.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::{copy, follow, reads, slow, sum};
use crate::mapping;
use patterns::Read;

/// A job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Job {
    /// Map the file, read every byte, unmap it.
    Scan {
        /// The file.
        path: PathBuf,
    },
    /// `pread` in this order, through a descriptor that stays open.
    Read {
        /// The file.
        path: PathBuf,
        /// Offset and bytes of each read.
        reads: Vec<Read>,
    },
    /// Read files from start to end, one after another.
    Pass {
        /// The files.
        paths: Vec<PathBuf>,
        /// Bytes of each read.
        each: u64,
    },
    /// Copy a file.
    Copy {
        /// The file.
        from: PathBuf,
        /// The copy.
        to: PathBuf,
        /// The system calls.
        how: copy::How,
    },
    /// Run a program and discard its output.
    Program {
        /// The program and its arguments.
        words: Vec<String>,
    },
    /// Read a file twice at once, the second reader a distance behind the first.
    Follow {
        /// The file.
        path: PathBuf,
        /// The distance in bytes.
        behind: u64,
    },
    /// Read many files at once, slowly.
    Slowly(slow::Streams),
}

/// The result of a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Done {
    /// Its time.
    pub seconds: f64,
    /// A checksum of the bytes read, for jobs that are compared; otherwise 0.
    pub checksum: u64,
    /// For a follower: the share of its pages that was cached.
    pub cached_share: Option<f64>,
    /// For slow streams: the progress of the slowest, as a share of the fastest stream's.
    pub least_progress: Option<f64>,
    /// Why it failed, if so.
    pub failure: Option<String>,
}

/// Does jobs until there are no more.
///
/// # Errors
/// If a line is no job, or an answer cannot be written.
pub fn serve(jobs: impl BufRead, mut answers: impl Write) -> io::Result<()> {
    let mut worker = Worker::default();
    for line in jobs.lines() {
        let job: Job = serde_json::from_str(&line?)?;
        let done = worker
            .perform(&job)
            .unwrap_or_else(|error| Done { failure: Some(error.to_string()), ..Done::default() });
        writeln!(answers, "{}", serde_json::to_string(&done)?)?;
        answers.flush()?;
    }
    Ok(())
}

#[derive(Default)]
struct Worker {
    open: HashMap<PathBuf, File>,
}

impl Worker {
    fn perform(&mut self, job: &Job) -> io::Result<Done> {
        let started = Instant::now();
        let mut done = match job {
            Job::Scan { path } => scan(path)?,
            Job::Read { path, reads } => self.read(path, reads)?,
            Job::Pass { paths, each } => pass(paths, *each)?,
            Job::Copy { from, to, how } => copy::copy(from, to, *how).map(|()| Done::default())?,
            Job::Program { words } => run(words)?,
            Job::Follow { path, behind } => {
                Done { cached_share: Some(follow::follow(path, *behind)?), ..Done::default() }
            }
            Job::Slowly(streams) => {
                Done { least_progress: Some(streams.read()?), ..Done::default() }
            }
        };
        done.seconds = started.elapsed().as_secs_f64();
        Ok(done)
    }

    fn read(&mut self, path: &Path, reads: &[Read]) -> io::Result<Done> {
        if !self.open.contains_key(path) {
            self.open.insert(path.to_owned(), File::open(path)?);
        }
        let checksum = reads::read_from(&self.open[path], reads)?;
        Ok(Done { checksum, ..Done::default() })
    }
}

/// The checksum that [`Job::Read`] must return for this content.
pub fn expected(content: &[u8], reads: &[Read]) -> u64 {
    reads.iter().fold(0, |checksum, &(offset, bytes)| {
        sum::fold(checksum, &content[offset as usize..(offset + bytes) as usize])
    })
}

fn scan(path: &Path) -> io::Result<Done> {
    let map = mapping::map(&File::open(path)?)?;
    Ok(Done { checksum: sum::add(0, &map), ..Done::default() })
}

fn pass(paths: &[PathBuf], each: u64) -> io::Result<Done> {
    let mut buffer = vec![0; each as usize];
    for path in paths {
        let mut file = File::open(path)?;
        while io::Read::read(&mut file, &mut buffer)? > 0 {}
    }
    Ok(Done::default())
}

fn run(words: &[String]) -> io::Result<Done> {
    let (program, arguments) = words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null());
    let status = command.status()?;
    if status.success() {
        return Ok(Done::default());
    }
    Err(io::Error::other(format!("{program} ended with {status}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(jobs: &[Job]) -> Vec<Done> {
        let lines: String =
            jobs.iter().map(|job| serde_json::to_string(job).expect("JSON") + "\n").collect();
        let mut said = Vec::new();
        serve(lines.as_bytes(), &mut said).expect("it serves");
        let said = String::from_utf8(said).expect("text");
        said.lines().map(|line| serde_json::from_str(line).expect("an answer")).collect()
    }

    #[test]
    fn jobs_are_done_in_turn_and_a_failure_is_an_answer() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("one");
        let content: Vec<u8> = (0..20_000u32).map(|i| (i % 251) as u8).collect();
        std::fs::write(&path, &content).expect("written");
        let reads = vec![(10_000, 4096), (0, 1)];
        let scan = Job::Scan { path: path.clone() };
        let read = Job::Read { path: path.clone(), reads: reads.clone() };
        let missing = Job::Scan { path: folder.path().join("none") };
        let done = answers(&[scan, missing, read]);
        assert_eq!(done[0].checksum, content.iter().map(|byte| u64::from(*byte)).sum::<u64>());
        assert!(done[1].failure.is_some());
        assert_eq!(done[2].checksum, expected(&content, &reads));
    }

    #[test]
    fn every_way_of_copying_gives_the_same_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let from = folder.path().join("one");
        let content: Vec<u8> = (0..3_000_000u32).map(|i| (i % 249) as u8).collect();
        std::fs::write(&from, &content).expect("written");
        for how in copy::How::ALL {
            let to = folder.path().join(how.name());
            let done = answers(&[Job::Copy { from: from.clone(), to: to.clone(), how }]);
            assert_eq!(done[0].failure, None, "{how:?}");
            assert!(std::fs::read(&to).expect("a copy") == content, "{how:?}");
        }
    }

    #[test]
    fn a_follower_in_memory_finds_everything_cached() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), vec![3; 4 << 20]).expect("written");
        let job = Job::Follow { path: file.path().to_owned(), behind: 1 << 20 };
        assert_eq!(answers(&[job])[0].cached_share, Some(1.0));
    }
}
