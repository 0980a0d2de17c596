//! A tree of small files, and programs that read all of it: `grep -r`, `diff -r`.
//!
//! ```text
//!   device:  | directory | directory |  gap  | directory | ...     each: its files, side by side
//!   order:     3 1 4 2     2 4 1 3             ...                 of reading, as hashed names are
//! ```

use readahead::Nanos;
use serde::Deserialize;

use crate::machine::Machine;
use crate::process::{FileIndex, Op, OpenFile, Script};
use crate::scripts::random::Random;

/// The parameters of a tree.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TreeSpec {
    files: usize,
    /// Mean size of a file; sizes are distributed exponentially.
    mean_kb: f64,
    /// Files of a directory.
    directory_files: usize,
    /// The share of files that begin where the previously read file ends. The rest are read in random order within
    /// their directory.
    in_order: f64,
    /// KiB of the device between two directories.
    gap_kb: u64,
}

impl TreeSpec {
    /// The same tree with `times` times fewer files.
    pub fn scaled_down(self, times: usize) -> Self {
        TreeSpec { files: self.files / times, ..self }
    }
}

/// The files of a tree in the order in which they are read, with their sizes in bytes.
#[derive(Clone, Debug)]
pub struct Tree {
    files: Vec<(FileIndex, u64)>,
}

impl Tree {
    /// Lays out a tree from byte `offset` of the device on. The same seed gives the same tree.
    pub fn add(machine: &mut Machine, spec: &TreeSpec, seed: u64, mut offset: u64) -> Self {
        let mut random = Random::new(seed);
        let mut files = Vec::with_capacity(spec.files);
        while files.len() < spec.files {
            let count = spec.directory_files.min(spec.files - files.len());
            let first = files.len();
            for _ in 0..count {
                let bytes = (-(1.0 - random.unit()).ln() * spec.mean_kb * 1024.0).ceil() as u64;
                files.push((machine.add_file_at(bytes.max(1), offset), bytes.max(1)));
                offset += bytes.max(1).next_multiple_of(4096);
            }
            offset += spec.gap_kb << 10;
            for place in first..files.len() {
                if random.unit() >= spec.in_order {
                    let other = first + random.below(count as u64) as usize;
                    files.swap(place, other);
                }
            }
        }
        Tree { files }
    }

    /// The same files with the directories in another order, for example by name.
    pub fn reordered(&self, spec: &TreeSpec, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut directories: Vec<_> = self.files.chunks(spec.directory_files.max(1)).collect();
        random.shuffle(&mut directories);
        Tree { files: directories.concat() }
    }

    /// Opens every file.
    fn open(&self, machine: &mut Machine) -> Vec<(OpenFile, u64)> {
        self.files.iter().map(|(file, bytes)| (machine.open(*file), *bytes)).collect()
    }
}

/// Reads trees of the same shape side by side, file by file, each file in one pass.
pub struct Walk {
    /// In the order of reading.
    files: Vec<(OpenFile, u64)>,
    next: usize,
    /// CPU time of the program per KiB.
    user_per_kib: f64,
    /// CPU time of the kernel per file, for names and inodes.
    per_file: Nanos,
    step: Step,
}

/// The next step for a file.
#[derive(Clone, Copy)]
enum Step {
    LookUp,
    Read,
    Compute,
}

impl Walk {
    /// Opens all files of the trees. `user_per_kib` is in nanoseconds.
    pub fn new(machine: &mut Machine, trees: &[&Tree], user_per_kib: f64, per_file: Nanos) -> Self {
        let opened: Vec<_> = trees.iter().map(|tree| tree.open(machine)).collect();
        let most = opened.iter().map(Vec::len).max().unwrap_or(0);
        let files = (0..most).flat_map(|i| opened.iter().filter_map(move |t| t.get(i).copied()));
        Walk { files: files.collect(), next: 0, user_per_kib, per_file, step: Step::LookUp }
    }
}

impl Script for Walk {
    fn next(&mut self, _now: Nanos) -> Op {
        let Some(&(open, bytes)) = self.files.get(self.next) else { return Op::Exit };
        match self.step {
            Step::LookUp => {
                self.step = Step::Read;
                Op::LookUp { ns: self.per_file }
            }
            Step::Read => {
                self.step = Step::Compute;
                Op::Read { open, at: 0, bytes }
            }
            Step::Compute => {
                self.step = Step::LookUp;
                self.next += 1;
                Op::Compute { ns: (bytes as f64 / 1024.0 * self.user_per_kib) as Nanos }
            }
        }
    }
}
