//! A reader: runs one pattern and measures how long it takes.
//!
//! It runs in a separate process, since the kernel's read-ahead state, page tables and memory cgroup belong to
//! processes and open files, and end with them.

mod beside;
mod copy;
mod follow;
pub mod jobs;
mod program;
mod reads;
mod slow;
mod sum;

use std::io;
use std::path::{Path, PathBuf};

use linux::waits;
use serde::{Deserialize, Serialize};

use patterns::{Pattern, Work};

pub use copy::How;
pub use slow::Streams;

/// A reader's report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Seconds from the first read to the last, or from start to exit of a program.
    pub seconds: f64,
    /// A checksum of all bytes read, to compare runs; 0 if nobody compares them.
    pub checksum: u64,
    /// Seconds that the readers waited for a processor; of several side by side, the longest.
    #[serde(default)]
    pub waited_s: f64,
    /// Figures of a random reader beside others.
    pub beside: Option<Beside>,
}

/// Figures of a random reader and the streams or the walker beside it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Beside {
    /// Bytes that all streams together, or the walker, have read.
    pub stream_bytes: u64,
    /// Median latency of the random reads, in milliseconds.
    pub median_ms: f64,
    /// Their 99th percentile, in milliseconds.
    pub p99_ms: f64,
}

/// Runs the pattern on the files below `folder`.
///
/// # Errors
/// If a file cannot be read or a program fails.
pub fn perform(pattern: &Pattern, folder: &Path) -> io::Result<Outcome> {
    let paths = paths(pattern, folder);
    let waited_before = waits::own_thread();
    let outcome = match pattern.work {
        Work::Reads(order) | Work::Limited(order, _) => reads::read(&paths[0], &order()),
        Work::Threads(orders) => reads::read_at_once(&paths[0], &orders()),
        Work::Mapped(order) => reads::touch(&paths[0], &order()),
        Work::Program(words) | Work::Part(words, _) => program::run(words, folder, &paths),
        Work::Copy => program::copy(&paths[0]),
        Work::CopyTree => program::copy_tree(pattern.files[0].name, folder, &paths),
        Work::Cats => program::cats(&paths),
        Work::Beside => beside::read(&paths[0], &paths[1..]),
        Work::BesideWalk(words) => beside::read_beside_walk(&paths, words, folder),
    }?;
    let waited_s = outcome.waited_s + (waits::own_thread() - waited_before).seconds();
    Ok(Outcome { waited_s, ..outcome })
}

fn paths(pattern: &Pattern, folder: &Path) -> Vec<PathBuf> {
    let names = pattern.files.iter().flat_map(|files| files.names());
    names.map(|name| folder.join(name)).collect()
}
